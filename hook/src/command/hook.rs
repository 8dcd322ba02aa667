//! `gpucap hook STAGE`: an engine calls, while it starts or ends a container.
//!
//! `createRuntime` (and `prestart`, its older name) puts the container under its limits or refuses it; a container
//! without a request is left unchanged, at once. `poststop` removes the host's state of containers that have ended;
//! it never fails, since the runtime could not act on it. An unknown stage refuses: a container that was to be limited
//! must not run without limits.

use crate::container::native_limit::NativeLimitSet;
use crate::container::pages::held::Owed;
use crate::container::pages::{self, Wanted};
use crate::container::records::{self, Claimed, Record, Records};
use crate::container::slices::Slices;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::inject::journal::{Journal, Level};
use crate::inject::refusal::{Reason, RefusedContainer};
use crate::inject::{self, Done, Order, Outcome, Target};
use crate::node::inputs::{self, Inputs};
use crate::node::preload;
use crate::node::proc::Process;
use crate::sys::at;
use gpucap_core::limits::LimitsFile;
use gpucap_plan::{Names, NativeLimit, NativeLimits, NoGlibc, Node, Plan, State, decide};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Put a container under its limits; for a runtime, which gives its state on standard input
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// `createRuntime` or `poststop`
    stage: String,
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
    /// What a CDI device of a claim gives the container; read from `config.json` together with those of others
    #[arg(long, value_name = "SLICE")]
    slice: Option<String>,
    /// A variable that a CDI device gives the container; read from `config.json` together with those of others
    #[arg(long, value_name = "NAME=VALUE")]
    limit: Vec<String>,
}

/// Does what belongs to the stage.
pub(crate) fn execute(options: Options) -> Result<Exit> {
    // Some runtimes pass on that of their caller, some none at all.
    at::set_umask(0o022);
    let state = drain(&mut io::stdin().lock());
    match options.stage.as_str() {
        "createRuntime" | "create-runtime" | "prestart" => create(&options, &state),
        "poststop" => {
            let node = inputs::node(&options.config).unwrap_or_default();
            records::sweep(&records::directory(&node));
            pages::sweep(&pages::directory(&node));
            Ok(Exit::OK)
        }
        _ => Err(unknown_stage(options, &state)),
    }
}

/// Logs that a container is not started because of the stage.
fn unknown_stage(options: Options, state: &[u8]) -> Error {
    let node = inputs::node(&options.config).unwrap_or_default();
    let state = State::parse(state).ok();
    let container = state.as_ref().map_or("?", |state| &state.id);
    let names = state.as_ref().and_then(|state| Names::of(&state.annotations));
    let why = Error::Stage(options.stage);
    Journal::new(&node).of(names).note(Level::Error, container, &why.to_string());
    why
}

/// Reads standard input to its end, so that no runtime meets a closed pipe; input that is too long is not kept, and
/// then is not valid JSON.
fn drain(input: &mut dyn Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = input.take(inputs::MAX_BYTES).read_to_end(&mut bytes);
    // What cannot be read is missing, and the parser says so.
    drop(read.and_then(|_| io::copy(input, &mut io::sink())));
    bytes
}

fn create(options: &Options, state: &[u8]) -> Result<Exit> {
    let config = &options.config;
    let closed = Node::default();
    let state =
        State::parse(state).map_err(|why| refuse(&mut Journal::new(&closed), "?", why.into()))?;
    let names = Names::of(&state.annotations);
    let bundle = PathBuf::from(&state.bundle);
    let gathered = Inputs::of_bundle(config, &bundle, Some(state.clone())).map_err(|why| {
        refuse(&mut Journal::new(&closed).of(names.clone()), &state.id, why.into())
    })?;
    let node = gathered.node();
    let mut journal = Journal::new(&node).of(names);
    let container = gathered.container();
    let is_limit = |pair| container.env.iter().any(|it| it == pair);
    if options.slice.iter().any(|slice| !container.slices.contains(slice))
        || options.limit.iter().any(|limit| !limit.split_once('=').is_some_and(is_limit))
    {
        return Err(refuse(&mut journal, &state.id, Reason::State(UNWRITTEN)));
    }
    let decision = decide(&gathered.sources());
    let result = match decision.plan {
        Plan::NotAsked => {
            journal.warn(&state.id, &decision.notes);
            return Ok(Exit::OK);
        }
        Plan::Refuse(why) => Err(why.into()),
        Plan::Limits(limits) => {
            let order = (&limits, &decision.native_limits[..]);
            start(&state, &gathered, &node, order, &mut journal)
        }
    };
    decision.notes.iter().for_each(|note| journal.note(Level::of(note), &state.id, &note.text));
    result.map_err(|reason| refuse(&mut journal, &state.id, reason))?;
    Ok(Exit::OK)
}

/// The hook was called otherwise than `config.json` says, and so the limits could not be found there.
const UNWRITTEN: &str = "no entry of this hook with its slice or limit in config.json";

fn start(
    state: &State,
    gathered: &Inputs,
    node: &Node,
    (limits, native_limits): (&LimitsFile, &[NativeLimit]),
    journal: &mut Journal<'_>,
) -> std::result::Result<(), Reason> {
    let pid = state.pid.ok_or(Reason::State("no process"))?;
    if !records::is_id(&state.id) {
        return Err(Reason::State("an id that no file can be named after"));
    }
    let container = gathered.container();
    let root = container.root.as_deref().ok_or(Reason::State("a bundle without a root"))?;
    let root = Path::new(&state.bundle).join(root);
    let label = container.mount_label.as_deref().filter(|_| selinux());
    let library = library(node)?;

    // From within the container's namespace neither could be found.
    journal.open();
    let directory = records::directory(node);
    let records = Records::open(&directory);
    records::sweep(&directory);
    let directory = pages::directory(node);
    pages::sweep(&directory);
    // The other program could not be found there either.
    let native_limits = build(pid, native_limits, node, journal, &state.id)?;
    let slices = Slices::of_words(&container.slices);
    let record = Record::of(state, pid, limits, native_limits, slices);
    if !container.slices.is_empty() {
        occupy(&records, &records::directory(node), &record, journal)?;
    }
    let owner = record.as_ref().ok().map(|it| ((it.pid, it.start_time), it.place.clone()));
    // A container that can make a mount writable could write to the pages of others.
    let has_page = node.card_pages && pages::are_needed(limits) && !container.privileged;
    let owner = owner.as_ref().filter(|_| has_page);

    let order = Order {
        limits,
        library: &library,
        refuses_without_glibc: node.no_glibc == NoGlibc::Refuse,
        masks_opencl: node.mask_opencl,
        page: owner.map(|(owner, place)| Wanted { directory: &directory, owner: *owner, place }),
    };
    let outcome = inject::limit(Target { pid, root: &root, label }, order);
    if let (Err(_), Ok(records), Ok(record)) = (&outcome, &records, &record)
        && !record.slices.is_empty()
    {
        // It ends now, and so would its record with the next hook.
        drop(records.remove(record));
    }
    note(&outcome?, journal, &state.id);
    // A host that cannot remember it can still limit it.
    if let Err(why) = records.and_then(|records| records.write(&record?)) {
        let what = format!("`gpucap status` will not show it: {}", crate::error::reason(&why));
        journal.note(Level::Warning, &state.id, &what);
    }
    Ok(())
}

/// Logs how the container was put under its limits.
fn note(outcome: &Outcome, journal: &mut Journal<'_>, id: &str) {
    let Outcome { done, usage_page_error, owed } = outcome;
    let (level, what) = match done {
        Done::Limited => (Level::Info, "limited"),
        Done::Already => (Level::Info, "was limited already"),
        Done::Nix => {
            (Level::Warning, "the glibc of its /nix/store loads the library if it is 2.17 or newer")
        }
        Done::WithoutGlibc => (Level::Warning, "its image has no glibc: nothing loads the library"),
    };
    journal.note(level, id, what);
    if let Some(why) = usage_page_error {
        let why = crate::error::reason(why);
        let what =
            format!("without a usage page, it may get less than its share beside others: {why}");
        journal.note(Level::Warning, id, &what);
    }
    if let Some(what) = held_back(owed) {
        journal.note(Level::Warning, id, &what);
    }
}

/// What a container is held back for; `None` if that is over at once.
fn held_back(owed: &Owed) -> Option<String> {
    let now = crate::sys::unix_ns();
    let left_s = |until: &u64| until.saturating_sub(now).div_ceil(1_000_000_000);
    let (gpu, until) = owed.iter().max_by_key(|(_, until)| **until)?;
    let others = match owed.len() {
        1 => String::new(),
        count => format!(", and for less on {} more", count - 1),
    };
    (left_s(until) > 1).then(|| {
        format!(
            "launches nothing on {} for {} s{others}: before it was started again it had more than its limit there",
            gpu.gpu(),
            left_s(until)
        )
    })
}

/// Takes the slices of the container: without a record of it, another container could have them too.
fn occupy(
    records: &io::Result<Records>,
    directory: &Path,
    record: &io::Result<Record>,
    journal: &mut Journal<'_>,
) -> std::result::Result<(), Reason> {
    let unwritten = |why: &io::Error| Reason::Records(crate::error::reason(why));
    let record = record.as_ref().map_err(unwritten)?;
    let claimed = records.as_ref().map_err(unwritten)?.occupy(directory, record);
    match claimed.map_err(|why| unwritten(&why))? {
        Claimed::By(other) => Err(Reason::InUse(other)),
        Claimed::After(others) => {
            for other in others {
                let what = format!(
                    "container {other}, in whose place it is, had the slice of its claim and was \
                     never started: it was ended"
                );
                journal.note(Level::Warning, &record.container, &what);
            }
            Ok(())
        }
    }
}

/// Sets the limits that the driver keeps. A failure is a refusal only where the node requires these limits: the
/// library enforces all of them anyway.
fn build(
    pid: u32,
    native_limits: &[NativeLimit],
    node: &Node,
    journal: &mut Journal<'_>,
    container: &str,
) -> std::result::Result<Option<NativeLimitSet>, Reason> {
    if native_limits.is_empty() {
        return Ok(None);
    }
    match NativeLimitSet::build(pid, native_limits, node) {
        Ok(native_limits) => Ok(Some(native_limits)),
        Err(why) if node.native_limits == NativeLimits::Required => Err(Reason::NativeLimit(why)),
        Err(why) => {
            let what = format!("the driver does not keep its limit, the library alone does: {why}");
            journal.note(Level::Warning, container, &what);
            Ok(None)
        }
    }
}

/// The library that the administrator configured, or the one beside this program.
pub(super) fn library(node: &Node) -> std::result::Result<PathBuf, Reason> {
    if let Some(path) = &node.library {
        return Ok(path.into());
    }
    let program = Process::own().path("exe").read_link();
    let program = program.map_err(|why| Reason::Library(crate::error::reason(&why)))?;
    preload::find(&program).map_err(|places| {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        Reason::Library(format!("not found in {}", places.join(" ")))
    })
}

fn selinux() -> bool {
    Path::new("/sys/fs/selinux/enforce").exists()
}

fn refuse(journal: &mut Journal<'_>, container: &str, reason: Reason) -> Error {
    let refusal = RefusedContainer { by: "hook", container: container.to_owned(), reason };
    journal.refuse(&refusal);
    Error::Refused(refusal.to_string())
}
