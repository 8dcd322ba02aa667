//! One line on standard error, formatted on the stack, written with one system call.
//!
//! `gpucap[pid] LEVEL noun: fact key=value`. Levels: error, a limit is not enforced or nothing is allowed; warn, less
//! than promised; info, what was started with; debug, decisions. Never on the path of a launch, never standard output.

use crate::sys;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use gpucap_core::config::LogLevel;

/// Writes a line if `level` is not finer than the configured one.
pub(crate) fn line(configured: LogLevel, level: LogLevel, text: fmt::Arguments<'_>) {
    if level > configured {
        return;
    }
    let _errno = sys::Errno::keep();
    let mut line = Line { bytes: [0; 512], used: 0 };
    let name = match level {
        LogLevel::Off => return,
        LogLevel::Error => "ERROR",
        LogLevel::Warn => "WARN",
        LogLevel::Info => "INFO",
        LogLevel::Debug => "DEBUG",
    };
    // A line that does not fit is cut, which `Line` reports as an error: there is nothing to do about it.
    let _ = write!(line, "gpucap[{}] {name} {text}", sys::pid());
    line.end();
}

/// Lets a place in the code speak once per process.
pub(crate) struct Once(AtomicBool);

impl Once {
    /// Nothing has been said yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// True for the first caller only.
    pub(crate) fn first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

struct Line {
    bytes: [u8; 512],
    used: usize,
}

impl Line {
    fn end(&mut self) {
        let last = self.used.min(self.bytes.len().saturating_sub(1));
        if let Some(place) = self.bytes.get_mut(last) {
            *place = b'\n';
        }
        if let Some(line) = self.bytes.get(..=last) {
            sys::write_error(line);
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let count = room.len().min(text.len());
        for (place, byte) in room.iter_mut().zip(text.bytes()) {
            *place = byte;
        }
        self.used = self.used.saturating_add(count);
        if count == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
