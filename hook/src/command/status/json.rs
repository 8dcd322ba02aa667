//! `status` for programs. The form is part of what we promise: names and meanings stay, new ones may come.
//!
//! ```text
//! { "version": 1,
//!   "ledgers": [ { "path", "kind": "run" | "shared" | "container" | "other",
//!     "container": { "id", "pid", "pod": text | null, "name": text | null, "limits": text } | null,
//!     "devices": [ { "uuid", "cap_bytes": number | null, "used_bytes", "peak_bytes", "refusals",
//!       "time": { "core_percent": number | null, "share_percent", "busy_ns", "launches", "waited_ns", "owed_for_ns" },
//!       "ended": { "processes", "bytes" },
//!       "processes": [ { "pid", "state": "alive" | "unknown", "command": text | null, "since_s", "cap_bytes",
//!         "used_bytes", "peak_bytes", "refusals", "by_kind": { "alloc", "managed", ... },
//!         "time": { "share_percent", "busy_ns", "launches" } } ] } ] } ],
//!   "unused": [ path ], "unreadable": [ { "path", "why" } ] }
//! ```
//!
//! `used_bytes` of a device leaves out what ended processes held (`ended`); `cap_bytes` of a device is the lowest of
//! its processes' caps, null if none of them is capped or left. `container` is what the hook knows of one that it put
//! under `limits` (the text of the limits file).
//!
//! `time` is 0 where time is not limited: then it is not measured. `share_percent` is that of the last second or so, of
//! the whole card; `core_percent` what the container was given, null if that is not known; `owed_for_ns` how long it takes
//! until what was spent beyond the share is paid off.

use super::view::{Book, Device, Row, State, Status, Time, word};
use crate::engine::records::Record;
use crate::ledgers::{BY_HOOK, Name};
use gpucap_core::ledger::Kind;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The JSON text, with a line end.
pub(super) fn render(status: &Status) -> String {
    let unreadable = status.unreadable.iter().map(|(path, why)| json!({"path": path, "why": why}));
    let value = json!({
        "version": 1,
        "ledgers": status.books.iter().map(ledger).collect::<Vec<_>>(),
        "unused": status.unused,
        "unreadable": unreadable.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn ledger(book: &Book) -> Value {
    json!({
        "path": book.path,
        "container": book.record.as_ref().map(container),
        "kind": match Name::of(&book.path) {
            Some(Name::Run { .. }) => "run",
            Some(Name::Shared { .. }) => "shared",
            None if book.record.is_some() || book.path == Path::new(BY_HOOK) => "container",
            None => "other",
        },
        "devices": book.devices.iter().map(device).collect::<Vec<_>>(),
    })
}

fn container(record: &Record) -> Value {
    json!({
        "id": record.container,
        "pid": record.pid,
        "pod": record.pod,
        "name": record.name,
        "limits": record.limits,
    })
}

fn device(device: &Device) -> Value {
    json!({
        "uuid": device.uuid.to_string(),
        "cap_bytes": device.caps().map(|(lowest, _)| lowest),
        "used_bytes": device.used,
        "peak_bytes": device.peak,
        "refusals": device.refusals,
        "time": {
            "core_percent": device.core.map(|core| f64::from(core.parts()) / 100.0),
            "share_percent": percent(device.time),
            "busy_ns": device.time.busy_ns,
            "launches": device.time.launches,
            "waited_ns": device.waited_ns,
            "owed_for_ns": device.owed_for_ns,
        },
        "ended": {"processes": device.ended, "bytes": device.ended_bytes},
        "processes": device.processes.iter().map(process).collect::<Vec<_>>(),
    })
}

fn process(row: &Row) -> Value {
    let kinds = Kind::ALL.iter().zip(row.kinds);
    let by_kind: Map<String, Value> =
        kinds.map(|(kind, bytes)| (word(*kind).to_owned(), bytes.into())).collect();
    json!({
        "pid": row.pid,
        "state": if row.state == State::Alive { "alive" } else { "unknown" },
        "command": row.command,
        "since_s": row.since_s,
        "cap_bytes": row.cap,
        "used_bytes": row.used,
        "peak_bytes": row.peak,
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
