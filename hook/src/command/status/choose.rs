//! What of a [`Status`] a word chooses: a container, a process or a GPU.
//!
//! A container or run goes by the words that `gpucap limit` takes, a process by its number, a GPU by its name, the
//! beginning of that, or its index as nvidia-smi counts. What goes by several is chosen as the first of these. Pure.

use super::view::{Device, LedgerView, Status};
use gpucap_plan::Card;
use std::mem;

/// What the names of GPUs and MIG instances begin with; alone it names none.
const PREFIXES: [&str; 2] = ["GPU-", "MIG-"];

impl Status {
    /// Keeps what goes by this word, on a machine with these GPUs. `None` if nothing does.
    pub(crate) fn chosen(mut self, word: &str, cards: &[Card]) -> Option<Self> {
        let all = mem::take(&mut self.ledgers);
        let (of_container, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|ledger| ledger.is_called(word));
        let (of_process, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|ledger| is_of_process(ledger, word));
        let chosen = [of_container, of_process, of_gpu(others, word, cards)];
        let ledgers = chosen.into_iter().find(|ledgers| !ledgers.is_empty())?;
        Some(Self { ledgers, containers: self.containers, ..Self::default() })
    }
}

fn is_of_process(ledger: &LedgerView, word: &str) -> bool {
    word.parse().is_ok_and(|pid| ledger.processes_called(pid).next().is_some())
}

/// The ledgers that use a GPU, with that one alone.
fn of_gpu(ledgers: Vec<LedgerView>, word: &str, cards: &[Card]) -> Vec<LedgerView> {
    let index = word.parse::<usize>().ok();
    let card = index.map(|index| cards.get(index).map(|card| card.name.to_string()));
    let is_meant = |device: &Device| match &card {
        Some(name) => name.as_ref() == Some(&device.name()),
        None => !PREFIXES.contains(&word) && is_name(word) && device.name().starts_with(word),
    };
    let kept = ledgers.into_iter().map(|mut ledger| {
        ledger.devices.retain(is_meant);
        ledger.of_gpu = true;
        ledger
    });
    kept.filter(|ledger| !ledger.devices.is_empty()).collect()
}

fn is_name(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::status;
    use super::*;
    use gpucap_core::uuid::Uuid;

    /// How many ledgers and devices a word chooses.
    fn chosen(word: &str) -> Option<(usize, usize)> {
        let name = Uuid([1; 16]).gpu();
        let chosen = status().chosen(
            word,
            &[Card {
                name,
                minor: None,
                slices: gpucap_core::config::Slices::default(),
                model: String::new(),
            }],
        )?;
        let devices = chosen.ledgers.iter().map(|ledger| ledger.devices.len()).sum();
        Some((chosen.ledgers.len(), devices))
    }

    #[test]
    fn a_gpu_goes_by_its_name_its_beginning_or_its_index() {
        let name = Uuid([1; 16]).gpu().to_string();
        let all = chosen(&name).expect("some");
        assert!(all.0 > 0 && all.0 == all.1, "{all:?}");
        assert_eq!(chosen(name.get(..12).expect("a name")), Some(all));
        assert_eq!(chosen("0"), Some(all));
        for word in ["", "GPU-", "MIG-", "01010101", "1", "GPU-ff"] {
            assert_eq!(chosen(word), None, "{word:?}");
        }
    }

    #[test]
    fn a_process_goes_by_the_number_that_is_shown() {
        let seen = status();
        let mut rows = seen.ledgers.iter().flat_map(|it| &it.devices).flat_map(|it| &it.processes);
        let pid = rows.next().expect("a process").pid.to_string();
        assert!(chosen(&pid).is_some());
        assert_eq!(chosen("4294967295"), None);
    }
}
