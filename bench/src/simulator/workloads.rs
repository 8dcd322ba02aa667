//! Typical programs, without their frameworks.
//!
//! The numbers are those of the throttling study's list. W15 (captures) and W16 (frameworks) are missing: they
//! concern the shim's hooks, not time.

use super::dice::Dice;
use super::program::{Act, Kernel, Program, repeat, rounds};

/// One process of a workload: its threads, and how many streams it has.
pub type Threads = (Vec<Program>, usize);

/// A workload: the processes of one container.
#[derive(Clone, Copy)]
pub struct Workload {
    /// Its name in tables.
    pub name: &'static str,
    /// Its processes, made anew for each run.
    pub processes: fn() -> Vec<Threads>,
    /// Processes without a limit, beside the container.
    pub beside: fn() -> Vec<Threads>,
    /// The number of cards of each process, over which its streams are spread. The first card is evaluated.
    pub cards: usize,
    /// Each process has one card of its own instead.
    pub apart: bool,
    /// The limit on the further cards, in percent; `None` if the same as on the first one.
    pub elsewhere: Option<u16>,
    /// The time until its mean is meaningful.
    pub seconds: u64,
}

pub(crate) const fn alone(
    name: &'static str,
    seconds: u64,
    processes: fn() -> Vec<Threads>,
) -> Workload {
    Workload { name, processes, beside: Vec::new, cards: 1, apart: false, elsewhere: None, seconds }
}

const fn on_two_cards(name: &'static str, processes: fn() -> Vec<Threads>) -> Workload {
    Workload { cards: 2, ..alone(name, 10, processes) }
}

const fn a_process_each(name: &'static str, processes: fn() -> Vec<Threads>) -> Workload {
    Workload { apart: true, ..on_two_cards(name, processes) }
}

/// The workload of this name; the first one of [`ALL`] if there is none.
pub(crate) fn workload(name: &str) -> &'static Workload {
    ALL.iter().find(|workload| workload.name == name).unwrap_or(&ALL[0])
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// All workloads. The method was not changed after the last two (H2, H3) had been run for the first time.
pub const ALL: &[Workload] = &[
    alone("W1 10 us kernels", 5, || one(async_kernels(10 * US))),
    alone("W2 40 ms kernel, sync", 50, || one(synced(40 * MS))),
    alone("W2 40 ms kernels", 50, || one(async_kernels(40 * MS))),
    alone("W3 8 ms graph decode", 20, || one(decode())),
    alone("W4 4 streams x 50 us", 5, || vec![(vec![streams(4)], 4)]),
    alone("W4 8 streams x 50 us", 5, || vec![(vec![streams(8)], 8)]),
    alone("W5 training step", 10, || one(training())),
    alone("W6 25 kernels mixed", 10, || one(mixed())),
    alone("W7 kernel + copy", 5, || one(copying())),
    alone("W8 10 us, sync", 5, || one(synced(10 * US))),
    alone("W9 launch-bound 3 us", 5, || one(async_kernels(3 * US))),
    alone("W10 inference 4 ms", 50, || one(inference())),
    alone("W11 300 ms kernels", 300, || one(synced(300 * MS))),
    alone("W19 10 us, some 10 ms", 20, || one(rarely_long())),
    alone("W19 10 us, some 10 ms, sync", 20, || one(rarely_long_synced())),
    alone("W20 10 us, some 1 ms", 20, || one(rounds(|_, dice| vec![by_data(dice, MS)]))),
    alone("W12 4 threads x 20 us", 5, || vec![((0..4).map(thread).collect(), 4)]),
    alone("W13 4 processes x 10 us", 5, || {
        (0..4).flat_map(|_| one(async_kernels(10 * US))).collect()
    }),
    on_two_cards("W14 all-reduce", || a_thread_each(steps)),
    on_two_cards("W14 all-reduce, one thread", || vec![(vec![steps_on_both()], 2)]),
    on_two_cards("W14 all-reduce, overlapped", || vec![((0..2).map(overlapped).collect(), 4)]),
    on_two_cards("W14 short all-reduces", || a_thread_each(short_steps)),
    on_two_cards("W14 all-reduces in graphs", || a_thread_each(graphs)),
    on_two_cards("W14 all-reduces in graphs, one thread", || vec![(vec![graphs_on_both()], 2)]),
    on_two_cards("W14 all-reduces in graphs, ahead", || a_thread_each(graphs_ahead)),
    on_two_cards("W14 answers, in graphs", || a_thread_each(answers)),
    a_process_each("W14 all-reduce, two processes", || a_process_for_each(steps)),
    Workload {
        elsewhere: Some(30),
        ..on_two_cards("W14 all-reduce, other card 30 %", || a_thread_each(steps))
    },
    Workload {
        elsewhere: Some(70),
        ..on_two_cards("W14 all-reduce, other card 70 %", || a_thread_each(steps))
    },
    Workload {
        beside: || one(async_kernels(10 * US)),
        ..alone("W17 10 us, neighbour", 10, || one(async_kernels(10 * US)))
    },
    Workload {
        beside: || one(async_kernels(10 * US)),
        ..alone("W17 mixed, neighbour", 10, || one(mixed()))
    },
    alone("W18 3 threads in bursts", 10, || vec![((0..3).map(bursts).collect(), 3)]),
    alone("H3 two processes of a pipeline", 10, pipeline),
    alone("H2 prefill beside decode", 50, || vec![(vec![decode_of(3 * MS), prefill()], 2)]),
];

pub(crate) fn one(program: Program) -> Vec<Threads> {
    vec![(vec![program], 1)]
}

fn launch(function: u64, ns: u64) -> Act {
    Act::Launch { stream: 0, kernel: Kernel::new(function, ns) }
}

pub(crate) fn async_kernels(ns: u64) -> Program {
    repeat(vec![launch(1, ns)])
}

fn synced(ns: u64) -> Program {
    repeat(vec![launch(1, ns), Act::Sync(Some(0))])
}

fn decode() -> Program {
    decode_of(8 * MS)
}

fn decode_of(ns: u64) -> Program {
    let kernel = Kernel { nodes: Some(400), ..Kernel::new(1, ns) };
    repeat(vec![Act::Launch { stream: 0, kernel }, Act::Sync(Some(0)), Act::Think(200 * US)])
}

/// One kernel whose duration depends on its data: one launch in ten takes a thousand times as long as the others.
fn by_data(dice: &mut Dice, long_ns: u64) -> Act {
    launch(1, if dice.between(1, 10) == 1 { long_ns } else { 10 * US })
}

fn rarely_long() -> Program {
    rounds(|_, dice| vec![by_data(dice, 10 * MS)])
}

fn rarely_long_synced() -> Program {
    rounds(|_, dice| vec![by_data(dice, 10 * MS), Act::Sync(Some(0))])
}

/// Kernels that fill a quarter of the card, on streams in turn: four run side by side.
fn streams(count: usize) -> Program {
    let kernel = Kernel { width: 250, ..Kernel::new(1, 50 * US) };
    repeat((0..count).map(|stream| Act::Launch { stream, kernel }).collect())
}

/// 40 ms of kernels of ten kinds, then 15 ms on the processor.
fn training() -> Program {
    let mut step: Vec<Act> =
        (0..400).map(|kernel| launch(kernel % 10, (kernel % 10 + 1) * 18_182)).collect();
    step.extend([Act::Sync(Some(0)), Act::Think(15 * MS)]);
    repeat(step)
}

/// Twenty-five kinds of kernels from a few microseconds to a few milliseconds, each a little different every time.
fn mixed() -> Program {
    let sizes =
        |dice: &mut Dice| (0..25).map(|_| dice.lognormal(100 * US, 1.3)).collect::<Vec<_>>();
    let sizes = sizes(&mut Dice::new(7));
    rounds(move |_, dice| {
        let vary = |ns: u64, dice: &mut Dice| ns * dice.between(95, 105) / 100;
        let launches = (1..).zip(&sizes).map(|(kind, &ns)| launch(kind, vary(ns, dice)));
        launches.chain([Act::Sync(Some(0)), Act::Think(30 * US)]).collect()
    })
}

fn copying() -> Program {
    repeat(vec![launch(1, 500 * US), Act::Copy { stream: 0, ns: 500 * US }])
}

/// One request after another, of about 4 ms each, with 1 ms of processor time in between.
fn inference() -> Program {
    rounds(|_, dice| {
        let ns = dice.lognormal(3_500 * US, 0.6);
        vec![launch(1, ns), Act::Sync(Some(0)), Act::Think(MS)]
    })
}

fn thread(stream: usize) -> Program {
    let kernel = Kernel::new(1, 20 * US);
    repeat(vec![Act::Launch { stream, kernel }])
}

/// A thread for each of two cards.
fn a_thread_each(program: fn(usize) -> Program) -> Vec<Threads> {
    vec![((0..2).map(program).collect(), 2)]
}

/// A process for each of two cards.
fn a_process_for_each(program: fn(usize) -> Program) -> Vec<Threads> {
    (0..2).map(|_| (vec![program(0)], 1)).collect()
}

fn all_reduce(stream: usize, ns: u64) -> Act {
    let kernel = Kernel { is_collective: true, ..Kernel::new(90, ns) };
    Act::Launch { stream, kernel }
}

/// Ten kernels of 1 ms and an all-reduce of 2 ms, waited for: a step of data-parallel training.
fn steps(stream: usize) -> Program {
    let kernel = Kernel::new(1, MS);
    let mut step = vec![Act::Launch { stream, kernel }; 10];
    step.extend([all_reduce(stream, 2 * MS), Act::Sync(Some(stream)), Act::Think(200 * US)]);
    repeat(step)
}

/// The same by one thread, which serves the second card after the first.
fn steps_on_both() -> Program {
    let kernel = Kernel::new(1, MS);
    let mut step = Vec::new();
    for stream in 0..2 {
        step.extend(vec![Act::Launch { stream, kernel }; 10]);
        step.push(all_reduce(stream, 2 * MS));
    }
    step.extend([Act::Sync(None), Act::Think(200 * US)]);
    repeat(step)
}

/// Gradients go round on a stream of their own, on a tenth of the card, while the next kernels run.
fn overlapped(card: usize) -> Program {
    let kernel = Kernel { width: 900, ..Kernel::new(1, 500 * US) };
    let part = |step: usize| {
        let mut part = vec![Act::Launch { stream: card, kernel }; 5];
        if step > 0 {
            let kernel = Kernel { width: 100, is_collective: true, ..Kernel::new(90, MS) };
            part.push(Act::Launch { stream: card + 2, kernel });
        }
        part
    };
    let mut step: Vec<Act> = (0..5).flat_map(part).collect();
    step.extend([Act::Sync(Some(card)), Act::Sync(Some(card + 2)), Act::Think(200 * US)]);
    repeat(step)
}

/// A layer of 40 us and an all-reduce of 15 us, eighty times, then a token: inference on the halves of a model.
fn short_steps(stream: usize) -> Program {
    let kernel = Kernel::new(1, 40 * US);
    let layer = [Act::Launch { stream, kernel }, all_reduce(stream, 15 * US)];
    let mut token = layer.repeat(80);
    token.extend([Act::Sync(Some(stream)), Act::Think(200 * US)]);
    repeat(token)
}

/// A token of 8 ms as one graph, with all of its layers and their all-reduces.
fn token(stream: usize) -> Act {
    let kernel = Kernel { nodes: Some(400), is_collective: true, ..Kernel::new(1, 8 * MS) };
    Act::Launch { stream, kernel }
}

fn graphs(stream: usize) -> Program {
    repeat(vec![token(stream), Act::Sync(Some(stream)), Act::Think(200 * US)])
}

/// The same by one thread.
fn graphs_on_both() -> Program {
    repeat(vec![token(0), token(1), Act::Sync(None), Act::Think(200 * US)])
}

/// The same by threads that run ahead as far as the queue allows.
fn graphs_ahead(stream: usize) -> Program {
    repeat(vec![token(stream)])
}

/// A prompt, whose forty layers are launched one by one, then twenty tokens, each with a choice of 50 us.
fn answers(stream: usize) -> Program {
    let launch = |kernel| Act::Launch { stream, kernel };
    let layer = [launch(Kernel::new(2, MS)), all_reduce(stream, 300 * US)];
    let chosen = [token(stream), launch(Kernel::new(3, 50 * US)), Act::Sync(Some(stream))];
    let mut answer = layer.repeat(40);
    answer.extend(chosen.repeat(20));
    repeat(answer)
}

/// Thirty kernels of five kinds at once, then a pause of no fixed length.
fn bursts(stream: usize) -> Program {
    rounds(move |_, dice| {
        let mut burst: Vec<Act> = (1..=30)
            .map(|count| {
                let kind = count % 5 + 1;
                let kernel = Kernel::new(kind, dice.lognormal(kind * 15 * US, 0.3));
                Act::Launch { stream, kernel }
            })
            .collect();
        burst.extend([Act::Sync(Some(stream)), Act::Think(dice.exponential(2 * MS))]);
        burst
    })
}

/// A graph of 25 ms now and then, on a stream of its own.
fn prefill() -> Program {
    rounds(|now, dice| {
        let kernel = Kernel { nodes: Some(2000), ..Kernel::new(2, 25 * MS) };
        let launch = Act::Launch { stream: 1, kernel };
        vec![Act::Until(now + dice.exponential(120 * MS)), launch, Act::Sync(Some(1))]
    })
}

/// One process keeps two streams of half the card busy; the other one sends short requests now and then.
fn pipeline() -> Vec<Threads> {
    let kernel = Kernel { width: 500, ..Kernel::new(1, 200 * US) };
    let producer = repeat((0..2).map(|stream| Act::Launch { stream, kernel }).collect());
    let consumer = repeat(vec![launch(2, MS), Act::Sync(Some(0)), Act::Think(500 * US)]);
    vec![(vec![producer], 2), (vec![consumer], 1)]
}
