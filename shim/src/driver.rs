//! What handlers ask of the driver: safe wrappers over its own functions, found when its table was redirected.
//!
//! A wrapper answers `None` where the driver lacks the function or refuses the call; it never invents an answer. Where a
//! charge depends on the answer, the wrapper tells the two apart: what the driver refuses to say is an error. None of
//! these is a hook: the addresses are the originals.

pub(crate) mod call_guard;
pub(crate) mod copies;
pub(crate) mod cuda;
mod functions;
mod library;
pub(crate) mod nvml;
mod rows;
mod text;

pub(crate) use library::{COPIES, DriverCopy, Next};
pub(crate) use rows::{MAX_ROWS, RowsByAddress};
