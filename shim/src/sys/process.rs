//! Processes and threads by number: this one, others of the same pid namespace, and the namespace itself.
//!
//! A number says nothing about what holds it: the caller compares when the process started. No signal is ever sent.

use super::errno::last_error;
use core::ffi::CStr;
use core::mem::MaybeUninit;

/// This process, in its own pid namespace.
pub(crate) fn pid() -> u32 {
    // SAFETY: no conditions.
    unsafe { libc::getpid() }.unsigned_abs()
}

/// Whether a process with this number exists in our pid namespace, seen or not.
pub(crate) fn process_exists(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: signal 0 is not sent; only whether it could be is checked.
    let allowed = unsafe { libc::kill(pid, 0) } == 0;
    allowed || last_error() != libc::ESRCH
}

/// Whether this process has a thread with this number. In doubt, yes.
pub(crate) fn thread_exists(thread: u32) -> bool {
    let process = pid();
    // SAFETY: signal 0 is not sent; only whether it could be is checked.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    answer == 0 || last_error() != libc::ESRCH
}

/// The effective user.
pub(crate) fn uid() -> u32 {
    // SAFETY: no conditions.
    unsafe { libc::geteuid() }
}

/// The calling thread, in its own pid namespace.
pub(crate) fn thread() -> u32 {
    // SAFETY: no conditions.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(number).unwrap_or(0)
}

/// The inode of a `/proc/self/ns/*` link: which namespace this process is in. `None` without `/proc`.
pub(crate) fn namespace_inode(link: &CStr) -> Option<u64> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a C string and a writable place.
    let result = unsafe { libc::stat(link.as_ptr(), status.as_mut_ptr()) };
    // SAFETY: zeroed memory is a valid `stat`; it is used only if the call filled it.
    (result == 0).then(|| unsafe { status.assume_init() }.st_ino)
}

/// The number of this process as `/proc` has it, which may be that of another pid namespace. `None` without `/proc`.
pub(crate) fn number_in_proc() -> Option<u32> {
    let mut text = [0; 16];
    // SAFETY: a C string, and a place that is writable for its length.
    let count =
        unsafe { libc::readlink(c"/proc/self".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
    core::str::from_utf8(text.get(..usize::try_from(count).ok()?)?).ok()?.parse().ok()
}
