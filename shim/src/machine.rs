//! What differs between processors: relocations, the start of an exported function, and where a thread keeps its own.
//!
//! One file per processor, with the same names in each. Nothing else in this crate asks which processor it is.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{FUNCTION_RELOCATIONS, OWN_ALIGNED, own_place, trigger_body};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{FUNCTION_RELOCATIONS, OWN_ALIGNED, own_place, trigger_body};
