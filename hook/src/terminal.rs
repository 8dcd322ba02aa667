//! What a person reads: results and notices, and the form of their lines.
//!
//! Pure but for `output` and `screen`, which alone write, and `style`, which knows the width of the terminal. Nothing
//! here knows what the words are about.

pub(crate) mod keys;
pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod quantity;
pub(crate) mod screen;
pub(crate) mod style;
pub(crate) mod table;
