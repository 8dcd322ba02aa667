//! How long the requests of an owner take that wakes while another container has its time: beside one with a fixed limit, one
//! that borrows, and one of low priority.

use super::side::{KINDS, LOW, MS, Side, burst, fixed, side};
use crate::accuracy::cell;
use crate::report::Report;
use crate::simulator::program::{Act, Kernel, Program};
use crate::simulator::workloads::workload;
use crate::simulator::{Process, Setup, World};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{DEVICE_WORDS, DeviceWords};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What an owner does each time that it wakes.
#[derive(Debug, Clone, Copy)]
struct Request {
    what: &'static str,
    /// Kernels, each waited for.
    kernels: u64,
    kernel_ns: u64,
    /// From one request to the next, if the previous one has ended.
    every_ns: u64,
}

/// How long requests took, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Durations {
    p50: f64,
    p99: f64,
    max: f64,
}

impl Durations {
    /// Of at least one time, in nanoseconds.
    fn of(mut ns: Vec<u64>) -> Option<Self> {
        ns.sort_unstable();
        let at = |rank: usize| {
            #[expect(clippy::cast_precision_loss, reason = "less than 2^53")]
            ns.get((ns.len() * rank).div_ceil(100).max(1) - 1).map(|ns| *ns as f64 / 1e6)
        };
        Some(Self { p50: at(50)?, p99: at(99)?, max: at(100)? })
    }
}

/// Makes the owner's program; the times of its requests after the warm-up go to `times`.
fn program(request: Request, times: Arc<Mutex<Vec<u64>>>) -> Program {
    let (mut number, mut step) = (0_u64, 0_u64);
    Box::new(move |now, _| {
        let start = number * request.every_ns;
        let last = 1 + 2 * request.kernels;
        let act = match step {
            0 => Act::Until(start),
            step if step == last => {
                if start >= cell::WARM_UP_NS {
                    times.lock().unwrap_or_else(PoisonError::into_inner).push(now - start);
                }
                number = now / request.every_ns + 1;
                Act::Until(number * request.every_ns)
            }
            step if step % 2 == 1 => {
                Act::Launch { stream: 0, kernel: Kernel::new(1, request.kernel_ns) }
            }
            _ => Act::Sync(Some(0)),
        };
        step = if step == last { 1 } else { step + 1 };
        act
    })
}

/// Runs an owner with a fixed share, alone or beside another container.
fn durations(
    request: Request,
    share: u16,
    beside: Option<Side>,
    seconds: u64,
) -> Option<Durations> {
    let words: [[Word; DEVICE_WORDS]; 2] = Default::default();
    let seats = words.each_ref().map(|words| DeviceWords::new(words.each_ref()));
    let times = Arc::new(Mutex::new(Vec::new()));
    let own = fixed(share);
    let threads = vec![program(request, Arc::clone(&times))];
    let mut processes =
        vec![Process { threads, streams: 1, first: 0, limits: vec![Some((0, own))] }];
    if let Some(side) = beside {
        for (threads, streams) in (workload(side.workload).processes)() {
            processes.push(Process {
                threads,
                streams,
                first: 0,
                limits: vec![Some((1, side.limit))],
            });
        }
    }
    let length = cell::WARM_UP_NS + seconds * 1_000_000_000;
    let _: Vec<_> = World::new(Setup::default(), &seats, processes).run(length);
    let times = std::mem::take(&mut *times.lock().unwrap_or_else(PoisonError::into_inner));
    Durations::of(times)
}

const REQUESTS: [Request; 2] = [
    Request { what: "20 kernels of 1 ms", kernels: 20, kernel_ns: MS, every_ns: 297 * MS },
    Request { what: "a kernel of 4 ms", kernels: 1, kernel_ns: 4 * MS, every_ns: 37 * MS },
];
/// How much longer a request may take beside low priority, and beside one that borrows instead of having its share fixed.
const LONGER: f64 = 1.3;
const GIVEN_BACK_MS: f64 = 10.0;

/// The longest kernel of a workload, in milliseconds, if it is longer than what may be borrowed ahead. Those of the last two
/// vary: what their longest ones showed.
fn longest_ms(kind: &str) -> f64 {
    match kind {
        "W2 40 ms kernel, sync" | "W2 40 ms kernels" => 40.0,
        "W3 8 ms graph decode" => 8.0,
        "W6 25 kernels mixed" => 3.0,
        "W10 inference 4 ms" => 20.0,
        _ => 0.0,
    }
}

pub(super) fn run(seconds: u64, is_quick: bool, report: &mut Report) {
    let (shares, kinds) = if is_quick { (&[50][..], 1) } else { (&[30, 50, 70][..], KINDS.len()) };
    for request in REQUESTS {
        for share in shares.iter().copied() {
            let alone = durations(request, share, None, seconds);
            for kind in &KINDS[..kinds] {
                let beside = |limit| durations(request, share, Some(side(kind, limit)), seconds);
                let all =
                    [alone, beside(fixed(100 - share)), beside(burst(100 - share)), beside(LOW)];
                let [Some(alone), Some(fixed), Some(lent), Some(low)] = all else {
                    report.check(&format!("{}, {share} %: no request ended", request.what), false);
                    continue;
                };
                let text = format!(
                    "{}, {share} %, p50, p99 and most of the time: {alone} alone; beside {kind}: {fixed} where its \
                     share is fixed, {lent} where it borrows, {low} of low priority",
                    request.what,
                );
                let longest = longest_ms(kind);
                let holds = low.p99 <= LONGER * alone.p99 + longest
                    && lent.max <= fixed.max + GIVEN_BACK_MS.max(longest);
                report.check(&text, holds);
            }
        }
    }
}

impl fmt::Display for Durations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}, {:.1}, {:.1} ms", self.p50, self.p99, self.max)
    }
}
