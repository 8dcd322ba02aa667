//! Colours, where they help, and the width of what they are shown on.
//!
//! A text is painted wherever it is made; [`output`](super::output) takes the colours out again where they would not be
//! shown: in a pipe, with `NO_COLOR`, on a dumb terminal, or as `--color` says. No meaning depends on a colour: the text
//! reads the same without.

use crate::sys;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::io;

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

impl Color {
    /// Makes this hold for all that is written from now on.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Whether colours are shown on standard output.
pub(crate) fn is_shown() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// A terminal that is narrower is treated as one of this width: it wraps the lines itself.
const NARROWEST: usize = 40;

/// The width of the terminal that standard output is; `None` in a pipe or a file.
pub(crate) fn columns() -> Option<usize> {
    sys::columns(&io::stdout()).map(|columns| columns.max(NARROWEST))
}

/// A heading.
pub(crate) fn bold(text: &str) -> String {
    paint(Style::new().bold(), text)
}

/// Secondary text, to be found rather than read.
pub(crate) fn dim(text: &str) -> String {
    paint(Style::new().dimmed(), text)
}

/// As it should be.
pub(crate) fn good(text: &str) -> String {
    paint(AnsiColor::Green.on_default(), text)
}

/// Not as one would wish.
pub(crate) fn warn(text: &str) -> String {
    paint(AnsiColor::Yellow.on_default(), text)
}

/// Not as it should be.
pub(crate) fn bad(text: &str) -> String {
    paint(AnsiColor::Red.on_default(), text)
}

fn paint(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}

/// A text without its colours.
#[cfg(test)]
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
