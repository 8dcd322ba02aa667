//! Ledgers as no honest process writes them: what they cost is bounded, whatever they say.

use super::view::{Device, MOST_ROWS, State, World};
use crate::node::proc::Process;
use crate::sys::{LedgerMap, Map};
use gpucap_core::ledger::{DEVICES, Identity, Kind, Ledger, SLOTS};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Where the first owner stands in the file, and how long each is.
const OWNERS: u64 = 20480;
const OWNER: u64 = 64;

/// Counts the queries.
#[derive(Default)]
struct Counting {
    states: Cell<usize>,
    commands: Cell<usize>,
}

impl World for Counting {
    fn state(&self, _: &Identity) -> State {
        self.states.set(self.states.get() + 1);
        State::Alive
    }

    fn process(&self, _: &Identity) -> Option<Process> {
        None
    }

    fn command(&self, _: &Identity) -> Option<String> {
        self.commands.set(self.commands.get() + 1);
        Some("x".repeat(512))
    }

    fn takes_a_row(&self) -> bool {
        true
    }

    fn now_ns(&self) -> u64 {
        1
    }

    fn monotonic_ns(&self) -> u64 {
        1
    }

    fn unix_ns(&self) -> u64 {
        1
    }
}

/// A file with a ledger that has every slot taken and every device used by each; gone with the value.
struct Full(PathBuf, File);

impl Full {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpucap-{name}-{}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("a file");
        file.set_len(Ledger::SIZE).expect("a length");
        let map = Map::<Ledger>::writable(&file).expect("a mapping");
        let ledger = map.get();
        ledger.format();
        for pid in (1..).take(SLOTS) {
            let owner = Identity { pid_namespace: 7, pid, start_time: 1, image: 4096 };
            let slot = ledger.claim(owner, 1, &|_| true).expect("a slot");
            for uuid in (1..).take(DEVICES).map(|number| [number; 16]) {
                let device = ledger.device(uuid).expect("a device");
                ledger
                    .line(slot, device)
                    .expect("a line")
                    .charge(Kind::Alloc, 1, u64::from(pid))
                    .expect("charged");
            }
        }
        Self(path, file)
    }

    fn seen(&self, world: &Counting) -> Vec<Device> {
        Device::all(LedgerMap::copy(&self.1).expect("a copy").get(), world)
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn a_full_ledger_has_a_bounded_number_of_rows_and_the_others_are_counted() {
    let (full, world) = (Full::new("full"), Counting::default());
    let devices = full.seen(&world);
    assert_eq!(devices.len(), DEVICES);
    assert_eq!(devices.iter().map(|device| device.processes.len()).sum::<usize>(), MOST_ROWS);
    assert!(devices.iter().all(|device| device.users() == SLOTS), "all are counted");
    assert!(
        devices.iter().all(|device| device.process_limits() == Some((1, SLOTS as u64))),
        "and so their limits"
    );
    assert_eq!(world.states.get(), SLOTS, "each is asked once, not once for each device");
    assert!(world.commands.get() <= MOST_ROWS, "{} commands", world.commands.get());
}

#[test]
fn a_process_that_has_every_slot_is_one_process() {
    let (full, world) = (Full::new("repeated"), Counting::default());
    let mut first = [0; 64];
    full.1.read_exact_at(&mut first, OWNERS).expect("an owner");
    for slot in 1..SLOTS as u64 {
        full.1.write_all_at(&first, OWNERS + slot * OWNER).expect("written");
    }
    let devices = full.seen(&world);
    assert_eq!((world.states.get(), world.commands.get()), (1, 1));
    assert!(devices.iter().all(|device| device.users() == 1));
}

#[test]
fn a_device_that_is_listed_twice_is_one_device() {
    let (full, world) = (Full::new("twice"), Counting::default());
    let mut first = [0; 256];
    full.1.read_exact_at(&mut first, 4096).expect("a device");
    for device in 1..DEVICES as u64 {
        full.1.write_all_at(&first, 4096 + device * 256).expect("written");
    }
    assert_eq!(full.seen(&world).len(), 1);
}

#[test]
fn a_copy_is_the_file_whatever_of_it_is_sparse() {
    let full = Full::new("copied");
    let copy = LedgerMap::copy(&full.1).expect("a copy");
    let sum = |ledger: &Ledger| -> u64 { ledger.devices().map(|device| device.used).sum() };
    assert_eq!(sum(copy.get()), (SLOTS * DEVICES) as u64);
    full.1.set_len(0).expect("shortened");
    assert_eq!(sum(copy.get()), (SLOTS * DEVICES) as u64, "what was copied stays");
    full.1.set_len(Ledger::SIZE).expect("as long as before");
    let sparse = LedgerMap::copy(&full.1).expect("a copy");
    assert_eq!(sparse.get().devices().count(), 0);
    full.1.set_len(Ledger::SIZE - 1).expect("shortened");
    assert!(LedgerMap::copy(&full.1).is_err(), "shorter than a ledger");
}
