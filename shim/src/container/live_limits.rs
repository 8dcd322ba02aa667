//! The live page, which says what has changed about the limits since they were set: of a container the node writes it, of
//! a `gpucap run` its user.
//!
//! Mapped once per process, when the first device is looked at, and never unmapped; after that a change is seen by
//! reading a word. The page of a container is believed only where the container cannot write it, like the limits file;
//! that of a run is a file of the user who has set its variables, and means nothing beside a limits file.

use crate::sys::{self, File};
use gpucap_core::limits::live::{LiveEntry, LivePage, PATH};
use gpucap_core::limits::{Broken, DeviceFacts, Limits, Resolved, run};
use once_cell::race::OnceBox;
use std::ffi::CString;

/// A page, and the limits that it changes.
struct Changing {
    page: &'static LivePage,
    /// Of a run: its limits, where the page says something.
    of_run: Option<Limits>,
}

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
        let found = entry(limits, &facts)?;
        let (limits, entry) = found.map_or((limits, None), |(limits, entry)| (limits, Some(entry)));
        Ok(Self { limits, facts, entry })
    }

    /// What holds now, if anything was said since the limits were set.
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
    let resolved = match entry(limits, facts)? {
        Some((changed, entry)) if !entry.is_silent() => changed.resolve_with(facts, Some(entry)),
        _ => limits.resolve(facts),
    };
    resolved.map_err(|broken: Broken| format!("limits: {broken}"))
}

/// The place of this device in the page, and the limits that it changes.
fn entry<'a>(
    limits: &'a Limits,
    facts: &DeviceFacts,
) -> Result<Option<(&'a Limits, &'static LiveEntry)>, String> {
    static CHANGING: OnceBox<Option<Changing>> = OnceBox::new();
    let find = || if limits.has_file() { by_node() } else { of_run(limits) };
    let found = CHANGING.get_or_try_init(|| find().map(Box::new))?;
    let place =
        |it: &'static Changing| Some((it.of_run.as_ref().unwrap_or(limits), it.page.entry(facts)?));
    Ok(found.as_ref().and_then(place))
}

/// The page of the container.
fn by_node() -> Result<Option<Changing>, String> {
    let _errno = sys::Errno::keep();
    let failed = |what: &str| format!("limits: {PATH} {what}");
    let path = CString::new(PATH).map_err(|_| failed("is no path"))?;
    let file = match File::open(&path, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Ok(None), // a hook that changes nothing later
        Err(error) => return Err(failed(&cannot_be("opened", error))),
    };
    if !sys::on_read_only_mount(&path) {
        return Err(failed("can be written by the container"));
    }
    let page = map(&file, |_| true).map_err(|why| failed(&why))?;
    Ok(Some(Changing { page, of_run: None }))
}

/// The page of the run whose ledger this process has.
fn of_run(limits: &Limits) -> Result<Option<Changing>, String> {
    let _errno = sys::Errno::keep();
    let ledger = limits.config().ledger.as_ref();
    let place = ledger.and_then(|ledger| run::place(ledger.as_str(), sys::uid()));
    let Some((directory, name)) = place else { return Ok(None) };
    let text = format!("{directory}/{name}");
    let failed = |what: &str| format!("limits: {text} {what}");
    let path = CString::new(text.as_str()).map_err(|_| failed("is no path"))?;
    let file = match File::open(&path, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT | libc::ENOTDIR) => return Ok(None), // a run that was not given one
        Err(error) => return Err(failed(&cannot_be("opened", error))),
    };
    let page = map(&file, |owner| owner == sys::uid()).map_err(|why| failed(&why))?;
    let mut text = vec![0; run::MOST_BYTES.saturating_sub(run::TEXT)];
    let length = file.read_at(run::TEXT, &mut text);
    text.truncate(length);
    let limits = limits.changed_by_page(&text).map_err(|why| failed(&why.to_string()))?;
    Ok(Some(Changing { page, of_run: Some(limits) }))
}

/// Maps the page with which a file begins. `may_own` is asked for its owner.
fn map(file: &File, may_own: impl Fn(u32) -> bool) -> Result<&'static LivePage, String> {
    match file.owner_and_size() {
        Ok((owner, _)) if !may_own(owner) => return Err(format!("belongs to user {owner}")),
        Ok((_, bytes)) if bytes >= LivePage::SIZE => {}
        _ => return Err("has not the size of a page".into()),
    }
    let map = file.map_to_read(LivePage::SIZE).map_err(|error| cannot_be("mapped", error))?;
    // SAFETY: the mapping is page-aligned, `LivePage::SIZE` bytes of the file and never taken down. The file of a
    // container is the node's, which does not shorten it; that of a run belongs to the user of this process, who may end
    // the process anyhow. A page is words that we only load, valid for every content.
    let page = unsafe { &*map.cast::<LivePage>() };
    if page.is_known() { Ok(page) } else { Err("is not a page of this version".into()) }
}

fn cannot_be(what: &str, error: i32) -> String {
    format!("cannot be {what} (errno {error})")
}
