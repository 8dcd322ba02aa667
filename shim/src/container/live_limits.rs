//! The live page, which says what has changed about the limits since they were set: of a container the node writes it, of
//! a `gpucap run` its user.
//!
//! Mapped before the first device is looked at ([`mapped_page`](super::mapped_page)); after that a change is seen by reading a
//! word. That of a run stands in the run's own file, with the limits that the run was started with: a process can only lower
//! these. It is a file of the user who has set the variables, and means nothing beside a limits file.

use super::mapped_page::{Unresolved, cannot, is_lack, map, of_node};
use crate::sys::{self, Directory};
use gpucap_core::limits::live::{LiveEntries, LivePage, PATH};
use gpucap_core::limits::{Broken, DeviceFacts, Limits, Resolved, run};
use once_cell::race::OnceBox;
use std::ffi::CString;

/// The limits of this process, and the page that changes them.
#[derive(Clone, Copy)]
pub(crate) struct InForce {
    /// The limits; of a run that has a file, those in it among them.
    pub(crate) limits: &'static Limits,
    page: Option<&'static LivePage>,
    /// Without the file of a run: what holds for a GPU that it does not name.
    own: &'static Limits,
}

/// The limits of one device as they are at any moment.
#[derive(Clone, Copy)]
pub(crate) struct Live {
    limits: &'static Limits,
    facts: DeviceFacts,
    entries: LiveEntries<'static>,
    /// What holds as long as the page says nothing.
    pub(crate) at_start: Resolved,
}

impl InForce {
    /// The limits and their page.
    ///
    /// # Errors
    /// There is a page, and it cannot be used.
    pub(crate) fn of(limits: &'static Limits) -> Result<Self, Unresolved> {
        static PAGE: OnceBox<Option<Page>> = OnceBox::new();
        let find = || if limits.has_file() { by_node() } else { of_run(limits) };
        let found = PAGE.get_or_try_init(|| find().map(Box::new))?.as_ref();
        let changed = found.and_then(|found| found.limits.as_ref());
        let page = found.map(|found| found.page);
        Ok(Self { limits: changed.unwrap_or(limits), page, own: limits })
    }

    /// Those of one device.
    ///
    /// # Errors
    /// They cannot be resolved.
    pub(crate) fn on(self, facts: DeviceFacts) -> Result<Live, Unresolved> {
        let entries = self.page.map(|page| page.entries(&facts)).unwrap_or_default();
        let is_named = self.limits.file().is_some_and(|file| file.lists(&facts));
        let limits = if is_named { self.limits } else { self.own };
        let broken = |broken: Broken| format!("limits: {broken}");
        let at_start = limits.resolve(&facts).map_err(broken)?;
        Ok(Live { limits, facts, entries, at_start })
    }
}

impl Live {
    /// What holds now.
    pub(crate) fn now(&self) -> Resolved {
        self.changed().unwrap_or(self.at_start)
    }

    /// The same if the page says anything.
    pub(crate) fn changed(&self) -> Option<Resolved> {
        if self.entries.are_silent() {
            return None;
        }
        self.limits.resolve_with(&self.facts, self.entries).ok()
    }
}

/// A page that was found, and of a run the limits in its file.
struct Page {
    page: &'static LivePage,
    limits: Option<Limits>,
}

/// The page of the container. A hook that changes nothing later makes none.
fn by_node() -> Result<Option<Page>, Unresolved> {
    Ok(of_node(PATH)?.map(|page| Page { page, limits: None }))
}

/// The page of the run whose ledger this process has. In /dev/shm another user may have taken the name of its directory:
/// then this user's `gpucap run` has made no file.
fn of_run(limits: &Limits) -> Result<Option<Page>, Unresolved> {
    let _errno = sys::Errno::keep();
    let ledger = limits.config().ledger.as_ref();
    let place = ledger.and_then(|ledger| run::place(ledger.as_str(), sys::uid()));
    let Some((directory, name)) = place else { return Ok(None) };
    let path = format!("{directory}/{name}");
    let failed = |what: &str| format!("limits: {path} {what}");
    let string = |text: &str| CString::new(text).map_err(|_| failed("is no path"));
    let directory = match Directory::open(&string(&directory)?) {
        Ok(directory) if directory.is_own() => directory,
        Err(error) if is_lack(error) => return Err(cannot(&path, "opened", error)),
        _ => return Ok(None),
    };
    let file = match directory.file(&string(name)?, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Ok(None), // a run that was not given one
        Err(error) => return Err(cannot(&path, "opened", error)),
    };
    // It belongs to the user of this process, who may end it anyhow.
    let page = map(&file, &path, |owner| owner == sys::uid())?;
    let mut text = vec![0; run::MOST_BYTES.saturating_sub(run::TEXT)];
    let length = file.read_at(run::TEXT, &mut text);
    text.truncate(length);
    let limits = limits.of_run(&text).map_err(|why| failed(&why))?;
    Ok(Some(Page { page, limits: Some(limits) }))
}
