//! `status --verbose` for people: each ledger with all that is known of it, no line wider than the terminal, but for
//! paths and reasons.

use super::name::short_id;
use super::table::{self, NONE};
use super::view::{Container, Device, LedgerView, Row, State, Status};
use crate::container::effective_limit::EffectiveLimit;
use crate::container::ledgers::{BY_HOOK, Name};
use crate::node::proc::printable;
use crate::terminal::lines::flow;
use crate::terminal::quantity::{duration, exact, size};
use crate::terminal::style;
use crate::terminal::table::{Column, Table};
use gpucap_core::ledger::Kind;
use gpucap_core::units::ComputeLimit;
use gpucap_plan::Names;
use std::cmp::Reverse;
use std::fmt::Write;
use std::path::Path;

const PID: Column = Column::right("PID");
const SINCE: Column = Column::right("SINCE");
const TIME: Column = Column::right("TIME");
const HOLDS: Column = Column::right("HOLDS");
const OF_IT: Column = Column::left("OF IT");
const COMMAND: Column = Column::left("COMMAND").at_least(COMMAND_LEAST);
const COMMAND_LEAST: usize = 8;
/// Where time is limited, and where it is not.
const TIMED: &[Column] = &[PID, SINCE, TIME, HOLDS, OF_IT, COMMAND];
const UNTIMED: &[Column] = &[PID, SINCE, HOLDS, OF_IT, COMMAND];

/// The lines.
pub(super) fn render(status: &Status, width: usize) -> String {
    let mut text: Vec<String> = status.ledgers.iter().map(|it| ledger(it, width)).collect();
    text.extend(table::remarks(status));
    text.join("\n")
}

/// One ledger.
pub(super) fn ledger(ledger: &LedgerView, width: usize) -> String {
    let mut text = limits(ledger, width);
    if ledger.devices.is_empty() {
        text.push_str("\n  no GPU in use\n");
    }
    for seen in &ledger.devices {
        text.push('\n');
        text.push_str(&device(seen, width));
    }
    text
}

/// The budget's owner, and what it may use.
pub(crate) fn limits(ledger: &LedgerView, width: usize) -> String {
    let mut text = title(ledger, width);
    for effective in ledger.container.iter().flat_map(|container| &container.effective) {
        text.push_str(&flow(width, 2, &allowed(effective)));
    }
    let native_limits =
        ledger.container.iter().flat_map(|container| &container.record.native_limits);
    for native_limit in native_limits.flat_map(|native_limits| &native_limits.limits) {
        text.push_str(&flow(width, 2, &[format!("the driver limits {} too", native_limit.gpu)]));
    }
    text
}

/// The budget's owner.
fn title(ledger: &LedgerView, width: usize) -> String {
    let whose = match Name::of(&ledger.path) {
        _ if ledger.container.is_some() => String::new(),
        Some(Name::Run { pid, .. }) => format!("Run of process {pid}"),
        Some(Name::Shared { uid, .. }) => format!("Shared by user {uid}"),
        None if ledger.path == Path::new(BY_HOOK) => "This container".into(),
        None => "Shared".into(),
    };
    let Some(Container { record, .. }) = &ledger.container else {
        return flow(
            width,
            0,
            &[style::bold(&whose), style::dim(&ledger.path.display().to_string())],
        );
    };
    let mut words = vec![style::bold(&format!("Container {}", short_id(&record.container)))];
    if let Some(Names { namespace, pod, container }) = &record.names {
        let pod = printable(format!("{namespace}/{pod}").as_bytes());
        words.extend([style::bold(&pod), style::bold(&printable(container.as_bytes()))]);
    }
    flow(width, 0, &words)
}

/// What a container may use of a GPU, and what it was given when it started, if that was something else.
fn allowed(effective: &EffectiveLimit) -> Vec<String> {
    let EffectiveLimit { gpu, now, at_start } = effective;
    let share = |core: Option<ComputeLimit>| core.map(|core| format!("{core} of its time"));
    let mut words = vec![format!("{gpu}: memory {}", now.memory)];
    words.extend(share(now.core));
    let memory = (now.memory != at_start.memory).then(|| format!("memory {}", at_start.memory));
    let core = share(at_start.core).filter(|_| now.core != at_start.core);
    let before: Vec<String> = memory.into_iter().chain(core).collect();
    if !before.is_empty() {
        words.push(format!("(at start: {})", before.join(", ")));
    }
    words
}

fn device(device: &Device, width: usize) -> String {
    let (mut text, timed) = (sums(device, width), device.is_timed());
    if !device.processes.is_empty() {
        let mut table = Table::new(2, 3, if timed { TIMED } else { UNTIMED });
        device.processes.iter().for_each(|row| table.row(process(row, device)));
        text.push('\n');
        text.push_str(&table.render(Some(width)));
    }
    text + &unlisted(device)
}

/// What all processes together use of a device.
pub(crate) fn sums(device: &Device, width: usize) -> String {
    let mut words = usage(device);
    words.extend(device.most_held().map(|peak| format!("peak {}", size(peak))));
    if device.refusals > 0 {
        words.push(style::warn(&format!("{} refused", exact(device.refusals))));
    }
    let mut text = format!("  {}\n{}", device.name(), flow(width, 2, &words));
    if device.is_timed() {
        text.push_str(&flow(width, 2, &time(device)));
    }
    if device.ended > 0 {
        let (count, bytes) = (device.ended, size(device.ended_bytes));
        let have = if count == 1 { "process has" } else { "processes have" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {count} {have} ended; {bytes} returned");
    }
    text
}

/// How many processes of a device have no row; nothing if all have.
pub(crate) fn unlisted(device: &Device) -> String {
    match device.unlisted.processes {
        0 => String::new(),
        count => format!("  processes that are not shown: {}\n", exact(count as u64)),
    }
}

/// What was used of its time: lately, of how much, and since the beginning.
fn time(device: &Device) -> Vec<String> {
    let seconds = |ns: u64| duration(ns / 1_000_000_000);
    let lately = device.time.percent();
    let mut words = vec![match device.compute() {
        Some(effective) => format!("{lately} of its time (limit {effective})"),
        None => format!("{lately} of its time"),
    }];
    words.push(format!("{} busy", seconds(device.time.busy_ns)));
    words.push(format!("{} waited", seconds(device.waited_ns)));
    words.push(format!("{} launches", exact(device.time.launches)));
    if device.owed_for_ns > 0 {
        let ms = device.owed_for_ns.div_ceil(1_000_000);
        let when =
            if ms < 10_000 { format!("{} ms", exact(ms)) } else { seconds(device.owed_for_ns) };
        words.push(style::warn(&format!("next launch in {when}")));
    }
    words
}

/// Usage and limit: the host's limit, where it is known in bytes, else the limit that the processes report.
fn usage(device: &Device) -> Vec<String> {
    let used = device.used;
    let mut words = match device.limit() {
        Some(limit) => {
            vec![bar(used, limit), format!("{} of {}", size(used), size(limit))]
        }
        None if !device.is_counted() => {
            vec!["memory is not limited, so what is held is not counted".into()]
        }
        None => vec![format!("{} held", size(used))],
    };
    if device.beyond_limit() > 0 {
        let beyond = size(device.beyond_limit());
        words.push(style::bad(&format!("over the limit by {beyond}")));
    }
    // Each process applies its own.
    let differ = device.process_limits().filter(|(lowest, highest)| lowest != highest);
    words.extend(
        differ.map(|(low, high)| format!("processes under {} to {}", size(low), size(high))),
    );
    words
}

/// Twenty places; full only if the limit is reached, empty only if nothing is held.
fn bar(used: u64, limit: u64) -> String {
    const PLACES: u64 = 20;
    let part = u128::from(used) * u128::from(PLACES) / u128::from(limit.max(1));
    let filled = u64::try_from(part).unwrap_or(PLACES).clamp(u64::from(used > 0), PLACES);
    let filled = usize::try_from(filled).unwrap_or(0);
    let rest = 20_usize.saturating_sub(filled);
    let (done, left) = ("#".repeat(filled), "-".repeat(rest));
    let done = match rest {
        0 if used > limit => style::bad(&done),
        0 => style::warn(&done),
        _ => style::good(&done),
    };
    format!("[{done}{}]", style::dim(&left))
}

fn process(row: &Row, device: &Device) -> Vec<String> {
    let mut words = vec![row.pid.to_string(), duration(row.since_s)];
    words.extend(device.is_timed().then(|| row.time.percent()));
    words.extend([held(row, device), largest(row), command(row)]);
    words
}

/// What a process holds of a device, if it is counted.
pub(crate) fn held(row: &Row, device: &Device) -> String {
    if device.is_counted() { size(row.used) } else { NONE.to_owned() }
}

/// The command line of a process, as far as it is known.
pub(crate) fn command(row: &Row) -> String {
    match (&row.command, row.state) {
        (Some(command), _) => short(command).to_owned(),
        (None, State::Unknown) => "(in another pid namespace)".into(),
        (None, _) => "?".into(),
    }
}

/// Without the directory of the program: the end of the line is what a person knows it by.
fn short(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or(command);
    let directory = program.rfind('/').map_or(0, |slash| slash + 1);
    command.get(directory..).unwrap_or(command)
}

/// What it holds, by kind: the largest two, which leaves room for the command. Programs see all.
fn largest(row: &Row) -> String {
    let kinds = kinds(row);
    let more = (kinds.len() > 2).then(|| "...".to_owned());
    kinds.into_iter().take(2).chain(more).collect::<Vec<_>>().join(", ")
}

/// What it holds, by kind, the largest first.
pub(crate) fn kinds(row: &Row) -> Vec<String> {
    let mut kinds: Vec<_> = Kind::ALL.iter().zip(row.kinds).filter(|it| it.1 > 0).collect();
    kinds.sort_by_key(|&(_, bytes)| Reverse(bytes));
    kinds.iter().map(|&(kind, bytes)| format!("{} {}", word(*kind), size(bytes))).collect()
}

/// The word for a kind of memory: here, in the table and in JSON.
pub(crate) const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Alloc => "alloc",
        Kind::Managed => "managed",
        Kind::Pool => "pool",
        Kind::Vmm => "vmm",
        Kind::Array => "array",
        Kind::Context => "context",
        Kind::Module => "module",
        Kind::Heap => "heap",
        Kind::Graph => "graph",
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub(crate) mod tests;
