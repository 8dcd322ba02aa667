//! The usage pages of a node's containers ([`gpucap_core::page`]): their directory, and how a container gets its own.
//!
//! ```text
//! <run_dir>/pages/               for root alone
//!   PID-START -> all/NAME        whose it is: a container's first process, and when that started
//!   all/                         a file system in memory of its own: a page that grows fills nothing else
//!     NAME                       the page
//!     NAME.share                 the container's shares of the time ([`share`])
//!     NAME.held                  its held page: until when it is held back, if it had more than that ([`held`])
//!   debts/                       what containers that have ended owe, for those in their places ([`debts`])
//!   PID-START.N -> all/NAME      a page that a process of the node publishes for a process without one ([`unreported`])
//! ```
//!
//! Each container can read all of `all`, so names are random and carry no information. A page is stale exactly if the
//! process that its link names has ended. The link is made before the page and removed after it; each hook removes
//! stale pages, and pages without a link. A container that could make another mount writable gets no page.

mod debts;
pub(crate) mod held;
pub(crate) mod share;
mod store;
pub(crate) mod unreported;

use super::mounts::{Use, is_closed, is_open};
use super::records::first_process;
use super::root::{FileIdentity, Place, Root};
use crate::node::proc::Process;
use crate::sys::at::{self, OFlags};
use crate::sys::no_user::NoUser;
use crate::sys::{self, Map, mount};
use debts::Debts;
use gpucap_core::limits::LimitsFile;
use gpucap_core::page::{self, UsagePage};
use gpucap_core::units::{ComputeLimit, Share};
use gpucap_plan::Node;
use held::Owed;
use share::ShareFile;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use store::{ALL, is_mounted, lock, make_directory, mounted, with_room};

/// Under these names they are beside the limits file, before the mounts are put on top.
pub(crate) const FILES: [&CStr; 2] = [c"page", c"held"];
pub(crate) const DIRECTORY: &CStr = c"pages";

/// A container that is to have a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Where the node keeps them.
    pub(crate) directory: &'a Path,
    /// The container's first process, and when that started.
    pub(crate) owner: (u32, u64),
    /// What an engine starts again has the same place.
    pub(crate) place: &'a str,
}

/// The page of one container, to be shown to it.
#[derive(Debug)]
pub(crate) struct PageMounts {
    claim: Claim,
    owed: Owed,
    /// A mount of it, of its held page, and of all of them, mounted nowhere yet.
    own: (File, FileIdentity),
    held: (File, FileIdentity),
    all: (File, FileIdentity),
}

/// A page and the link that names its owner, open for use from within any namespace. Removed unless it is kept.
#[derive(Debug)]
struct Claim {
    debts: Debts,
    directory: File,
    all: File,
    link: CString,
    name: CString,
    kept: bool,
}

/// The directory of the pages.
pub(crate) fn directory(node: &Node) -> PathBuf {
    Path::new(&node.run_dir).join("pages")
}

/// Whether a container of these limits needs one: it has to wait for its turns on a card.
pub(crate) fn are_needed(limits: &LimitsFile) -> bool {
    limits.entries.iter().any(|entry| entry.core.is_some())
}

/// Removes pages of ended containers, and the file system if none is left. Returns how many were removed.
pub(crate) fn sweep(directory: &Path) -> usize {
    // What two hooks keep of one container's debts would get mixed up.
    let lock = lock(directory);
    let links = fs::read_dir(directory).into_iter().flatten().flatten();
    let stale = links.filter(|link| {
        let owner = link.file_name().to_str().and_then(owner_of);
        owner.is_some_and(|((pid, start_time), _)| Process(pid).has_ended(start_time))
    });
    let debts = Debts::beside(directory);
    let is_gone = |link: &PathBuf| {
        let page = directory.join(fs::read_link(link)?);
        let name = CString::new(page.file_name().unwrap_or_default().as_bytes())?;
        match File::open(directory.join(ALL)) {
            Ok(all) => {
                let owner = link.file_name().and_then(OsStr::to_str).unwrap_or_default();
                // A page stays no longer because there is no room for its debts.
                let _ = debts.keep(owner, &all, &name);
                share::remove_page(&all, &name)?;
            }
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
        fs::remove_file(link)
    };
    let count = stale.filter(|link| is_gone(&link.path()).is_ok()).count();
    debts.tidy(|owner| directory.join(owner).is_symlink());
    drop(lock);
    let _ = tidy(directory);
    count
}

/// The process that the name of a link names, and whether it is a container's first one.
fn owner_of(link: &str) -> Option<((u32, u64), bool)> {
    match link.split_once('.') {
        None => Some((first_process(link)?, true)),
        Some((process, number)) => {
            number.parse::<u32>().ok()?;
            Some((first_process(process)?, false))
        }
    }
}

/// Removes pages without a link (the process that removed the link may not have seen the page, in another mount
/// namespace), and the file system once it is empty.
fn tidy(directory: &Path) -> io::Result<()> {
    let all = directory.join(ALL);
    // Excludes hooks that are about to make a page; otherwise the file system stays.
    let home = File::open(directory)?;
    home.try_lock()?;
    let mut named = Vec::new();
    for link in fs::read_dir(directory)? {
        match fs::read_link(link?.path()) {
            Ok(page) => named.push(page),
            // It is no link, or another process has just removed it, and its page before that.
            Err(why) if matches!(why.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {}
            // The page that this one names must stay.
            Err(why) => return Err(why),
        }
    }
    for file in fs::read_dir(&all)?.flatten().map(|file| file.file_name()) {
        if page_of(&file).is_some_and(|page| !named.contains(&Path::new(ALL).join(page))) {
            store::remove(&File::open(&all)?, &CString::new(file.as_bytes())?)?;
        }
    }
    if is_mounted(&home, &File::open(&all)?)? && fs::read_dir(&all)?.next().is_none() {
        mount::unmount(&CString::new(all.as_os_str().as_bytes())?)?;
    }
    Ok(())
}

/// The name of the page to which a file of this name belongs: the page, or one beside it, complete or not.
fn page_of(file: &OsStr) -> Option<&str> {
    let (name, rest) = file.to_str()?.split_at_checked(32)?;
    let beside = rest.strip_suffix(share::UNFINISHED).unwrap_or(rest);
    let belongs = rest.is_empty() || share::BESIDE.contains(&beside);
    (belongs && u128::from_str_radix(name, 16).is_ok()).then_some(name)
}

/// Whether there is time that a container may not have.
fn is_limit(limit: ComputeLimit) -> bool {
    limit.most() != Share::FULL
}

impl PageMounts {
    /// Makes it, or finds the one that a hook has made for this container before; in the namespace of the host.
    pub(crate) fn make(
        wanted: Wanted<'_>,
        limits: &LimitsFile,
        label: Option<&str>,
    ) -> io::Result<Self> {
        let path = wanted.directory;
        make_directory(path, 0o700)?;
        let _lock = lock(path)?;
        let (claim, mut owed) = Claim::stake(wanted, label)?;
        // First, since a page without its shares counts for nothing.
        let shares = || limits.entries.iter().map(|entry| (entry.key, entry.compute()));
        claim.share(path)?.publish(shares())?;
        let text = page::share::write(shares());
        owed.retain(|gpu, _| page::share::limit_of(text.as_bytes(), *gpu).is_some_and(is_limit));
        let file = with_room(path, || claim.page())?;
        Map::<UsagePage>::writable(&file)?.get().format();
        let held = with_room(path, || held::make(&claim.all, &claim.name, &owed))?;
        let own = clone(&file, Use::Write, None)?;
        // Where the kernel has no such mounts, a container can keep others from opening these for a while.
        let no_user = NoUser::make().ok();
        let read = |file: &File| clone(file, Use::Read, no_user.as_ref());
        let [held, all] = [read(&held)?, read(&claim.all)?];
        Ok(Self { claim, owed, own, held, all })
    }

    /// Mounts it for the container with this root: the own page last, so that a process that finds it finds all
    /// others.
    pub(crate) fn show(&self, root: &Root) -> io::Result<()> {
        let [own, held, all] = places(root)?;
        mount::attach(&self.all.0, &all.top()?)?;
        mount::attach(&self.held.0, &held.top()?)?;
        mount::attach(&self.own.0, &own.top()?)
    }

    /// Looks whether the container sees all of it, and can write to its own page alone.
    pub(crate) fn verify(&self, root: &Root) -> Result<(), String> {
        let Ok([own, held, all]) = places(root) else { return Err(page::PATH.into()) };
        let is = |place: &Place, known: FileIdentity, fits: fn(&File) -> io::Result<bool>| {
            let seen = place.top()?;
            Ok(FileIdentity::of(&seen)? == known && fits(&seen)?)
        };
        let sees = |path: &str, seen: io::Result<bool>| match seen {
            Ok(true) => Ok(()),
            _ => Err(path.to_owned()),
        };
        sees(page::PATH, is(&own, self.own.1, is_open))?;
        sees(page::held::PATH, is(&held, self.held.1, is_closed))?;
        sees(page::DIRECTORY, is(&all, self.all.1, is_closed))
    }

    /// Keeps it until the container ends. Returns what is owed in its place: it is held back for that.
    pub(crate) fn keep(mut self) -> Owed {
        self.claim.kept = true;
        std::mem::take(&mut self.owed)
    }
}

impl Claim {
    /// Of a page that is not there yet, unless a hook has been here for this container before.
    fn stake(wanted: Wanted<'_>, label: Option<&str>) -> io::Result<(Self, Owed)> {
        let Wanted { directory: path, owner: (pid, start_time), place } = wanted;
        let directory = File::open(path)?;
        let all = mounted(path, &directory, label)?;
        let link = format!("{pid}-{start_time}");
        let name = match fs::read_link(path.join(&link)) {
            Ok(target) => target.file_name().unwrap_or_default().as_bytes().to_vec(),
            Err(_none) => {
                let name = format!("{:032x}", sys::random()?);
                symlink(Path::new(ALL).join(&name), path.join(&link))?;
                name.into()
            }
        };
        let debts = Debts::beside(path);
        let owed = debts.enter(&link, place)?;
        let (link, name) = (CString::new(link)?, CString::new(name)?);
        Ok((Self { debts, directory, all, link, name, kept: false }, owed))
    }

    /// The page's share file, about to be written.
    fn share(&self, path: &Path) -> io::Result<ShareFile> {
        with_room(path, || ShareFile::prepare(self.all.try_clone()?, &self.name))
    }

    /// Makes the page's file with all of its memory allocated, so that a mapping never meets a full file system.
    fn page(&self) -> io::Result<File> {
        let file = at::open(&self.all, &self.name, OFlags::RDWR | OFlags::CREATE, 0o666)?;
        // Whatever the container's users are.
        file.set_permissions(Permissions::from_mode(0o666))?;
        at::allocate(&file, UsagePage::SIZE)?;
        Ok(file)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.kept {
            self.debts.leave(&self.link.to_string_lossy());
            // What stays is swept with the container's process.
            let removed = share::remove_page(&self.all, &self.name);
            drop(removed.and_then(|()| at::remove(&self.directory, &self.link, false)));
        }
    }
}

/// Makes a mount of an open file, with these restrictions, whose files belong to no user if that can be had.
fn clone(file: &File, usage: Use, no_user: Option<&NoUser>) -> io::Result<(File, FileIdentity)> {
    let clone = mount::clone_of(file)?;
    let (set, clear) = usage.attributes();
    mount::restrict(&clone, set, clear)?;
    let _ = no_user.map(|no_user| no_user.own(&clone));
    Ok((clone, FileIdentity::of(file)?))
}

fn places(root: &Root) -> io::Result<[Place; 3]> {
    let inside = root.place("", c".gpucap")?.top()?;
    let [own, held] = FILES.map(|name| Place::new(&inside, name));
    Ok([own?, held?, Place::new(&inside, DIRECTORY)?])
}

#[cfg(test)]
mod tests;
