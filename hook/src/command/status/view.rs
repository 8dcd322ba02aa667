//! What `status` knows: ledgers as people and programs want to see them, with the facts of `/proc` added.
//!
//! Made from a ledger and a [`World`]; the renderings look at nothing else, so that they can be tested on any picture.

use crate::engine::records::Record;
use crate::given::Given;
use crate::ledgers::{BY_HOOK, Name};
use gpucap_core::ledger::{DeviceView, Identity, Kind, Ledger};
use gpucap_core::limits::file::Key;
use gpucap_core::limits::live::LivePage;
use gpucap_core::units::Share;
use gpucap_core::uuid::Uuid;
use std::path::{Path, PathBuf};

/// Everything that is to be seen.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// How many containers the hook has limited and that still run. `None`: there is no directory of records here.
    pub(crate) containers: Option<usize>,
    /// Ledgers.
    pub(crate) books: Vec<Book>,
    /// Made by a run of which no process has used a GPU yet.
    pub(crate) unused: Vec<PathBuf>,
    /// Found and not readable, with the reason.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
}

/// A ledger: one budget.
#[derive(Debug)]
pub(crate) struct Book {
    /// The file.
    pub(crate) path: PathBuf,
    /// The container whose it is, as far as the host knows.
    pub(crate) container: Option<Container>,
    /// The devices that any of its processes has named.
    pub(crate) devices: Vec<Device>,
}

/// What the host knows of a container.
#[derive(Debug)]
pub(crate) struct Container {
    /// What the hook wrote down when it started.
    pub(crate) record: Record,
    /// Who said how much, in the words of the planner.
    pub(crate) source: String,
    /// What it may use.
    pub(crate) given: Vec<Given>,
}

/// A device in a ledger.
#[derive(Debug)]
pub(crate) struct Device {
    /// Which one.
    pub(crate) uuid: Uuid,
    /// What the living hold, and those of whom it is not known.
    pub(crate) used: u64,
    /// The most that was ever held.
    pub(crate) peak: u64,
    /// Refusals that programs got to see.
    pub(crate) refusals: u64,
    /// What all its processes kept of its time, those that have ended included.
    pub(crate) time: Time,
    /// How long launches waited for their share of time.
    pub(crate) waited_ns: u64,
    /// How long it takes until what was spent beyond the share is paid off.
    pub(crate) owed_for_ns: u64,
    /// What the container may use of it, as far as the host knows.
    pub(crate) given: Option<Given>,
    /// Who holds it.
    pub(crate) processes: Vec<Row>,
    /// How many have ended without being taken out of the book.
    pub(crate) ended: usize,
    /// What those held.
    pub(crate) ended_bytes: u64,
}

/// What is kept of a device's time. All zero where time is not limited: then nothing is measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Time {
    /// Thousandths of the last second or so.
    pub(crate) permille: u32,
    /// In all.
    pub(crate) busy_ns: u64,
    /// Launches.
    pub(crate) launches: u64,
}

/// What a process holds of a device.
#[derive(Debug)]
pub(crate) struct Row {
    /// In the pid namespace of the ledger's processes.
    pub(crate) pid: u32,
    /// Whether it runs.
    pub(crate) state: State,
    /// Its command line, if it is to be seen.
    pub(crate) command: Option<String>,
    /// Since its first GPU call.
    pub(crate) since_s: u64,
    /// The cap of its latest request.
    pub(crate) cap: u64,
    /// Bytes that it holds.
    pub(crate) used: u64,
    /// The most that it held.
    pub(crate) peak: u64,
    /// Refusals that it got to see.
    pub(crate) refusals: u64,
    /// What it keeps of the device's time.
    pub(crate) time: Time,
    /// What it holds by kind, in the order of [`Kind::ALL`].
    pub(crate) kinds: [u64; Kind::ALL.len()],
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// It does.
    Alive,
    /// It has ended, and nobody has taken it out of the book yet.
    Ended,
    /// It belongs to another pid namespace.
    Unknown,
}

/// What is known outside a ledger.
pub(crate) trait World {
    /// Whether the owner of a slot runs.
    fn state(&self, owner: &Identity) -> State;
    /// Its command line.
    fn command(&self, owner: &Identity) -> Option<String>;
    /// The time by which slots are dated.
    fn now_ns(&self) -> u64;
    /// The time by which busy time is told.
    fn monotonic_ns(&self) -> u64;
}

impl Status {
    /// Containers first, by the names under which people know them; then the others by their files.
    pub(crate) fn sort(&mut self) {
        self.books.sort_by_cached_key(|book| {
            let record = book.container.as_ref().map(|container| &container.record);
            let names = record.and_then(|record| record.names.clone());
            let names = names.map(|it| (it.namespace, it.pod, it.container));
            let id = record.map(|record| record.container.clone());
            (record.is_none(), names.is_none(), names, id, book.path.clone())
        });
    }
}

impl Book {
    /// The present picture of a ledger.
    pub(crate) fn of(ledger: &Ledger, path: &Path, world: &dyn World) -> Self {
        Self { path: path.to_owned(), container: None, devices: Device::all(ledger, world) }
    }

    /// The same of a container that the hook knows.
    pub(crate) fn of_container(mut self, container: Container) -> Self {
        for device in &mut self.devices {
            device.given = Given::find(&container.given, device.uuid);
        }
        Self { container: Some(container), ..self }
    }

    /// Whose budget it is, in the word for programs.
    pub(crate) fn kind(&self) -> &'static str {
        match Name::of(&self.path) {
            Some(Name::Run { .. }) => "run",
            Some(Name::Shared { .. }) => "shared",
            None if self.container.is_some() || self.path == Path::new(BY_HOOK) => "container",
            None => "other",
        }
    }
}

impl Container {
    /// What a record says, and the page that the host has written since.
    pub(crate) fn of(record: Record, page: Option<&LivePage>) -> Self {
        let limits = record.limits().unwrap_or_default();
        let given = Given::all(&limits, page);
        Self { record, source: limits.source.to_string(), given }
    }
}

impl Device {
    /// Those of a ledger.
    pub(crate) fn all(ledger: &Ledger, world: &dyn World) -> Vec<Self> {
        ledger.devices().map(|device| Self::of(ledger, &device, world)).collect()
    }

    fn of(ledger: &Ledger, device: &DeviceView, world: &dyn World) -> Self {
        let now = world.monotonic_ns();
        let level = ledger.bucket(device.device).map_or(0, |word| word.load());
        let mut seen = Self {
            uuid: Uuid(device.uuid),
            used: device.used,
            peak: device.peak,
            refusals: device.refusals,
            time: Time {
                permille: ledger.busy_share(device.device, now),
                busy_ns: device.busy_ns,
                launches: device.launches,
            },
            waited_ns: device.waited_ns,
            owed_for_ns: level.saturating_sub(now),
            given: None,
            processes: Vec::new(),
            ended: 0,
            ended_bytes: 0,
        };
        for process in ledger.processes() {
            let Some(book) = process.book(device.device) else { continue };
            let state = world.state(&process.identity);
            if state == State::Ended {
                seen.ended += 1;
                seen.ended_bytes = seen.ended_bytes.saturating_add(book.used);
                seen.used = seen.used.saturating_sub(book.used);
                continue;
            }
            let known = state == State::Alive;
            seen.processes.push(Row {
                pid: process.identity.pid,
                state,
                command: known.then(|| world.command(&process.identity)).flatten(),
                since_s: world.now_ns().saturating_sub(process.since_ns) / 1_000_000_000,
                cap: book.cap,
                used: book.used,
                peak: book.peak,
                refusals: book.refusals,
                time: Time {
                    permille: process.busy_share(device.device, now),
                    busy_ns: book.busy_ns,
                    launches: book.launches,
                },
                kinds: book.kinds,
            });
        }
        seen
    }

    /// The share of its time that the container may use now, as far as the host knows.
    pub(crate) fn share(&self) -> Option<Share> {
        self.given?.now.core
    }

    /// As nvidia-smi calls it. Of one that the limits file does not name it is not known whether it is a MIG instance.
    pub(crate) fn name(&self) -> String {
        match self.given.map(|given| given.gpu) {
            Some(Key::Name(name)) => name.to_string(),
            Some(Key::Every) | None => self.uuid.gpu().to_string(),
        }
    }

    /// The lowest and the highest cap that its processes were under at their latest request. Each process applies its
    /// own; as a rule they are the same.
    pub(crate) fn caps(&self) -> Option<(u64, u64)> {
        let caps = || self.processes.iter().map(|row| row.cap).filter(|&cap| cap != 0);
        Some((caps().min()?, caps().max()?))
    }
}

/// The word for a kind of memory: here, in the table and in JSON.
pub(crate) const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Alloc => "alloc",
        Kind::Managed => "managed",
        Kind::Pool => "pool",
        Kind::Vmm => "vmm",
        Kind::Array => "array",
        Kind::Context => "context",
        Kind::Module => "module",
        Kind::Heap => "heap",
        Kind::Graph => "graph",
    }
}
