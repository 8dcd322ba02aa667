//! This budget's usage page, in which its processes publish their use of a device for all others: its path and
//! mapping.
//!
//! Laid out by [`gpucap_core::page`], written and read by [`throttle`](crate::throttle). That of a container
//! is opened where its ledger is found, that of a run when the first device with a compute limit is made. It is mapped once
//! per process and never unmapped: a process without a compute limit does not open it, and a child made by `fork`
//! continues with the same page, in a seat of its own. A page with any fault is not used, and the limit holds without:
//! presence is charged then.

use crate::container::ledger_file;
use crate::state::Policy;
use crate::sys::{self, Directory, File};
use gpucap_core::config::LogLevel;
use gpucap_core::errno::Errno;
use gpucap_core::limits::Limits;
use gpucap_core::page::{DIRECTORY, PATH, UsagePage};
use once_cell::race::OnceBox;
use std::ffi::{CStr, CString};

/// The page of this budget, and the directory of the others.
pub(crate) struct OwnPage {
    /// The page.
    pub(crate) page: &'static UsagePage,
    /// By which number its directory knows it.
    pub(crate) inode: u64,
    /// The directory of all, and by which numbers that is known.
    path: CString,
    identity: (u64, u64),
    /// The node keeps the directory, and says how much of the time each page's container has.
    pub(crate) by_node: bool,
}

impl OwnPage {
    /// The directory of all pages; `None` if it cannot be opened, or is another one: in another root directory a container
    /// that borrows would see no other that wants the time.
    pub(crate) fn directory(&self) -> Option<Directory> {
        let directory = Directory::open(&self.path).ok()?;
        (directory.identity() == Ok(self.identity)).then_some(directory)
    }
}

/// This process's; `None` if there is none.
pub(crate) fn own(policy: &Policy) -> Option<&'static OwnPage> {
    static OWN: OnceBox<Option<OwnPage>> = OnceBox::new();
    let open = || {
        let opened = open(policy);
        if let Err(why) = &opened {
            policy.log(LogLevel::Debug, format_args!("time: peers are not seen: {why}"));
        }
        Box::new(opened.ok())
    };
    OWN.get_or_init(open).as_ref()
}

fn open(policy: &Policy) -> Result<OwnPage, String> {
    let _errno = sys::Errno::keep();
    let by_hook = policy.limits.as_ref().is_some_and(Limits::has_file);
    if by_hook { shown() } else { made(&ledger_file::path(policy)?) }
}

/// The hook's page, in the directory that only the node can write.
fn shown() -> Result<OwnPage, String> {
    let path = |text: &str| CString::new(text).map_err(|_| format!("{text} is no path"));
    let (own, directory) = (path(PATH)?, path(DIRECTORY)?);
    let failed = |error: i32| format!("{PATH} cannot be used: {}", Errno(error));
    let file = File::open(&own, libc::O_RDWR | libc::O_NONBLOCK).map_err(failed)?;
    if !sys::on_read_only_mount(&directory) {
        return Err(format!("{DIRECTORY} can be written by the container"));
    }
    map(&file, directory, true).map_err(failed)
}

/// A page beside the ledger, for those of this user whose ledgers are in the same directory: named as the ledger is.
fn made(ledger: &CStr) -> Result<OwnPage, String> {
    let failed = |error: i32| format!("no page of {}: {}", ledger.to_string_lossy(), Errno(error));
    let text = ledger.to_str().map_err(|_| failed(libc::EINVAL))?;
    let (place, name) = text.rsplit_once('/').ok_or_else(|| failed(libc::EINVAL))?;
    let string = |text: String| CString::new(text).map_err(|_| failed(libc::EINVAL));
    let path = string(format!("{place}/gpucap-{}-pages", sys::uid()))?;
    let directory = Directory::open_own(&path).map_err(failed)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NONBLOCK;
    let file = directory.file(&string(name.to_owned())?, flags).map_err(failed)?;
    remove_stale(&directory, place);
    map(&file, path, false).map_err(failed)
}

/// Removes the pages of this user whose ledger is gone: no other process does, and each would be read forever.
fn remove_stale(pages: &Directory, place: &str) {
    let Ok(ledgers) =
        CString::new(place).map_err(drop).and_then(|place| Directory::open(&place).map_err(drop))
    else {
        return;
    };
    let mut room = vec![0; 4096];
    let mut names: Vec<CString> = Vec::new();
    while let Some(next) = pages.next(&mut room) {
        names.extend(next.map(CStr::to_owned));
    }
    for name in names {
        if ledgers.has(&name) == Some(false) {
            pages.remove(&name);
        }
    }
}

fn map(file: &File, path: CString, by_node: bool) -> Result<OwnPage, i32> {
    let inode = file.inode()?;
    let identity = Directory::open(&path)?.identity()?;
    // Where memory is short the process must not be ended by a signal.
    file.allocate(UsagePage::SIZE)?;
    let map = file.map_shared(UsagePage::SIZE)?;
    // SAFETY: the mapping is page-aligned, `UsagePage::SIZE` bytes of the file and never taken down; a page is a struct of
    // atomics, valid for every content, so what other processes write cannot break it.
    let page = unsafe { &*map.cast::<UsagePage>() };
    page.format();
    let own = OwnPage { page, inode, path, identity, by_node };
    if page.is_known() { Ok(own) } else { Err(libc::EPROTO) }
}
