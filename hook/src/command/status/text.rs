//! `status` for people.

use super::view::{Book, Device, Row, State, Status, Time, word};
use crate::engine::records::Record;
use crate::ledgers::{BY_HOOK, Name};
use crate::paint::Paint;
use crate::quantity::{duration, exact, size};
use crate::table::{Column, Table};
use gpucap_core::ledger::Kind;
use std::fmt::Write;
use std::path::Path;

const PID: Column = Column { name: "PID", right: true };
const SINCE: Column = Column { name: "SINCE", right: true };
const TIME: Column = Column { name: "TIME", right: true };
const HOLDS: Column = Column { name: "HOLDS", right: true };
const OF_IT: Column = Column { name: "OF IT", right: false };
const COMMAND: Column = Column { name: "COMMAND", right: false };
/// Where time is limited, and where it is not.
const TIMED: &[Column] = &[PID, SINCE, TIME, HOLDS, OF_IT, COMMAND];
const UNTIMED: &[Column] = &[PID, SINCE, HOLDS, OF_IT, COMMAND];

/// The lines.
pub(super) fn render(status: &Status, paint: Paint) -> String {
    let mut text: Vec<String> = status.books.iter().map(|it| book(it, paint)).collect();
    if !status.unused.is_empty() {
        let count = status.unused.len();
        let (runs, have) = if count == 1 { ("run", "has") } else { ("runs", "have") };
        text.push(format!("{count} {runs} of gpucap {have} not used a GPU yet.\n"));
    }
    for (path, why) in &status.unreadable {
        text.push(format!("{}: {}\n", path.display(), paint.warn(why)));
    }
    if text.is_empty() {
        return "No process is under a cap, as far as this user can see.\n".into();
    }
    text.join("\n")
}

/// One ledger.
pub(super) fn book(book: &Book, paint: Paint) -> String {
    let path = book.path.display().to_string();
    let mut text = format!("{}   {}\n", paint.bold(&title(book)), paint.dim(&path));
    if let Some(record) = &book.record {
        text.push_str(&given(record));
    }
    if book.devices.is_empty() {
        text.push_str("\n  no GPU in use\n");
    }
    for seen in &book.devices {
        text.push('\n');
        text.push_str(&device(seen, paint));
    }
    text
}

/// Whose budget it is.
fn title(book: &Book) -> String {
    if let Some(Record { container, pod, name, .. }) = &book.record {
        let whose = [pod, name].map(|word| word.as_deref().unwrap_or_default()).join(" ");
        return format!("Container {container} {}", whose.trim()).trim_end().to_owned();
    }
    match Name::of(&book.path) {
        Some(Name::Run { pid, .. }) => format!("Run of process {pid}"),
        Some(Name::Shared { uid, .. }) => format!("Shared by user {uid}"),
        None if book.path == Path::new(BY_HOOK) => "This container".into(),
        None => "Shared".into(),
    }
}

/// What the hook gave a container.
fn given(record: &Record) -> String {
    let mut text = String::new();
    for entry in record.limits().into_iter().flat_map(|limits| limits.entries) {
        let core = entry.core.map_or_else(String::new, |core| format!(", {core} of its time"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}: memory {}{core}", entry.key, entry.memory);
    }
    text
}

fn device(device: &Device, paint: Paint) -> String {
    let mut text = format!("  GPU-{}\n  {}", device.uuid, usage(device, paint));
    // Writing to a String cannot fail.
    let _ = write!(text, "   peak {}", size(device.peak));
    if device.refusals > 0 {
        let _ = write!(text, "   {}", paint.warn(&format!("{} refused", device.refusals)));
    }
    text.push('\n');
    let timed = device.time.launches > 0;
    if timed {
        let _ = writeln!(text, "  {}", time(device));
    }
    if device.ended > 0 {
        let (count, bytes) = (device.ended, size(device.ended_bytes));
        let have = if count == 1 { "process has" } else { "processes have" };
        let _ = writeln!(text, "  {count} {have} ended; {bytes} returned");
    }
    if !device.processes.is_empty() {
        let mut table = Table::new(2, if timed { TIMED } else { UNTIMED });
        device.processes.iter().for_each(|row| table.row(process(row, timed)));
        text.push('\n');
        text.push_str(&table.render(paint));
    }
    text
}

/// What was used of its time: lately, of how much, and since the beginning.
fn time(device: &Device) -> String {
    let seconds = |ns: u64| duration(ns / 1_000_000_000);
    let mut text = format!("{} of its time", percent(device.time));
    // Writing to a String cannot fail.
    if let Some(core) = device.core {
        let _ = write!(text, " ({core} given)");
    }
    let _ = write!(text, "   {} busy", seconds(device.time.busy_ns));
    let _ = write!(text, "   {} waited", seconds(device.waited_ns));
    let _ = write!(text, "   {} launches", exact(device.time.launches));
    if device.owed_for_ns > 0 {
        let _ = write!(text, "   paid off in {} ms", device.owed_for_ns.div_ceil(1_000_000));
    }
    text
}

/// `31.2%`
fn percent(time: Time) -> String {
    format!("{}.{}%", time.permille / 10, time.permille % 10)
}

fn usage(device: &Device, paint: Paint) -> String {
    let used = device.used;
    match device.caps() {
        Some((lowest, highest)) if lowest == highest => {
            format!("{}   {} of {}", bar(used, lowest, paint), size(used), size(lowest))
        }
        // Each process applies its own.
        Some((lowest, highest)) => {
            format!("{} held   caps {} to {}", size(used), size(lowest), size(highest))
        }
        None if used == 0 => "nothing held".into(),
        None => format!("{} held", size(used)),
    }
}

/// Twenty places; full only if the cap is reached, empty only if nothing is held.
fn bar(used: u64, cap: u64, paint: Paint) -> String {
    const PLACES: u64 = 20;
    let part = u128::from(used) * u128::from(PLACES) / u128::from(cap.max(1));
    let filled = u64::try_from(part).unwrap_or(PLACES).clamp(u64::from(used > 0), PLACES);
    let filled = usize::try_from(filled).unwrap_or(0);
    let rest = 20_usize.saturating_sub(filled);
    let (done, left) = ("#".repeat(filled), "-".repeat(rest));
    let done = if rest == 0 { paint.warn(&done) } else { paint.good(&done) };
    format!("[{done}{}]", paint.dim(&left))
}

fn process(row: &Row, timed: bool) -> Vec<String> {
    let kinds = Kind::ALL.iter().zip(row.kinds).filter(|(_, bytes)| *bytes > 0);
    let kinds: Vec<String> =
        kinds.map(|(kind, bytes)| format!("{} {}", word(*kind), size(bytes))).collect();
    let command = match (&row.command, row.state) {
        (Some(command), _) => short(command),
        (None, State::Unknown) => "(in another pid namespace)".into(),
        (None, _) => "?".into(),
    };
    let mut words = vec![row.pid.to_string(), duration(row.since_s)];
    words.extend(timed.then(|| percent(row.time)));
    words.extend([size(row.used), kinds.join(", "), command]);
    words
}

/// Enough to know it by.
fn short(command: &str) -> String {
    const LONGEST: usize = 48;
    if command.chars().count() <= LONGEST {
        return command.to_owned();
    }
    let start: String = command.chars().take(LONGEST - 3).collect();
    format!("{start}...")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
