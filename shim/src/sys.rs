//! What the shim asks of the system. Besides it, only [`redirect`](crate::redirect) and the triggers name functions and
//! types of libc; its numbers may be named anywhere.
//!
//! Each function is a thin, bounded call; none allocates unless it returns owned bytes, none changes state of the
//! process that the application could notice (no umask, no signal, no working directory), and descriptors are opened
//! close-on-exec. Callers on the application's paths hold an [`Errno`] for as long as they may disturb it.

mod attendance;
mod directory;
mod file;
mod own;
mod pages;
mod time;

pub(crate) use attendance::Attendance;
pub(crate) use directory::Directory;
pub(crate) use file::{File, read_file};
pub(crate) use own::{Own, own};
pub(crate) use pages::Pages;
pub(crate) use time::{boot_time_ns, coarse_ns, monotonic_ns, nap, sleep_until, unix_time_ns};

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::num::NonZero;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::ffi::CString;

/// Restores `errno` when dropped, and keeps the thread from being cancelled until then: an application does not
/// expect a look-up or an allocation to change the one or to notice the other, and a thread that ended inside a call
/// of the shim would leave its locks locked.
pub(crate) struct Errno {
    error: c_int,
    cancellation: c_int,
}

// SAFETY: the signatures are those of glibc's `stdlib.h` and `pthread.h`.
unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
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

/// Makes whole pages writable, or read-only again; never executable. False if the kernel refuses.
pub(crate) fn protect(start: u64, bytes: u64, writable: bool) -> bool {
    let Ok(bytes) = usize::try_from(bytes) else { return false };
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: `redirect::patch` passes pages of a loaded object that hold data only.
    unsafe { libc::mprotect(start as *mut c_void, bytes, protection) == 0 }
}

/// Calls `visit` for each loaded object of the own namespace until it returns true, through the given
/// `dl_iterate_phdr`: a program may have one of its own with an outdated list. The loader's lock is held during the
/// calls.
pub(crate) fn iterate_objects(
    dl_iterate_phdr: NonZero<usize>,
    visit: &mut dyn FnMut(&libc::dl_phdr_info) -> bool,
) {
    type Each = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;
    type Iterate = unsafe extern "C" fn(Each, *mut c_void) -> c_int;
    type Visit<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> bool;
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _bytes: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `visit` is the pointer passed below, alive until `dl_iterate_phdr` returns.
        let visit = unsafe { &mut *visit.cast::<Visit>() };
        // SAFETY: the loader passes a valid record for the duration of the call.
        c_int::from(visit(unsafe { &*info }))
    }
    let mut visit: Visit = visit;
    // SAFETY: the address is that of the `dl_iterate_phdr` behind ours, of this type.
    let iterate: Iterate = unsafe { core::mem::transmute::<usize, Iterate>(dl_iterate_phdr.get()) };
    // SAFETY: `each` has the required signature and `visit` outlives the call.
    unsafe { iterate(each, (&raw mut visit).cast()) };
}

/// Marks a loaded library as never to be unloaded, by opening what is loaded already and closing it again.
pub(crate) fn never_unload(dlopen: usize, name: *const c_char) {
    if let Some(handle) = open_library(dlopen, name, libc::RTLD_NOLOAD | libc::RTLD_NODELETE) {
        // SAFETY: the handle was opened just now; `RTLD_NODELETE` outlives it.
        unsafe { libc::dlclose(handle) };
    }
}

/// Waits until no other thread is loading or unloading a library: opening the program itself takes the loader's lock.
pub(crate) fn wait_for_loads(dlopen: usize) {
    if let Some(handle) = open_library(dlopen, core::ptr::null(), libc::RTLD_NOLOAD) {
        // SAFETY: the handle was opened just now.
        unsafe { libc::dlclose(handle) };
    }
}

/// Whether the page at this address is mapped.
pub(crate) fn is_mapped(page: u64) -> bool {
    // SAFETY: asks about a page, and starts nothing for one without a file to be written to.
    unsafe { libc::msync(page as *mut c_void, PAGE, libc::MS_ASYNC) == 0 }
}

/// Loads a library through the given `dlopen` (libc's, not our export).
pub(crate) fn load_library(dlopen: usize, name: &CStr) -> bool {
    open_library(dlopen, name.as_ptr(), 0).is_some()
}

fn open_library(dlopen: usize, name: *const c_char, flags: c_int) -> Option<*mut c_void> {
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    // SAFETY: the address is that of the `dlopen` behind ours, of this type.
    let open: Open = unsafe { core::mem::transmute::<usize, Open>(dlopen) };
    // SAFETY: `name` is a C string.
    let handle = unsafe { open(name, libc::RTLD_LAZY | flags) };
    (!handle.is_null()).then_some(handle)
}

/// The value of an environment variable, copied.
pub(crate) fn env(name: &str) -> Option<Vec<u8>> {
    let name = CString::new(name).ok()?;
    // A program with more rights than its caller must not open a file of the caller's choice; limits only lower.
    let is_path = name.as_c_str() == c"GPUCAP_LEDGER";
    let get = if is_path { secure_getenv } else { libc::getenv };
    // SAFETY: `name` is a C string.
    let value = unsafe { get(name.as_ptr()) };
    // SAFETY: a non-null answer is a C string inside the environment, copied before anyone can change it.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_bytes().to_vec())
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Whether libc has been given the environment: before that, a variable that is missing says nothing. A program may take
/// it away again later (`clearenv`).
pub(crate) fn has_environment() -> bool {
    static SEEN: AtomicBool = AtomicBool::new(false);
    // SAFETY: libc's variable; null before it is set up.
    if !unsafe { environ }.is_null() {
        SEEN.store(true, Ordering::Relaxed);
    }
    SEEN.load(Ordering::Relaxed)
}

/// Whether a comma-separated environment variable names `item`. For test builds: reads the environment directly, since
/// libc may not work yet.
pub(crate) fn env_lists(variable: &[u8], item: &[u8]) -> bool {
    if !has_environment() {
        return false;
    }
    // SAFETY: libc's variable.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return false;
    }
    loop {
        // SAFETY: the environment is an array that ends with null.
        let text = unsafe { entry.read() };
        if text.is_null() {
            return false;
        }
        // SAFETY: each entry is a C string.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        if let Some(value) = text.strip_prefix(variable).and_then(|rest| rest.strip_prefix(b"=")) {
            return value.split(|byte| *byte == b',').any(|word| word == item);
        }
        entry = entry.wrapping_add(1);
    }
}

/// Whether descriptor 2 was open when the program began. 0 not known yet, 1 yes, 2 no.
static STANDARD_ERROR: AtomicU8 = AtomicU8::new(0);

/// Remembers whether there is a standard error. A program that began without one may open a file of its own as
/// descriptor 2, where no line of the shim belongs. Called when the library is loaded, before the program runs.
pub(crate) fn note_standard_error() -> bool {
    if STANDARD_ERROR.load(Ordering::Relaxed) == 0 {
        // SAFETY: asks about a descriptor by number.
        let open = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD) } != -1;
        STANDARD_ERROR.store(if open { 1 } else { 2 }, Ordering::Relaxed);
    }
    STANDARD_ERROR.load(Ordering::Relaxed) == 1
}

/// Writes to standard error with one system call. What does not fit is lost: nothing here may block or fail.
pub(crate) fn write_error(line: &[u8]) {
    if !note_standard_error() {
        return;
    }
    // SAFETY: the bytes are readable for their length.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

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

/// Device and inode behind a descriptor of the program; `None` if it is closed.
pub(crate) fn file_behind(descriptor: c_int) -> Option<(u64, u64)> {
    let _errno = Errno::keep();
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: asks about a descriptor by number; a writable place.
    let result = unsafe { libc::fstat(descriptor, status.as_mut_ptr()) };
    // SAFETY: zeroed memory is a valid `stat`; it is used only if the call filled it.
    let status = (result == 0).then(|| unsafe { status.assume_init() })?;
    Some((status.st_dev, status.st_ino))
}

/// Returns whether the file is on a mount that is read-only for every process in this mount namespace.
pub(crate) fn on_read_only_mount(path: &CStr) -> bool {
    let mut status = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: a C string and a writable place.
    let result = unsafe { libc::statvfs(path.as_ptr(), status.as_mut_ptr()) };
    // SAFETY: zeroed memory is a valid `statvfs`; it is used only if the call filled it.
    result == 0 && unsafe { status.assume_init() }.f_flag & libc::ST_RDONLY != 0
}

/// Whether a place in a map of a file has memory, or could be given some: 16 bytes of it are written. Where a store would
/// be a SIGBUS, since the file system is full, the kernel's own answer is an error.
pub(crate) fn can_be_written(place: *mut libc::timespec) -> bool {
    // SAFETY: the caller owns the 16 bytes; the system call as such, since the C library's function stores by itself.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, place) == 0 }
}

/// A page that a child made by `fork` sees as zeros, whichever way the fork was made (`MADV_WIPEONFORK`, Linux 4.14).
/// Never taken down. `None` if there is no memory or the kernel does not know the advice.
pub(crate) fn page_wiped_on_fork() -> Option<*mut c_void> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { libc::mmap(core::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page mapped just now.
    if unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) } != 0 {
        unmap_page(page);
        return None;
    }
    Some(page)
}

/// Unmaps a page of [`page_wiped_on_fork`] that was never published.
pub(crate) fn unmap_page(page: *mut c_void) {
    // SAFETY: the caller owns the page and drops its only pointer.
    unsafe { libc::munmap(page, PAGE) };
}

const PAGE: usize = 4096;
