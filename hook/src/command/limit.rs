//! `gpucap limit CONTAINER`: other limits for a container that runs, at once.
//!
//! On the host, by root. Lower memory refuses what comes next and frees nothing; a share of time holds from the next
//! launch. Only what the container was given a limit of when it started can be changed: the rest is not prepared for.
//! It stands in for all that was asked for until then, the container's own variables among it; a process that sets one
//! to something else still only lowers (`gpucap_core::limits`).

use crate::engine::live;
use crate::engine::records::{self, Record};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::{gather, output};
use gpucap_core::limits::file::{Entry, Key, MemoryCap};
use gpucap_core::limits::live::LiveEntry;
use gpucap_core::units::{Bytes, Share};
use gpucap_plan::Node;
use std::fmt::Write;
use std::path::PathBuf;

/// The words behind `gpucap limit`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["mem", "cores", "reset"]))]
pub(crate) struct Options {
    /// Its id, or the beginning of it
    container: String,
    /// Memory from now on: 4Gi, 4096Mi, bytes
    #[arg(long, value_name = "SIZE")]
    mem: Option<Bytes>,
    /// Share of the GPU's time from now on, in percent: 1 to 100
    #[arg(long, value_name = "PERCENT")]
    cores: Option<Share>,
    /// What it was given when it started holds again, but for what is given here
    #[arg(long)]
    reset: bool,
    /// Only this GPU: as the limits file calls it (GPU-..., MIG-..., *)
    #[arg(long, value_name = "GPU")]
    gpu: Option<Key>,
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Changes them, and says what holds.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let node = gather::node(&options.config).unwrap_or_default();
    let record = find(records::all(&records::directory(&node)), &options.container)?;
    let refused = |why: String| Error::Limit { container: record.container.clone(), why };
    let limits = record.limits().ok_or_else(|| refused("its record cannot be read".into()))?;
    let wanted = |entry: &&Entry| options.gpu.is_none_or(|gpu| gpu == entry.key);
    let entries: Vec<&Entry> = limits.entries.iter().filter(wanted).collect();
    if entries.is_empty() {
        return Err(refused("it has no such GPU".into()));
    }
    if let Some(what) = entries.iter().find_map(|entry| options.unprepared(entry)) {
        return Err(refused(what));
    }
    let page = live::open(&record).map_err(|why| refused(crate::error::reason(&why)))?;
    let mut text = String::new();
    for entry in entries {
        let Some(place) = page.get().entry_of(entry.key) else { continue };
        options.apply(place);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} gpu={} {}", record.container, entry.key, said(entry, place));
    }
    output::print(&text)?;
    Ok(Exit::OK)
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
fn said(entry: &Entry, place: &LiveEntry) -> String {
    let memory = match place.memory() {
        Some(bytes) => format!("mem={}", Bytes(bytes)),
        None => format!("mem={} (as started)", entry.memory),
    };
    let core = match (place.core(), entry.core) {
        (Some(share), _) => format!("core={share}"),
        (None, Some(share)) => format!("core={share} (as started)"),
        (None, None) => "core=not shared (as started)".into(),
    };
    format!("{memory} {core}")
}

/// The one container whose id begins so.
fn find(records: Vec<Record>, id: &str) -> Result<Record> {
    let refused = |why: &str| Error::Limit { container: id.to_owned(), why: why.to_owned() };
    let exact = records.iter().position(|record| record.container == id);
    let mut found =
        records.iter().enumerate().filter(|(_, record)| record.container.starts_with(id));
    let place = match (exact, found.next(), found.next()) {
        (Some(place), ..) | (None, Some((place, _)), None) => place,
        (None, None, _) => return Err(refused("no such container runs under a limit here")),
        (None, Some(_), Some(_)) => return Err(refused("several containers begin so")),
    };
    records.into_iter().nth(place).ok_or_else(|| refused("no such container"))
}
