//! The other processes on a device: what one tells them, and what they tell.
//!
//! One's own budget's [page](crate::page) is mapped. Those of others are opened, read and closed at each look: who writes
//! one may shorten it, replace it or fill it with anything, and no descriptor outlives a look, since programs close all
//! that they find. Which there are is listed again after a tenth of a second. Nothing in them is believed but what is in
//! its place, and of that no more than the [meter](gpucap_core::throttle) lets count. Looking waits for nothing, and takes a
//! fiftieth of the time at most; whatever fails is not seen.

use crate::page::OwnPage;
use crate::sys::{self, Directory};
use gpucap_core::ledger::{DeviceIndex, Slot};
use gpucap_core::page::{Header, PLACES, Seat, read_seats};
use gpucap_core::throttle::Told;
use gpucap_core::uuid::Uuid;
use parking_lot::Mutex;
use std::ffi::{CStr, CString};

/// Everybody else on a device.
pub(crate) struct Neighbours {
    own: &'static OwnPage,
    device: DeviceIndex,
    gpu: Uuid,
    slot: Slot,
    /// Where this process tells what it does; `None` if the page has no room for it.
    seat: Option<&'static Seat>,
    view: Mutex<View>,
}

/// What there was at the latest look.
#[derive(Default)]
struct View {
    pages: Vec<Page>,
    told: Vec<(u64, Told)>,
    /// For what is read; [`ROOM`] bytes.
    room: Vec<u8>,
    listed_at: Option<u64>,
    took_ns: u64,
    rests_until: u64,
}

/// Somebody's page that tells of the device.
struct Page {
    name: CString,
    /// Where its seats are: offset and length.
    seats: (usize, usize),
}

/// How long a page may be there unseen, or a first process of it.
const LIST_NS: u64 = 100_000_000;
/// For one part of the time that looks, so many do not.
const REST: u64 = 50;
/// How many files are looked into for one list, and how many pages on it.
const MOST_FILES: usize = 512;
const MOST_PAGES: usize = 64;
/// How many processes are seen.
const MOST_TOLD: usize = 256;
/// Enough for a header, for the seats of a device and for any file's name.
const ROOM: usize = 2048;
const _: () = assert!(ROOM >= Header::SIZE);

impl Neighbours {
    /// Joins them on a device.
    pub(crate) fn join(own: &'static OwnPage, device: DeviceIndex, gpu: Uuid, slot: Slot) -> Self {
        let seat = own.page.take(device, gpu, slot);
        Self { own, device, gpu, slot, seat, view: Mutex::default() }
    }

    /// Tells them.
    pub(super) fn tell(&self, told: Told) {
        if let Some(seat) = self.seat {
            seat.tell(told);
        }
    }

    /// Looks at what they tell, unless another thread does or it `is_due` only later. Each is shown under a number that
    /// stays.
    pub(super) fn look(
        &self,
        now: u64,
        is_due: impl FnOnce() -> bool,
        show: impl FnOnce(&[(u64, Told)]),
    ) {
        let Some(mut view) = self.view.try_lock() else { return };
        if now < view.rests_until || !is_due() {
            return;
        }
        view.refresh(self, now);
        view.rest(now, sys::monotonic_ns());
        show(&view.told);
    }
}

impl View {
    fn refresh(&mut self, all: &Neighbours, now: u64) {
        self.told.clear();
        let own = all.own.page.tells(all.device).filter(|(slot, _)| *slot != all.slot.index());
        self.told.extend(own.map(|(slot, told)| (key(all.own.inode, slot), told)));
        let lists = self.listed_at.is_none_or(|at| now.saturating_sub(at) >= LIST_NS);
        if !lists && self.pages.is_empty() {
            return;
        }
        let Ok(directory) = Directory::open(&all.own.directory) else { return };
        self.room.resize(ROOM, 0);
        if lists {
            self.list(&directory, all);
            self.listed_at = Some(now);
        }
        for page in &self.pages {
            let (offset, length) = page.seats;
            let Some(room) = self.room.get_mut(..length) else { continue };
            let Some((inode, bytes)) = read(&directory, &page.name, offset, room) else { continue };
            self.told.extend(read_seats(bytes).map(|(slot, told)| (key(inode, slot), told)));
        }
        self.told.truncate(MOST_TOLD);
    }

    /// Finds the pages that tell of the device.
    fn list(&mut self, directory: &Directory, all: &Neighbours) {
        let mut names: Vec<CString> = Vec::new();
        while names.len() < MOST_FILES
            && let Some(next) = directory.next(&mut self.room)
        {
            names.extend(next.map(CStr::to_owned));
        }
        names.truncate(MOST_FILES);
        let mut seats_of = |name: &CStr| {
            let room = self.room.get_mut(..Header::SIZE)?;
            let (inode, bytes) = read(directory, name, 0, room)?;
            Header::read(bytes).filter(|_| inode != all.own.inode)?.seats(all.gpu)
        };
        let pages =
            names.into_iter().filter_map(|name| Some(Page { seats: seats_of(&name)?, name }));
        self.pages = pages.take(MOST_PAGES).collect();
    }

    /// Leaves them alone for a while. One look that took long says nothing: somebody else had the processor.
    fn rest(&mut self, began: u64, now: u64) {
        let took_ns = now.saturating_sub(began);
        let usual_ns = took_ns.min(core::mem::replace(&mut self.took_ns, took_ns));
        self.rests_until = now.saturating_add(usual_ns.saturating_mul(REST));
    }
}

/// Which file that is, and what it holds from here on.
fn read<'a>(
    directory: &Directory,
    name: &CStr,
    offset: usize,
    room: &'a mut [u8],
) -> Option<(u64, &'a [u8])> {
    // Not blocking: it may be a fifo, or its owner may have a lease on it, for which others wait.
    let file = directory.file(name, libc::O_RDONLY | libc::O_NONBLOCK).ok()?;
    let inode = file.inode().ok()?;
    let filled = file.read_at(offset, room);
    Some((inode, room.get(..filled)?))
}

/// The number of a process: of its page, and of its place there.
const fn key(inode: u64, slot: usize) -> u64 {
    inode.wrapping_mul(PLACES as u64).wrapping_add(slot as u64)
}
