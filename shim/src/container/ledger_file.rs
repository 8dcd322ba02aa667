//! The container's ledger file: its path, how it is opened, and which of its users are alive.
//!
//! Mapped once per process and never unmapped. The file is created by the first process; formatting it is idempotent,
//! so a race between two creators is harmless. Its content is not used before [`Ledger::check`] has accepted it.

use super::executed;
use crate::state::Policy;
use crate::sys::{self, File};
use gpucap_core::errno::Errno;
use gpucap_core::ledger::{DeviceIndex, Identity, Ledger, Slot};
use gpucap_core::process::Stat;
use once_cell::race::OnceBox;
use std::ffi::{CStr, CString};

/// Where the hook puts the container's ledger. Next to a limits file nothing else may choose another place.
const HOOK_LEDGER: &CStr = c"/.gpucap/ledger";

static LEDGER: OnceBox<&'static Ledger> = OnceBox::new();

/// The ledger, mapped; an explanation if it cannot be.
pub(crate) fn ledger(policy: &Policy) -> Result<&'static Ledger, String> {
    LEDGER.get_or_try_init(|| open(policy).map(Box::new)).copied()
}

/// Checks that this process's clocks are those of the others of the ledger. A child made by `fork` may have others.
///
/// # Errors
/// They are not: it is in another time namespace.
pub(crate) fn has_its_clocks(ledger: &Ledger) -> Result<(), String> {
    match sys::namespace_inode(c"/proc/self/ns/time") {
        Some(namespace) if !ledger.keeps_times_of(namespace) => {
            Err("ledger: its times are of another time namespace than this process's".into())
        }
        _ => Ok(()), // Linux before 5.6 has none
    }
}

fn open(policy: &Policy) -> Result<&'static Ledger, String> {
    let _errno = sys::Errno::keep();
    let path = path(policy)?;
    let failed = |what: &str, error: i32| {
        format!("ledger: {} cannot be {what}: {}", path.to_string_lossy(), Errno(error))
    };
    let file =
        File::open(&path, libc::O_RDWR | libc::O_CREAT).map_err(|error| failed("opened", error))?;
    let (owner, bytes) = file.owner_and_size().map_err(|error| failed("used", error))?;
    let by_hook = path.as_c_str() == HOOK_LEDGER;
    if !by_hook && owner != sys::uid() {
        return Err(format!("ledger: {} belongs to user {owner}", path.to_string_lossy()));
    }
    let size = Ledger::SIZE;
    if bytes == 0 {
        file.resize(size).map_err(|error| failed("sized", error))?;
    } else if bytes < size {
        return Err(format!("ledger: {} has {bytes} bytes, not {size}", path.to_string_lossy()));
    }
    // The part that is written from here on; the accounts of a device come with the device (`has_room`).
    file.reserve(Ledger::BEFORE_ACCOUNTS).map_err(|error| failed("given memory", error))?;
    let map = file.map_shared(size).map_err(|error| failed("mapped", error))?;
    // SAFETY: the mapping is page-aligned, `Ledger::SIZE` bytes long and never taken down; a ledger is a struct of
    // atomics, valid for every content, so what other processes write cannot break it.
    let ledger = unsafe { &*map.cast::<Ledger>() };
    // Even if it has its size already: the process that sized it may not have come to this line yet, or have died
    // before.
    if bytes <= size {
        ledger.format();
    }
    ledger
        .check(size.max(bytes))
        .map_err(|why| format!("ledger: {}: {why}", path.to_string_lossy()))?;
    if let Ok(id) = sys::read_file(c"/proc/sys/kernel/random/boot_id", 64) {
        ledger.live_in(Ledger::boot_of(&id));
    }
    // What this process held before it executed this program is back. Another copy of the library in it may have a slot too.
    if let Ok(identity) = own_identity() {
        ledger.executed(identity, || executed::maps_once(address(ledger)));
    }
    Ok(ledger)
}

/// Whether there is memory for what a slot notes of a device. Asked before it is first noted: the file is sparse, and
/// where its file system is full, writing to it would kill the program.
pub(crate) fn has_room(ledger: &Ledger, slot: Slot, device: DeviceIndex) -> bool {
    let _errno = sys::Errno::keep();
    ledger.spare(slot, device).is_some_and(|words| {
        let written = sys::can_be_written(core::ptr::from_ref(words).cast_mut().cast());
        if written {
            words.iter().for_each(|word| word.store(0));
        }
        written
    })
}

/// The file: the hook's, else the configured one, else one per user and mount namespace (that is, per container).
pub(crate) fn path(policy: &Policy) -> Result<CString, String> {
    if is_by_hook(policy) {
        match File::open(HOOK_LEDGER, libc::O_RDWR) {
            Ok(_) => return Ok(HOOK_LEDGER.into()),
            Err(libc::ENOENT) => {} // a hook that shares no ledger: one per user of the container
            Err(error) => {
                let path = HOOK_LEDGER.to_string_lossy();
                return Err(format!("ledger: {path} cannot be opened: {}", Errno(error)));
            }
        }
    }
    let configured = policy.limits.as_ref().and_then(|limits| limits.config().ledger.as_ref());
    let text = configured.map_or_else(
        || {
            let namespace = sys::namespace_inode(c"/proc/self/ns/mnt").unwrap_or(0);
            format!("/dev/shm/gpucap-{}-{namespace}", sys::uid())
        },
        |path| path.as_str().to_owned(),
    );
    CString::new(text).map_err(|_| "ledger: its path holds a zero byte".into())
}

/// Whether the hook has set the limits: then all users of the container may share a ledger.
pub(crate) fn is_by_hook(policy: &Policy) -> bool {
    policy.limits.as_ref().is_some_and(|limits| limits.has_file())
}

/// This process, as the ledger knows it.
///
/// # Errors
/// There is a `/proc`, and this process's own entry in it cannot be read at the moment: others would take it for another
/// process's, and this one for dead.
pub(crate) fn own_identity() -> Result<Identity, String> {
    let namespace = own_namespace();
    // This name means the own process even in the `/proc` of another pid namespace, where its number may be another
    // process's.
    let stat = match read_stat(c"/proc/self/stat") {
        Ok(Some(stat)) => stat,
        Err(error) if namespace.is_some() => {
            return Err(format!("ledger: /proc/self/stat cannot be read: {}", Errno(error)));
        }
        _ => Stat::default(),
    };
    Ok(Identity {
        pid_namespace: namespace.unwrap_or(0),
        pid: sys::pid(),
        start_time: stat.start_time,
        image: stat.start_of_stack,
    })
}

/// The pid namespace in which this process's number counts; `None` without `/proc`.
pub(crate) fn own_namespace() -> Option<u64> {
    sys::namespace_inode(c"/proc/self/ns/pid")
}

/// Whether the process that owns a slot still runs the program that claimed it. In doubt, yes.
pub(crate) fn alive(owner: &Identity) -> bool {
    let _errno = sys::Errno::keep();
    if own_namespace() != Some(owner.pid_namespace) {
        return true; // only the host or a process of that namespace can know
    }
    // The `/proc` of another pid namespace (one without a `/proc` of its own has its parent's) shows other processes
    // under the same numbers.
    let stat = if sys::number_in_proc() == Some(sys::pid()) {
        CString::new(format!("/proc/{}/stat", owner.pid))
            .ok()
            .and_then(|path| read_stat(&path).ok())
    } else {
        None
    };
    match stat {
        Some(Some(stat)) => {
            let has_executed = || {
                LEDGER
                    .get()
                    .is_some_and(|ledger| executed::maps_no_more(owner.pid, address(ledger)))
            };
            stat.runs(owner) && !(stat.may_have_executed(owner) && has_executed())
        }
        Some(None) => true,
        // A /proc that hides other users' processes (hidepid) says the same of those as of the dead.
        None => sys::process_exists(owner.pid),
    }
}

fn address(ledger: &Ledger) -> usize {
    core::ptr::from_ref(ledger).addr()
}

fn read_stat(path: &CStr) -> Result<Option<Stat>, i32> {
    Ok(Stat::parse(&sys::read_file(path, 4096)?))
}
