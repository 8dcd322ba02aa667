//! The manual: what each part does, why it is as it is, and where its facts come from.
//!
//! * [`architecture`]: one call, from the look-up to the driver and back.
//! * [`interception`]: how every look-up is caught, and which are not.
//! * [`memory`]: what is charged, when, and when it comes back.
//! * [`time`]: who pays for the card's time, when a launch waits, and how time is measured.
//! * [`ledger`]: the ledger that processes share, and why a death cannot spoil it.
//! * [`reports`]: what programs see.
//! * [`limits`]: where limits come from, and what happens when they cannot be used.
//! * [`containers`]: the hook: how it is installed, what it does, why a container does not start.
//! * [`driver`]: what is measured on a node, and the limits that the driver keeps by itself.
//! * [`kubernetes`]: a cluster's nodes, beside NVIDIA's plugin, MIG and time slicing.
//! * [`status`]: what `gpucap status` shows, and the names of its JSON.
//! * [`metrics`]: the same for Prometheus.
//! * [`sources`]: who can say how much a container is allowed, and how the node is configured.
//! * [`threats`]: what a container can write, what bounds it, and what a preload does not hold.
//! * [`reliability`]: each promise, the test that holds it, and the largest run.
//! * [`costs`]: what is done on which path.
//! * [`rows_cuda`], [`rows_nvml`]: each intercepted function.
//!
//! Documentation only: these modules exist while rustdoc runs and in no library.

#[doc = include_str!("manual/architecture.md")]
mod architecture {}

#[doc = include_str!("manual/interception.md")]
mod interception {}

#[doc = include_str!("manual/memory.md")]
mod memory {}

#[doc = include_str!("manual/time.md")]
mod time {}

#[doc = include_str!("manual/ledger.md")]
mod ledger {}

#[doc = include_str!("manual/reports.md")]
mod reports {}

#[doc = include_str!("manual/limits.md")]
mod limits {}

#[doc = include_str!("manual/containers.md")]
mod containers {}

#[doc = include_str!("manual/driver.md")]
mod driver {}

#[doc = include_str!("manual/kubernetes.md")]
mod kubernetes {}

#[doc = include_str!("manual/status.md")]
mod status {}

#[doc = include_str!("manual/metrics.md")]
mod metrics {}

#[doc = include_str!("manual/sources.md")]
mod sources {}

#[doc = include_str!("manual/threats.md")]
mod threats {}

#[doc = include_str!("manual/reliability.md")]
mod reliability {}

#[doc = include_str!("manual/costs.md")]
mod costs {}

#[doc = include_str!("manual/rows_cuda.md")]
mod rows_cuda {}

#[doc = include_str!("manual/rows_nvml.md")]
mod rows_nvml {}
