//! The cards of this machine: what `gpucap-driver cards` answers.
//!
//! That program loads NVIDIA's library, this one loads nothing. It is given up after a while, so that a driver that
//! hangs is a failure and not a plugin that hangs. A card that was there and is not any more stays known as lost until
//! this program ends, and beyond its end while a claim has it: such claims must not meet another one.

use crate::error::{Error, Result};
use gpucap_core::uuid::DeviceName;
use gpucap_kubelet::message::Health;
use std::fmt;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How long NVIDIA's driver may take; a card that starts up takes seconds.
const LONGEST: Duration = Duration::from_secs(60);

/// A card.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Card {
    pub(crate) name: DeviceName,
    /// Bytes of its memory that claims can have: without what NVIDIA's driver keeps for itself.
    pub(crate) memory: u64,
    /// `8.0`.
    pub(crate) capability: Option<String>,
    /// `0000:3b:00.0`.
    pub(crate) address: Option<String>,
    /// It is divided into MIG instances, which this driver does not publish.
    pub(crate) has_mig: bool,
    pub(crate) product: Option<String>,
}

/// All cards, and the driver that has them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cards {
    pub(crate) list: Vec<(Card, Health)>,
    pub(crate) driver: Option<String>,
    pub(crate) cuda: Option<String>,
}

/// The program that asks, and the words before its own: `chroot /host /opt/.../gpucap-driver`.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    pub(crate) libraries: Option<String>,
}

impl Program {
    /// Returns the cards that there are now.
    ///
    /// # Errors
    /// The program cannot be started, has not answered in time, or has no driver to ask.
    pub(crate) async fn ask(&self) -> Result<Cards> {
        let wrong =
            |why: &dyn fmt::Display| Error::Cards(format!("{}: {why}", self.words.join(" ")));
        let [program, words @ ..] = &self.words[..] else { return Err(wrong(&"no program")) };
        let mut command = Command::new(program);
        command.args(words).arg("cards").env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(self.libraries.as_ref().map(|path| ("LD_LIBRARY_PATH", path)));
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(LONGEST, command.output()).await;
        let output = output.map_err(|_| wrong(&"no answer in time"))?.map_err(|why| wrong(&why))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<&str> = text.lines().collect();
        match lines.pop() {
            Some("done") => Cards::of(&lines).ok_or_else(|| wrong(&"an answer of another version")),
            Some(last) => Err(wrong(&last.strip_prefix("error ").unwrap_or(last))),
            None => Err(wrong(&"said nothing")),
        }
    }
}

impl Cards {
    /// The cards in these lines; `None` if one of them is not of this version. What is lost has no name and is missing.
    pub(crate) fn of(lines: &[&str]) -> Option<Self> {
        let mut cards = Self::default();
        let known = |text: &str| (text != "-").then(|| text.to_owned());
        for line in lines {
            match line.split_once(' ')? {
                ("driver", version) => cards.driver = known(version),
                ("cuda", version) => cards.cuda = known(version),
                ("card", card) => cards.list.push((Card::of(card)?, Health::Healthy)),
                ("lost", _) => {}
                _ => return None,
            }
        }
        Some(cards)
    }

    /// The cards of this machine from now on: those of `self` that are not in `now` any more are lost.
    pub(crate) fn followed_by(&self, mut now: Self) -> Self {
        let missing = self.list.iter().filter(|(card, _)| now.find(card.name).is_none());
        let lost: Vec<_> = missing.map(|(card, _)| (card.clone(), Health::Unhealthy)).collect();
        now.list.extend(lost);
        now
    }

    /// Those of the cards that are in `now` too, or have one of these names.
    pub(crate) fn still_expected(mut self, now: &Self, names: &[DeviceName]) -> Self {
        let is_in = |name| now.find(name).is_some() || names.contains(&name);
        self.list.retain(|(card, _)| is_in(card.name));
        self
    }

    /// The same cards, of which nothing is known at present.
    pub(crate) fn unknown(mut self) -> Self {
        for (_, health) in &mut self.list {
            if *health == Health::Healthy {
                *health = Health::Unknown;
            }
        }
        self
    }

    /// The card of this name, and how it is.
    pub(crate) fn find(&self, name: DeviceName) -> Option<&(Card, Health)> {
        self.list.iter().find(|(card, _)| card.name == name)
    }
}

/// Lines that [`Cards::of`] reads as the same cards.
impl fmt::Display for Cards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "driver {}", or_dash(&self.driver))?;
        writeln!(f, "cuda {}", or_dash(&self.cuda))?;
        self.list.iter().try_for_each(|(card, _)| {
            let Card { name, memory, capability, address, has_mig, product } = card;
            let (capability, address) = (or_dash(capability), or_dash(address));
            let (mig, product) = (if *has_mig { "mig" } else { "none" }, or_dash(product));
            writeln!(f, "card {name} {memory} 0 {capability} {address} {mig} {product}")
        })
    }
}

fn or_dash(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("-")
}

impl Card {
    /// The card in a line `GPU-... TOTAL RESERVED CAPABILITY ADDRESS MIG NAME`.
    fn of(line: &str) -> Option<Self> {
        let known = |text: &str| (text != "-").then(|| text.to_owned());
        let mut words = line.splitn(7, ' ');
        let mut next = || words.next();
        let (name, total, reserved) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
        let memory = u64::checked_sub(total, reserved.parse().ok()?)?;
        let (capability, address) = (known(next()?), known(next()?));
        let has_mig = match next()? {
            "mig" => true,
            "none" => false,
            _ => return None,
        };
        Some(Self { name, memory, capability, address, has_mig, product: known(next()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str =
        "card GPU-10000000-0000-0000-0000-000000000000 1000 100 9.0 0000:3b:00.0 none NVIDIA H200";
    const B: &str = "card GPU-20000000-0000-0000-0000-000000000000 1000 0 - - mig -";

    #[test]
    fn what_the_driver_keeps_is_no_memory_of_claims() {
        let cards =
            Cards::of(&["driver 580.1", "cuda -", A, B, "lost 2 it fell off"]).expect("cards");
        let [(one, _), (other, _)] = &cards.list[..] else { panic!("{cards:?}") };
        assert_eq!((one.memory, one.product.as_deref()), (900, Some("NVIDIA H200")));
        assert_eq!((one.has_mig, other.has_mig, &other.product), (false, true, &None));
        assert_eq!((cards.driver.as_deref(), cards.cuda), (Some("580.1"), None));
    }

    #[test]
    fn cards_are_the_same_once_written_and_read() {
        for head in [["driver 580.1", "cuda -"], ["driver -", "cuda 13.1"]] {
            let cards = Cards::of(&[head[0], head[1], A, B]).expect("cards");
            let text = cards.to_string();
            assert_eq!(Cards::of(&text.lines().collect::<Vec<_>>()), Some(cards), "{text}");
        }
    }

    #[test]
    fn of_cards_known_from_before_those_are_expected_that_a_claim_has() {
        let both = Cards::of(&[A, B]).expect("cards");
        let none = Cards::default();
        let names: Vec<_> = both.list.iter().map(|(card, _)| card.name).collect();
        let expected = |now: &Cards, claimed: &[DeviceName]| {
            let expected = both.clone().still_expected(now, claimed).list;
            expected.iter().map(|(card, _)| card.name).collect::<Vec<_>>()
        };
        assert_eq!(expected(&none, &[]), []);
        assert_eq!(expected(&none, &names[1..]), names[1..]);
        assert_eq!(expected(&Cards::of(&[A]).expect("cards"), &names[1..]), names);
        assert_eq!(expected(&both, &[]), names);
    }

    #[test]
    fn an_answer_of_another_version_is_none() {
        for line in
            ["", "card", "card GPU-1 1 1 1 1 none x", "fan 7", &A.replace("1000 100", "100 1000")]
        {
            assert_eq!(Cards::of(&[line]), None, "{line}");
        }
    }

    #[test]
    fn a_card_that_is_missing_is_lost_until_it_is_back() {
        let both = Cards::of(&[A, B]).expect("cards");
        let one = both.followed_by(Cards::of(&[A]).expect("cards"));
        let health = |cards: &Cards, at: usize| cards.list[at].1;
        assert_eq!((health(&one, 0), health(&one, 1)), (Health::Healthy, Health::Unhealthy));
        let unknown = one.clone().unknown();
        assert_eq!(
            (health(&unknown, 0), health(&unknown, 1)),
            (Health::Unknown, Health::Unhealthy)
        );
        assert_eq!(one.followed_by(both.clone()), both);
    }
}
