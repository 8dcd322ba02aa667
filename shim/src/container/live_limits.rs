//! The page in which the node says what has changed about the limits since the container started.
//!
//! Mapped once per process, when the first device is looked at, and never unmapped; after that a change is seen by
//! reading a word. Believed only where the container cannot write it, like the limits file.

use crate::sys::{self, File};
use gpucap_core::limits::live::{LiveEntry, LivePage, PATH};
use gpucap_core::limits::{Broken, DeviceFacts, Limits, Resolved};
use once_cell::race::OnceBox;
use std::ffi::CString;

/// The limits of one device as they are at any moment.
pub(crate) struct Live {
    limits: &'static Limits,
    facts: DeviceFacts,
    entry: Option<&'static LiveEntry>,
}

impl Live {
    /// The limits of this device.
    ///
    /// # Errors
    /// There is a page, and it cannot be used.
    pub(crate) fn of(limits: &'static Limits, facts: DeviceFacts) -> Result<Self, String> {
        Ok(Self { limits, facts, entry: entry(limits, &facts)? })
    }

    /// What holds now, if the node has said anything since the container started.
    pub(crate) fn changed(&self) -> Option<Resolved> {
        let entry = self.entry?;
        if entry.is_silent() {
            return None;
        }
        self.limits.resolve_with(&self.facts, Some(entry)).ok()
    }
}

/// What holds for a device now.
///
/// # Errors
/// The limits cannot be resolved, or there is a page that cannot be used.
pub(crate) fn resolve(limits: &Limits, facts: &DeviceFacts) -> Result<Resolved, String> {
    let entry = entry(limits, facts)?;
    limits.resolve_with(facts, entry).map_err(|broken: Broken| format!("limits: {broken}"))
}

fn entry(limits: &Limits, facts: &DeviceFacts) -> Result<Option<&'static LiveEntry>, String> {
    if !limits.has_file() {
        return Ok(None);
    }
    Ok(page()?.and_then(|page| page.entry(facts)))
}

fn page() -> Result<Option<&'static LivePage>, String> {
    static PAGE: OnceBox<Option<&'static LivePage>> = OnceBox::new();
    PAGE.get_or_try_init(|| map().map(Box::new)).copied()
}

fn map() -> Result<Option<&'static LivePage>, String> {
    let _errno = sys::Errno::keep();
    let failed = |what: &str| format!("limits: {PATH} {what}");
    let path = CString::new(PATH).map_err(|_| failed("is no path"))?;
    let file = match File::open(&path, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Ok(None), // a hook that changes nothing later
        Err(error) => return Err(failed(&format!("cannot be opened (errno {error})"))),
    };
    if !sys::on_read_only_mount(&path) {
        return Err(failed("can be written by the container"));
    }
    match file.owner_and_size() {
        Ok((_, bytes)) if bytes >= LivePage::SIZE => {}
        _ => return Err(failed("has not the size of a page")),
    }
    let map = file
        .map_to_read(LivePage::SIZE)
        .map_err(|error| failed(&format!("cannot be mapped (errno {error})")))?;
    // SAFETY: the mapping is page-aligned, `LivePage::SIZE` bytes of the file and never taken down; the file is the
    // node's, which does not shorten it. A page is words that only the node writes, and that we only load.
    let page = unsafe { &*map.cast::<LivePage>() };
    if page.is_known() { Ok(Some(page)) } else { Err(failed("is not a page of this version")) }
}
