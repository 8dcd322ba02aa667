//! The error number of a thread, kept as the application left it.
//!
//! A function on the application's paths holds an [`Errno`] for as long as it calls into libc. Once that is dropped, the
//! thread's error number and its cancellation state are as they were.

use core::ffi::c_int;

/// Restores `errno` when dropped, and keeps the thread from being cancelled until then: an application does not
/// expect a look-up or an allocation to change the one or to notice the other, and a thread that ended inside a call
/// of the shim would leave its locks locked.
pub(crate) struct Errno {
    error: c_int,
    cancellation: c_int,
}

// SAFETY: the signature is that of glibc's `pthread.h`.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`
const CANCEL_DISABLE: c_int = 1;

impl Errno {
    /// Remembers the current value.
    pub(crate) fn keep() -> Self {
        let (error, mut cancellation) = (last_error(), 0);
        // SAFETY: a writable place; the call only changes a flag of this thread.
        unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancellation) };
        Self { error, cancellation }
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: gives back the state that `keep` found.
        unsafe { pthread_setcancelstate(self.cancellation, core::ptr::null_mut()) };
        // SAFETY: glibc's location of this thread's errno.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: that location is valid for the thread's life.
        unsafe { place.write(self.error) }
    }
}

/// The last error number of this thread.
pub(crate) fn last_error() -> c_int {
    // SAFETY: glibc's location of this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: that location is valid for the thread's life.
    unsafe { place.read() }
}
