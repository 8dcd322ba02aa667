//! What a container is shown, and whether it sees it.
//!
//! ```text
//! /.gpucap              a tmpfs of its own, read-only, removed with the container
//!   limits              what holds
//!   live                what the node has changed about it since
//!   ledger              the container's ledger: the one file that its processes write
//!   libgpucap.so        the host's library, mounted
//!   page, held, pages   the places of its pages and of all usage pages, if it has one ([`crate::container::pages`])
//!   preload, nix, opencl     sources of the mounts below
//! /etc/ld.so.preload    our line, then what the image had there
//! /etc/ld-nix.so.preload    the same for the loader of Nix, where there is a /nix/store
//! /etc/OpenCL/vendors/nvidia.icd    if there is one: names no library, since OpenCL would go past the limit
//! ```
//!
//! The memory that the ledger can take is bounded by the size of the file system, and charged to the container.

use super::refusal::Reason;
use super::way::{self, PRELOAD};
use crate::container::live;
use crate::container::mount_table::MountTable;
use crate::container::mounts::{Means, Use, is_closed, is_open};
use crate::container::pages;
use crate::container::root::{FileIdentity, Place, Root, read};
use crate::sys::at::{self, StatVfsMountFlags};
use gpucap_core::ledger::Ledger;
use gpucap_core::limits::LimitsFile;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const DIRECTORY: &str = "/.gpucap";
const LIMITS: &str = "/.gpucap/limits";
const LEDGER: &str = crate::container::ledgers::BY_HOOK;
const SHIM: &str = "/.gpucap/libgpucap.so";
/// What the loader of Nix reads in place of the other.
const NIX_PRELOAD: &str = "/etc/ld-nix.so.preload";
const OPENCL: &str = "/etc/OpenCL/vendors/nvidia.icd";
/// A line of an ICD file that no library answers to.
const NO_OPENCL: &[u8] = b"/.gpucap/opencl-is-not-limited\n";
/// Longer lists of the image are refused.
const MOST_PRELOAD: u64 = 64 * 1024;
/// For what is in the small files, beside the ledger.
const MOST_FILES: u64 = 320 * 1024;
/// How many of them there may be, and the ledger: the last page of each may be of little use.
const FILES: u64 = 8;

/// Everything that one container is to see.
#[derive(Debug)]
pub(super) struct ContainerFiles {
    library: FileIdentity,
    limits: LimitsFile,
    preload: Vec<u8>,
    /// The list of Nix's loader, if there may be one.
    nix: Option<Vec<u8>>,
    opencl_masked: bool,
    has_page: bool,
}

impl ContainerFiles {
    /// Prepares the files for the container with this root.
    pub(super) fn in_front_of(
        root: &Root,
        library: FileIdentity,
        limits: &LimitsFile,
        masks_opencl: bool,
    ) -> Result<Self, Reason> {
        let at = |path| move |why| Reason::Place { path, why };
        let list = |path: &'static str| -> Result<Vec<u8>, Reason> {
            let file = root.open(path).map_err(at(path))?;
            let list = file.map(|file| read(file, MOST_PRELOAD)).transpose().map_err(at(path))?;
            Ok(joined(&list.unwrap_or_default()))
        };
        let nix = has_nix(root).then(|| list(NIX_PRELOAD)).transpose()?;
        let icd = masks_opencl && root.open(OPENCL).map_err(at(OPENCL))?.is_some();
        let (preload, limits) = (list(PRELOAD)?, limits.clone());
        Ok(Self { library, limits, preload, nix, opencl_masked: icd, has_page: false })
    }

    /// The same with room for a usage page.
    pub(super) fn with_page(self, has_page: bool) -> Self {
        Self { has_page, ..self }
    }

    /// Shows it.
    pub(super) fn mount(
        &self,
        root: &Root,
        means: &Means,
        label: Option<&str>,
        (table, users_root): (&MountTable, u32),
    ) -> Result<(), Reason> {
        let at = |path| move |why| Reason::Place { path, why };
        make_etc(root).map_err(at(PRELOAD))?;
        way::check(root, "etc", users_root, table)?;
        let made = |path, list: io::Result<Place>| {
            let make = |list: &Place| table.uncover(list).and_then(|()| list.make_file());
            list.and_then(|list| make(&list).map(|()| list)).map_err(at(path))
        };
        let list = made(PRELOAD, list(root))?;
        let nix = self.nix.is_some().then(|| made(NIX_PRELOAD, nix_list(root))).transpose()?;
        let directory = root.place("", c".gpucap").map_err(at(DIRECTORY))?;
        let made = table.uncover(&directory).and_then(|()| directory.make_directory());
        made.map_err(at(DIRECTORY))?;

        let inside = tmpfs(means, &directory, label).map_err(at(DIRECTORY))?;
        self.fill(&inside).map_err(at(DIRECTORY))?;
        let file = |name| Place::new(&inside, name);
        file(c"libgpucap.so").and_then(|it| means.library(&it)).map_err(at(SHIM))?;
        let ledger = || -> io::Result<()> {
            let ledger = file(c"ledger")?;
            means.file(&ledger, &ledger, Use::Write)
        };
        ledger().map_err(at(LEDGER))?;
        file(c"preload").and_then(|it| means.file(&it, &list, Use::Read)).map_err(at(PRELOAD))?;
        if let Some(list) = nix {
            let nix = file(c"nix").and_then(|it| means.file(&it, &list, Use::Read));
            nix.map_err(at(NIX_PRELOAD))?;
        }
        if self.opencl_masked {
            let icd = root.place("etc/OpenCL/vendors", c"nvidia.icd").map_err(at(OPENCL))?;
            uncovered(&icd, root, table).map_err(at(OPENCL))?;
            file(c"opencl").and_then(|it| means.file(&it, &icd, Use::Read)).map_err(at(OPENCL))?;
        }
        means.restrict(&directory, Use::Read).map_err(at(DIRECTORY))
    }

    fn fill(&self, inside: &File) -> io::Result<()> {
        at::create(inside, c"limits", 0o444)?.write_all(self.limits.write().as_bytes())?;
        live::lay_out(inside, &self.limits)?;
        at::create(inside, c"preload", 0o444)?.write_all(&self.preload)?;
        if let Some(nix) = &self.nix {
            at::create(inside, c"nix", 0o444)?.write_all(nix)?;
        }
        at::create(inside, c"opencl", 0o444)?.write_all(NO_OPENCL)?;
        at::create(inside, c"libgpucap.so", 0o444)?;
        if self.has_page {
            for file in pages::FILES {
                at::create(inside, file, 0o444)?;
            }
            at::make_directory(inside, pages::DIRECTORY)?;
        }
        // Writable by all users of the container: they share one budget.
        at::create(inside, c"ledger", 0o666).map(drop)
    }

    /// Looks whether the container sees all of it, on top of everything else that is mounted there.
    pub(super) fn verify(&self, root: &Root) -> Result<(), String> {
        let seen = |path: &str, holds: io::Result<bool>| match holds {
            Ok(true) => Ok(()),
            Ok(false) => Err(path.to_owned()),
            Err(why) => Err(format!("{path} ({})", crate::error::reason(&why))),
        };
        let inside = || root.place("", c".gpucap")?.top();
        seen(DIRECTORY, inside().and_then(|it| Ok(it.metadata()?.is_dir() && is_closed(&it)?)))?;
        let inside = inside().map_err(|why| why.to_string())?;
        let place = |name: &CStr| Place::new(&inside, name);
        let is = |place: &Place, bytes: &[u8]| -> io::Result<bool> {
            let Some(file) = place.open()? else { return Ok(false) };
            Ok(is_closed(&file)? && read(file, MOST_PRELOAD + MOST_FILES)? == bytes)
        };
        let ours = |place: &Place| -> io::Result<bool> {
            Ok(place.top()?.metadata()?.dev() == inside.metadata()?.dev())
        };
        let limits = || -> io::Result<bool> {
            let limits = place(c"limits")?;
            Ok(is(&limits, self.limits.write().as_bytes())? && ours(&limits)?)
        };
        seen(LIMITS, limits())?;
        seen(SHIM, place(c"libgpucap.so").and_then(|it| self.is_library(&it.top()?)))?;
        seen(PRELOAD, list(root).and_then(|it| is(&it, &self.preload)))?;
        if let Some(nix) = &self.nix {
            seen(NIX_PRELOAD, nix_list(root).and_then(|it| is(&it, nix)))?;
        }
        seen(LEDGER, place(c"ledger").and_then(|it| Ok(ours(&it)? && is_open(&it.top()?)?)))?;
        if self.opencl_masked {
            let icd = root.place("etc/OpenCL/vendors", c"nvidia.icd");
            seen(OPENCL, icd.and_then(|it| is(&it, NO_OPENCL)))?;
        }
        Ok(())
    }

    fn is_library(&self, file: &File) -> io::Result<bool> {
        let all_read = file.metadata()?.permissions().mode() & 0o444 == 0o444;
        let runs = !at::mount_flags(file)?.contains(StatVfsMountFlags::NOEXEC);
        Ok(FileIdentity::of(file)? == self.library && is_closed(file)? && runs && all_read)
    }
}

/// The size of the file system where a page of memory has `page` bytes: a file takes whole ones.
const fn room(page: u64) -> u64 {
    Ledger::SIZE + MOST_FILES + FILES * page
}

fn tmpfs(means: &Means, place: &Place, label: Option<&str>) -> io::Result<File> {
    let size = CString::new(room(rustix::param::page_size() as u64).to_string())?;
    let label = label.map(CString::new).transpose()?;
    let mut options = vec![(c"size", size.as_c_str()), (c"nr_inodes", c"16"), (c"mode", c"0755")];
    options.extend(label.as_ref().map(|label| (c"context", label.as_c_str())));
    means.tmpfs(place, &options)
}

/// `/etc/ld.so.preload`, whatever kind of file it is.
fn list(root: &Root) -> io::Result<Place> {
    root.place("etc", c"ld.so.preload")
}

/// `/etc/ld-nix.so.preload`, whatever kind of file it is.
fn nix_list(root: &Root) -> io::Result<Place> {
    root.place("etc", c"ld-nix.so.preload")
}

/// Whether programs of Nix may be there: their loader is in no other place, and reads a list of its own.
pub(super) fn has_nix(root: &Root) -> bool {
    root.open_path("nix/store").and_then(|store| store.metadata()).is_ok_and(|store| store.is_dir())
}

/// Makes `/etc`, of an image that has none.
fn make_etc(root: &Root) -> io::Result<()> {
    match root.open_path("etc") {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            root.place("", c"etc")?.make_directory()
        }
        found => found.map(drop),
    }
}

/// Makes this place a file on which nothing is mounted; not in a volume where mounts propagate to the host.
fn uncovered(place: &Place, root: &Root, table: &MountTable) -> io::Result<()> {
    table.uncover(place)?;
    let (mount, own) = (table.mount_of(place.parent())?, table.mount_of(&root.open_path("")?)?);
    if mount != own && table.is_shared(mount)? {
        return Err(io::Error::other("is in a volume that shares its mounts with the host"));
    }
    place.make_file()
}

/// Our line, and after it the image's own list. Ours is first, so that nothing in the list can hide it.
fn joined(list: &[u8]) -> Vec<u8> {
    let lines = list.split_inclusive(|&byte| byte == b'\n');
    let mut joined = [SHIM.as_bytes(), b"\n"].concat();
    // A list that a hook has made before.
    let others = lines.filter(|line| line.trim_ascii() != SHIM.as_bytes());
    others.for_each(|line| joined.extend_from_slice(line));
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpucap_core::limits::live::LivePage;

    /// A tmpfs rounds its own size up, and each file in it.
    #[test]
    fn the_largest_files_have_room_with_pages_of_any_size() {
        let list = MOST_PRELOAD + joined(b"").len() as u64;
        let small = [list, list, LivePage::SIZE, NO_OPENCL.len() as u64];
        let limits = MOST_FILES - small.iter().sum::<u64>();
        for page in [4, 16, 64].map(|kib: u64| kib << 10) {
            let files = small.iter().chain([&limits, &Ledger::SIZE]);
            let taken: u64 = files.map(|bytes| bytes.div_ceil(page)).sum();
            let has = room(page).div_ceil(page);
            assert!(taken <= has, "{page}: {taken} of {has}");
            assert!(has <= taken + FILES, "{page}: more than is needed: {taken} of {has}");
        }
    }

    #[test]
    fn the_image_keeps_its_list_behind_our_line() {
        for (before, after) in [
            ("", "/.gpucap/libgpucap.so\n"),
            ("/a.so\n/b.so", "/.gpucap/libgpucap.so\n/a.so\n/b.so"),
            ("/.gpucap/libgpucap.so\n/a.so\n", "/.gpucap/libgpucap.so\n/a.so\n"),
            ("# /.gpucap/x\n", "/.gpucap/libgpucap.so\n# /.gpucap/x\n"),
        ] {
            let joined = joined(before.as_bytes());
            assert_eq!(String::from_utf8(joined).expect("text"), after);
        }
    }
}
