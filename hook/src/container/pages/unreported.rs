//! Usage pages of the node: one for each process without a report, from what the driver samples of it
//! ([`gpucap_core::page::sampled`]).
//!
//! They lie among those of the containers, so that these read them, and only while there is one that has its own. Each
//! has a share file of 100 %. They belong to the process that writes them, and go with it: by the next start of a
//! container, `poststop`, `gpucap gc` or the next process that publishes. A page that is not written any more counts for
//! nothing, since its work does not grow. Two processes that published the same would count it twice: one holds the
//! [`Lock`].

use super::share::{self, ShareFile};
use super::store::{ALL, is_mounted, lock, with_room};
use super::{directory, owner_of};
use crate::node::proc::Process;
use crate::sys;
use crate::sys::at::{self, OFlags};
use gpucap_core::limits::file::Key;
use gpucap_core::page::sampled::{self, Sampled};
use gpucap_core::page::{PLACES, UsagePage};
use gpucap_core::uuid::Uuid;
use gpucap_plan::Node;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

/// How many processes have a page: a container reads at most 64 that change, its peers' among them.
const MOST: usize = 32;
/// One that has not worked for this long gives its page to another process, if there are no more.
const IDLE_NS: u64 = 2_000_000_000;

/// The right to publish on this node, as long as it is kept.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Holds it until it is closed.
    _file: File,
}

impl Lock {
    /// Takes it. `None`: another process has it.
    pub(crate) fn take(node: &Node) -> io::Result<Option<Self>> {
        fs::create_dir_all(&node.run_dir)?;
        let file = File::create(Path::new(&node.run_dir).join("sampled"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(why)) => Err(why),
        }
    }
}

/// A process, by its number and when it started.
pub(crate) type Owner = (u32, u64);

/// All pages of this process.
#[derive(Debug)]
pub(crate) struct NodePages {
    directory: PathBuf,
    owner: Owner,
    next: u32,
    pages: BTreeMap<Owner, NodePage>,
}

/// One of them.
#[derive(Debug)]
struct NodePage {
    all: File,
    file: File,
    name: CString,
    link: PathBuf,
    devices: Vec<(Uuid, Sampled)>,
    /// When it was last seen to have worked.
    busy_at: u64,
}

impl NodePages {
    /// Removes what earlier processes have left. `_lock`: no other process publishes.
    pub(crate) fn new(node: &Node, _lock: &Lock) -> io::Result<Self> {
        let directory = directory(node);
        super::sweep(&directory);
        let own = Process::own();
        let stat = own.stat()?.ok_or(io::ErrorKind::InvalidData)?;
        let (owner, pages) = ((own.0, stat.start_time), BTreeMap::new());
        Ok(Self { directory, owner, next: 0, pages })
    }

    /// Whether there is a container that reads them.
    pub(crate) fn have_readers(&self) -> bool {
        let links = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let of_container =
            |name: &OsStr| matches!(name.to_str().and_then(owner_of), Some((_, true)));
        links.map(|link| link.file_name()).any(|name| of_container(&name))
    }

    /// Adds a sample of a process, and publishes it. A process that has no page yet gets one if it was not idle.
    pub(crate) fn add(
        &mut self,
        process: Owner,
        gpu: Uuid,
        [busy_ns, length_ns]: [u64; 2],
        now: u64,
    ) -> io::Result<()> {
        if !self.pages.contains_key(&process) {
            if busy_ns == 0 || !self.has_room(now) {
                return Ok(());
            }
            let page = NodePage::make(&self.directory, self.owner, self.next)?;
            self.next += 1;
            self.pages.insert(process, page);
        }
        let Some(page) = self.pages.get_mut(&process) else { return Ok(()) };
        page.add(gpu, [busy_ns, length_ns], now)
    }

    /// Whether there may be one more page, now that one of a process that is idle is removed.
    fn has_room(&mut self, now: u64) -> bool {
        if self.pages.len() >= MOST {
            let busy_at = self.pages.iter().map(|(process, page)| (*process, page.busy_at));
            if let Some(process) = longest_idle(busy_at, now) {
                self.pages.remove(&process);
            }
        }
        self.pages.len() < MOST
    }

    /// Publishes what is not in flight any more.
    pub(crate) fn renew(&self, now: u64) -> io::Result<()> {
        self.pages.values().try_for_each(|page| page.write(now))
    }

    /// When that is due; `None` if nothing is in flight.
    pub(crate) fn due(&self, now: u64) -> Option<u64> {
        let devices = self.pages.values().flat_map(|page| &page.devices);
        devices.map(|(_, sampled)| sampled.in_flight_until()).filter(|until| *until > now).min()
    }

    /// The processes that have one.
    pub(crate) fn processes(&self) -> Vec<Owner> {
        self.pages.keys().copied().collect()
    }

    /// Removes that of a process.
    pub(crate) fn remove(&mut self, process: Owner) {
        self.pages.remove(&process);
    }
}

impl NodePage {
    fn make(directory: &Path, (pid, start_time): Owner, number: u32) -> io::Result<Self> {
        let _lock = lock(directory)?;
        let all = File::open(directory.join(ALL))?;
        if !is_mounted(&File::open(directory)?, &all)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name = format!("{:032x}", sys::random()?);
        let link = directory.join(format!("{pid}-{start_time}.{number}"));
        symlink(Path::new(ALL).join(&name), &link)?;
        let name = CString::new(name)?;
        // First, since a page without its share counts for nothing.
        let share = with_room(directory, || ShareFile::prepare(all.try_clone()?, &name));
        let made = share.and_then(|share| share.publish([(Key::Every, None)])).and_then(|()| {
            with_room(directory, || {
                let file = at::open(&all, &name, OFlags::RDWR | OFlags::CREATE, 0o644)?;
                at::allocate(&file, UsagePage::SIZE)?;
                Ok(file)
            })
        });
        match made {
            Ok(file) => Ok(Self { all, file, name, link, devices: Vec::new(), busy_at: 0 }),
            Err(why) => {
                drop(share::remove_page(&all, &name).and_then(|()| fs::remove_file(link)));
                Err(why)
            }
        }
    }

    fn add(&mut self, gpu: Uuid, [busy_ns, length_ns]: [u64; 2], now: u64) -> io::Result<()> {
        if busy_ns > 0 {
            self.busy_at = now;
        }
        let place = self.devices.iter().position(|(of, _)| *of == gpu);
        if place.is_none() && self.devices.len() >= PLACES {
            return Ok(());
        }
        let place = place.unwrap_or_else(|| {
            self.devices.push((gpu, Sampled::default()));
            self.devices.len() - 1
        });
        if let Some((_, sampled)) = self.devices.get_mut(place) {
            sampled.add(busy_ns, length_ns, now);
        }
        self.write(now)
    }

    fn write(&self, now: u64) -> io::Result<()> {
        for (row, (_, sampled)) in self.devices.iter().enumerate() {
            let report = sampled.report(now);
            self.file.write_all_at(&sampled::seat(report), sampled::seat_at(row))?;
        }
        // Last: a row that is found has its report.
        let gpus: Vec<Uuid> = self.devices.iter().map(|(gpu, _)| *gpu).collect();
        self.file.write_all_at(&sampled::header(&gpus), 0)
    }
}

impl Drop for NodePage {
    fn drop(&mut self) {
        // What stays is swept with this process.
        drop(share::remove_page(&self.all, &self.name).and_then(|()| fs::remove_file(&self.link)));
    }
}

/// Of processes and when each last worked, the one that has been idle for the longest time, if any has been for long.
fn longest_idle(busy_at: impl Iterator<Item = (Owner, u64)>, now: u64) -> Option<Owner> {
    let (process, busy_at) = busy_at.min_by_key(|(_, busy_at)| *busy_at)?;
    (now.saturating_sub(busy_at) >= IDLE_NS).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_longest_idle_process_goes_and_none_of_one_that_works() {
        const NOW: u64 = 100_000_000_000;
        let after = |idle: &[u64]| {
            let since = idle.iter().zip(1..).map(|(idle_ns, pid)| ((pid, 0), NOW - idle_ns));
            longest_idle(since, NOW).map(|(pid, _)| pid)
        };
        assert_eq!(after(&[0, 3 * IDLE_NS, IDLE_NS]), Some(2));
        assert_eq!(after(&[0, IDLE_NS - 1]), None);
        assert_eq!(after(&[]), None);
    }
}
