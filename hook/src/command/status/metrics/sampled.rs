//! The metrics that come from the driver's samples of processes (`gpucap metrics --sample`), for each GPU of each container
//! of the hook and of each run, with a compute limit or without.
//!
//! The driver samples in whole percents, a few times a second, and counts a kernel however few of the GPU's units it uses.
//! Where nothing is sampled there is no series.

use super::labels::{Labels, labels};
use crate::command::status::view::{Device, Sampled, Status};
use gpucap_core::uuid::Uuid;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;

/// Name, unit, type and meaning.
type Metric = (&'static str, Option<Unit>, MetricType, &'static str);

/// In the order in which they are rendered.
pub(super) const METRICS: [Metric; 5] = [
    (
        "core_sampled_ratio",
        None,
        MetricType::Gauge,
        "Fraction of the GPU's time that was used in the last two seconds, as the driver samples it: in whole percents",
    ),
    (
        "core_sampled",
        Some(Unit::Seconds),
        MetricType::Counter,
        "Time for which the GPU worked, as the driver samples it, since this process samples",
    ),
    (
        "last_busy_timestamp",
        Some(Unit::Seconds),
        MetricType::Gauge,
        "When the GPU last worked, as the driver samples it, or since when it is sampled, in whole seconds since 1970",
    ),
    (
        "core_excess",
        Some(Unit::Seconds),
        MetricType::Counter,
        "Time for which the GPU worked beyond the compute limit and a tolerance, as the driver samples it, since this process samples",
    ),
    (
        "core_unattributed",
        Some(Unit::Seconds),
        MetricType::Counter,
        "Time for which the GPU worked for processes that had ended before they were sampled, since this process samples",
    ),
];
/// The place of the one that is of a GPU alone.
const UNATTRIBUTED: usize = 4;

/// The values.
#[derive(Debug)]
pub(super) struct Table {
    budgets: Vec<(Labels, Sampled)>,
    unattributed: Vec<(Labels, u64)>,
}

impl Table {
    pub(super) fn of(status: &Status) -> Self {
        let devices = status.ledgers.iter().flat_map(|ledger| {
            let of = |device: &Device| Some((labels(ledger, device.name()), device.sampled?));
            ledger.devices.iter().filter_map(of)
        });
        let gpu = |(gpu, ns): (&Uuid, &u64)| (vec![("gpu", gpu.gpu().to_string())], *ns);
        Self {
            budgets: devices.collect(),
            unattributed: status.unattributed.iter().map(gpu).collect(),
        }
    }
}

impl Collector for Table {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (place, (name, unit, kind, help)) in METRICS.into_iter().enumerate() {
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            if place == UNATTRIBUTED {
                for (labels, ns) in &self.unattributed {
                    let mut point = family.encode_family(labels)?;
                    point.encode_counter::<NoLabelSet, _, u64>(&(number(*ns) / 1e9), None)?;
                }
                continue;
            }
            for (labels, Sampled { permille, busy_ns, last_ns, beyond_ns }) in &self.budgets {
                let (value, is_counter) = match place {
                    0 => (number(*permille) / 1e3, false),
                    1 => (number(*busy_ns) / 1e9, true),
                    2 => (number(last_ns / 1_000_000_000), false),
                    _ => match beyond_ns {
                        Some(ns) => (number(*ns) / 1e9, true),
                        None => continue,
                    },
                };
                let mut point = family.encode_family(labels)?;
                if is_counter {
                    point.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
                } else {
                    point.encode_gauge(&value)?;
                }
            }
        }
        Ok(())
    }
}

/// Whole up to 2^53, as every number there is.
#[expect(clippy::cast_precision_loss, reason = "the form has no other numbers")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::super::render;
    use super::*;
    use crate::command::status::text::tests::raised;

    #[test]
    fn what_is_sampled_has_series() {
        let mut sampled = raised();
        assert!(!render(&sampled).contains("sampled_ratio{"), "nothing is sampled");
        let last_ns = 1_790_000_000_999_999_999;
        let found = Sampled { permille: 250, busy_ns: 1_500_000_000, last_ns, beyond_ns: None };
        sampled.ledgers[0].devices[0].sampled = Some(found);
        assert!(!render(&sampled).contains("excess_seconds_total{"), "without a compute limit");
        let found = Sampled { beyond_ns: Some(250_000_000), ..found };
        sampled.ledgers[0].devices[0].sampled = Some(found);
        sampled.unattributed.insert(Uuid([1; 16]), 500_000_000);
        let text = render(&sampled);
        let unattributed = "\ngpucap_core_unattributed_seconds_total{gpu=\"GPU-01010101-0101-0101-0101-010101010101\"} 0.5\n";
        assert!(text.contains(unattributed), "{text}");
        for (name, value) in [
            ("core_sampled_ratio", "0.25"),
            ("core_sampled_seconds_total", "1.5"),
            ("last_busy_timestamp_seconds", "1790000000.0"),
            ("core_excess_seconds_total", "0.25"),
        ] {
            let start = format!("\ngpucap_{name}{{kind=\"container\",namespace=\"default\"");
            let line = text.split_once(&start).and_then(|(_, rest)| rest.lines().next());
            assert!(
                line.is_some_and(|line| line.ends_with(&format!("}} {value}"))),
                "{name}: {text}"
            );
        }
    }
}
