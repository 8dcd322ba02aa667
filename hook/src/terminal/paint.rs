//! Colours, where they help: on a terminal, unless `NO_COLOR` is set or the terminal is a dumb one, or as `--color`
//! chooses.
//!
//! No meaning depends on a colour: the text reads the same without.

use crate::sys;
use crate::terminal::lines::WIDTH;
use std::env;
use std::io::IsTerminal;
use std::os::fd::AsRawFd;

/// When words are painted: the values of `--color`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Also in a pipe, for `less -R` and `watch --color`
    Always,
    /// Nowhere
    Never,
}

/// How words are painted, or that they are not; and the width of what they are painted on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
    columns: Option<usize>,
}

/// A terminal that is narrower is treated as one of this width: it wraps the lines itself.
const NARROWEST: usize = 40;

impl Default for Paint {
    /// Without colours, for no terminal.
    fn default() -> Self {
        Self { on: false, columns: None }
    }
}

impl Paint {
    /// For what goes to this stream.
    pub(crate) fn on(color: Color, stream: &(impl IsTerminal + AsRawFd)) -> Self {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let on = match color {
            Color::Auto => stream.is_terminal() && !set("NO_COLOR") && !dumb,
            Color::Always => true,
            Color::Never => false,
        };
        let columns = sys::columns(stream).map(|columns| columns.max(NARROWEST));
        Self { on, columns }
    }

    /// Without colours, on what is as wide as this.
    #[cfg(test)]
    pub(crate) const fn plain(columns: Option<usize>) -> Self {
        Self { on: false, columns }
    }

    /// The width of the terminal; `None` in a pipe or a file.
    pub(crate) fn columns(self) -> Option<usize> {
        self.columns
    }

    /// How wide a line may be: as wide as the terminal, or [`WIDTH`] in a pipe or a file.
    pub(crate) fn width(self) -> usize {
        self.columns.unwrap_or(WIDTH)
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Secondary text, to be found rather than read.
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// As it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Not as one would wish.
    pub(crate) fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Not as it should be.
    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
