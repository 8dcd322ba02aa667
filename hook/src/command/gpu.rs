//! A GPU as a person names it in an option: by its index, as nvidia-smi counts on this machine, or by its name.
//!
//! What is written down names it by its UUID, since an index is another GPU in a container. Pure: the machine's GPUs are
//! an argument.

use gpucap_core::limits::file::Key;
use gpucap_plan::Card;
use std::str::FromStr;

/// A GPU as it was typed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gpu {
    /// Its index.
    Index(u32),
    /// `GPU-<uuid>` or `MIG-<uuid>`, or `*` for any.
    Key(Key),
}

impl Gpu {
    /// Returns its name in the limits file, on a machine with these GPUs.
    ///
    /// # Errors
    /// There is no GPU of this index: one line.
    pub(crate) fn key(self, cards: &[Card]) -> Result<Key, String> {
        let index = match self {
            Self::Key(key) => return Ok(key),
            Self::Index(index) => index,
        };
        let card = usize::try_from(index).ok().and_then(|index| cards.get(index));
        card.map(|card| Key::Name(card.name)).ok_or_else(|| match cards.len() {
            0 => "the driver does not list this machine's GPUs: give --gpu GPU-<uuid>".into(),
            count => format!("--gpu {index}: this machine has {count} GPUs, counted from 0"),
        })
    }
}

impl FromStr for Gpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(index) = text.parse() {
            return Ok(Self::Index(index));
        }
        text.parse().map(Self::Key).map_err(|why| format!("{why}; or give its index"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_the_gpu_that_nvidia_smi_counts() {
        let name = |digit| format!("GPU-{digit}0000000-0000-0000-0000-000000000000");
        let card = |digit| Card {
            name: name(digit).parse().expect("a name"),
            minor: None,
            slices: gpucap_core::config::Slices::default(),
            model: String::new(),
        };
        let cards = [card('1'), card('2')];
        let key = |text: &str, cards: &[Card]| {
            text.parse().and_then(|gpu: Gpu| gpu.key(cards)).map(|key| key.to_string())
        };
        assert_eq!(key("1", &cards), Ok(name('2')));
        assert_eq!(key("*", &cards), Ok("*".into()));
        assert_eq!(key(&name('3'), &cards), Ok(name('3')));
        let count = "--gpu 2: this machine has 2 GPUs, counted from 0";
        assert_eq!(key("2", &cards), Err(count.into()));
        assert!(key("0", &[]).is_err_and(|why| why.contains("GPU-<uuid>")));
        assert!(key("first", &cards).is_err_and(|why| why.ends_with("; or give its index")));
    }
}
