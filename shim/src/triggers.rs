//! The six exported functions. Each is a moment at which the driver may have been loaded.
//!
//! `dlsym`, `dlvsym`, `dlopen`, `dlmopen` are called before a program can hold an address of the driver. The two
//! others are called while a library is initialised, so that the redirect is in place before the `dlopen` that loads
//! it returns: `sched_get_priority_max` by libcuda's own constructors (measured on 470 to 555), and `__gmon_start__`,
//! which the profiler once used, by the start-up code that GNU linkers put into every library if any object defines
//! it (libcuda and libnvidia-ml 470 to 555 refer to it; glibc's `crti.S` of x86-64 and of aarch64).
//!
//! All are naked and end in a jump to the next definition in scope, with the caller's stack and registers as they
//! were: libc answers `RTLD_NEXT` and run paths by looking at its return address, which must be the caller's.
//! Until a name begins with `cu` or `nvml`, or a library has been opened, nothing here calls libc at all: sanitizers
//! look names up before libc works.
//!
//! No name of the driver is exported: a program that probes for CUDA must not find it where there is none.

use crate::hooks::LIBRARIES;
use crate::machine::trigger_body;
use crate::redirect::{self, Trigger};
use core::ffi::{c_char, c_void};

/// Emits one export: `$before` sees two arguments, or the caller, and answers for the function or, with null, leaves the
/// answer to the next definition.
macro_rules! trigger {
    ($(#[$doc:meta])* $name:ident, $before:path, $trigger:expr $(, $caller:ident)?) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As libc's function of this name, which does the work.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            trigger_body!($before, redirect::NEXT, $trigger as usize $(, $caller)?)
        }
    };
}

trigger!(
    /// `void *dlsym(void *handle, const char *name)`
    dlsym, before_dlsym, Trigger::Dlsym
);
trigger!(
    /// `void *dlvsym(void *handle, const char *name, const char *version)`
    dlvsym, before_dlvsym, Trigger::Dlvsym
);
trigger!(
    /// `void *dlopen(const char *file, int mode)`
    dlopen, before_dlopen, Trigger::Dlopen
);
trigger!(
    /// `void *dlmopen(Lmid_t namespace, const char *file, int mode)`
    dlmopen, before_dlmopen, Trigger::Dlmopen
);
trigger!(
    /// `int sched_get_priority_max(int policy)`
    sched_get_priority_max, before_sched_get_priority_max, Trigger::SchedGetPriorityMax, caller
);
trigger!(
    /// `void __gmon_start__(void)`
    __gmon_start__, before_gmon_start, Trigger::GmonStart, caller
);

extern "C" fn before_dlsym(handle: *mut c_void, name: *const c_char) -> *const c_void {
    redirect::before_lookup(&LIBRARIES, Trigger::Dlsym, handle, name)
}

extern "C" fn before_dlvsym(handle: *mut c_void, name: *const c_char) -> *const c_void {
    redirect::before_lookup(&LIBRARIES, Trigger::Dlvsym, handle, name)
}

extern "C" fn before_dlopen() -> *const c_void {
    redirect::before_open(Trigger::Dlopen)
}

extern "C" fn before_dlmopen() -> *const c_void {
    redirect::before_open(Trigger::Dlmopen)
}

extern "C" fn before_sched_get_priority_max(caller: *const c_void) -> *const c_void {
    redirect::while_loading(&LIBRARIES, Trigger::SchedGetPriorityMax, caller)
}

extern "C" fn before_gmon_start(caller: *const c_void) -> *const c_void {
    redirect::while_loading(&LIBRARIES, Trigger::GmonStart, caller)
}
