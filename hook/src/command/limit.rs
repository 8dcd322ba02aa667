//! `gpucap limit CONTAINER`: other limits for a container that runs, at once.
//!
//! On the host, by root. Lower memory refuses what comes next and frees nothing; a share of time holds from the next
//! launch. Only what the container was given a limit of when it started can be changed: the rest is not prepared for.
//! It stands in for all that was asked for until then, the container's own variables among it; a process that sets one
//! to something else still only lowers (`gpucap_core::limits`).

use crate::container::effective_limit::EffectiveLimit;
use crate::container::live;
use crate::container::native_limit::NativeLimitSet;
use crate::container::pages::{self, share::ShareFile};
use crate::container::records::{self, Record};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::inputs;
use crate::terminal::output;
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key, MemoryCap};
use gpucap_core::limits::live::LiveEntry;
use gpucap_core::units::{Bytes, Share, UnitError};
use gpucap_core::uuid::DeviceName;
use gpucap_plan::{Card, Names, NativeLimit, Node};
use std::fmt::Write;
use std::path::PathBuf;

const AFTER: &str = "\
On the host, run by root. It holds at once, lower or higher than what the container asked for, until --reset or
the container's end. Lower memory refuses what comes next and frees nothing. What the container was given no
limit of when it started cannot be limited later.

Exit status: 0 if it holds, 1 if nothing was changed; one line says why.

Examples:
  gpucap limit default/train --mem 4Gi --cores 30
  gpucap limit 4f6c1e2d3a4b --reset";

/// The words behind `gpucap limit`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["mem", "cores", "reset"]))]
pub(crate) struct Options {
    /// The beginning of its id, or NAMESPACE/POD, or NAMESPACE/POD/CONTAINER, as `gpucap status` shows them
    container: String,
    /// Memory of each GPU from now on: 4Gi, 4096Mi, bytes; no percentage
    #[arg(long, value_name = "SIZE", value_parser = size)]
    mem: Option<Bytes>,
    /// Share of each GPU's time from now on, in percent: 1 to 100
    #[arg(long, value_name = "PERCENT")]
    cores: Option<Share>,
    /// Restore the limits of the container's start, except those given here
    #[arg(long)]
    reset: bool,
    /// Only this GPU: its index as nvidia-smi counts, or as the limits file calls it (GPU-..., MIG-..., *)
    #[arg(long, value_name = "GPU", value_parser = gpu)]
    gpu: Option<Gpu>,
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Changes them, and says what holds.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let node = inputs::node_or_default(&options.config)?;
    let record = find(records::all(&records::directory(&node)), &options.container)?;
    let refused = |why: String| Error::Limit { container: record.container.clone(), why };
    let limits = record.limits().ok_or_else(|| refused("its record cannot be read".into()))?;
    let gpu = options.gpu.map(|gpu| gpu.key(&inputs::cards())).transpose().map_err(refused)?;
    let wanted = |entry: &&Entry| gpu.is_none_or(|gpu| gpu == entry.key);
    let entries: Vec<&Entry> = limits.entries.iter().filter(wanted).collect();
    if entries.is_empty() {
        return Err(refused("it has no such GPU".into()));
    }
    if let Some(what) = entries.iter().find_map(|entry| options.unprepared(entry)) {
        return Err(refused(what));
    }
    // First, while the host's files are visible. The lower of both applies, so a remaining file allows nothing more.
    if let Some(native_limits) = &record.native_limits
        && let Err(why) =
            native_limits.change(&options.moved(native_limits, &limits, &entries), &node)
    {
        output::notice(format_args!("limit: the driver's own limit stays as it is: {why}"));
    }
    let share = ShareFile::of(&pages::directory(&node), &record);
    let page = live::open(&record).map_err(|why| refused(crate::error::reason(&why)))?;
    let mut text = String::new();
    for entry in entries {
        let Some(place) = page.get().entry_of(entry.key) else { continue };
        options.apply(place);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} gpu={} {}",
            record.container,
            entry.key,
            said(EffectiveLimit::of(entry, Some(place)))
        );
    }
    let shares =
        EffectiveLimit::all(&limits, Some(page.get())).into_iter().map(|it| (it.gpu, it.now.core));
    if let Err(why) = share.and_then(|file| file.map_or(Ok(()), |file| file.publish(shares))) {
        let why = crate::error::reason(&why);
        output::notice(format_args!("limit: the new shares are not published to its peers: {why}"));
    }
    options.mem.and_then(Bytes::doubt).into_iter().for_each(output::notice);
    output::print(&text)?;
    Ok(Exit::OK)
}

/// A GPU as it was typed.
#[derive(Clone, Copy, Debug)]
enum Gpu {
    Index(u32),
    Key(Key),
}

impl Gpu {
    /// Returns its name in the limits file, on a machine with these GPUs.
    fn key(self, cards: &[Card]) -> std::result::Result<Key, String> {
        let index = match self {
            Self::Key(key) => return Ok(key),
            Self::Index(index) => index,
        };
        let card = usize::try_from(index).ok().and_then(|index| cards.get(index));
        card.map(|card| Key::Name(card.name)).ok_or_else(|| match cards.len() {
            0 => "the driver does not list this machine's GPUs: give --gpu GPU-<uuid>".into(),
            count => format!("--gpu {index}: this machine has {count} GPUs, counted from 0"),
        })
    }
}

/// An index, as `gpucap run` takes it, or a name.
fn gpu(text: &str) -> std::result::Result<Gpu, String> {
    if let Ok(index) = text.parse() {
        return Ok(Gpu::Index(index));
    }
    text.parse().map(Gpu::Key).map_err(|why| format!("{why}; or give its index"))
}

/// A percentage has no meaning here: which card it would be of is not known to the host.
fn size(text: &str) -> std::result::Result<Bytes, String> {
    if text.trim_end().ends_with('%') {
        return Err("a percentage cannot be given here; give a size, as in 4Gi".into());
    }
    text.parse().map_err(|why: UnitError| why.to_string())
}

impl Options {
    /// What would have no effect on this GPU.
    fn unprepared(&self, entry: &Entry) -> Option<String> {
        let what = if self.mem.is_some() && entry.memory == MemoryCap::NONE {
            "memory"
        } else if self.cores.is_some() && entry.core.is_none() {
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

    fn apply(&self, place: &LiveEntry) {
        if self.reset || self.mem.is_some() {
            place.set_memory(self.mem.map(|bytes| bytes.0));
        }
        if self.reset || self.cores.is_some() {
            place.set_core(self.cores);
        }
    }
}

/// What holds for a GPU of a container.
fn said(EffectiveLimit { now, at_start, .. }: EffectiveLimit) -> String {
    let as_started = |same| if same { " (as started)" } else { "" };
    let memory = format!("mem={}{}", now.memory, as_started(now.memory == at_start.memory));
    let core = now.core.map_or_else(|| "not shared".into(), |core| core.to_string());
    format!("{memory} core={core}{}", as_started(now.core == at_start.core))
}

/// The one container that is meant.
fn find(records: Vec<Record>, word: &str) -> Result<Record> {
    let refused = |why: String| Error::Limit { container: word.to_owned(), why };
    let mut found: Vec<Record> =
        records.into_iter().filter(|record| record.is_called(word)).collect();
    // An id may be the beginning of another.
    if let Some(exact) = found.iter().position(|record| record.container == word) {
        return Ok(found.swap_remove(exact));
    }
    match <[Record; 1]>::try_from(found) {
        Ok([record]) => Ok(record),
        Err(none) if none.is_empty() => {
            let why = "none runs under a limit here; `gpucap status` shows those that do";
            Err(refused(why.into()))
        }
        Err(several) => {
            let names: Vec<String> = several.iter().map(name).collect();
            Err(refused(format!("it may be any of these: {}", names.join(", "))))
        }
    }
}

/// What identifies it among others.
fn name(record: &Record) -> String {
    match &record.names {
        Some(Names { namespace, pod, container }) => {
            format!("{namespace}/{pod}/{container} ({})", record.container)
        }
        None => record.container.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, names: Option<[&str; 3]>) -> Record {
        let names = names.map(|[namespace, pod, container]| Names {
            namespace: namespace.into(),
            pod: pod.into(),
            container: container.into(),
        });
        let limits = String::new();
        Record { container: id.into(), pid: 1, start_time: 1, names, limits, native_limits: None }
    }

    #[test]
    fn an_index_is_the_gpu_that_nvidia_smi_counts() {
        let name = |digit| format!("GPU-{digit}0000000-0000-0000-0000-000000000000");
        let card = |digit| Card {
            name: name(digit).parse().expect("a name"),
            minor: None,
            slices: gpucap_core::config::Slices::default(),
        };
        let cards = [card('1'), card('2')];
        let key = |text: &str, cards: &[Card]| {
            gpu(text).and_then(|gpu| gpu.key(cards)).map(|key| key.to_string())
        };
        assert_eq!(key("1", &cards), Ok(name('2')));
        assert_eq!(key("*", &cards), Ok("*".into()));
        assert_eq!(key(&name('3'), &cards), Ok(name('3')));
        let count = "--gpu 2: this machine has 2 GPUs, counted from 0";
        assert_eq!(key("2", &cards), Err(count.into()));
        assert!(key("0", &[]).is_err_and(|why| why.contains("GPU-<uuid>")));
        assert!(key("first", &cards).is_err_and(|why| why.ends_with("; or give its index")));
    }

    fn found(word: &str) -> std::result::Result<String, String> {
        let records = vec![
            record("4f6c", None),
            record("4f6c11", Some(["default", "train", "main"])),
            record("77ab", Some(["default", "train", "side"])),
            record("90cd", Some(["web", "train", "main"])),
        ];
        find(records, word).map(|record| record.container).map_err(|why| why.to_string())
    }

    #[test]
    fn a_container_goes_by_its_id_its_beginning_or_its_names() {
        for (word, id) in [
            ("77ab", "77ab"),
            ("7", "77ab"),
            ("4f6c", "4f6c"),
            ("4f6c1", "4f6c11"),
            ("web/train", "90cd"),
            ("default/train/side", "77ab"),
        ] {
            assert_eq!(found(word).as_deref(), Ok(id), "{word}");
        }
    }

    #[test]
    fn a_word_that_may_be_several_names_them() {
        let why = found("default/train").expect_err("two");
        let expected = "limit: container default/train: it may be any of these: default/train/main (4f6c11), \
                        default/train/side (77ab)";
        assert_eq!(why, expected);
        assert!(found("4f").is_err_and(|why| why.contains("4f6c, default/train/main (4f6c11)")));
    }

    #[test]
    fn a_word_that_is_nobodys_says_so() {
        for word in
            ["", "x", "train", "default", "default/", "default/train/", "default/train/main/x"]
        {
            let why = found(word).expect_err(word);
            assert!(why.contains("`gpucap status`"), "{why}");
        }
    }
}
