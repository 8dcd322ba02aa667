//! How many processes are there, by the system's own count: the attachments of a segment of System V shared memory.
//!
//! The one object of a process that ends with it, however it ends, and that all others can count with one call,
//! whatever their number. The segment has one byte that is never read or written. It is marked for removal as soon as
//! it is made and is removed with the last process that has it attached; a child made by `fork` does not inherit it,
//! and an executed program has none. Its id is valid in one IPC namespace only, and ids are reused, so the time at
//! which it was made is kept with it. No descriptor is held and nothing of the program is changed but for one page of
//! its address space.

use super::address_space::ONE_PAGE;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

/// One that this process has attached.
pub(crate) struct Attendance {
    name: u64,
}

/// `SHM_DEST`: to be removed with the last attachment.
const REMOVED: u32 = 0o1000;

impl Attendance {
    /// Attaches the one of this name, if it is there.
    pub(crate) fn join(name: u64) -> Option<Self> {
        state(name)?;
        attach(id(name)).map(|_| Self { name })
    }

    /// Makes one, for this user alone or for all users of the IPC namespace to count, and attaches it. It is removed
    /// again if `publish`, which gets its name, returns false.
    pub(crate) fn begin(all_users: bool, publish: impl FnOnce(u64) -> bool) -> Option<Self> {
        let mode = if all_users { 0o444 } else { 0o400 };
        // SAFETY: no memory is involved.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | mode) };
        if id < 0 {
            return None;
        }
        let address = attach(id);
        // SAFETY: our own segment; nothing is written with this command.
        unsafe { libc::shmctl(id, libc::IPC_RMID, core::ptr::null_mut()) };
        let address = address?;
        let made = read(id).map(|state| Self { name: name(id, &state) });
        let kept = made.filter(|made| publish(made.name));
        if kept.is_none() {
            detach(address);
        }
        kept
    }

    /// By which others find it.
    pub(crate) fn name(&self) -> u64 {
        self.name
    }

    /// How many have it attached.
    pub(crate) fn count(&self) -> Option<u64> {
        Some(state(self.name)?.shm_nattch)
    }
}

/// What the system says of the segment of this name, if it is the one that was made so.
fn state(of: u64) -> Option<libc::shmid_ds> {
    let state = read(id(of))?;
    let is_it = of == name(id(of), &state)
        && state.shm_segsz == 1
        && u32::from(state.shm_perm.mode) & REMOVED != 0;
    is_it.then_some(state)
}

fn read(id: c_int) -> Option<libc::shmid_ds> {
    let mut state = MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: a writable place of the type that this command fills.
    let result = unsafe { libc::shmctl(id, libc::IPC_STAT, state.as_mut_ptr()) };
    // SAFETY: zeroed memory is a valid value of it; it is used only if the call filled it.
    (result == 0).then(|| unsafe { state.assume_init() })
}

/// The time at which it was made (its low 32 bits, which never are zero in our time), and the id.
fn name(id: c_int, state: &libc::shmid_ds) -> u64 {
    state.shm_ctime.cast_unsigned() << 32 | u64::from(id.cast_unsigned())
}

/// The low half of a name.
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn id(name: u64) -> c_int {
    (name as u32).cast_signed()
}

/// Attaches a segment, for reading, and for this process alone.
fn attach(id: c_int) -> Option<*mut c_void> {
    // SAFETY: at an address of the kernel's choice.
    let address = unsafe { libc::shmat(id, core::ptr::null(), libc::SHM_RDONLY) };
    if address.addr() == usize::MAX {
        return None;
    }
    // SAFETY: the page attached just now.
    if unsafe { libc::madvise(address, ONE_PAGE, libc::MADV_DONTFORK) } != 0 {
        detach(address);
        return None;
    }
    Some(address)
}

fn detach(address: *mut c_void) {
    // SAFETY: attached by this module, and not shared with any other code.
    unsafe { libc::shmdt(address) };
}
