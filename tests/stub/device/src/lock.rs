//! A lock in shared memory that survives the death of its holder.
//!
//! A robust, process-shared mutex of the C library. Any process that takes it after a holder died is told
//! so, and recomputes what the holder may have left half done. Sections are short and never wait
//! for anything else.

use std::cell::UnsafeCell;

/// The lock; lives in the card file, zeroed before [`RobustLock::init`].
#[repr(C)]
pub(crate) struct RobustLock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's mutex is made to be used by many threads and, being process-shared,
// processes.
unsafe impl Sync for RobustLock {}

/// Proof that the lock is held; unlocks when dropped.
pub(crate) struct Held<'a> {
    lock: &'a RobustLock,
    /// The previous holder died inside its section.
    pub(crate) holder_died: bool,
}

impl RobustLock {
    /// Prepares an unused lock.
    pub(crate) fn init(&self) {
        let mut attributes = std::mem::MaybeUninit::uninit();
        // SAFETY: `attributes` is writable and large enough.
        check(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) });
        // SAFETY: initialised in the line above.
        let mut attributes = unsafe { attributes.assume_init() };
        // SAFETY: the attributes are initialised.
        check(unsafe {
            libc::pthread_mutexattr_setpshared(&raw mut attributes, libc::PTHREAD_PROCESS_SHARED)
        });
        // SAFETY: the attributes are initialised.
        check(unsafe {
            libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST)
        });
        // SAFETY: the mutex is memory of this library that no other code uses yet.
        check(unsafe { libc::pthread_mutex_init(self.0.get(), &raw const attributes) });
    }

    /// Waits for the lock.
    pub(crate) fn hold(&self) -> Held<'_> {
        // SAFETY: `init` ran before the file was marked ready, and `Card` looks only at ready
        // files.
        let code = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        let holder_died = code == libc::EOWNERDEAD;
        if holder_died {
            // SAFETY: we hold the mutex, as EOWNERDEAD says; the caller repairs the state under it.
            check(unsafe { libc::pthread_mutex_consistent(self.0.get()) });
        } else {
            check(code);
        }
        Held { lock: self, holder_died }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: a `Held` exists only while this thread holds the mutex.
        check(unsafe { libc::pthread_mutex_unlock(self.lock.0.get()) });
    }
}

fn check(code: libc::c_int) {
    assert_eq!(code, 0, "stub gpu: the card's lock is broken");
}
