//! The metrics of the node, each once: which build of gpucap prints them, how many containers have limits, how many were
//! refused, and what cannot be seen.
//!
//! What depends on the hook's directory has no sample where that directory cannot be seen: no value is better than a zero
//! that looks like an idle node.

use crate::command::status::view::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::fmt;

/// Name, type and meaning.
type Metric = (&'static str, MetricType, &'static str);

/// In the order in which they are rendered.
pub(super) const METRICS: [Metric; 5] = [
    ("build", MetricType::Info, "The release that prints these metrics, in the label `version`"),
    (
        "containers",
        MetricType::Gauge,
        "Running containers with limits, as the hook recorded them; absent without its directory",
    ),
    (
        "containers_refused",
        MetricType::Counter,
        "Containers that the hook refused to start since the node's boot, by `reason`; absent without its directory",
    ),
    (
        "run_dir_present",
        MetricType::Gauge,
        "Whether the hook's directory of records can be seen: 1, or 0",
    ),
    ("unreadable", MetricType::Gauge, "Ledgers that are there and cannot be read"),
];

/// The values.
#[derive(Debug)]
pub(super) struct Table {
    containers: Option<usize>,
    refused: Vec<(&'static str, u64)>,
    unreadable: usize,
}

impl Table {
    pub(super) fn of(status: &Status) -> Self {
        let Status { containers, refused, unreadable, .. } = status;
        Self { containers: *containers, refused: refused.clone(), unreadable: unreadable.len() }
    }
}

impl Collector for Table {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let [build, containers, refused, run_dir, unreadable] = METRICS;
        family(&mut encoder, build)?.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let mut gauge = family(&mut encoder, containers)?;
        if let Some(containers) = self.containers {
            gauge.encode_gauge(&number(containers))?;
        }
        let mut counters = family(&mut encoder, refused)?;
        for (reason, count) in &self.refused {
            let labels = [("reason", *reason)];
            let mut counter = counters.encode_family(&labels)?;
            counter.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let is_present = number(usize::from(self.containers.is_some()));
        family(&mut encoder, run_dir)?.encode_gauge(&is_present)?;
        family(&mut encoder, unreadable)?.encode_gauge(&number(self.unreadable))
    }
}

/// Begins a metric.
fn family<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    (name, kind, help): Metric,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, kind)
}

/// As the other gauges are rendered.
fn number(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}
