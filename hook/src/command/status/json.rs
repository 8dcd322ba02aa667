//! `status` for programs. The format is stable: names and meanings stay, new ones may be added. The page
//! `status` has a table of them, which the tests compare with what is rendered here. It is written by `json!` and not
//! derived from the view: fields of the view may be renamed, and it holds more than is published.

use super::text::word;
use super::view::{Container, Device, LedgerView, Row, State, Status, Time};
use crate::container::effective_limit::{EffectiveLimit, Limit};
use gpucap_core::ledger::Kind;
use gpucap_core::units::{ComputeLimit, Share};
use gpucap_plan::{Names, NativeLimit};
use serde_json::{Map, Value, json};

/// The JSON text, with a line end.
pub(crate) fn render(status: &Status) -> String {
    let unreadable = status.unreadable.iter().map(|(path, why)| json!({"path": path, "why": why}));
    let value = json!({
        "version": 1,
        "ledgers": status.ledgers.iter().map(ledger).collect::<Vec<_>>(),
        "unused": status.unused,
        "unreadable": unreadable.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn ledger(ledger: &LedgerView) -> Value {
    json!({
        "path": ledger.path,
        "container": ledger.container.as_ref().map(container),
        "kind": ledger.kind(),
        "devices": ledger.devices.iter().map(device).collect::<Vec<_>>(),
    })
}

fn container(container: &Container) -> Value {
    let Container { record, source, effective } = container;
    let name = |of: fn(&Names) -> &String| record.names.as_ref().map(of);
    json!({
        "id": record.container,
        "pid": record.pid,
        "namespace": name(|names| &names.namespace),
        "pod": name(|names| &names.pod),
        "name": name(|names| &names.container),
        "source": source,
        "limits": effective.iter().map(limit).collect::<Vec<_>>(),
        "cgroup": record.native_limits.as_ref().map(|native_limits| &native_limits.cgroup),
        "driver_limits": record.native_limits.iter().flat_map(|it| &it.limits).map(native_limit).collect::<Vec<_>>(),
    })
}

fn native_limit(native_limit: &NativeLimit) -> Value {
    json!({"gpu": native_limit.gpu.to_string(), "bytes_at_start": native_limit.bytes})
}

fn limit(effective: &EffectiveLimit) -> Value {
    let mut value = memory_and_time(effective.now);
    value["gpu"] = json!(effective.gpu.to_string());
    value["at_start"] = memory_and_time(effective.at_start);
    value
}

fn memory_and_time(Limit { memory, core }: Limit) -> Value {
    json!({
        "memory_bytes": memory.bytes.map(|bytes| bytes.0),
        "memory_percent": memory.part.map(of_whole),
        "core_percent": core.map(guaranteed),
        "core_max_percent": core.map(most),
    })
}

/// What is guaranteed, in percent: of low priority nothing.
fn guaranteed(limit: ComputeLimit) -> f64 {
    limit.guaranteed().map_or(0.0, of_whole)
}

fn most(limit: ComputeLimit) -> f64 {
    of_whole(limit.most())
}

fn of_whole(share: Share) -> f64 {
    f64::from(share.parts()) / 100.0
}

fn device(device: &Device) -> Value {
    json!({
        "uuid": device.uuid.to_string(),
        "gpu": device.name(),
        "limit_bytes": device.effective.and_then(|effective| effective.bytes()),
        "cap_bytes": device.process_limits().map(|(lowest, _)| lowest),
        "used_bytes": device.held(),
        "peak_bytes": device.most_held(),
        "refusals": device.refusals,
        "time": {
            "core_percent": device.compute().map(guaranteed),
            "core_max_percent": device.compute().map(most),
            "share_percent": percent(device.time),
            "busy_ns": device.time.busy_ns,
            "launches": device.time.launches,
            "waited_ns": device.waited_ns,
            "borrowed_ns": device.borrowed_ns,
            "owed_for_ns": device.owed_for_ns,
        },
        "ended": {"processes": device.ended, "bytes": device.ended_bytes},
        "processes": device.processes.iter().map(|row| process(row, device.is_counted())).collect::<Vec<_>>(),
        "unlisted": device.unlisted.processes,
    })
}

/// Without a memory limit nothing of it is counted.
fn process(row: &Row, is_counted: bool) -> Value {
    let counted = |bytes: u64| Some(bytes).filter(|_| is_counted);
    let kinds = Kind::ALL.iter().zip(row.kinds);
    let by_kind: Map<String, Value> =
        kinds.map(|(kind, bytes)| (word(*kind).to_owned(), counted(bytes).into())).collect();
    json!({
        "pid": row.pid,
        "state": if row.state == State::Alive { "alive" } else { "unknown" },
        "command": row.command,
        "since_s": row.since_s,
        "cap_bytes": row.limit,
        "used_bytes": counted(row.used),
        "peak_bytes": counted(row.peak),
        "refusals": row.refusals,
        "by_kind": by_kind,
        "time": {
            "share_percent": percent(row.time),
            "busy_ns": row.time.busy_ns,
            "launches": row.time.launches,
        },
    })
}

fn percent(time: Time) -> f64 {
    f64::from(time.permille) / 10.0
}
