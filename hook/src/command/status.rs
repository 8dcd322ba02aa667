//! `gpucap status`: the usage of each GPU in every visible ledger. On the host these include the ledgers of the
//! containers, with their effective limits ([`crate::container::effective_limit`]).
//!
//! People see a table or text, programs JSON, Prometheus the numbers. Looks only: nothing is reaped, nothing swept. What
//! dead processes held counts as free, as it will be for the next request.

mod choose;
mod held;
pub(crate) mod json;
mod metrics;
mod name;
mod of_run;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod text;
mod unlisted;
#[cfg(test)]
mod untrusted;
pub(crate) mod view;

use crate::container::ledgers::{self, BY_HOOK, Look};
use crate::container::pages::{self, held::OfContainer};
use crate::container::{live, records, refusals};
use crate::error::{Error, Result, reason};
use crate::exit::Exit;
use crate::inject::refusal::Reason;
use crate::node::inputs;
use crate::node::proc::{Process, Snapshot, Whereabouts};
use crate::sys::{self, Map};
use crate::terminal::lines::WIDTH;
use crate::terminal::output;
use crate::terminal::style;
use gpucap_core::config::GPUCAP_LEDGER;
use gpucap_core::ledger::Identity;
use gpucap_core::limits::live::PATH;
use gpucap_core::uuid::Uuid;
use gpucap_plan::Node;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use view::{Container, Device, LedgerView, Sampled, State, Status, World};

const AFTER: &str = "\
As root on the host: all limited containers, and runs. In a container: that container. Else: the user's runs.
One row for each container or run and each GPU. MEMORY is what its processes hold, of the limit; a ! stands before what
is over the limit. TIME is its share of the GPU's time in the last second or so, of the compute limit; it is measured
only where time is limited. REFUSED counts allocations, PROCS processes.
What this user may not read is counted in one line.
NAME or --verbose shows all details. Rows are cut to the terminal's width, and whole in a pipe.
The page `status` of the documentation has the names in the JSON, which do not change.

Exit status: 0, also if there is nothing to show; 1 if there is no such NAME.

Examples:
  gpucap status
  gpucap status default/train
  gpucap status 0
  gpucap status --json | jq '.ledgers[].path'";

/// The words behind `gpucap status`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// Only this, as the table shows it: a container, its id or the beginning of it, NAMESPACE/POD, a run, a PID, or a GPU
    name: Option<String>,
    /// Print all that is known of each, its processes included
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON, for programs
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Prints all visible ledgers.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let mut status = gather(&inputs::node_or_default(&options.config)?, &Machine::new(MOST_ROWS));
    let cards = inputs::cards();
    if let Some(name) = &options.name {
        status = status
            .chosen(name, &cards)
            .ok_or_else(|| Error::NotShown { command: "status", name: name.clone() })?;
    }
    let is_one = options.name.is_some() && status.ledgers.len() == 1;
    output::print(&if options.json {
        json::render(&status)
    } else if options.verbose || is_one {
        text::render(&status, width())
    } else {
        table::render(&status, &cards, style::columns())
    })?;
    Ok(Exit::OK)
}

/// The same for [`metrics`](super::metrics).
/// `sampled` knows what the driver has sampled of a GPU for a container, by its record's key, or for another ledger, by its path;
/// `unattributed` is what it has sampled of GPUs for no process that was seen.
pub(crate) fn metrics(
    node: &Node,
    sampled: &dyn Fn(&str, Uuid) -> Option<Sampled>,
    unattributed: BTreeMap<Uuid, u64>,
) -> String {
    let mut status = Status { unattributed, ..gather(node, &Machine::new(0)) };
    for ledger in &mut status.ledgers {
        let budget = match &ledger.container {
            Some(container) => container.record.key(),
            None => ledger.path.display().to_string(),
        };
        for device in &mut ledger.devices {
            device.sampled = sampled(&budget, device.uuid);
        }
    }
    status.tell_apart();
    metrics::render(&status)
}

/// The same for [`top`](super::top).
pub(crate) fn all(node: &Node) -> Status {
    gather(node, &Machine::new(MOST_ROWS))
}

fn gather(node: &Node, machine: &Machine) -> Status {
    let records = records::all(&records::directory(node));
    let is_there = Path::new(&node.run_dir).is_dir();
    let containers = is_there.then_some(records.len());
    let refused = refusals::all(&refusals::directory(node), &Reason::KINDS);
    let refused = if is_there { refused } else { Vec::new() };
    let mut status = Status { containers, refused, ..Status::default() };
    for record in records {
        let path = record.path_of(BY_HOOK);
        let devices = match ledgers::read_of(&record) {
            Look::Ledger(map) => Device::all(map.get(), machine),
            Look::Unused => Vec::new(),
            Look::No(why) => {
                status.unreadable.push((path, why));
                continue;
            }
        };
        let page = live::copy(&record).unwrap_or_else(|why| {
            // What the host has changed is not known: what was given at the start is shown, and that there is more.
            status.unreadable.push((record.path_of(PATH), reason(&why)));
            None
        });
        let held = OfContainer::find(&pages::directory(node), (record.pid, record.start_time));
        let held = held.map(|page| page.held_for(sys::unix_ns())).unwrap_or_default();
        let container = Container::of(record, page.as_ref().map(Map::get));
        let mut view = LedgerView::new(path, devices).of_container(container);
        for device in &mut view.devices {
            let left_ns = held.iter().find(|(gpu, _)| *gpu == device.uuid).map_or(0, |(_, ns)| *ns);
            device.owed_for_ns = device.owed_for_ns.max(left_ns);
        }
        status.ledgers.push(view);
    }
    let (paths, mut beyond) =
        ledgers::all(ledgers::configured(env::var_os(GPUCAP_LEDGER.name).as_deref()));
    let mut devices: usize = status.ledgers.iter().map(|ledger| ledger.devices.len()).sum();
    for path in paths {
        if devices >= MOST_DEVICES {
            beyond += 1;
            continue;
        }
        match ledgers::read(&path) {
            Look::Ledger(map) => {
                let mut view = LedgerView::of(map.get(), &path, machine);
                devices += view.devices.len();
                view.hide_other_users();
                if let Err(why) = view.with_limits_of_run() {
                    status.unreadable.push((path, format!("its limits are not known: {why}")));
                }
                status.ledgers.push(view);
            }
            Look::Unused => status.unused.push(path),
            Look::No(why) => status.unreadable.push((path, why)),
        }
    }
    if beyond > 0 {
        let why = format!("{beyond} more ledgers are not shown");
        status.unreadable.push((ledgers::DIRECTORY.into(), why));
    }
    status.sort();
    status
}

/// How many processes have a row in one picture. The containers come first.
const MOST_ROWS: usize = 1 << 13;
/// How many devices the ledgers in one picture have together: any user may write ledgers, with a place for 64 devices in
/// each. The containers come first, whatever they have; then, of each user in turn, a ledger.
const MOST_DEVICES: usize = 1 << 13;

/// The processes of this machine.
struct Machine {
    processes: Snapshot,
    /// How many may still have a row.
    rows: Cell<usize>,
}

impl Machine {
    fn new(rows: usize) -> Self {
        Self { processes: Snapshot::default(), rows: Cell::new(rows) }
    }
}

impl World for Machine {
    fn state(&self, owner: &Identity) -> State {
        match self.processes.find(owner) {
            Whereabouts::Runs(_) => State::Alive,
            Whereabouts::Ended => State::Ended,
            Whereabouts::Unknown => State::Unknown,
        }
    }

    fn process(&self, owner: &Identity) -> Option<Process> {
        match self.processes.find(owner) {
            Whereabouts::Runs(process) => Some(process),
            Whereabouts::Ended | Whereabouts::Unknown => None,
        }
    }

    fn command(&self, owner: &Identity) -> Option<String> {
        self.process(owner)?.command()
    }

    fn takes_a_row(&self) -> bool {
        let left = self.rows.get();
        self.rows.set(left.saturating_sub(1));
        left > 0
    }

    fn now_ns(&self) -> u64 {
        sys::boot_time_ns()
    }

    fn monotonic_ns(&self) -> u64 {
        sys::monotonic_ns()
    }

    fn unix_ns(&self) -> u64 {
        sys::unix_ns()
    }
}

/// As wide as a line of text may be.
fn width() -> usize {
    style::columns().unwrap_or(WIDTH)
}

/// One ledger as it is shown here: for the demo, which has one of its own.
pub(crate) fn of(path: &Path) -> Option<String> {
    Some(text::ledger(&seen(path)?, width()))
}

/// What the living hold by one ledger, on all devices: for the demo.
pub(crate) fn used(path: &Path) -> Option<u64> {
    Some(seen(path)?.devices.iter().map(|device| device.used).sum())
}

fn seen(path: &Path) -> Option<LedgerView> {
    match ledgers::read(path) {
        Look::Ledger(map) => Some(LedgerView::of(map.get(), path, &Machine::new(MOST_ROWS))),
        Look::Unused | Look::No(_) => None,
    }
}
