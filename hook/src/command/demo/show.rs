//! How the demo speaks: headings, commands, what programs print, and what was checked.
//!
//! Everything goes to standard output, at once. A check that fails is the error that ends the demo; nothing else here
//! decides anything.

use crate::error::{Error, Result};
use crate::terminal::output::print;
use crate::terminal::style;

/// How the demo speaks.
#[derive(Clone, Copy)]
pub(super) struct Show;

impl Show {
    /// What the next step is about.
    pub(super) fn title(self, number: u32, text: &str) -> Result {
        print(&format!("\n{}\n", style::bold(&format!("{number}. {text}"))))
    }

    /// A command as one would type it.
    pub(super) fn command(self, text: &str) -> Result {
        print(&format!("\n   {} {text}\n", style::dim("$")))
    }

    /// What a program printed.
    pub(super) fn quote(self, text: &str) -> Result {
        text.lines().try_for_each(|line| print(&format!("{}\n", format!("   {line}").trim_end())))
    }

    /// Prints a remark of the demo.
    pub(super) fn say(self, text: &str) -> Result {
        print(&format!("   {text}\n"))
    }

    /// Says what was checked, if it is so.
    pub(super) fn check(self, holds: bool, expected: &str, found: &str) -> Result {
        if holds {
            return print(&format!("   {} {expected}\n", style::good("ok")));
        }
        Err(Error::Demo(format!("expected: {expected}; found: {found}")))
    }
}
