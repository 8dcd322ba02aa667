//! `gpucap calibrate`: measures on the node what a context costs on each of its cards, and finds out what the driver
//! can do; the hook reads the result, so that no container has to ask.
//!
//! A process of its own makes a context on each GPU (each MIG instance). The size of a context differs by GPU and by
//! driver, from some hundred to more than five hundred MiB, and it cannot be measured inside a container. If the
//! assumed size is too low, each context of a container exceeds its limit by the difference; if it is too high,
//! allocations that would have fit are refused.

use crate::container::native_limit;
use crate::error::{Error, Result, reason};
use crate::exit::Exit;
use crate::node::driver::Driver;
use crate::node::inputs;
use crate::terminal::output;
use gpucap_core::units::Bytes;
use gpucap_core::uuid::DeviceName;
use gpucap_plan::{Calibration, Measured, Node};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const AFTER: &str = "\
Run it as root on the host, once after each installation of gpucap or of a driver. It makes one context on each
GPU and ends it; programs that use the GPUs at the same time are not disturbed. It also tests whether the driver can
keep memory limits itself (native_limits). The hook reads the result.

Exit status: 0 if each GPU was measured; 1 if not, with one line for each GPU or MIG instance that was not.

Examples:
  gpucap calibrate";

/// A card that was switched off takes seconds to start.
const MOST: Duration = Duration::from_secs(60);
/// How often a card is measured where only the card's own figure can be had, which others move.
const TIMES: usize = 3;
/// NVML's codes that mean: this driver can limit a cgroup's memory. The second says that the cgroup which was tried has
/// no controller for device memory, which is the kernel's and not the driver's answer.
const ABLE: [u32; 2] = [0, 6];

/// The arguments of `gpucap calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// Do nothing if these GPUs were measured with this driver
    #[arg(long)]
    if_needed: bool,
    /// Show what was measured and write nothing
    #[arg(long)]
    dry_run: bool,
    /// The node's configuration, which names the result file and the directory of the driver's libraries
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// A card, and its MIG instances.
struct Card {
    name: DeviceName,
    instances: Vec<DeviceName>,
}

impl Card {
    /// What a limits file can call it: itself, and its instances.
    fn names(&self) -> impl Iterator<Item = DeviceName> {
        self.instances.iter().copied().chain([self.name])
    }
}

/// Measures, and writes it down.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let node = inputs::node(&options.config).map_err(|why| Error::Calibrate(why.to_string()))?;
    let path = inputs::calibration_path(&node);
    let driver = Driver::find(&node).map_err(Error::Calibrate)?;
    let Machine { version, cards, lost } = machine(&driver).map_err(Error::Calibrate)?;
    for why in &lost {
        output::notice(format_args!("calibrate: {why}"));
    }
    let before = known(&node, &version);
    if options.if_needed && before.as_ref().is_some_and(|before| has_all(before, &cards)) {
        let all = if lost.is_empty() { "all GPUs" } else { "all other GPUs" };
        output::print(&format!("{} is of driver {version} and has {all}.\n", path.display()))?;
        return Ok(if lost.is_empty() { Exit::OK } else { Exit::FAILED });
    }
    let (mut gpus, mut exit) = measure_all(&driver, &cards, before.as_ref());
    if !lost.is_empty() {
        // Which they are is not known: what is not of a card that answers may be of them.
        let is_other =
            |gpu: &&Measured| cards.iter().all(|card| card.names().all(|it| it != gpu.name));
        gpus.extend(before.iter().flat_map(|before| &before.gpus).filter(is_other));
        exit = Exit::FAILED;
    }
    let whole = cards.iter().filter(|card| card.instances.is_empty()).map(|card| card.name);
    let able = Probe::make().and_then(|probe| probe.ask(&driver, whole, &mut gpus));
    let found = Calibration { driver: version, gpus };
    output::print(&said(&found, able.err()))?;
    if !options.dry_run {
        write(&path, &found).map_err(|why| {
            Error::Calibrate(format!("{} cannot be written: {}", path.display(), reason(&why)))
        })?;
        output::print(&format!("Written to {}.\n", path.display()))?;
    }
    if inputs::driver().as_ref() != Some(&found.driver) {
        output::notice(
            "calibrate: /proc/driver/nvidia/version names another driver, or none: the hook will not use this",
        );
    }
    Ok(exit)
}

/// What the driver says of itself and the cards.
struct Machine {
    version: String,
    cards: Vec<Card>,
    /// Those that do not answer: one line about each.
    lost: Vec<String>,
}

fn machine(driver: &Driver) -> std::result::Result<Machine, String> {
    let lines = driver.ask(&["gpus".into()], None, MOST)?;
    let odd = |line: &str| format!("an answer that is none: {line:?}");
    let (mut version, mut cards, mut lost) = (None, Vec::<Card>::new(), Vec::new());
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let name = |word: &str| word.parse::<DeviceName>().map_err(|_| odd(line));
        match words[..] {
            ["driver", word] => version = Some(word.to_owned()),
            ["gpu", card] => cards.push(Card { name: name(card)?, instances: vec![] }),
            ["gpu", card, instance] => {
                let (card, instance) = (name(card)?, name(instance)?);
                match cards.last_mut().filter(|last| last.name == card) {
                    Some(last) => last.instances.push(instance),
                    None => cards.push(Card { name: card, instances: vec![instance] }),
                }
            }
            ["lost", index, ..] => {
                let why = words.get(2..).unwrap_or_default().join(" ");
                lost.push(format!("GPU {index} does not answer: {why}"));
            }
            _ => return Err(odd(line)),
        }
    }
    Ok(Machine { version: version.ok_or_else(|| odd("no version"))?, cards, lost })
}

/// What is known about the GPUs under this driver.
fn known(node: &Node, version: &str) -> Option<Calibration> {
    let bytes = inputs::calibration(node)?.ok()?;
    Calibration::parse(&bytes, Some(version)).ok()
}

/// Whether all of these cards are known.
fn has_all(known: &Calibration, cards: &[Card]) -> bool {
    cards.iter().flat_map(Card::names).all(|name| known.of(name).is_some())
}

/// What a context takes on each card. One that is out of order does not keep the others from being known, and what was
/// known of it under this driver stays so.
fn measure_all(
    driver: &Driver,
    cards: &[Card],
    before: Option<&Calibration>,
) -> (Vec<Measured>, Exit) {
    let (mut gpus, mut exit) = (Vec::new(), Exit::OK);
    for (at, card) in (1..).zip(cards) {
        if cards.len() > 1 {
            output::notice(format_args!("calibrate: {at} of {}: {}", cards.len(), card.name));
        }
        let (found, failures) = measure(driver, card);
        for why in &failures {
            output::notice(format_args!("calibrate: {why}"));
            exit = Exit::FAILED;
        }
        let is_missing = |name: &DeviceName| found.iter().all(|gpu| gpu.name != *name);
        let known = card.names().filter(is_missing).filter_map(|name| before?.of(name).copied());
        // The driver is asked about this again below.
        let known =
            known.map(|known| Measured { native_limits: false, ..known }).collect::<Vec<_>>();
        gpus.extend(found);
        gpus.extend(known);
    }
    (gpus, exit)
}

/// What a context takes on a card. Of one with MIG instances, on each of them, and for the card the most of these, if
/// all of them answer. And why some of it is not known.
fn measure(driver: &Driver, card: &Card) -> (Vec<Measured>, Vec<String>) {
    if card.instances.is_empty() {
        return match measured(driver, card.name) {
            Ok(found) => (vec![found], vec![]),
            Err(why) => (vec![], vec![why]),
        };
    }
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for name in &card.instances {
        match measured(driver, *name) {
            Ok(found) => all.push(found),
            Err(why) => failures.push(why),
        }
    }
    if failures.is_empty() {
        let most = |of: fn(&Measured) -> u64| all.iter().map(of).max().unwrap_or_default();
        let (context, total) = (most(|gpu| gpu.context), most(|gpu| gpu.total));
        all.push(Measured { name: card.name, context, total, native_limits: false });
    }
    (all, failures)
}

fn measured(driver: &Driver, name: DeviceName) -> std::result::Result<Measured, String> {
    let text = name.to_string();
    let once = || -> std::result::Result<(u64, bool, u64), String> {
        let lines = driver.ask(&["context".into(), text.clone()], Some(&text), MOST)?;
        let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let found = match &words[..] {
            [context, total] => match (&context[..], &total[..]) {
                (["context", bytes, by], ["total", total]) => bytes
                    .parse()
                    .ok()
                    .zip(total.parse().ok())
                    .map(|(it, all)| (it, *by == "card", all)),
                _ => None,
            },
            _ => None,
        };
        found.ok_or_else(|| format!("an answer that is none: {lines:?}"))
    };
    let (mut context, by_card, total) = once().map_err(|why| format!("{text}: {why}"))?;
    if by_card {
        let mut all = vec![context];
        for _ in 1..TIMES {
            all.push(once().map_err(|why| format!("{text}: {why}"))?.0);
        }
        all.sort_unstable();
        context = all.get(TIMES / 2).copied().unwrap_or(context);
    }
    if !(1..=Calibration::MOST_CONTEXT).contains(&context) {
        return Err(format!("{text}: a context took {}, which cannot be", Bytes(context)));
    }
    Ok(Measured { name, context, total, native_limits: false })
}

/// A cgroup of our own, to try on it what the driver can limit.
struct Probe(PathBuf);

impl Probe {
    fn make() -> std::result::Result<Self, String> {
        let path = native_limit::unified()?.join(format!("gpucap-probe-{}", std::process::id()));
        fs::create_dir(&path).map_err(|why| format!("{}: {}", path.display(), reason(&why)))?;
        Ok(Self(path))
    }

    /// Asks for no limit at all on each card that is whole, whatever the others answer; the first reason why one cannot.
    fn ask(
        &self,
        driver: &Driver,
        cards: impl Iterator<Item = DeviceName>,
        gpus: &mut [Measured],
    ) -> std::result::Result<(), String> {
        let mut refused = Ok(());
        for name in cards {
            match self.ask_about(driver, name) {
                Ok(()) => {
                    let same = gpus.iter_mut().find(|gpu| gpu.name == name);
                    same.into_iter().for_each(|gpu| gpu.native_limits = true);
                }
                Err(why) => refused = refused.and(Err(why)),
            }
        }
        refused
    }

    /// Asks for no limit at all on one card.
    fn ask_about(&self, driver: &Driver, card: DeviceName) -> std::result::Result<(), String> {
        let words = ["limit".into(), self.0.display().to_string(), format!("{card}={}", u64::MAX)];
        let lines = driver.ask(&words, None, MOST)?;
        let answer = lines.iter().find_map(|line| native_limit::Answer::of(line));
        let answer = answer.ok_or_else(|| format!("an answer that is none: {lines:?}"))?;
        if ABLE.contains(&answer.code) { Ok(()) } else { Err(answer.to_string()) }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

/// The lines for a person.
fn said(found: &Calibration, unable: Option<String>) -> String {
    let mut text = format!("Driver {}\n", found.driver);
    for gpu in &found.gpus {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}: a context takes {}", gpu.name, Bytes(gpu.context));
    }
    if found.gpus.is_empty() {
        text.push_str("  no GPU\n");
    }
    let is_able = found.gpus.iter().any(|gpu| gpu.native_limits);
    text.push_str(&match unable {
        Some(why) if is_able => {
            format!(
                "It can keep memory limits by itself (native_limits), not of every GPU: {why}\n"
            )
        }
        Some(why) => format!("It keeps no memory limits by itself: {why}\n"),
        None => "It can keep memory limits by itself (native_limits).\n".into(),
    });
    text
}

/// Written in one step, and writable by root alone.
fn write(path: &Path, found: &Calibration) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or_else(|| Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    let new = path.with_extension("json.new");
    // Left by a process that was killed while writing.
    drop(fs::remove_file(&new));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o644).open(&new)?;
    file.write_all(found.text().as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
