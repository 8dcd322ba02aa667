//! What `status` knows: ledgers as people and programs want to see them, with the facts of `/proc` added.
//!
//! Made from a ledger and a [`World`]; the renderings look at nothing else, so that they can be tested on any picture.

use super::unlisted::Unlisted;
use crate::container::effective_limit::EffectiveLimit;
use crate::container::ledgers::{BY_HOOK, Name};
use crate::container::records::Record;
use crate::node::proc::Process;
use gpucap_core::ledger::{DeviceView, Identity, Kind, Ledger, ProcessView};
use gpucap_core::limits::file::Key;
use gpucap_core::limits::live::LivePage;
use gpucap_core::units::ComputeLimit;
use gpucap_core::uuid::Uuid;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many processes of one ledger have a row, on all of its devices together.
pub(super) const MOST_ROWS: usize = 1024;

/// Everything that is to be seen.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// How many containers the hook has limited and that still run. `None`: there is no directory of records here.
    pub(crate) containers: Option<usize>,
    /// How many containers the hook has refused, by reason. Empty without that directory.
    pub(crate) refused: Vec<(&'static str, u64)>,
    /// Ledgers.
    pub(crate) ledgers: Vec<LedgerView>,
    /// Made by a run of which no process has used a GPU yet.
    pub(crate) unused: Vec<PathBuf>,
    /// Found and not readable, with the reason.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
    /// For how long GPUs worked for processes that had ended before they were sampled, in ns. Of those that are sampled.
    pub(crate) unattributed: BTreeMap<Uuid, u64>,
}

/// A ledger: one budget.
#[derive(Debug)]
pub(crate) struct LedgerView {
    /// The file.
    pub(crate) path: PathBuf,
    /// The container that it belongs to, if the host knows it.
    pub(crate) container: Option<Container>,
    /// The devices that any of its processes has named.
    pub(crate) devices: Vec<Device>,
    /// Chosen by a GPU: other devices were taken away.
    pub(crate) of_gpu: bool,
}

/// What the host knows of a container.
#[derive(Debug)]
pub(crate) struct Container {
    /// What the hook wrote down when it started.
    pub(crate) record: Record,
    /// The sources and their values, in the words of the planner.
    pub(crate) source: String,
    /// What it may use.
    pub(crate) effective: Vec<EffectiveLimit>,
}

/// A device in a ledger.
#[derive(Debug)]
pub(crate) struct Device {
    /// Which one.
    pub(crate) uuid: Uuid,
    /// The bytes of living processes, and of those whose state is unknown.
    pub(crate) used: u64,
    /// The most that was ever held.
    pub(crate) peak: u64,
    /// Refusals that programs got to see.
    pub(crate) refusals: u64,
    /// What all its processes kept of its time, those that have ended included.
    pub(crate) time: Time,
    /// When it last finished work for the container, in ns since 1970. `None`: none was measured.
    pub(crate) last_worked_ns: Option<u64>,
    /// What the driver has sampled of it for the container, if it is sampled.
    pub(crate) sampled: Option<Sampled>,
    /// How long launches waited for their share of time.
    pub(crate) waited_ns: u64,
    /// How much of the time used was beyond the guarantee.
    pub(crate) borrowed_ns: u64,
    /// How long it takes until what was spent beyond the share is paid off.
    pub(crate) owed_for_ns: u64,
    /// What living processes hold by kind, in the order of [`Kind::ALL`].
    pub(crate) kinds: [u64; Kind::ALL.len()],
    /// What the container may use of it, as far as the host knows.
    pub(crate) effective: Option<EffectiveLimit>,
    /// The processes that hold it.
    pub(crate) processes: Vec<Row>,
    /// Those that have no row.
    pub(crate) unlisted: Unlisted,
    /// The number of ended processes that have not been reaped.
    pub(crate) ended: usize,
    /// What those held.
    pub(crate) ended_bytes: u64,
}

/// Counters of a device's time. All zero where time is not limited: then nothing is measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Time {
    /// Thousandths of the last second or so.
    pub(crate) permille: u32,
    /// In all.
    pub(crate) busy_ns: u64,
    /// Launches.
    pub(crate) launches: u64,
}

/// What the driver has sampled of a device for a container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sampled {
    /// Thousandths of the last seconds.
    pub(crate) permille: u64,
    /// In all, since it is sampled.
    pub(crate) busy_ns: u64,
    /// When it last worked for the container, or since when it is sampled, in ns since 1970.
    pub(crate) last_ns: u64,
    /// What of it was beyond the compute limit, if there is one.
    pub(crate) beyond_ns: Option<u64>,
}

/// What a process holds of a device.
#[derive(Debug)]
pub(crate) struct Row {
    /// In the pid namespace of the ledger's processes.
    pub(crate) pid: u32,
    /// As this machine numbers it, if that is known.
    pub(crate) here: Option<Process>,
    /// Whether it runs.
    pub(crate) state: State,
    /// Its command line, if it is to be seen.
    pub(crate) command: Option<String>,
    /// Since its first GPU call.
    pub(crate) since_s: u64,
    /// The limit of its latest request.
    pub(crate) limit: u64,
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
    /// It has ended, and has not been reaped yet.
    Ended,
    /// It belongs to another pid namespace.
    Unknown,
}

/// Facts from outside the ledger.
pub(crate) trait World {
    /// Whether the owner of a slot runs.
    fn state(&self, owner: &Identity) -> State;
    /// The process, if it is to be seen here.
    fn process(&self, owner: &Identity) -> Option<Process>;
    /// Its command line.
    fn command(&self, owner: &Identity) -> Option<String>;
    /// Whether one more process is to have a row of its own.
    fn takes_a_row(&self) -> bool;
    /// The time by which slots are dated.
    fn now_ns(&self) -> u64;
    /// The time of the clock that busy time is measured with.
    fn monotonic_ns(&self) -> u64;
    /// The time of day, in ns since 1970.
    fn unix_ns(&self) -> u64;
}

impl Status {
    /// Containers first, by the names under which people know them; then the others by their files.
    pub(crate) fn sort(&mut self) {
        self.ledgers.sort_by_cached_key(|ledger| {
            let record = ledger.container.as_ref().map(|container| &container.record);
            let names = record.and_then(|record| record.names.clone());
            let names = names.map(|it| (it.namespace, it.pod, it.container));
            let id = record.map(|record| record.container.clone());
            (record.is_none(), names.is_none(), names, id, ledger.path.clone())
        });
    }
}

impl LedgerView {
    /// The present picture of a ledger.
    pub(crate) fn of(ledger: &Ledger, path: &Path, world: &dyn World) -> Self {
        Self::new(path.to_owned(), Device::all(ledger, world))
    }

    /// That of a file with these devices.
    pub(crate) const fn new(path: PathBuf, devices: Vec<Device>) -> Self {
        Self { path, container: None, devices, of_gpu: false }
    }

    /// The same of a container that the hook knows.
    pub(crate) fn of_container(mut self, container: Container) -> Self {
        for device in &mut self.devices {
            device.effective = EffectiveLimit::find(&container.effective, device.uuid);
        }
        Self { container: Some(container), ..self }
    }

    /// The kind of owner, as a name for programs.
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
        let effective = EffectiveLimit::all(&limits, page);
        Self { record, source: limits.source.to_string(), effective }
    }
}

/// A process of a ledger, of which everything was asked that is not of a device.
struct Asked<'a> {
    process: ProcessView<'a>,
    state: State,
    command: OnceCell<Option<String>>,
}

impl<'a> Asked<'a> {
    /// Every process of a ledger, once. What a container writes there it may repeat.
    fn all(ledger: &'a Ledger, world: &dyn World) -> Vec<Self> {
        let mut seen = BTreeSet::new();
        let who = |it: &Identity| (it.pid_namespace, it.pid, it.start_time);
        let processes = ledger.processes().filter(|it| seen.insert(who(&it.identity)));
        let asked = |process: ProcessView<'a>| {
            let state = world.state(&process.identity);
            Self { process, state, command: OnceCell::new() }
        };
        processes.map(asked).collect()
    }

    /// Its command line, asked for when it is first shown.
    fn command(&self, world: &dyn World) -> Option<String> {
        let known = self.state == State::Alive;
        let ask = || known.then(|| world.command(&self.process.identity)).flatten();
        self.command.get_or_init(ask).clone()
    }
}

impl Device {
    /// Those of a ledger, and at most [`MOST_ROWS`] processes of all of them together.
    pub(crate) fn all(ledger: &Ledger, world: &dyn World) -> Vec<Self> {
        let processes = Asked::all(ledger, world);
        let mut uuids = BTreeSet::new();
        let devices = ledger.devices().filter(|device| uuids.insert(device.uuid));
        let mut rows = MOST_ROWS;
        devices.map(|device| Self::of(ledger, &device, &processes, world, &mut rows)).collect()
    }

    fn of(
        ledger: &Ledger,
        device: &DeviceView,
        processes: &[Asked<'_>],
        world: &dyn World,
        rows: &mut usize,
    ) -> Self {
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
            last_worked_ns: ledger
                .last_worked(device.device, now)
                .map(|ended| world.unix_ns().saturating_sub(now.saturating_sub(ended))),
            sampled: None,
            waited_ns: device.waited_ns,
            borrowed_ns: device.borrowed_ns,
            owed_for_ns: level.saturating_sub(now),
            kinds: [0; Kind::ALL.len()],
            effective: None,
            processes: Vec::new(),
            unlisted: Unlisted::default(),
            ended: 0,
            ended_bytes: 0,
        };
        for asked in processes {
            let Asked { process, state, .. } = asked;
            let Some(account) = process.account(device.device) else { continue };
            if *state == State::Ended {
                seen.ended += 1;
                seen.ended_bytes = seen.ended_bytes.saturating_add(account.used);
                seen.used = seen.used.saturating_sub(account.used);
                continue;
            }
            for (sum, bytes) in seen.kinds.iter_mut().zip(account.kinds) {
                *sum = sum.saturating_add(bytes);
            }
            if *rows == 0 || !world.takes_a_row() {
                seen.unlisted.add(account.limit);
                continue;
            }
            *rows -= 1;
            seen.processes.push(Row {
                pid: process.identity.pid,
                here: world.process(&process.identity),
                state: *state,
                command: asked.command(world),
                since_s: world.now_ns().saturating_sub(process.since_ns) / 1_000_000_000,
                limit: account.limit,
                used: account.used,
                peak: account.peak,
                refusals: account.refusals,
                time: Time {
                    permille: process.busy_share(device.device, now),
                    busy_ns: account.busy_ns,
                    launches: account.launches,
                },
                kinds: account.kinds,
            });
        }
        seen
    }

    /// What the container may use of its time now, as far as the host knows.
    pub(crate) fn compute(&self) -> Option<ComputeLimit> {
        self.effective?.now.core
    }

    /// As nvidia-smi calls it. Of one that the limits file does not name it is not known whether it is a MIG instance.
    pub(crate) fn name(&self) -> String {
        match self.effective.map(|effective| effective.gpu) {
            Some(Key::Name(name)) => name.to_string(),
            Some(Key::Every) | None => self.uuid.gpu().to_string(),
        }
    }

    /// The lowest and the highest limit that its processes were under at their latest request. Each process applies its
    /// own; as a rule they are the same.
    pub(crate) fn process_limits(&self) -> Option<(u64, u64)> {
        let listed = self.processes.iter().map(|row| row.limit).filter(|&limit| limit != 0);
        let unlisted = self.unlisted.limits().into_iter().flat_map(|(low, high)| [low, high]);
        let limits: Vec<u64> = listed.chain(unlisted).collect();
        Some((*limits.iter().min()?, *limits.iter().max()?))
    }

    /// The memory limit of all its processes together: the one that the host knows in bytes, else the one that all
    /// processes report.
    pub(crate) fn limit(&self) -> Option<u64> {
        let known = self.effective.and_then(|effective| effective.bytes());
        let same = || {
            self.process_limits()
                .filter(|(lowest, highest)| lowest == highest)
                .map(|(limit, _)| limit)
        };
        known.or_else(same)
    }

    /// The bytes that are held beyond that limit, which was lowered below what was held.
    pub(crate) fn beyond_limit(&self) -> u64 {
        self.limit().map_or(0, |limit| self.used.saturating_sub(limit))
    }

    /// Whether its time is measured, as it is where time is limited.
    pub(crate) fn is_timed(&self) -> bool {
        self.time.launches > 0 || self.compute().is_some()
    }

    /// How many processes use it.
    pub(crate) fn users(&self) -> usize {
        self.processes.len().saturating_add(self.unlisted.processes)
    }
}

impl Time {
    /// `31.2%`
    pub(crate) fn percent(self) -> String {
        format!("{}.{}%", self.permille / 10, self.permille % 10)
    }
}
