//! What the shim asks of the system. Besides it, only [`redirect`](crate::redirect) and the triggers name functions and
//! types of libc; its numbers may be named anywhere.
//!
//! Each function is a thin, bounded call; none allocates unless it returns owned bytes, none changes state of the
//! process that the application could notice (no umask, no signal, no working directory), and descriptors are opened
//! close-on-exec. Callers on the application's paths hold an [`Errno`] for as long as they may disturb it.

mod address_space;
mod attendance;
mod directory;
mod errno;
mod file;
mod own;
mod pages;
mod process;
mod short_lock;
mod thread;
mod time;

pub(crate) use address_space::{
    can_be_written, is_mapped, memory_of_machine, page_size, page_wiped_on_fork, protect,
    unmap_page,
};
pub(crate) use attendance::Attendance;
pub(crate) use directory::Directory;
pub(crate) use errno::Errno;
pub(crate) use file::{File, read_file};
pub(crate) use own::{Own, own};
pub(crate) use pages::Pages;
pub(crate) use process::{
    namespace_inode, number_in_proc, pid, process_exists, thread, thread_exists, uid,
};
pub(crate) use short_lock::Short;
pub(crate) use thread::{before_exit, spawn};
pub(crate) use time::{boot_time_ns, coarse_ns, monotonic_ns, nap, sleep_until, unix_time_ns};

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::num::NonZero;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::ffi::CString;

// SAFETY: the signature is that of glibc's `stdlib.h`.
unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
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

/// Marks a loaded library as never to be unloaded, by opening what is loaded already and closing it again. Returns
/// its load address; `None` if no library of this name is loaded.
pub(crate) fn never_unload(dlopen: usize, name: *const c_char) -> Option<u64> {
    let handle = open_library(dlopen, name, libc::RTLD_NOLOAD | libc::RTLD_NODELETE)?;
    // SAFETY: glibc's handles are link maps (`link.h`), which begin with the load address.
    let address = unsafe { handle.cast::<u64>().read() };
    // SAFETY: the handle was opened just now; `RTLD_NODELETE` outlives it.
    unsafe { libc::dlclose(handle) };
    Some(address)
}

/// The first page of the object that is loaded at this address, in whichever namespace; `None` if there is none. Takes a
/// lock of the loader, which must not be taken within [`iterate_objects`].
pub(crate) fn object_at(address: u64) -> Option<u64> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: asks about an address; a writable place.
    let result = unsafe { libc::dladdr(address as *const c_void, found.as_mut_ptr()) };
    // SAFETY: zeros are a valid answer; it is used only if the call filled it.
    (result != 0).then(|| unsafe { found.assume_init() }.dli_fbase as u64)
}

/// Waits until no other thread is loading or unloading a library: opening the program itself takes the loader's lock.
pub(crate) fn wait_for_loads(dlopen: usize) {
    if let Some(handle) = open_library(dlopen, core::ptr::null(), libc::RTLD_NOLOAD) {
        // SAFETY: the handle was opened just now.
        unsafe { libc::dlclose(handle) };
    }
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
