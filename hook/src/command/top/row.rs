//! What a row shows: one GPU of one container or run.
//!
//! Made of the picture that `status` has and of the rates between two pictures. Text is made printable where the picture
//! is read; here are numbers and names. Pure.

use super::rates::{Budget, Key, Rate, Rates};
use crate::command::status::table::{self, NONE};
use crate::command::status::view::{Device, LedgerView, Status};
use crate::container::effective_limit::EffectiveLimit;
use gpucap_core::units::ComputeLimit;
use gpucap_plan::Card;

/// A GPU of a container or run.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    /// As nvidia-smi counts, if that is known.
    pub(super) index: Option<usize>,
    /// `None`: the budget uses none, and may use none by name.
    pub(super) gpu: Option<String>,
    pub(super) name: String,
    pub(super) used: u64,
    /// Whether that is counted, as it is where memory is limited.
    pub(super) counted: bool,
    /// `None`: not limited, or not known in bytes.
    pub(super) limit: Option<u64>,
    /// The same as `status` writes it.
    pub(super) limit_text: String,
    /// Whether time is measured, as it is where it is limited.
    pub(super) timed: bool,
    /// `None`: there is no earlier reading to compare with.
    pub(super) rate: Option<Rate>,
    /// The compute limit, as far as the host knows it.
    pub(super) share: Option<ComputeLimit>,
    pub(super) refusals: u64,
    pub(super) processes: usize,
}

/// The rows of a picture, in its order.
pub(super) fn rows(status: &Status, rates: &Rates, cards: &[Card]) -> Vec<Row> {
    status.ledgers.iter().flat_map(|ledger| of_ledger(ledger, rates, cards)).collect()
}

fn of_ledger(ledger: &LedgerView, rates: &Rates, cards: &[Card]) -> Vec<Row> {
    let base = Base { budget: Budget::of(ledger), name: ledger.label(), rates, cards };
    let mut rows: Vec<Row> = ledger.devices.iter().map(|device| base.used(device)).collect();
    rows.extend(ledger.unused().map(|effective| base.unused(effective)));
    if rows.is_empty() {
        rows.push(base.row(None, NONE.to_owned()));
    }
    rows
}

/// What the rows of one ledger have in common.
struct Base<'a> {
    budget: Budget,
    name: String,
    rates: &'a Rates,
    cards: &'a [Card],
}

impl Base<'_> {
    fn row(&self, gpu: Option<String>, limit_text: String) -> Row {
        let key = (self.budget.clone(), gpu.clone().unwrap_or_default());
        Row {
            index: gpu.as_ref().and_then(|gpu| table::index(gpu, self.cards)),
            rate: self.rates.get(&key).copied(),
            key,
            gpu,
            name: self.name.clone(),
            used: 0,
            counted: true,
            limit: None,
            limit_text,
            timed: false,
            share: None,
            refusals: 0,
            processes: 0,
        }
    }

    fn used(&self, device: &Device) -> Row {
        Row {
            used: device.used,
            counted: device.is_counted(),
            limit: device.limit(),
            timed: device.is_timed(),
            share: device.compute(),
            refusals: device.refusals,
            processes: device.users(),
            ..self.row(Some(device.name()), table::limit(device))
        }
    }

    /// A GPU that no process has used: of its time, nothing was.
    fn unused(&self, effective: &EffectiveLimit) -> Row {
        let share = effective.now.core;
        Row {
            limit: effective.bytes(),
            timed: share.is_some(),
            rate: Some(Rate { permille: 0, waiting: 0 }),
            share,
            ..self.row(Some(effective.gpu.to_string()), table::memory(effective.now))
        }
    }
}

impl Row {
    /// What is beyond the limit, which was lowered below what was held.
    pub(super) fn is_beyond(&self) -> bool {
        self.limit.is_some_and(|limit| self.used > limit)
    }

    /// Thousandths of the GPU's time, if they were measured.
    pub(super) fn permille(&self) -> Option<u32> {
        self.rate.filter(|_| self.timed).map(|rate| rate.permille)
    }

    /// Hundredths of the number of launches that waited, if they were measured.
    pub(super) fn waiting(&self) -> Option<u32> {
        self.rate.filter(|_| self.timed).map(|rate| rate.waiting)
    }
}
