//! Programs of other people, over the stub driver: each sees the slice as if it were the card.
//!
//! On the card of every test lives a peer, which shares the client's budget, and a outsider,
//! which has nothing to do with it. Bare, a client shows the whole card and all that is used on it;
//! behind the shim it shows the limit and what it and its peer hold. [`monitors`] are programs
//! that show, [`time`] is what they show of that, [`allocators`] programs that take, [`compute`]
//! and [`programs`] programs that compute.
//!
//! `ci/clients` and `ci/drivers` fetch them; one that is not there is skipped aloud.

mod allocators;
mod compute;
mod metrics;
mod monitors;
mod programs;
mod time;

use gpucap_tests::{Actor, Driver, Result, Run, Stop, World, main as harness, project};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const MIB: u64 = 1 << 20;
/// The limit of every client, as the variable says it.
const LIMIT: &str = "2Gi";
const LIMIT_BYTES: u64 = 2048 * MIB;
/// What the stub has.
const CARD: u64 = 81_920 * MIB;
/// What a context costs, on the stub and in the shim's book.
const CONTEXT: u64 = 300 * MIB;
/// What the peer holds in its context.
const PEER: u64 = 100 * MIB;
/// What the outsider holds in its context.
const OUTSIDER: u64 = 500 * MIB;
/// `CUDA_ERROR_OUT_OF_MEMORY`
const OUT_OF_MEMORY: u64 = 2;

fn main() -> ExitCode {
    let mut trials = monitors::trials();
    trials.extend(time::trials());
    trials.extend(allocators::trials());
    trials.extend(metrics::trials());
    trials.extend(compute::trials());
    trials.extend(programs::trials());
    harness(trials)
}

/// A client that is about to start, and who is on the card already.
struct Scene {
    run: Run,
    /// Whose directory holds the ledger.
    budget: Run,
    peer: Actor,
    outsider: Actor,
}

impl Scene {
    fn new(world: &World, program: &Path) -> Result<Self> {
        let first = limited(world.actor()?);
        let card = first.directory().join("card");
        let ledger = first.directory().join("ledger");
        let mut peer = first.start()?;
        peer.expect(&[("init", 0), ("context 0", 0), (&format!("alloc a {PEER}"), 0)])?;
        let outsider = World::bare(Driver::Stub).actor()?.env("STUB_GPU_DIR", &card);
        let mut outsider = priced(outsider).start()?;
        outsider.expect(&[("init", 0), ("context 0", 0), (&format!("alloc a {OUTSIDER}"), 0)])?;
        let run = limited(world.run(program)?).env("STUB_GPU_DIR", &card);
        let run = run.env("GPUCAP_LEDGER", &ledger);
        Ok(Self { run, budget: first, peer, outsider })
    }

    /// Changes how the client is run.
    fn with(mut self, change: impl FnOnce(Run) -> Run) -> Self {
        self.run = change(self.run);
        self
    }
}

fn limited(run: Run) -> Run {
    priced(run).env("GPU_MEM_LIMIT", LIMIT).env("GPUCAP_CONTEXT_MEM", CONTEXT.to_string())
}

/// On a card whose contexts cost what we say.
fn priced(run: Run) -> Run {
    run.env("STUB_GPU_CONTEXT_MEM", CONTEXT.to_string())
}

/// What a client sees: the card, or a slice of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Card,
    Slice,
}

impl Sight {
    const BOTH: [Self; 2] = [Self::Card, Self::Slice];

    fn world(self) -> Result<World> {
        match self {
            Self::Card => Ok(World::bare(Driver::Stub)),
            Self::Slice => World::with_shim(Driver::Stub),
        }
    }

    /// What a client sees as all of the memory, and as used where these bytes are the budget's.
    const fn of(self, used: u64) -> (u64, u64) {
        match self {
            Self::Card => (CARD, used + CONTEXT + OUTSIDER),
            Self::Slice => (LIMIT_BYTES, used),
        }
    }
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Card => "card",
            Self::Slice => "slice",
        })
    }
}

fn same<T: PartialEq + fmt::Debug>(found: T, expected: T, output: &dyn fmt::Display) -> Result {
    if found == expected {
        Ok(())
    } else {
        Err(Stop::fail(format!("{found:?}, not {expected:?}: {output}")))
    }
}

/// A script of ours that a client's Python runs.
fn script(name: &str) -> PathBuf {
    project().join("tests/clients").join(name)
}
