//! The stage `createRuntime`: puts a container that is about to start under its limits, or refuses it.
//!
//! The runtime has made the container's mount namespace and waits; nothing of the image has run. We enter that
//! namespace, mount what [`container_files`] describes, and look whether it is there. Whatever goes wrong for a container that
//! asked for a slice ends with a refusal, and the runtime tears the container down: fail closed is free here. One that
//! did not ask is never touched.
//!
//! No other stage will do: `createContainer` runs in the container's namespaces, without rights in a user namespace,
//! and with the image's own environment under some runtimes. Nothing of the container is ever executed, and no thread is started: a
//! process with a second one may not enter a mount namespace.

mod abi;
mod container_files;
pub(crate) mod hooks;
pub(crate) mod journal;
pub(crate) mod refusal;
mod way;

use crate::container::init::Init;
use crate::container::mount_table::MountTable;
use crate::container::mounts::Means;
use crate::container::pages::held::Owed;
use crate::container::pages::{PageMounts, Wanted};
use crate::container::root::{self, FileIdentity, Root};
pub(crate) use abi::Fit;
use abi::Library;
use container_files::ContainerFiles;
use gpucap_core::limits::LimitsFile;
use refusal::Reason;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A container that is about to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// Its first process, which waits.
    pub(crate) pid: u32,
    /// Its root, on the host.
    pub(crate) root: &'a Path,
    /// The label that its files need, where SELinux is enforced.
    pub(crate) label: Option<&'a str>,
}

/// The limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    /// What holds.
    pub(crate) limits: &'a LimitsFile,
    /// The library, on the host.
    pub(crate) library: &'a Path,
    /// An image that nothing can be preloaded into (musl, static, another machine) is refused.
    pub(crate) refuses_without_glibc: bool,
    /// OpenCL, which goes past the limit, is hidden.
    pub(crate) masks_opencl: bool,
    /// The usage page that it is to have.
    pub(crate) page: Option<Wanted<'a>>,
}

/// What became of a container.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How it was put under its limits.
    pub(crate) done: Done,
    /// Why it has not the usage page that it was to have: the limits hold without one.
    pub(crate) usage_page_error: Option<io::Error>,
    /// What those before it in its place owe: it is held back for that.
    pub(crate) owed: Owed,
}

/// How a container was put under its limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Done {
    /// It sees them, and its programs load the library.
    Limited,
    /// It was so already: the hook ran twice.
    Already,
    /// It sees them, but the image has no loader that would load the library, and so none for CUDA either.
    WithoutGlibc,
    /// It sees them, and the only loader that may load the library is that of Nix, which was not looked at.
    Nix,
}

/// Puts the container under its limits.
///
/// # Errors
/// It cannot be held to them.
pub(crate) fn limit(target: Target<'_>, order: Order<'_>) -> Result<Outcome, Reason> {
    let library = order.library;
    let unusable = |why: io::Error| {
        Reason::Library(format!("{}: {}", library.display(), crate::error::reason(&why)))
    };
    let file = open_library(library).map_err(unusable)?;
    let abi = Library::read_own(&file).map_err(unusable)?;
    let identity = FileIdentity::of(&file).map_err(unusable)?;
    let means = Means::prepare(library, &file).map_err(unusable)?;
    let wanted = order.page.filter(|_| means.carry());
    let page =
        wanted.map(|wanted| PageMounts::make(wanted, order.limits, target.label)).transpose();

    let table = MountTable::open().map_err(|why| Reason::Process { pid: target.pid, why })?;
    let (root, users_root) = enter(target)?;
    let fit = abi.fit(&root).map_err(|why| Reason::Place { path: "the C library", why })?;
    let done = match fit {
        Fit::Loads => Done::Limited,
        Fit::NoGlibc if order.refuses_without_glibc => return Err(Reason::NoGlibc),
        // Shown all the same: a volume may bring a glibc later.
        Fit::NoGlibc if container_files::has_nix(&root) => Done::Nix,
        Fit::NoGlibc => Done::WithoutGlibc,
        Fit::TooNew { needs, has } => return Err(Reason::TooNew { needs, has }),
        Fit::Lacks(other) => return Err(Reason::Lacks(other)),
    };
    let shown = ContainerFiles::in_front_of(&root, identity, order.limits, order.masks_opencl)?;
    let done = if shown.verify(&root).is_ok() {
        Done::Already
    } else {
        let shown = shown.with_page(page.as_ref().is_ok_and(Option::is_some));
        shown.mount(&root, &means, target.label, (&table, users_root))?;
        shown.verify(&root).map_err(Reason::NotAsMade)?;
        done
    };
    let given = give(page, &root)?;
    let (usage_page_error, owed) =
        given.map_or_else(|why| (Some(why), Owed::default()), |owed| (None, owed));
    Ok(Outcome { done, usage_page_error, owed })
}

/// Shows the container its page, if there is one, and returns what is owed in its place; an inner error is why it has none,
/// if it was to have one. It is refused only if it could do with those of others what it may not.
fn give(page: io::Result<Option<PageMounts>>, root: &Root) -> Result<io::Result<Owed>, Reason> {
    let page = match page {
        Ok(Some(page)) => page,
        Ok(None) => return Ok(Ok(Owed::default())),
        Err(why) => return Ok(Err(why)),
    };
    if page.verify(root).is_err() {
        if let Err(why) = page.show(root) {
            return Ok(Err(why));
        }
        page.verify(root).map_err(Reason::NotAsMade)?;
    }
    Ok(Ok(page.keep()))
}

/// What becomes of the library in the image with this root.
///
/// # Errors
/// One of them cannot be read.
pub(crate) fn fit(library: &Path, image: &Path) -> io::Result<Fit> {
    let image = Root::new(root::open_directory(image)?);
    Library::read_own(&open_library(library)?)?.fit(&image)
}

/// Returns what in the image with this root would keep some users from reading the preload list: the directory, and
/// its fault.
///
/// # Errors
/// It cannot be looked at.
pub(crate) fn fault(image: &Path) -> io::Result<Option<(String, &'static str)>> {
    way::check_image(&Root::new(root::open_directory(image)?), "etc")
}

/// Opens the library, which may be anything that the administrator has named: a fifo is not waited for.
fn open_library(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("is no file")) }
}

/// Enters the container's mount namespace, and finds its root there: before the runtime has changed to it, under the
/// bundle's path; afterwards, at `/`. Also returns the host's user that is root of the container.
fn enter(target: Target<'_>) -> Result<(Root, u32), Reason> {
    let Target { pid, root: path, .. } = target;
    let missing = |_| Reason::Root(path.to_owned());
    let identity = root::open_directory(path).and_then(|root| FileIdentity::of(&root));
    let identity = identity.map_err(missing)?;
    let unreachable = |why| Reason::Process { pid, why };
    let init = Init::of(pid).map_err(unreachable)?;
    init.enter().map_err(unreachable)?;
    for path in [path, Path::new("/")] {
        let Ok(directory) = root::open_directory(path) else { continue };
        if FileIdentity::of(&directory).map_err(missing)? == identity {
            return Ok((Root::new(directory), init.root()));
        }
    }
    Err(Reason::Root(path.to_owned()))
}
