//! The cards that this node had at the latest look, on disk: a driver that starts again misses the ones that went
//! in between.
//!
//! The file has lines as `gpucap-driver cards` prints them. It says which cards are to be expected, and gives nothing:
//! one that cannot be read is as none.

use crate::cards::Cards;
use crate::error::Result;
use crate::files;
use std::path::PathBuf;

/// The file.
#[derive(Debug)]
pub(crate) struct KnownCards {
    path: PathBuf,
    text: String,
}

impl KnownCards {
    /// Reads it; of its cards, nothing is known at present.
    pub(crate) fn open(path: PathBuf) -> (Self, Cards) {
        let text = files::read(&path).ok().flatten().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let cards = Cards::of(&lines).unwrap_or_default().unknown();
        (Self { path, text }, cards)
    }

    /// Writes these cards, if they are others than before.
    ///
    /// # Errors
    /// They cannot be written; that is not tried again for the same cards.
    pub(crate) fn write(&mut self, cards: &Cards) -> Result {
        let text = cards.to_string();
        if text == self.text {
            return Ok(());
        }
        self.text = text;
        files::write(&self.path, &self.text)
    }
}
