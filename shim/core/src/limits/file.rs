//! The limits file that the hook puts into a container: `/.gpucap/limits`.
//!
//! ```text
//! gpucap-limits=1                                  version, always first
//! source=annotation                                whose limits these are
//! container=4f6c                                   the id under which the engine knows it
//! open=1                                           only if the administrator chose so
//! GPU_MEM_LIMIT=4GiB                               what the container's own variable said; it is in the limits below
//! gpu=GPU-00112233-4455-6677-8899-aabbccddeeff     what follows is for this GPU
//! mem=4294967296                                   bytes, or 25%; once in each form, and then the lower holds
//! core=30%                                         share of the time
//! core_max=100%                                    the most of the time, of what others leave unused; absent: the share
//! core_priority=low                                the share is not guaranteed; core= is what an older library holds
//! context=314572800                                bytes charged for a context
//! gpu=*                                            for any GPU that no other entry names
//! crc32=02e2563c                                   of all bytes above, always last
//! ```
//!
//! One `key=value` a line. A key we do not know is passed over, so that a newer hook can add one that
//! only informs; whatever limits more, or changes what a key means, is another version, and a version
//! we do not know is refused. A GPU that is listed without `mem` or `core` may be used without that
//! limit; one that is not listed may not be used at all. A key or GPU that comes twice is refused.

pub(super) mod document;
mod entry;
pub(super) mod error;
mod parse;
#[cfg(test)]
mod tests;
mod write;

pub use document::{LimitsFile, MAX_BYTES, PATH, VERSION};
pub use entry::{Entry, Key, Label, MemoryLimit};
pub use error::{ContentError, FileError};
