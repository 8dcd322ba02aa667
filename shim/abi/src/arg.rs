//! What a handler sees of a caller's arguments.
//!
//! A caller's pointer is never turned into a reference: it may be null, dangling or uninitialised, and only
//! the driver knows which of these it tolerates. A handler gets [`Out`] or [`In`] instead. Reading or writing
//! an `Out` demands a [`Written`], which only a successful call of the original yields: by then the driver
//! has itself written through the pointer, so it is valid, and a forgotten success check cannot be written.
//!
//! Another thread of the caller may change its memory at any time. What a decision depends on is read once: handler and
//! driver share one [copy](Raw), which only this call uses.

mod list;
mod pointer;
pub(crate) mod raw;
mod word;

pub use list::{ConstList, Entries, List};
pub use pointer::{Array, In, InOut, Out, Written};
pub use raw::{Pointee, Raw};
pub(crate) use raw::{by_value, pointees};
pub use word::Word;
