//! One container or run in detail: its limits and their sources, and for each GPU what it uses and its processes.
//!
//! The texts are those of `status NAME`; a process has all kinds of its memory here, below its own line. Pure.

use crate::command::status::text;
use crate::command::status::view::{Device, LedgerView, Row};
use crate::terminal::lines::flow;
use crate::terminal::quantity::duration;
use crate::terminal::table::{Column, Table};

const PID: Column = Column::right("PID");
const SINCE: Column = Column::right("SINCE");
const TIME: Column = Column::right("TIME");
const HOLDS: Column = Column::right("HOLDS");
const COMMAND: Column = Column::left("COMMAND").at_least(8);
/// Where time is limited, and where it is not.
const TIMED: &[Column] = &[PID, SINCE, TIME, HOLDS, COMMAND];
const UNTIMED: &[Column] = &[PID, SINCE, HOLDS, COMMAND];
/// How far the kinds of memory are indented.
const INDENT: usize = 10;

/// The lines.
pub(super) fn render(ledger: &LedgerView, width: usize) -> String {
    let mut text = text::limits(ledger, width);
    if let Some(container) = &ledger.container {
        text.push_str(&flow(width, 2, &[format!("limits from: {}", container.source)]));
    }
    if ledger.devices.is_empty() {
        text.push_str("\n  no GPU in use\n");
    }
    for device in &ledger.devices {
        text.push('\n');
        text.push_str(&text::sums(device, width));
        text.push_str(&processes(device, width));
        text.push_str(&text::unlisted(device));
    }
    text
}

fn processes(device: &Device, width: usize) -> String {
    if device.processes.is_empty() {
        return String::new();
    }
    let timed = device.is_timed();
    let mut table = Table::new(2, 3, if timed { TIMED } else { UNTIMED });
    device.processes.iter().for_each(|row| table.row(words(row, device)));
    let lines = table.render(Some(width));
    let mut lines = lines.lines();
    let mut text = format!("\n{}\n", lines.next().unwrap_or_default());
    for (line, row) in lines.zip(&device.processes) {
        text.push_str(line);
        text.push('\n');
        let kinds = text::kinds(row);
        if !kinds.is_empty() {
            text.push_str(&flow(width, INDENT, &kinds));
        }
    }
    text
}

fn words(row: &Row, device: &Device) -> Vec<String> {
    let mut words = vec![row.pid.to_string(), duration(row.since_s)];
    words.extend(device.is_timed().then(|| row.time.percent()));
    words.extend([text::held(row, device), text::command(row)]);
    words
}
