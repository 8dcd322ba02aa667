//! Files of the shim and of others: opened, checked, sized and mapped.
//!
//! Close-on-exec, through no symbolic link in the last component, and never as the terminal of the process. A
//! replaced file is detected, not waited for: readers open without blocking. A descriptor is open for one operation
//! and closed at once, since programs close all descriptors that they find.

use super::errno::last_error;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;

/// An open descriptor, closed when dropped.
pub(crate) struct File(pub(super) c_int);

impl File {
    /// Opens a file, close-on-exec, following no symbolic link in the last component; new files get mode 0600.
    pub(crate) fn open(path: &CStr, flags: c_int) -> Result<Self, c_int> {
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NOCTTY;
        // SAFETY: a C string; the mode is used only when the file is created.
        match unsafe { libc::open(path.as_ptr(), flags, 0o600) } {
            -1 => Err(last_error()),
            descriptor => Ok(Self(descriptor)),
        }
    }

    /// Owner and size, if it is a regular file.
    pub(crate) fn owner_and_size(&self) -> Result<(u32, u64), c_int> {
        let status = self.status(libc::S_IFREG)?;
        Ok((status.st_uid, status.st_size.unsigned_abs()))
    }

    /// By which number its file system knows it, if it is a regular file.
    pub(crate) fn inode(&self) -> Result<u64, c_int> {
        Ok(self.status(libc::S_IFREG)?.st_ino)
    }

    /// What is known of it, if it is of this kind.
    pub(super) fn status(&self, kind: libc::mode_t) -> Result<libc::stat, c_int> {
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: an open descriptor and a writable place.
        if unsafe { libc::fstat(self.0, status.as_mut_ptr()) } != 0 {
            return Err(last_error());
        }
        // SAFETY: the call has filled it.
        let status = unsafe { status.assume_init() };
        if status.st_mode & libc::S_IFMT == kind { Ok(status) } else { Err(libc::EINVAL) }
    }

    /// Reads what there is from here on, `into` full at most; how much that was. Nothing if it cannot be read.
    pub(crate) fn read_at(&self, offset: usize, into: &mut [u8]) -> usize {
        let Ok(offset) = libc::off_t::try_from(offset) else { return 0 };
        // SAFETY: an open descriptor, and a place that is writable for its length.
        let count = unsafe { libc::pread(self.0, into.as_mut_ptr().cast(), into.len(), offset) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Sets the size; the new part reads as zeros and takes no memory until it is used.
    pub(crate) fn resize(&self, bytes: u64) -> Result<(), c_int> {
        if bytes > file_size_limit() {
            return Err(libc::EFBIG); // asking the kernel would send the program a SIGXFSZ
        }
        let bytes = i64::try_from(bytes).map_err(|_| libc::EFBIG)?;
        // SAFETY: an open descriptor.
        if unsafe { libc::ftruncate(self.0, bytes) } == 0 { Ok(()) } else { Err(last_error()) }
    }

    /// Makes it at least this long and takes the memory for all of it, so that writing to a map of it cannot fail later.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<(), c_int> {
        if bytes > file_size_limit() {
            return Err(libc::EFBIG); // as above
        }
        self.take_memory(0, bytes)
    }

    /// Takes the memory for its first `bytes` bytes and leaves its size as it is. A file system that cannot do it has
    /// promised nothing: there, as before, the memory is taken when it is written to.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), c_int> {
        match self.take_memory(libc::FALLOC_FL_KEEP_SIZE, bytes) {
            Err(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
            taken => taken,
        }
    }

    fn take_memory(&self, mode: c_int, bytes: u64) -> Result<(), c_int> {
        let bytes = i64::try_from(bytes).map_err(|_| libc::EFBIG)?;
        loop {
            // SAFETY: an open descriptor. Not `posix_fallocate`, which writes zeros where the file system cannot do it.
            if unsafe { libc::fallocate(self.0, mode, 0, bytes) } == 0 {
                return Ok(());
            }
            match last_error() {
                libc::EINTR => {} // a signal was there first
                error => return Err(error),
            }
        }
    }

    /// Maps the first `bytes` bytes, shared with all other mappings of the file. The mapping is never removed.
    pub(crate) fn map_shared(&self, bytes: u64) -> Result<*mut c_void, c_int> {
        self.map(bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// As [`map_shared`](Self::map_shared), to look at what others write.
    pub(crate) fn map_to_read(&self, bytes: u64) -> Result<*mut c_void, c_int> {
        self.map(bytes, libc::PROT_READ)
    }

    fn map(&self, bytes: u64, protection: c_int) -> Result<*mut c_void, c_int> {
        let bytes = usize::try_from(bytes).map_err(|_| libc::EFBIG)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(core::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, self.0, 0)
        };
        if address == libc::MAP_FAILED { Err(last_error()) } else { Ok(address) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(self.0) };
    }
}

/// Reads a small file whole; an error number if it cannot be read or is larger than `limit` bytes.
pub(crate) fn read_file(path: &CStr, limit: usize) -> Result<Vec<u8>, c_int> {
    // Not blocking: a fifo in the file's place must not stop the program.
    let file = File::open(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
    let mut content = vec![0; limit.saturating_add(1)];
    let mut filled = 0;
    while let Some(rest) = content.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `rest` is writable for its length.
        match unsafe { libc::read(file.0, rest.as_mut_ptr().cast(), rest.len()) } {
            0 => break,
            -1 if last_error() == libc::EINTR => {}
            count => {
                filled = filled.saturating_add(usize::try_from(count).map_err(|_| last_error())?)
            }
        }
    }
    content.truncate(filled);
    if filled > limit { Err(libc::EFBIG) } else { Ok(content) }
}

/// The longest file that this process may write (RLIMIT_FSIZE).
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a writable place.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known { limit.rlim_cur } else { u64::MAX }
}
