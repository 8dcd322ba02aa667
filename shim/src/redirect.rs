//! Catching every look-up: the driver's own symbol table is redirected.
//!
//! The loader answers `dlsym`, `dlvsym`, relocations and its own lazy binding from a library's dynamic symbol table in
//! memory. When libcuda or libnvidia-ml is first seen, and limits exist, the originals are saved and the entries of
//! that table are pointed at our hooks; from then on the loader itself hands the hooks out, on every route. Slots
//! bound earlier are swept, libnvidia-ml's calls to itself are pinned to the originals, and the library is kept.
//!
//! The work runs inside a `dl_iterate_phdr` callback: the loader's lock serialises it, and there is no lock of the
//! shim that a constructor inside `dlopen` could wait for. Hooks are complete and callable before the first store.
//!
//! [`elf`] reads objects, [`scope`] the loader's list, [`patch`] writes, [`keep`] keeps libraries loaded. Called by [`triggers`](crate::triggers) and
//! the constructor; calls [`state`] to learn whether limits exist.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "addresses and indices of tables that the loader itself walks, on a 64-bit machine"
)]

mod elf;
mod keep;
mod patch;
mod scope;

pub(crate) use patch::{HookAddress, Libraries, Library, Row};

use crate::driver::DriverCopy;
use crate::orders::Opened;
use crate::{state, sys};
use core::ffi::{c_char, c_void};
use core::num::NonZero;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use elf::Object;
use keep::{GoneCopy, Name};
use once_cell::race::OnceRef;
use patch::Outcome;

/// The exported functions, in the order of [`NEXT`].
#[repr(usize)]
#[derive(Clone, Copy)]
pub(crate) enum Trigger {
    Dlsym,
    Dlvsym,
    Dlopen,
    Dlmopen,
    SchedGetPriorityMax,
    GmonStart,
}

impl Trigger {
    const ALL: [Self; 6] = [
        Self::Dlsym,
        Self::Dlvsym,
        Self::Dlopen,
        Self::Dlmopen,
        Self::SchedGetPriorityMax,
        Self::GmonStart,
    ];

    /// The exported name.
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Dlsym => b"dlsym",
            Self::Dlvsym => b"dlvsym",
            Self::Dlopen => b"dlopen",
            Self::Dlmopen => b"dlmopen",
            Self::SchedGetPriorityMax => b"sched_get_priority_max",
            Self::GmonStart => b"__gmon_start__",
        }
    }

    /// Its place in [`NEXT`].
    const fn next(self) -> &'static AtomicUsize {
        match self {
            Self::Dlsym => &NEXT[0],
            Self::Dlvsym => &NEXT[1],
            Self::Dlopen => &NEXT[2],
            Self::Dlmopen => &NEXT[3],
            Self::SchedGetPriorityMax => &NEXT[4],
            Self::GmonStart => &NEXT[5],
        }
    }
}

/// Where each trigger's call goes on to. Filled by [`ensure_next`] before the trigger jumps.
pub(crate) static NEXT: [AtomicUsize; 6] = [const { AtomicUsize::new(0) }; 6];

/// Nothing will ever have to be done in this process: no limits are set, or another copy of the shim does the work.
static OFF: AtomicBool = AtomicBool::new(false);
/// Calls of `dlopen` and `dlmopen`, and those that a scan has seen.
static OPENED: Opened = Opened { calls: AtomicUsize::new(0), seen: AtomicUsize::new(0) };
/// `dlmopen` has been called: there may be namespaces that `dl_iterate_phdr` does not show.
static NAMESPACES: AtomicBool = AtomicBool::new(false);
/// The loader's count of objects ever loaded, plus one, when the last scan ended.
static LOADED_SEEN: AtomicU64 = AtomicU64::new(0);
/// The driver's pages could not be written: look-ups are answered by name.
static BY_NAME: AtomicBool = AtomicBool::new(false);
/// The driver libraries, since the first scan: for [`rescan`].
static LIBRARIES: OnceRef<'static, Libraries> = OnceRef::new();

/// Before a look-up by name is handed on. Returns what to answer instead, or null.
pub(crate) fn before_lookup(
    libraries: &'static Libraries,
    trigger: Trigger,
    handle: *mut c_void,
    name: *const c_char,
) -> *const c_void {
    ensure_next(trigger);
    if OFF.load(Ordering::Relaxed) || omitted(trigger) {
        return ptr::null();
    }
    let ours = elf::names_driver(name.cast());
    let foreign = NAMESPACES.load(Ordering::Relaxed) && is_object(handle);
    if ours || foreign || !OPENED.all_seen() {
        scan(libraries, if foreign { handle } else { ptr::null_mut() }, Caller::Anywhere);
    }
    if ours && BY_NAME.load(Ordering::Acquire) {
        let hook = libraries.0.iter().find_map(|library| library.hook_by_name(name.cast()));
        return hook.unwrap_or(ptr::null());
    }
    ptr::null()
}

/// Before a library is opened: only notes that one will be.
pub(crate) fn before_open(trigger: Trigger) -> *const c_void {
    ensure_next(trigger);
    if !omitted(trigger) {
        OPENED.note();
        if matches!(trigger, Trigger::Dlmopen) {
            NAMESPACES.store(true, Ordering::Relaxed);
        }
    }
    ptr::null()
}

/// In a function that is called while a library is initialised: the driver is mapped and relocated, but the program
/// has not received it yet. Only if `caller` is in the driver: any other caller may call while another thread is
/// still relocating.
pub(crate) fn while_loading(
    libraries: &'static Libraries,
    trigger: Trigger,
    caller: *const c_void,
) -> *const c_void {
    ensure_next(trigger);
    if !OFF.load(Ordering::Relaxed) && !omitted(trigger) {
        scan(libraries, ptr::null_mut(), Caller::Code(caller as u64));
    }
    ptr::null()
}

/// In our constructor: the driver may be mapped already, as a dependency of the program.
pub(crate) fn at_start(libraries: &'static Libraries) {
    // The loader's list is walked without its lock: here no other thread can unload what is on it.
    Trigger::ALL.into_iter().for_each(ensure_next);
    next_iterate();
    if !cfg!(gpucap_test_triggers) || !sys::env_lists(b"GPUCAP_TEST_OMIT", b"constructor") {
        scan(libraries, ptr::null_mut(), Caller::Start);
    }
}

/// The next definition of `dlopen`, for the shim's own use.
pub(crate) fn next_dlopen() -> usize {
    ensure_next(Trigger::Dlopen);
    Trigger::Dlopen.next().load(Ordering::Relaxed)
}

/// The `dl_iterate_phdr` behind ours; `None` where there is none, and nothing can be done: in a namespace that is not the
/// program's.
fn next_iterate() -> Option<NonZero<usize>> {
    static ITERATE: AtomicUsize = AtomicUsize::new(0);
    if ITERATE.load(Ordering::Relaxed) == 0 {
        let found = scope::next_of_libc(b"dl_iterate_phdr").map_or(0, |found| found as usize);
        ITERATE.store(found, Ordering::Relaxed);
    }
    NonZero::new(ITERATE.load(Ordering::Relaxed))
}

/// The hook of a function of a driver library, as a look-up returns it.
pub(crate) fn hook_of(address: *const c_void) -> Option<*mut c_void> {
    let found = LIBRARIES.get()?.0.iter().find_map(|library| library.hook_of(address as u64));
    found.map(HookAddress::pointer)
}

/// Looks whether NVML has been loaded since; for the shim, which loads it when it needs it.
pub(crate) fn rescan() {
    if let Some(libraries) = LIBRARIES.get().filter(|_| !OFF.load(Ordering::Relaxed)) {
        scan(libraries, ptr::null_mut(), Caller::Anywhere);
    }
}

fn ensure_next(trigger: Trigger) {
    let next = trigger.next();
    if next.load(Ordering::Relaxed) == 0 {
        let absent: extern "C" fn() -> usize = absent;
        let find = match trigger {
            Trigger::GmonStart => scope::next_definition,
            _ => scope::next_of_libc,
        };
        next.store(
            find(trigger.name()).map_or(absent as usize, |found| found as usize),
            Ordering::Relaxed,
        );
    }
}

/// Stands in for a function that no later object defines: answers null, as a failed look-up does.
extern "C" fn absent() -> usize {
    0
}

/// Whether a test build leaves this trigger out, to show that the matching route is missed.
fn omitted(trigger: Trigger) -> bool {
    let name = match trigger {
        Trigger::SchedGetPriorityMax => b"sched".as_slice(),
        Trigger::GmonStart => b"gmon",
        other => other.name(),
    };
    cfg!(gpucap_test_triggers) && sys::env_lists(b"GPUCAP_TEST_OMIT", name)
}

/// Whether a `dlsym` handle names an object: not `RTLD_DEFAULT` (0) or `RTLD_NEXT` (-1).
fn is_object(handle: *mut c_void) -> bool {
    !handle.is_null() && handle as isize != -1
}

/// The caller of a scan, which determines whether objects may be in the middle of being relocated: a write to such an
/// object would be lost, and making its page read-only again would end the program.
#[derive(Clone, Copy)]
enum Caller {
    /// Our constructor: the loader has relocated all there is, and no other thread exists.
    Start,
    /// This code: in a driver library that is being initialised, the thread that loads it calls, and has relocated it and
    /// all it came with.
    Code(u64),
    /// Anywhere: loads that are under way in other threads have to end first.
    Anywhere,
}

/// Looks for driver libraries that have not been redirected, and redirects them. `member`, if not null, is a handle
/// whose namespace is to be looked through as well.
fn scan(libraries: &'static Libraries, member: *mut c_void, caller: Caller) {
    if !sys::has_environment() {
        return; // libc is being initialised; others of our triggers follow before the program runs
    }
    let _errno = sys::Errno::keep();
    LIBRARIES.get_or_init(|| libraries); // there is one value
    let opened = OPENED.calls();
    // `None`: nothing has been loaded since the last scan.
    if with_loader(libraries, |loader| loader.driver_present(member)) == Some(true) {
        if matches!(state::load(), state::State::Off) {
            OFF.store(true, Ordering::Relaxed);
            return;
        }
        match caller {
            Caller::Start => {}
            Caller::Code(at)
                if with_loader(libraries, |loader| loader.driver_holds(at)) == Some(true) => {}
            Caller::Code(_) => return,
            Caller::Anywhere => sys::wait_for_loads(next_dlopen()),
        }
        // One at a time: each is kept before the next one is looked for.
        while redirect_next(libraries, member) {}
    }
    OPENED.saw(opened);
}

/// Redirects a driver library that is new, and does what has to follow outside the loader's lock. Returns whether there
/// was one.
fn redirect_next(libraries: &'static Libraries, member: *mut c_void) -> bool {
    let gone = keep::gone(libraries);
    let mut name = Name::default();
    let pass = |loader: &Loader| {
        gone.iter().flatten().for_each(GoneCopy::forget);
        loader.redirect(member, &mut name)
    };
    let done = with_loader(libraries, pass).unwrap_or_default();
    if done.another_shim {
        OFF.store(true, Ordering::Relaxed);
    }
    if done.failed {
        state::unwritable();
        BY_NAME.store(true, Ordering::Release);
    }
    let Some(copy) = done.redirected else { return false };
    keep::keep(copy, &name, next_dlopen());
    true
}

/// What a pass over the loader's list came to.
#[derive(Default)]
struct Done {
    redirected: Option<&'static DriverCopy>,
    another_shim: bool,
    failed: bool,
}

/// The loader's list, while its lock is held.
struct Loader {
    libraries: &'static Libraries,
    loaded: u64,
    iterate: NonZero<usize>,
}

/// Runs `work` under the loader's lock. `None` if `work` was not run to an answer.
fn with_loader<T>(
    libraries: &'static Libraries,
    work: impl FnOnce(&Loader) -> Option<T>,
) -> Option<T> {
    let (mut work, mut answer) = (Some(work), None);
    let iterate = next_iterate()?;
    sys::iterate_objects(iterate, &mut |info| {
        // Called for the first object; everything happens in nested iterations (the lock is recursive), then stop.
        let loader = Loader { libraries, loaded: info.dlpi_adds.wrapping_add(1), iterate };
        answer = work.take().and_then(|work| work(&loader));
        true
    });
    answer
}

impl Loader {
    /// Whether a driver library is loaded; `None` if nothing has been loaded since the last complete scan.
    fn driver_present(&self, member: *mut c_void) -> Option<bool> {
        if member.is_null() && self.loaded == LOADED_SEEN.load(Ordering::Relaxed) {
            return None;
        }
        let mut present = false;
        self.each_object(member, &mut |object| present |= self.libraries.of(&object).is_some());
        if !present {
            LOADED_SEEN.store(self.loaded, Ordering::Relaxed);
        }
        Some(present)
    }

    /// Whether the code at this address is a driver library's.
    fn driver_holds(&self, address: u64) -> Option<bool> {
        let mut holds = false;
        self.each_object(ptr::null_mut(), &mut |object| {
            holds |= self.libraries.of(&object).is_some() && object.contains(address);
        });
        Some(holds)
    }

    /// Redirects the first library that is new, and sweeps the slots that were bound before. Copies its name, which may
    /// end with the lock.
    fn redirect(&self, member: *mut c_void, name: &mut Name) -> Option<Done> {
        let mut done = Done::default();
        self.each_object(member, &mut |object| {
            let Some(library) = self.libraries.of(&object).filter(|_| done.redirected.is_none())
            else {
                return;
            };
            match library.redirect(&object) {
                Outcome::Already => {}
                Outcome::Redirected(copy) => {
                    done.redirected = Some(copy);
                    name.copy(&object);
                }
                Outcome::AnotherShim => done.another_shim = true,
                Outcome::Unwritable => done.failed = true,
            }
        });
        // Where the table could not be written the originals are known all the same: what is bound can be swept.
        if (done.redirected.is_some() || done.failed)
            && !(cfg!(gpucap_test_triggers) && sys::env_lists(b"GPUCAP_TEST_OMIT", b"sweep"))
        {
            self.each_object(member, &mut |object| {
                if self.libraries.of(&object).is_none() {
                    patch::sweep(&object, self.libraries);
                }
            });
        }
        if done.redirected.is_none() {
            LOADED_SEEN.store(self.loaded, Ordering::Relaxed);
        }
        Some(done)
    }

    fn each_object(&self, member: *mut c_void, visit: &mut dyn FnMut(Object)) {
        sys::iterate_objects(self.iterate, &mut |info| {
            visit(Object::from_phdr_info(info));
            false
        });
        if !member.is_null() {
            // SAFETY: `before_lookup` passes only handles that the program gave to `dlsym`.
            for map in unsafe { scope::foreign_namespace(member.cast()) } {
                // SAFETY: the map is an entry of the loader's list, so its object is mapped.
                if let Some(object) = unsafe { Object::from_load_address(map.address, map.name) } {
                    visit(object);
                }
            }
        }
    }
}
