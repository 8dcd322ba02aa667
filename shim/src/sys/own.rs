//! A place in each thread's own block that is found without a call.
//!
//! `thread_local!` in a library asks the loader for the place, which takes a call as long as all else that a launch does
//! on its short way. But this library is there when the program starts (it is preloaded), so the loader lays the place
//! out in every thread's block at one distance from the thread's pointer, and that is all there is to know: the model
//! "initial exec". A program that loads the library later takes the place out of what the loader sets aside for such
//! libraries, 1664 bytes with every glibc, of which all our places together need less than half (`ci/run symbols`);
//! `dlopen` says so where that is used up.

use crate::machine::{OWN_ALIGNED, own_place};
use core::arch::global_asm;

/// The value in the place.
///
/// # Safety
/// Zeros are a value of it, it is never dropped, and there is no other type that implements this.
pub(crate) unsafe trait Own: Sized + 'static {}

/// How large it may be.
const BYTES: usize = 448;
global_asm!(
    ".pushsection .tbss.gpucap_own, \"awT\", @nobits",
    ".globl gpucap_own",
    ".hidden gpucap_own",
    ".type gpucap_own, @object",
    ".size gpucap_own, {bytes}",
    ".balign {aligned}",
    "gpucap_own:",
    ".zero {bytes}",
    ".popsection",
    bytes = const BYTES,
    aligned = const OWN_ALIGNED,
);

/// Shows the calling thread's own.
#[inline]
pub(crate) fn own<T: Own, R>(see: impl FnOnce(&T) -> R) -> R {
    const { assert!(size_of::<T>() <= BYTES && align_of::<T>() <= OWN_ALIGNED) };
    // SAFETY: the place is large enough and aligned, zero at first, and the thread's alone until it ends; by its
    // contract zeros are a `T`, and no other type is ever put there.
    see(unsafe { &*own_place() })
}
