//! The metrics, in the text form of OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>). It is part
//! of what we promise: names, labels and meanings stay, new ones may come. The manual's page `metrics` has the table of
//! them, which the tests compare with [`METRICS`].

mod labels;
mod node;
mod sampled;

use super::text::word;
use super::view::{Device, LedgerView, Status};
use crate::container::effective_limit::EffectiveLimit;
use gpucap_core::ledger::Kind;
use gpucap_core::limits::file::Key;
use gpucap_core::units::Share;
use labels::{Labels, labels};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// The metrics of each GPU of each budget.
struct Metric {
    name: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
    help: &'static str,
    of: fn(&Seen<'_>) -> Option<f64>,
}

const METRICS: &[Metric] = &[
    Metric {
        name: "memory_limit",
        unit: Some(Unit::Bytes),
        kind: MetricType::Gauge,
        help: "Current memory limit",
        of: |seen| seen.limit().map(number),
    },
    Metric {
        name: "memory_used",
        unit: Some(Unit::Bytes),
        kind: MetricType::Gauge,
        help: "GPU memory that living processes hold, contexts included; absent without a memory limit",
        of: |seen| seen.device?.held().map(number),
    },
    Metric {
        name: "memory_peak",
        unit: Some(Unit::Bytes),
        kind: MetricType::Gauge,
        help: "Highest value of the memory used so far",
        of: |seen| seen.device?.most_held().map(number),
    },
    Metric {
        name: "memory_refusals",
        unit: None,
        kind: MetricType::Counter,
        help: "Allocations that were refused",
        of: |seen| seen.device.map(|device| number(device.refusals)),
    },
    Metric {
        name: "core_guaranteed_ratio",
        unit: None,
        kind: MetricType::Gauge,
        help: "Guarantee of the compute limit, as a fraction of the GPU's time; 0 for low priority",
        of: |seen| {
            let limit = seen.effective?.now.core?;
            Some(limit.guaranteed().map_or_else(|| number(0), part))
        },
    },
    Metric {
        name: "core_max_ratio",
        unit: None,
        kind: MetricType::Gauge,
        help: "Maximum of the compute limit, borrowed time included, as a fraction of the GPU's time",
        of: |seen| seen.effective?.now.core.map(|limit| part(limit.most())),
    },
    Metric {
        name: "core_used_ratio",
        unit: None,
        kind: MetricType::Gauge,
        help: "Fraction of the GPU's time that was charged in the last second or so",
        of: |seen| seen.timed().map(|device| f64::from(device.time.permille) / 1000.0),
    },
    Metric {
        name: "core_busy",
        unit: Some(Unit::Seconds),
        kind: MetricType::Counter,
        help: "GPU time that was charged: that for which the GPU worked, and beside processes without gpucap some of theirs",
        of: |seen| seen.timed().map(|device| seconds(device.time.busy_ns)),
    },
    Metric {
        name: "core_borrowed",
        unit: Some(Unit::Seconds),
        kind: MetricType::Counter,
        help: "GPU time that was charged beyond the guarantee, in what others left",
        of: |seen| seen.timed().map(|device| seconds(device.borrowed_ns)),
    },
    Metric {
        name: "core_waited",
        unit: Some(Unit::Seconds),
        kind: MetricType::Counter,
        help: "Time for which launches waited for the compute limit, in sum",
        of: |seen| seen.timed().map(|device| seconds(device.waited_ns)),
    },
    Metric {
        name: "core_debt",
        unit: Some(Unit::Seconds),
        kind: MetricType::Gauge,
        help: "Time until the next launch is allowed",
        of: |seen| seen.timed().map(|device| seconds(device.owed_for_ns)),
    },
    Metric {
        name: "launches",
        unit: None,
        kind: MetricType::Counter,
        help: "Launches of kernels and graphs",
        of: |seen| seen.timed().map(|device| number(device.time.launches)),
    },
    Metric {
        name: "last_launch_timestamp",
        unit: Some(Unit::Seconds),
        kind: MetricType::Gauge,
        help: "When the GPU last finished work of launches, in whole seconds since 1970",
        // To the second: the clocks that it is computed from advance between two scrapes.
        of: |seen| Some(number(seen.device?.last_worked_ns? / 1_000_000_000)),
    },
    Metric {
        name: "processes",
        unit: None,
        kind: MetricType::Gauge,
        help: "Living processes that use the GPU",
        of: |seen| seen.device.map(|device| number(device.users() as u64)),
    },
];

/// The text, with its end mark.
pub(super) fn render(status: &Status) -> String {
    let mut registry = Registry::with_prefix("gpucap");
    registry.register_collector(Box::new(Table::of(status)));
    registry.register_collector(Box::new(sampled::Table::of(status)));
    registry.register_collector(Box::new(node::Table::of(status)));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

/// A GPU of a budget.
struct Seen<'a> {
    /// What the host gave of it, as far as it knows.
    effective: Option<EffectiveLimit>,
    /// `None` if no process has used it.
    device: Option<&'a Device>,
}

impl<'a> Seen<'a> {
    /// Those of one budget: in use, and given by name. A GPU that goes by no name is known when it is used.
    fn all(ledger: &'a LedgerView) -> impl Iterator<Item = (String, Self)> {
        let used = ledger.devices.iter().map(|device| {
            (device.name(), Self { effective: device.effective, device: Some(device) })
        });
        let of_host = ledger.container.iter().flat_map(|container| &container.effective);
        let unused = of_host.filter_map(|effective| {
            let Key::Name(name) = effective.gpu else { return None };
            let is_used = ledger.devices.iter().any(|device| device.effective == Some(*effective));
            (!is_used)
                .then(|| (name.to_string(), Self { effective: Some(*effective), device: None }))
        });
        used.chain(unused)
    }

    /// As the host gave it, if it knows that in bytes; else the lowest limit of a living process.
    fn limit(&self) -> Option<u64> {
        let of_host = self.effective.and_then(|effective| effective.bytes());
        of_host.or_else(|| self.device?.process_limits().map(|(lowest, _)| lowest))
    }

    /// The device, if its time is measured.
    fn timed(&self) -> Option<&'a Device> {
        self.device.filter(|device| device.compute().is_some() || device.time.launches > 0)
    }
}

/// The rendered rows: labels, and the values in the order of [`METRICS`].
#[derive(Debug)]
struct Table {
    rows: Vec<(Labels, Vec<Option<f64>>)>,
    /// Labels with a kind of memory, and its bytes.
    kinds: Vec<(Labels, f64)>,
}

impl Table {
    fn of(status: &Status) -> Self {
        let rows = status.ledgers.iter().flat_map(|ledger| {
            Seen::all(ledger).map(move |(gpu, seen)| {
                let labels = labels(ledger, gpu);
                (labels, METRICS.iter().map(|metric| (metric.of)(&seen)).collect())
            })
        });
        let kinds = status.ledgers.iter().flat_map(|ledger| {
            let of_device = |device| of_kinds(labels(ledger, Device::name(device)), device);
            ledger.devices.iter().flat_map(of_device)
        });
        Self { rows: rows.collect(), kinds: kinds.collect() }
    }
}

impl Collector for Table {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (place, metric) in METRICS.iter().enumerate() {
            let values = self
                .rows
                .iter()
                .filter_map(|(labels, values)| Some((labels, (*values.get(place)?)?)));
            let Metric { name, unit, help, kind, .. } = metric;
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), *kind)?;
            for (labels, value) in values {
                let mut point = family.encode_family(labels)?;
                match kind {
                    MetricType::Counter => {
                        point.encode_counter::<NoLabelSet, _, u64>(&value, None)?
                    }
                    _ => point.encode_gauge(&value)?,
                }
            }
        }
        let (name, unit, help) = OF_KINDS;
        let mut family = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for (labels, bytes) in &self.kinds {
            family.encode_family(labels)?.encode_gauge(bytes)?;
        }
        Ok(())
    }
}

/// The metric that has a label more: of which kind of memory it is.
const OF_KINDS: (&str, Unit, &str) = (
    "memory_held",
    Unit::Bytes,
    "The same by `memory`, the kind of allocation as in `status --json`",
);

/// What living processes hold of a device, by kind.
fn of_kinds(labels: Labels, device: &Device) -> impl Iterator<Item = (Labels, f64)> + use<> {
    let counted = device.is_counted().then_some(device.kinds);
    let kinds = counted.into_iter().flat_map(|kinds| Kind::ALL.into_iter().zip(kinds));
    kinds.map(move |(kind, bytes)| {
        let of_kind = [("memory", word(kind).to_owned())];
        (labels.iter().cloned().chain(of_kind).collect(), number(bytes))
    })
}

/// Whole up to 2^53, as every number there is.
#[expect(clippy::cast_precision_loss, reason = "the form has no other numbers")]
fn number(count: u64) -> f64 {
    count as f64
}

fn seconds(ns: u64) -> f64 {
    number(ns) / 1e9
}

fn part(share: Share) -> f64 {
    f64::from(share.parts()) / f64::from(Share::DENOMINATOR)
}

#[cfg(test)]
mod tests;
