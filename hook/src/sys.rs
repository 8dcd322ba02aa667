//! The only module of the command that names functions of libc and rustix: what the standard library does not offer.

pub(crate) mod at;
pub(crate) mod mount;
pub(crate) mod no_user;
pub(crate) mod process;
pub(crate) mod wait;

use gpucap_core::ledger::Ledger;
use gpucap_core::limits::live::LivePage;
use gpucap_core::page::UsagePage;
use gpucap_core::page::held::HeldPage;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The effective user.
pub(crate) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective group.
pub(crate) fn gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Nanoseconds since boot, on the clock by which a slot of the ledger is dated.
pub(crate) fn boot_time_ns() -> u64 {
    clock(ClockId::Boottime)
}

/// Nanoseconds of the clock that busy time is measured with.
pub(crate) fn monotonic_ns() -> u64 {
    clock(ClockId::Monotonic)
}

/// Nanoseconds since 1970, by the clock of the machine.
pub(crate) fn unix_ns() -> u64 {
    clock(ClockId::Realtime)
}

fn clock(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The longest file that this process may write: the kernel ends it with SIGXFSZ where it writes beyond that.
pub(crate) fn file_size_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// A number that cannot be guessed.
pub(crate) fn random() -> io::Result<u128> {
    let mut bytes = [0_u8; 16];
    // Up to 256 bytes come whole.
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u128::from_ne_bytes(bytes))
}

/// The socket that the program's starter left open under this number: to be asked for once, before anything else is opened.
///
/// # Errors
/// Nothing is open there, or it was asked for before.
pub(crate) fn inherited_socket(number: i32) -> io::Result<UnixStream> {
    static ASKED: AtomicBool = AtomicBool::new(false);
    // SAFETY: no conditions.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if ASKED.swap(true, Ordering::Relaxed) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // SAFETY: open, as was just checked, and handed out once. Its one caller is the first branch of `main`, before this
    // program has opened a file, so that no other object owns it.
    Ok(unsafe { UnixStream::from_raw_fd(number) })
}

/// The number of columns of the terminal that this file is; `None` if it is no terminal, or one that does not know.
pub(crate) fn columns(file: &impl AsRawFd) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel writes one structure of this type, and the place is writable for as long as the call lasts.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (done == 0 && size.ws_col != 0).then_some(size.ws_col.into())
}

/// Waits until there is something to read, or its end, for at most the timeout. Returns whether there is.
pub(crate) fn readable(file: &impl AsRawFd, most: Duration) -> io::Result<bool> {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let begun = Instant::now();
    loop {
        let left = most.saturating_sub(begun.elapsed());
        let left = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one entry, writable, for as long as the call lasts.
        let found = unsafe { libc::poll(&raw mut asked, 1, left) };
        if found >= 0 {
            return Ok(found > 0);
        }
        let why = io::Error::last_os_error();
        // A signal says nothing of the file.
        if why.kind() != io::ErrorKind::Interrupted {
            return Err(why);
        }
    }
}

/// A type that may be mapped.
///
/// # Safety
/// It is made of atomic words alone: every content is valid, and other processes may write to it.
pub(crate) unsafe trait Words {}
// SAFETY: as its module says, and a test of the layout holds.
unsafe impl Words for UsagePage {}
// SAFETY: the same.
unsafe impl Words for Ledger {}
// SAFETY: the same.
unsafe impl Words for LivePage {}
// SAFETY: the same.
unsafe impl Words for HeldPage {}

/// A shared structure, mapped or copied.
pub(crate) struct Map<T: Words> {
    address: *mut c_void,
    of: PhantomData<T>,
}

/// A ledger, as it was when it was copied.
pub(crate) type LedgerMap = Map<Ledger>;

impl<T: Words> Map<T> {
    /// Maps a file for writing that is as long as the structure and that no other process can truncate: it was opened
    /// for reading and writing.
    pub(crate) fn writable(file: &File) -> io::Result<Self> {
        Self::mapped(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// Copies a file, which is how files are read: a writer that truncates it could end a process that reads a
    /// mapping of it. Only the data of a sparse file is read and takes memory.
    pub(crate) fn copy(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < size_of::<T>() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let map = Self::mapped(access, kind, -1)?;
        // SAFETY: mapped just now, writable, of this length, and not shared with any other code yet.
        let bytes = unsafe { std::slice::from_raw_parts_mut(map.address.cast(), size_of::<T>()) };
        let mut next = 0;
        while let Some((start, end)) = data(file, next, bytes.len())? {
            file.read_exact_at(bytes.get_mut(start..end).unwrap_or_default(), start as u64)?;
            next = end;
        }
        Ok(map)
    }

    fn mapped(access: i32, kind: i32, descriptor: i32) -> io::Result<Self> {
        // SAFETY: a new mapping, at an address of the kernel's choice, of an open descriptor or of nothing.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<T>(), access, kind, descriptor, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address, of: PhantomData })
    }

    /// What it says at the moment; a change of a copy is seen by nothing else.
    pub(crate) fn get(&self) -> &T {
        // SAFETY: page-aligned, as long as the structure, mapped for reading and writing as long as `self`; `Words`
        // promises that every content is valid.
        unsafe { &*self.address.cast::<T>() }
    }
}

/// The first part of a file that holds data, at an offset or later and below another one. Each is behind the previous
/// one, however the file changes in the mean time.
fn data(file: &File, from: usize, below: usize) -> io::Result<Option<(usize, usize)>> {
    // The file position is not used by any other code.
    let seek = |to| seek(file, to).map(|found| usize::try_from(found).unwrap_or(usize::MAX));
    let start = match seek(SeekFrom::Data(from as u64)) {
        Err(Errno::NXIO) => return Ok(None),
        other => other?.max(from),
    };
    if start >= below {
        return Ok(None);
    }
    let end = seek(SeekFrom::Hole(start as u64)).map_or(below, |end| end.min(below));
    Ok((start < end).then_some((start, end)))
}

impl<T: Words> std::fmt::Debug for Map<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", self.address)
    }
}

impl<T: Words> Drop for Map<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `mapped`; no view outlives `self`.
        unsafe { libc::munmap(self.address, size_of::<T>()) };
    }
}
