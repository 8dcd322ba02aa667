//! Writes a limits file.

use core::fmt::Write;

use super::super::{crc32, source};
use super::document::{LimitsFile, VERSION};
use super::entry::Entry;
use crate::config::CorePriority;
use crate::units::Amount;

impl LimitsFile {
    /// The bytes of the file.
    #[must_use]
    pub fn write(&self) -> String {
        let Self { source, container, open, asked, entries } = self;
        let mut text = format!("gpucap-limits={VERSION}\nsource={source}\ncontainer={container}\n");
        if *open {
            text.push_str("open=1\n");
        }
        for variable in source::variables(asked) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}={}", variable.name(), variable.said());
        }
        for entry in entries {
            write_entry(&mut text, entry);
        }
        let crc = crc32::of(text.as_bytes());
        let _ = writeln!(text, "crc32={crc:08x}");
        text
    }
}

fn write_entry(text: &mut String, entry: &Entry) {
    let Entry { key, memory, core, core_max, low_priority, context } = entry;
    let _ = writeln!(text, "gpu={key}");
    for amount in memory.amounts() {
        match amount {
            // Plain bytes: the simplest form for other readers of the file.
            Amount::Bytes(bytes) => _ = writeln!(text, "mem={}", bytes.0),
            Amount::OfDevice(part) => _ = writeln!(text, "mem={part}"),
        }
    }
    if let Some(core) = core {
        let _ = writeln!(text, "core={core}");
    }
    if let Some(most) = core_max {
        let _ = writeln!(text, "core_max={most}");
    }
    if *low_priority {
        let _ = writeln!(text, "core_priority={}", CorePriority::Low);
    }
    if let Some(context) = context {
        let _ = writeln!(text, "context={context}");
    }
}
