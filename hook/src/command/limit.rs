//! `gpucap limit NAME`: other limits for a container or run that has started, at once.
//!
//! A container is changed on the host, by root; a run by its user. Lower memory refuses what comes next and frees nothing;
//! a share of time holds from the next launch. Only what there was a limit of at the start can be changed: the rest is not
//! prepared for. It stands in for all that was asked for until then, the variables of the start among it; a process that
//! sets one to something else still only lowers (`gpucap_core::limits`).

use crate::command::gpu::Gpu;
use crate::command::status::target::Target;
use crate::container::effective_limit::{EffectiveLimit, Limit};
use crate::container::ledgers;
use crate::container::live;
use crate::container::native_limit::NativeLimitSet;
use crate::container::pages::{self, share::ShareFile};
use crate::container::records::Record;
use crate::container::run_file::{self, RunFile};
use crate::error::{Error, Result, reason};
use crate::exit::Exit;
use crate::node::inputs;
use crate::sys::Map;
use crate::terminal::output;
use gpucap_core::config::{CorePolicy, CorePriority, Value};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key, MemoryLimit};
use gpucap_core::limits::live::{LiveEntry, LivePage, Most};
use gpucap_core::units::{Bytes, ComputeLimit, Share, UnitError};
use gpucap_core::uuid::DeviceName;
use gpucap_plan::{NativeLimit, Node};
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

const AFTER: &str = "\
For a container on the host, as root; for what `gpucap run` started, as its user. The change applies at once, lower or
higher than what was requested, until --reset or the end of the container or run. A lower memory limit frees nothing:
later requests are refused. What started without a memory limit, or without a compute limit, cannot be given that one
later. As with `gpucap run`, a share is never above the maximum: --core-max below the share lowers the share. This command
grants lending whatever the node's setting `lending` is; --core-priority normal with --cores gives a container of low
priority a guarantee again.

Exit status: 0 if the limits are as asked, 1 if nothing was changed; one line says why. 2 for a wrong option or value.

Examples:
  gpucap limit default/train --mem 4Gi --cores 30
  gpucap limit default/train/main --gpu 0 --mem 4Gi
  gpucap limit default/train --core-policy burst --core-max 80
  gpucap limit 4f6c1e2d3a4b --reset
  gpucap limit run-4242 --mem 6Gi";

/// The words behind `gpucap limit`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["mem", "cores", "core_policy", "core_max", "core_priority", "reset"]))]
pub(crate) struct Options {
    /// As `gpucap status` shows it: NAMESPACE/POD/CONTAINER, NAMESPACE/POD, CONTAINER, the beginning of its id, a run
    /// (run-4242), or a PID of this machine
    name: String,
    /// Memory of each GPU from now on: 4Gi, 4096Mi, bytes; no percentage
    #[arg(long, value_name = "SIZE", value_parser = size)]
    mem: Option<Bytes>,
    /// Share of each GPU's time from now on, in percent: 1 to 100
    #[arg(long, value_name = "PERCENT")]
    cores: Option<Share>,
    /// Whether to lend it GPU time that others leave unused from now on: fixed (never) or burst
    #[arg(long, value_name = "POLICY", value_parser = value::<CorePolicy>)]
    core_policy: Option<CorePolicy>,
    /// Most of each GPU's time from now on, in percent, borrowed time included: 1 to 100; it implies burst
    #[arg(long, value_name = "PERCENT")]
    core_max: Option<Share>,
    /// Priority from now on: normal, or low (no guaranteed time, only what others leave unused; it implies burst)
    #[arg(long, value_name = "PRIORITY", value_parser = value::<CorePriority>)]
    core_priority: Option<CorePriority>,
    /// Restore the limits of the start, except those given here
    #[arg(long)]
    reset: bool,
    /// Only this GPU: its index as nvidia-smi counts, or as the limits file calls it (GPU-..., MIG-..., *)
    #[arg(long, value_name = "GPU")]
    gpu: Option<Gpu>,
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Changes them, and says what holds.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let node = inputs::node_or_default(&options.config)?;
    let refused = |why: String| Error::Limit { name: options.name.clone(), why };
    // What has ended is not to be found.
    ledgers::sweep();
    let found = Target::find(&node, &options.name).map_err(refused)?;
    let none = "no container or run goes by it here; see `gpucap status`";
    let target = found.ok_or_else(|| refused(none.into()))?;
    let label = target.label();
    let Budget { limits, record, page_of_run } = Budget::of(target).map_err(refused)?;
    if options.core_policy == Some(CorePolicy::Fixed) && options.core_max.is_some() {
        return Err(refused("--core-policy fixed lends nothing, so it has no --core-max".into()));
    }
    let gpu = options.gpu.map(|gpu| gpu.key(&inputs::cards())).transpose().map_err(refused)?;
    let wanted = |entry: &&Entry| gpu.is_none_or(|gpu| gpu == entry.key);
    let entries: Vec<&Entry> = limits.entries.iter().filter(wanted).collect();
    if entries.is_empty() {
        let every = limits.entries.iter().all(|entry| entry.key == Key::Every);
        let has_one =
            "it has one limit for each of its GPUs (*), and none for this one: leave out --gpu";
        let why = if every { has_one } else { "it has no such GPU" };
        return Err(refused(why.into()));
    }
    if let Some(what) = entries.iter().find_map(|entry| options.unprepared(entry)) {
        return Err(refused(what));
    }
    // First, while the host's files are visible. The lower of both applies, so a remaining file allows nothing more.
    if let Some(native_limits) = record.as_ref().and_then(|record| record.native_limits.as_ref())
        && let Err(why) =
            native_limits.change(&options.moved(native_limits, &limits, &entries), &node)
    {
        output::notice(format_args!("limit: the driver's own limit stays as it is: {why}"));
    }
    let share = record.as_ref().map(|it| ShareFile::of(&pages::directory(&node), it));
    let page = match (&record, page_of_run) {
        (Some(record), _) => live::open(record),
        (None, page) => page.ok_or_else(|| io::ErrorKind::NotFound.into()),
    };
    let page = page.map_err(|why| refused(reason(&why)))?;
    let mut text = String::new();
    let places = entries.into_iter().map(|entry| {
        let none = || format!("its page has no place for {}: it was changed", entry.key);
        Ok((entry, page.get().entry_of(entry.key).ok_or_else(none)?))
    });
    let places: std::result::Result<Vec<_>, String> = places.collect();
    for (entry, place) in places.map_err(refused)? {
        let before = EffectiveLimit::of(entry, Some(place));
        if let Some(most) = options.apply(entry, place) {
            output::notice(format_args!(
                "limit: gpu={}: the maximum is {most}, so the share is too; --core-max changes it",
                entry.key
            ));
        }
        let said = said(before.now, EffectiveLimit::of(entry, Some(place)));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{label} gpu={} {said}", entry.key);
    }
    let shares =
        EffectiveLimit::all(&limits, Some(page.get())).into_iter().map(|it| (it.gpu, it.now.core));
    let publish = |file: Option<ShareFile>| file.map_or(Ok(()), |file| file.publish(shares));
    if let Some(Err(why)) = share.map(|found| found.and_then(publish)) {
        let why = reason(&why);
        output::notice(format_args!("limit: the new shares are not published to its peers: {why}"));
    }
    options.mem.and_then(Bytes::doubt).into_iter().for_each(output::notice);
    output::print(&text)?;
    Ok(Exit::OK)
}

/// What is changed.
struct Budget {
    /// Its limits at the start.
    limits: LimitsFile,
    /// A container: what the hook wrote down of it.
    record: Option<Record>,
    /// A run: the page that changes it.
    page_of_run: Option<Map<LivePage>>,
}

impl Budget {
    fn of(target: Target) -> std::result::Result<Self, String> {
        let Some(ledger) = target.ledger_of_run() else {
            let fixed = "neither a container that the hook has limited nor a run, so its limits are \
                         fixed at its start";
            let record = target.into_record().ok_or(fixed)?;
            let limits = record.limits().ok_or("its record cannot be read")?;
            return Ok(Self { limits, record: Some(record), page_of_run: None });
        };
        let none = "its limits are fixed: it has no file of them; `gpucap run` says so at its start, unless it named a GPU by \
                    its index, or a profile, where the driver listed no GPU";
        let RunFile { limits, page } = run_file::open(ledger)?.ok_or(none)?;
        Ok(Self { limits, record: None, page_of_run: Some(page) })
    }
}

/// A percentage has no meaning here: which card it would be of is not known to the host.
fn size(text: &str) -> std::result::Result<Bytes, String> {
    let text = text.trim();
    if text.ends_with('%') {
        return Err("a percentage cannot be given here; give a size, as in 4Gi".into());
    }
    if text.contains('=') {
        return Err("one size for one GPU is --gpu 0 --mem 4Gi".into());
    }
    text.parse().map_err(|why: UnitError| why.to_string())
}

/// A value in the form of the variable.
fn value<T: Value>(text: &str) -> std::result::Result<T, String> {
    T::parse(text.trim()).map_err(|why| why.to_string())
}

impl Options {
    /// What would have no effect on this GPU.
    fn unprepared(&self, entry: &Entry) -> Option<String> {
        let what = if self.mem.is_some() && entry.memory == MemoryLimit::NONE {
            "memory"
        } else if self.changes_time() && entry.core.is_none() {
            "time"
        } else {
            return None;
        };
        Some(format!(
            "it was started without a limit of {what} on {}: none can come later",
            entry.key
        ))
    }

    /// What the driver is to keep from now on, of what it keeps.
    fn moved(
        &self,
        native_limits: &NativeLimitSet,
        limits: &LimitsFile,
        chosen: &[&Entry],
    ) -> Vec<NativeLimit> {
        if !self.reset && self.mem.is_none() {
            return vec![];
        }
        let own = |gpu: DeviceName| {
            let named = |entry: &&Entry| matches!(entry.key, Key::Name(name) if name == gpu);
            let every = || limits.entries.iter().find(|entry| entry.key == Key::Every);
            limits.entries.iter().find(named).or_else(every)
        };
        let is_chosen = |native_limit: &&NativeLimit| {
            own(native_limit.gpu).is_some_and(|entry| chosen.contains(&entry))
        };
        let bytes =
            |native_limit: &NativeLimit| self.mem.map_or(native_limit.bytes, |bytes| bytes.0);
        let moved = native_limits.limits.iter().filter(is_chosen);
        moved
            .map(|native_limit| NativeLimit { gpu: native_limit.gpu, bytes: bytes(native_limit) })
            .collect()
    }

    fn changes_time(&self) -> bool {
        let lends = self.core_policy.is_some() || self.core_max.is_some();
        self.cores.is_some() || lends || self.core_priority.is_some()
    }

    /// Writes what is wanted. Returns the most, if the share was above it and is lowered to it: as with `gpucap run`, the
    /// lower of both holds.
    fn apply(&self, entry: &Entry, place: &LiveEntry) -> Option<Share> {
        if self.reset || self.mem.is_some() {
            place.set_memory(self.mem.map(|bytes| bytes.0));
        }
        if self.reset || self.cores.is_some() {
            place.set_core(self.cores);
        }
        if self.reset {
            place.set_core_max(None);
            place.set_priority(None);
        }
        let lends =
            EffectiveLimit::of(entry, Some(place)).now.core.is_some_and(ComputeLimit::borrows);
        if let Some(most) = self.most(lends) {
            place.set_core_max(Some(most));
        }
        if self.core_priority.is_some() {
            place.set_priority(self.core_priority);
        }
        let most = match place.core_max() {
            Some(Most::UpTo(most)) => Some(most),
            Some(Most::Share) => None,
            None => entry.compute().filter(|started| started.borrows()).map(ComputeLimit::most),
        };
        let is_above =
            |most: &Share| place.core().or(entry.core).is_some_and(|share| share > *most);
        let most = most.filter(|most| self.changes_time() && is_above(most))?;
        place.set_core(Some(most));
        Some(most)
    }

    /// The most that is given, of a GPU that lends to the container or not until now.
    fn most(&self, lends: bool) -> Option<Most> {
        let is_low = self.core_priority == Some(CorePriority::Low);
        match (self.core_policy, self.core_max) {
            (Some(CorePolicy::Fixed), _) => Some(Most::Share),
            (_, Some(most)) => Some(Most::UpTo(most)),
            (Some(CorePolicy::Burst), None) => Some(Most::UpTo(Share::FULL)),
            // Low priority without anything lent would never run.
            (None, None) => (is_low && !lends).then_some(Most::UpTo(Share::FULL)),
        }
    }
}

/// What held for a GPU of a container, and what holds now.
fn said(before: Limit, EffectiveLimit { now, at_start, .. }: EffectiveLimit) -> String {
    let as_started = |same| if same { " (as started)" } else { "" };
    let change = |before: String, now: String| match before == now {
        true => now,
        false => format!("{before} -> {now}"),
    };
    let memory = change(before.memory.to_string(), now.memory.to_string());
    let share =
        |core: Option<ComputeLimit>| core.map_or_else(|| "not limited".into(), |it| it.to_string());
    let core = change(share(before.core), share(now.core));
    format!(
        "mem={memory}{} core={core}{}",
        as_started(now.memory == at_start.memory),
        as_started(now.core == at_start.core)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpucap_core::units::Amount;

    fn typed(words: &[&str]) -> Options {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let line = ["limit", "c"].iter().chain(words);
        <Line as clap::Parser>::try_parse_from(line).expect("options").options
    }

    #[test]
    fn what_the_node_lends_is_granted_by_the_command() {
        let share = |percent| Share::from_percent(percent).expect("a share");
        let entry = Entry { core: Some(share(30)), ..Entry::new(Key::Every) };
        let place = LiveEntry::default();
        let now = |words: &[&str]| {
            typed(words).apply(&entry, &place);
            let now = EffectiveLimit::of(&entry, Some(&place)).now.core;
            now.map_or_else(String::new, |limit| limit.to_string())
        };
        for (words, holds) in [
            (&["--core-policy", "burst"][..], "30% (to 100%)"),
            (&["--core-max", "80"], "30% (to 80%)"),
            (&["--cores", "40"], "40% (to 80%)"),
            (&["--core-policy", "fixed"], "40%"),
            (&["--cores", "20"], "20%"),
            (&["--core-priority", "low"], "low (to 100%)"),
            (&["--core-max", "60"], "low (to 60%)"),
            (&["--core-priority", "normal", "--cores", "50"], "50% (to 60%)"),
            (&["--reset", "--core-max", "70"], "30% (to 70%)"),
            (&["--reset"], "30%"),
            (&["--core-max", "10"], "10%"),
            (&["--core-max", "80"], "10% (to 80%)"),
            (&["--cores", "90"], "80%"),
            (&["--cores", "80", "--core-max", "40"], "40%"),
            (&["--core-policy", "fixed", "--cores", "60"], "60%"),
            (&["--reset"], "30%"),
        ] {
            assert_eq!(now(words), holds, "{words:?}");
        }
    }

    #[test]
    fn what_changed_is_said_with_what_was() {
        let memory =
            |text: &str| text.parse::<Bytes>().map(|it| Amount::Bytes(it).into()).expect("a size");
        let fixed = |core: &str| core.parse().map(ComputeLimit::fixed).ok();
        let limit = |text, core: &str| Limit { memory: memory(text), core: fixed(core) };
        let (start, now) = (limit("1Gi", "30%"), limit("3Gi", "30%"));
        let after = |now| EffectiveLimit { gpu: Key::Every, now, at_start: start };
        assert_eq!(said(start, after(now)), "mem=1GiB -> 3GiB core=30% (as started)");
        assert_eq!(said(now, after(start)), "mem=3GiB -> 1GiB (as started) core=30% (as started)");
        assert_eq!(said(start, after(limit("1Gi", "5%"))), "mem=1GiB (as started) core=30% -> 5%");
    }
}
