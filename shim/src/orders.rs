//! What threads of the process pass to each other without a lock, where the order of two words matters.
//!
//! Each file holds the words of one exchange and every access to them, and takes its atomics from [`atomic`]: the models
//! compile the same files with those of loom (`ci/run loom`). arm64 keeps no order that is not asked for, and no test on
//! x86-64 sees one that is missing. Called by the modules that own the words; knows nothing of what is passed.

mod atomic;
#[cfg(all(test, loom))]
mod models;
mod opened;
mod span;

pub(crate) use opened::Opened;
pub(crate) use span::Span;
