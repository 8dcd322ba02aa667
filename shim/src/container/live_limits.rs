//! The live page, which says what has changed about the limits since they were set: of a container the node writes it, of
//! a `gpucap run` its user.
//!
//! Mapped once per process, when the first device is looked at, and never unmapped; after that a change is seen by
//! reading a word. The page of a container is believed only where the container cannot write it, like the limits file.
//! That of a run stands in the run's own file, with the limits that the run was started with: a process can only lower
//! these. It is a file of the user who has set the variables, and means nothing beside a limits file.

use crate::sys::{self, Directory, File};
use gpucap_core::errno::Errno;
use gpucap_core::limits::live::{LiveEntries, LivePage, PATH};
use gpucap_core::limits::{Broken, DeviceFacts, Limits, Resolved, run};
use once_cell::race::OnceBox;
use std::ffi::CString;

/// Why the limits of a device cannot be enforced, in one line.
pub(crate) enum Unresolved {
    /// They cannot be known.
    Broken(String),
    /// Something that is needed is not available: a descriptor, memory, room to record usage. That may change.
    ForNow(String),
}

impl<T: Into<String>> From<T> for Unresolved {
    fn from(text: T) -> Self {
        Self::Broken(text.into())
    }
}

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

/// The page of the container.
fn by_node() -> Result<Option<Page>, Unresolved> {
    let _errno = sys::Errno::keep();
    let failed = |what: &str| format!("limits: {PATH} {what}");
    let path = CString::new(PATH).map_err(|_| failed("is no path"))?;
    let file = match File::open(&path, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Ok(None), // a hook that changes nothing later
        Err(error) => return Err(not_opened(PATH, error)),
    };
    if !sys::on_read_only_mount(&path) {
        return Err(failed("can be written by the container").into());
    }
    let page = map(&file, |_| true).map_err(|why| failed(&why))?;
    Ok(Some(Page { page, limits: None }))
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
        Err(error) if is_lack(error) => return Err(not_opened(&path, error)),
        _ => return Ok(None),
    };
    let file = match directory.file(&string(name)?, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Ok(None), // a run that was not given one
        Err(error) => return Err(not_opened(&path, error)),
    };
    let page = map(&file, |owner| owner == sys::uid()).map_err(|why| failed(&why))?;
    let mut text = vec![0; run::MOST_BYTES.saturating_sub(run::TEXT)];
    let length = file.read_at(run::TEXT, &mut text);
    text.truncate(length);
    let limits = limits.of_run(&text).map_err(|why| failed(&why))?;
    Ok(Some(Page { page, limits: Some(limits) }))
}

/// Maps the page with which a file begins. `may_own` is asked for its owner.
fn map(file: &File, may_own: impl Fn(u32) -> bool) -> Result<&'static LivePage, String> {
    match file.owner_and_size() {
        Ok((owner, _)) if !may_own(owner) => return Err(format!("belongs to user {owner}")),
        Ok((_, bytes)) if bytes >= LivePage::SIZE => {}
        _ => return Err("has not the size of a page".into()),
    }
    let map = file
        .map_to_read(LivePage::SIZE)
        .map_err(|error| format!("cannot be mapped: {}", Errno(error)))?;
    // SAFETY: the mapping is page-aligned, `LivePage::SIZE` bytes of the file and never taken down. The file of a
    // container is the node's, which does not shorten it; that of a run belongs to the user of this process, who may end
    // the process anyhow. A page is words that we only load, valid for every content.
    let page = unsafe { &*map.cast::<LivePage>() };
    if page.is_known() { Ok(page) } else { Err("is not a page of this version".into()) }
}

fn not_opened(path: &str, error: i32) -> Unresolved {
    let text = format!("limits: {path} cannot be opened: {}", Errno(error));
    if is_lack(error) { Unresolved::ForNow(text) } else { Unresolved::Broken(text) }
}

/// Whether this error says only that too much is in use at the moment.
const fn is_lack(error: i32) -> bool {
    matches!(error, libc::EMFILE | libc::ENFILE | libc::ENOMEM)
}
