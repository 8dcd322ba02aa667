//! What a person reads: results and notices, and the form of their lines.
//!
//! Pure but for `output`, which alone writes, and `paint`, which looks once whether there is a terminal. Nothing here
//! knows what the words are about.

pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod quantity;
pub(crate) mod table;
