//! The other processes on a device: what this process publishes for them, and their reports.
//!
//! The own container's [page](crate::container::usage_page) is mapped. The pages of others are opened, read and closed at each look:
//! their writers may truncate them, replace them or fill them with anything, and no descriptor outlives a look, since
//! programs close all descriptors that they find. The list of pages is refreshed every tenth of a second; a page that
//! had nothing new then, and has no work in flight, is not read in between; where the own container borrows, every page is
//! read, and the list is refreshed every 5 ms. All processes of another container are
//! taken together, and their reports count only up to the share (`gpucap_core::page::share`) that the node wrote
//! beside the page. A look waits for nothing, and takes at most a fiftieth of the time; whatever fails is ignored.

use crate::container::usage_page::OwnPage;
use crate::driver::nvml::{busy, process};
use crate::sys::{self, Directory};
use crate::topology;
use gpucap_core::ledger::{DeviceIndex, Slot};
use gpucap_core::page::{Header, OwnSeat, PLACES, held, read_seats, share};
use gpucap_core::throttle::unreported::{Unreported, UnreportedProcesses};
use gpucap_core::throttle::{Looks, PeerReport, UsageReport};
use gpucap_core::units::{ComputeLimit, Share};
use gpucap_core::uuid::Uuid;
use parking_lot::Mutex;
use std::ffi::{CStr, CString};

/// All other processes on a device.
pub(crate) struct Peers {
    own: &'static OwnPage,
    device: DeviceIndex,
    gpu: Uuid,
    slot: Slot,
    /// The own seat for this process's reports; `None` if the page has no room for it.
    seat: Option<OwnSeat<'static>>,
    view: Mutex<View>,
    unreported: Mutex<Unreported>,
}

/// The result of the latest look.
#[derive(Default)]
struct View {
    pages: Vec<PeerPage>,
    peers: Vec<PeerReport>,
    /// How many processes of other containers use the device, or have published something.
    known: usize,
    /// The buffer for what is read; [`ROOM`] bytes.
    room: Vec<u8>,
    listed_at: Option<u64>,
    /// No page was passed over for lack of descriptors or memory, or because there are too many.
    sees_all: bool,
    looks: Looks,
}

/// A page with reports for the device.
struct PeerPage {
    name: CString,
    inode: u64,
    /// The offset and length of its seats.
    seats: (usize, usize),
    limit: ComputeLimit,
    /// How many processes of it use the device and may report, if it says so.
    users: Option<usize>,
    /// Its report at the latest look, and how many processes have ever published in it.
    report: UsageReport,
    processes: usize,
    /// It had something new at the latest listing, or since.
    moves: bool,
}

/// Which reports of other containers a look reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// None: they are as at the latest look.
    Own,
    /// Those of pages that had something new lately.
    Moving,
    /// Those of every page: a container that borrows has to see each one that begins to work.
    Every,
}

impl Reads {
    const fn most(self) -> usize {
        if matches!(self, Self::Every) { EVERY_PAGE } else { MOST_PAGES }
    }
}

/// How long a new page, or the first process of a page, may go unseen.
const LIST_NS: u64 = 100_000_000;
/// The same where every page is read: a new container has its guarantee this late.
const LIST_EVERY_NS: u64 = 5_000_000;
/// How many files are opened for one listing, and how many pages are read at each look; pages that change come first.
const MOST_FILES: usize = 1024;
const MOST_PAGES: usize = 64;
const EVERY_PAGE: usize = 256;
/// Enough for a header, for the seats of a device, for a share file and for any file name.
const ROOM: usize = share::MAX_BYTES + 1;
const _: () = assert!(ROOM >= Header::SIZE);

impl Peers {
    /// Joins the processes on a device.
    pub(crate) fn join(own: &'static OwnPage, device: DeviceIndex, gpu: Uuid, slot: Slot) -> Self {
        let seat = own.page.take(device, gpu, slot, sys::monotonic_ns());
        Self { own, device, gpu, slot, seat, view: Mutex::default(), unreported: Mutex::default() }
    }

    /// Publishes this process's report.
    pub(super) fn publish(&self, report: UsageReport) {
        if let Some(seat) = &self.seat {
            seat.publish(report);
        }
    }

    /// Publishes until when the container is in debt on the device, in ns since 1970; 0: it is not.
    pub(super) fn set_debt(&self, until: u64) {
        self.own.page.set_debt(self.device, until);
    }

    /// Returns the container's processes whose reports say something of the present: slot and report.
    pub(super) fn present(&self, now: u64) -> Vec<(usize, UsageReport)> {
        let reports = self.own.page.reports(self.device);
        reports.filter(|(_, report)| *report != report.ended(now)).collect()
    }

    /// Ends the report of a dead one: a process killed in a wait would keep its container's guarantee from being lent as
    /// long as another one goes on.
    pub(super) fn end(&self, slot: usize, found: UsageReport, now: u64) {
        self.own.page.end(self.device, slot, found, now);
    }

    /// Publishes how many processes of the container use the device.
    pub(crate) fn set_users(&self, count: impl Fn() -> usize) {
        self.own.page.set_users(self.device, count);
    }

    /// Returns what processes there are on the device that publish no report: more compute on it than the `own` ones of the
    /// container and those of others. NVML is asked, which takes a while: one that begins in that time may be on its list or
    /// not.
    pub(super) fn unreported(&self, own: impl Fn() -> usize) -> UnreportedProcesses {
        let before = own();
        let Some(nvml) = topology::nvml() else { return UnreportedProcesses::None };
        let listed = process::count(nvml, self.gpu.0);
        let own = own().max(before);
        let (now, unix_ns) = (sys::monotonic_ns(), sys::unix_time_ns());
        let (known, reports) = self.known();
        let works = self.unreported.lock().works(now, reports, |since_ns| {
            busy::since(nvml, self.gpu.0, unix_ns.saturating_sub(since_ns))
        });
        // What the processes beyond the 64th do is in no report, and would be taken for that of others.
        let works = works && own <= PLACES;
        match listed.is_some_and(|listed| listed > known.saturating_add(own)) {
            false => UnreportedProcesses::None,
            true if works => UnreportedProcesses::Working,
            true => UnreportedProcesses::Idle,
        }
    }

    /// How many processes of other containers use the device, and all reports, by stable numbers.
    fn known(&self) -> (usize, Vec<(u64, UsageReport)>) {
        let view = self.view.lock();
        let own = self.own.page.reports(self.device);
        let own = own.map(|(slot, report)| (key(self.own.inode, slot), report));
        let others = view.pages.iter().map(|page| (key(page.inode, 0), page.report));
        (view.known, own.chain(others).collect())
    }

    /// Reads the reports, unless another thread does so or it `is_due` only later. Each is passed on under a stable
    /// number, with whether these are all that there are.
    pub(super) fn read_reports(
        &self,
        now: u64,
        reads: Reads,
        is_due: impl FnOnce() -> bool,
        show: impl FnOnce(&[PeerReport], bool),
    ) {
        let Some(mut view) = self.view.try_lock() else { return };
        if !view.looks.may_begin(now) || !is_due() {
            return;
        }
        view.refresh(self, reads, now);
        view.looks.looked(now, sys::monotonic_ns());
        show(&view.peers, view.sees_all);
    }
}

impl View {
    fn refresh(&mut self, all: &Peers, reads: Reads, now: u64) {
        self.peers.clear();
        let page = all.own.inode;
        let own = all.own.page.reports(all.device).filter(|(slot, _)| *slot != all.slot.index());
        let own = own.map(|(slot, report)| (key(page, slot), report));
        self.peers.extend(own.map(|(key, report)| PeerReport { page, limit: None, key, report }));
        if reads != Reads::Own || self.listed_at.is_none() {
            self.read_others(all, reads, now);
        }
        let others = self.pages.iter().map(|page| page.users.unwrap_or(page.processes));
        self.known = others.fold(0, usize::saturating_add);
        // Each counts by itself; its key is no process's.
        self.peers.extend(self.pages.iter().take(reads.most()).map(|page| PeerReport {
            page: page.inode,
            limit: Some(page.limit),
            key: key(page.inode, 0),
            report: page.report,
        }));
    }

    /// Reads the reports of other containers.
    fn read_others(&mut self, all: &Peers, reads: Reads, now: u64) {
        let every_ns = if reads == Reads::Every { LIST_EVERY_NS } else { LIST_NS };
        let lists = self.listed_at.is_none_or(|at| now.saturating_sub(at) >= every_ns);
        if !lists && self.pages.is_empty() {
            return;
        }
        self.sees_all = self.pages.len() <= EVERY_PAGE;
        let Some(directory) = all.own.directory() else {
            self.sees_all = false;
            return;
        };
        self.room.resize(ROOM, 0);
        if lists {
            self.list(&directory, all, now);
        }
        let moving = self
            .pages
            .iter_mut()
            .take(reads.most())
            .filter(|page| page.moves || lists || reads == Reads::Every);
        for page in moving {
            let (offset, length) = page.seats;
            let Some(room) = self.room.get_mut(..length) else { continue };
            let (_, bytes) = match read(&directory, &page.name, offset, room) {
                Ok(read) => read,
                Err(why) => {
                    self.sees_all &= !is_shortage(why);
                    continue;
                }
            };
            let report = UsageReport::together(read_seats(bytes).map(|(_, report)| report), now);
            page.processes = read_seats(bytes).count();
            page.moves =
                report.is_in_flight() || page.report.work != report.work || !lists && page.moves;
            page.report = report;
        }
    }

    /// Finds the pages with reports for the device, and the shares that the node wrote for them.
    fn list(&mut self, directory: &Directory, all: &Peers, now: u64) {
        let mut names: Vec<CString> = Vec::new();
        while names.len() < MOST_FILES
            && let Some(next) = directory.next(&mut self.room)
        {
            names.extend(next.filter(|name| is_page(name)).map(CStr::to_owned));
        }
        self.sees_all &= names.len() < MOST_FILES;
        names.truncate(MOST_FILES);
        let before = core::mem::take(&mut self.pages);
        for name in names {
            let Some(room) = self.room.get_mut(..Header::SIZE) else { return };
            let (inode, bytes) = match read(directory, &name, 0, room) {
                Ok(read) => read,
                Err(why) => {
                    self.sees_all &= !is_shortage(why);
                    continue;
                }
            };
            if inode == all.own.inode {
                continue;
            }
            let header = Header::read(bytes);
            let of_gpu = |header: Header<'_>| Some((header.seats(all.gpu)?, header.users(all.gpu)));
            let Some((seats, users)) = header.and_then(of_gpu) else { continue };
            let Some(limit) = self.limit(directory, &name, all) else { continue };
            let known = before.iter().find(|page| page.inode == inode);
            let report = known.map_or_else(UsageReport::default, |page| page.report);
            let processes = known.map_or(0, |page| page.processes);
            let moves = known.is_none_or(|page| page.moves);
            self.pages.push(PeerPage {
                name,
                inode,
                seats,
                limit,
                users,
                report,
                processes,
                moves,
            });
        }
        self.pages.sort_by_key(|page| !page.moves);
        self.listed_at = Some(now);
    }

    /// Returns what a page's container may have of the device's time; `None` if the node has written none.
    fn limit(&mut self, directory: &Directory, name: &CStr, all: &Peers) -> Option<ComputeLimit> {
        if !all.own.by_node {
            return Some(ComputeLimit::fixed(Share::FULL)); // all pages are this user's own, and so are their reports
        }
        let name = [name.to_bytes(), share::SUFFIX.as_bytes()].concat();
        match read(directory, &CString::new(name).ok()?, 0, &mut self.room) {
            Ok((_, text)) => share::limit_of(text, all.gpu),
            Err(why) => {
                self.sees_all &= !is_shortage(why);
                None
            }
        }
    }
}

/// Returns whether a name may be that of a page: it is of nothing that the node writes beside one.
fn is_page(name: &CStr) -> bool {
    ![share::SUFFIX, held::SUFFIX].iter().any(|suffix| name.to_bytes().ends_with(suffix.as_bytes()))
}

/// Returns whether a file could not be opened for lack of something that the process itself can use up.
const fn is_shortage(error: i32) -> bool {
    matches!(error, libc::EMFILE | libc::ENFILE | libc::ENOMEM)
}

/// Reads a file from an offset. Returns its inode and what was read.
///
/// # Errors
/// The error of the system.
fn read<'a>(
    directory: &Directory,
    name: &CStr,
    offset: usize,
    room: &'a mut [u8],
) -> Result<(u64, &'a [u8]), i32> {
    // Not blocking: it may be a fifo, or its owner may hold a lease on it, for which an open waits.
    let file = directory.file(name, libc::O_RDONLY | libc::O_NONBLOCK)?;
    let inode = file.inode()?;
    let filled = file.read_at(offset, room);
    Ok((inode, room.get(..filled).unwrap_or_default()))
}

/// The number of a process: of its page, and of its seat there.
const fn key(inode: u64, slot: usize) -> u64 {
    inode.wrapping_mul(PLACES as u64).wrapping_add(slot as u64)
}
