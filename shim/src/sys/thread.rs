//! A thread of the library's own, and the end of the process.

use core::mem::MaybeUninit;
use std::io;
use std::thread::{Builder, Thread};

/// By how much the sleeps of a thread are longer, unless it asks for another time.
const SLACK_NS: libc::c_ulong = 50_000;
/// What threads usually have: enough for the driver's calls, for tools that it calls back in them, and for the program's
/// thread-local data, which lie in it too. Only what is used takes memory.
const STACK_BYTES: usize = 8 << 20;

// SAFETY: the signature is that of glibc's `stdlib.h`.
unsafe extern "C" {
    fn atexit(work: extern "C" fn()) -> core::ffi::c_int;
}

/// Begins a thread that takes no signals: those of the process are for the program's threads.
///
/// # Errors
/// The system allows no further thread.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the place is writable.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set is filled, and the other place is writable; this thread has its own mask back below.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) };
    let spawned = Builder::new().name("gpucap".into()).stack_size(STACK_BYTES).spawn(|| {
        // SAFETY: it changes by how much the sleeps of this thread may be longer, which it has from the one that began it.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
        work();
    });
    // SAFETY: the mask that the call above stored.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut()) };
    spawned.map(|handle| handle.thread().clone())
}

/// Has the process do this before it ends by a return of `main` or by `exit`, and before what was asked for earlier.
pub(crate) fn before_exit(work: extern "C" fn()) {
    // SAFETY: the function stays: the library is never unloaded.
    unsafe { atexit(work) };
}
