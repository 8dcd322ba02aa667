//! What a person reads: results and notices, and the form of their lines.
//!
//! Pure but for `output`, which alone writes, and `style`, which knows the width of the terminal. Nothing here
//! knows what the words are about.

pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod quantity;
pub(crate) mod style;
pub(crate) mod table;
