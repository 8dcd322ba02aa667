//! `gpucap-driver samples`: for which part of the time each card worked for each process, until its output is closed.
//!
//! ```text
//! busy GPU-<uuid> PID PERCENT    a process for which the card worked
//! all GPU-<uuid> PERCENT         the card, for whichever process, by samples of its own; not if it has none
//! look GPU-<uuid> NS             ends the lines of a look: the time that they are about, ended just now
//! none GPU-<uuid> TEXT           the card does not say: it has MIG instances, or is too old
//! lost INDEX TEXT                the card does not answer; it is asked again every ten seconds
//! ```
//!
//! The driver keeps samples of a sixth of a second to a second (NVML's reference, `nvmlUtilization_t`), in whole percents,
//! and gives those since a time: one for each process that was not idle. How long they are on a card show those of the
//! card itself, which follow one another, and those of one process that do. Processes are numbered as in the first pid namespace.
//! A look without samples says nothing, since the next sample may not be complete: that a card was idle is said two samples
//! later.

mod period;

use crate::library::{Result, optional};
use crate::nvml::{Nvml, lost};
use core::ffi::c_uint;
use gpucap_abi::function::Function;
use gpucap_abi::functions;
use gpucap_abi::nvml::{NvmlError, nvmlDevice_t};
use period::{Period, Sample};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// As long as the shortest.
const EVERY: Duration = Duration::from_millis(170);
/// How often a card that does not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How many processes one answer may have.
const MOST: c_uint = 1024;

/// `nvmlSample_t`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CardSample {
    time_us: u64,
    value: u64,
}

/// `nvmlProcessUtilizationInfo_v1_t`
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Info {
    time_us: u64,
    pid: c_uint,
    sm: c_uint,
    others: [c_uint; 5],
}

/// `nvmlProcessesUtilizationInfo_v1_t`
#[repr(C)]
struct Infos {
    version: c_uint,
    count: c_uint,
    since_us: u64,
    records: *mut Info,
}
const _: () = assert!(size_of::<Sample>() == 32 && size_of::<Info>() == 40);

/// `NVML_VALUE_TYPE_UNSIGNED_INT`
const UNSIGNED_INT: c_uint = 1;
/// The structure's size, and version 1.
const INFOS_VERSION: c_uint = 24 | 1 << 24;
const _: () = assert!(size_of::<Infos>() == 24);

functions! {
    fn nvmlDeviceGetSamples(nvmlDevice_t, c_uint, u64, *mut c_uint, *mut c_uint, *mut CardSample) -> c_uint;
    fn nvmlDeviceGetProcessUtilization(nvmlDevice_t, *mut Sample, *mut c_uint, u64) -> c_uint;
    fn nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t, *mut Infos) -> c_uint;
}

/// A card, and up to when its samples are known.
struct Card {
    device: nvmlDevice_t,
    name: String,
    known_us: u64,
    looked_at: Instant,
    is_silent: bool,
    period: Period,
}

/// Prints them until the output is closed.
pub(crate) fn follow() -> Result {
    let nvml = Nvml::start()?;
    let looks = Looks {
        of_processes: optional::<nvmlDeviceGetProcessesUtilizationInfo>(nvml.library()),
        of_each: optional::<nvmlDeviceGetProcessUtilization>(nvml.library()),
        of_card: optional::<nvmlDeviceGetSamples>(nvml.library()),
    };
    let mut cards = Cards::default();
    loop {
        let mut out = io::stdout().lock();
        if cards.asked_at.is_none_or(|at| at.elapsed() >= ASK_AGAIN) {
            out.write_all(cards.find(&nvml, &looks)?.as_bytes())?;
        }
        for card in cards.found.values_mut() {
            out.write_all(card.sample_lines(&nvml, &looks).as_bytes())?;
        }
        out.flush()?;
        drop(out);
        thread::sleep(EVERY);
    }
}

/// The cards of the machine.
#[derive(Default)]
struct Cards {
    found: BTreeMap<c_uint, Card>,
    /// Why a card does not answer, as far as that was printed.
    lost: BTreeMap<c_uint, String>,
    asked_at: Option<Instant>,
}

impl Cards {
    /// Looks for the cards that were not found before. Returns the lines of those that do not answer, unless they say
    /// the same as the last time.
    fn find(&mut self, nvml: &Nvml, looks: &Looks) -> Result<String> {
        self.asked_at = Some(Instant::now());
        let mut lines = String::new();
        for (index, device) in nvml.cards()? {
            if self.found.contains_key(&index) {
                continue;
            }
            match device.and_then(|device| Card::new(nvml, looks, device)) {
                Ok(card) => {
                    self.lost.remove(&index);
                    self.found.insert(index, card);
                }
                Err(why) => {
                    let why = why.to_string();
                    if self.lost.get(&index) != Some(&why) {
                        lines += &format!("{}\n", lost(index, &why));
                        self.lost.insert(index, why);
                    }
                }
            }
        }
        Ok(lines)
    }
}

type OfProcesses = <nvmlDeviceGetProcessesUtilizationInfo as Function>::Type;
type OfEach = <nvmlDeviceGetProcessUtilization as Function>::Type;
type OfCard = <nvmlDeviceGetSamples as Function>::Type;

/// The functions that tell: of processes the newer one, and the one that every driver has.
struct Looks {
    of_processes: Option<OfProcesses>,
    of_each: Option<OfEach>,
    of_card: Option<OfCard>,
}

impl Looks {
    /// The samples of a card itself since a time, oldest first.
    fn of_card(&self, card: nvmlDevice_t, since_us: u64) -> Vec<CardSample> {
        const GPU_UTILIZATION: c_uint = 1;
        let Some(ask) = self.of_card else { return Vec::new() };
        let mut samples = vec![CardSample::default(); number(MOST)];
        let (mut count, mut of_value) = (MOST, 0);
        let (count_at, value_at) = (&raw mut count, &raw mut of_value);
        // SAFETY: this number of samples is writable, and both words; the handle is NVML's.
        let code = unsafe {
            ask(card, GPU_UTILIZATION, since_us, value_at, count_at, samples.as_mut_ptr())
        };
        // Percentages come as unsigned integers of 32 bits, of which the other half of the union is not written.
        let is_known = code == 0 && of_value == UNSIGNED_INT;
        samples.truncate(if is_known { number(count) } else { 0 });
        samples
    }

    /// How long a sample of a card is; `None` if it has no two.
    fn period_us(&self, card: nvmlDevice_t) -> Option<u64> {
        let samples = self.of_card(card, 0);
        let pairs = samples.windows(2);
        let lengths = pairs.map(|pair| match pair {
            [before, after] => after.time_us.saturating_sub(before.time_us),
            _ => 0,
        });
        lengths.filter(|us| *us > 0).min()
    }

    /// For which part of the time between two moments a card worked, in percent.
    fn all_percent(&self, card: nvmlDevice_t, since_us: u64, until_us: u64) -> Option<u64> {
        let samples = self.of_card(card, since_us);
        let within = samples.iter().filter(|it| since_us < it.time_us && it.time_us <= until_us);
        let percentages = within.map(|it| (it.value & u64::from(u32::MAX)).min(100));
        let (sum, count) = percentages.fold((0, 0), |(sum, count), it| (sum + it, count + 1));
        u64::checked_div(sum + count / 2, count)
    }

    /// The samples of a card since a time: pid, end and percent of each.
    fn ask(&self, card: nvmlDevice_t, since_us: u64) -> std::result::Result<Vec<Sample>, c_uint> {
        let newer = self.of_processes.map(|ask| {
            let mut records = vec![Info::default(); number(MOST)];
            let (version, count, records_at) = (INFOS_VERSION, MOST, records.as_mut_ptr());
            let mut infos = Infos { version, count, since_us, records: records_at };
            // SAFETY: the structure says its version, and for how many records there is room; the handle is NVML's.
            let code = unsafe { ask(card, &raw mut infos) };
            let of =
                |it: Info| Sample { pid: it.pid, time_us: it.time_us, sm: it.sm, others: [0; 3] };
            (code, records.into_iter().map(of).take(number(infos.count)).collect())
        });
        let not_found = NvmlError::NOT_FOUND.code();
        let older = || {
            let ask = self.of_each?;
            let (mut records, mut count) = (vec![Sample::default(); number(MOST)], MOST);
            // SAFETY: this number of records is writable; the handle is NVML's.
            let code = unsafe { ask(card, records.as_mut_ptr(), &raw mut count, since_us) };
            records.truncate(number(count));
            Some((code, records))
        };
        let answer = newer.filter(|(code, _)| *code == 0 || *code == not_found).or_else(older);
        match answer {
            Some((0, samples)) => Ok(samples),
            Some((code, _)) if code == not_found => Ok(Vec::new()),
            Some((code, _)) => Err(code),
            None => Err(NvmlError::FUNCTION_NOT_FOUND.code()),
        }
    }
}

impl Card {
    fn new(nvml: &Nvml, looks: &Looks, device: nvmlDevice_t) -> Result<Self> {
        let (name, known_us) = (nvml.name(device)?, now_us());
        let mut period = Period::default();
        looks.period_us(device).into_iter().for_each(|us| period.is_at_most(us));
        let looked_at = Instant::now();
        Ok(Self { device, name, known_us, looked_at, is_silent: false, period })
    }

    /// The lines of a look.
    fn sample_lines(&mut self, nvml: &Nvml, looks: &Looks) -> String {
        let name = &self.name;
        // The clock of the samples can be set back.
        self.known_us = self.known_us.min(now_us());
        let samples = match looks.ask(self.device, self.known_us) {
            Ok(samples) => samples,
            Err(code) => {
                (self.known_us, self.looked_at) = (now_us(), Instant::now());
                let was_reported = std::mem::replace(&mut self.is_silent, true);
                return if was_reported {
                    String::new()
                } else {
                    format!("none {name} {}\n", nvml.text(code))
                };
            }
        };
        self.is_silent = false;
        let (until_us, percentages) = self.period.percentages(&samples, self.known_us);
        let until_us = match until_us {
            Some(until_us) => until_us,
            None if now_us().saturating_sub(self.known_us) >= self.period.idle_us() => {
                self.period.idle_until(now_us())
            }
            None => return String::new(),
        };
        // The clock of the samples can be set.
        let passed = u64::try_from(self.looked_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let length_ns = until_us.saturating_sub(self.known_us).saturating_mul(1_000).min(passed);
        let all = looks.all_percent(self.device, self.known_us, until_us);
        (self.known_us, self.looked_at) = (until_us, Instant::now());
        let busy =
            percentages.iter().map(|(pid, percent)| format!("busy {name} {pid} {percent}\n"));
        let all = all.map(|percent| format!("all {name} {percent}\n"));
        busy.chain(all).chain([format!("look {name} {length_ns}\n")]).collect()
    }
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

fn number(count: c_uint) -> usize {
    usize::try_from(count.min(MOST)).unwrap_or(0)
}
