//! Looking names up: what stands before `dlsym` in every process, and before `cuGetProcAddress`.

use crate::files::Files;
use crate::measure::in_turns;
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result};
use crate::world::{Client, World};

/// The most that the shim may add to a look-up of a name that is none of the driver's.
const OTHER_NAME: f64 = 5.0;

/// Two clients, with and without the shim.
struct Pair {
    clients: [Client; 2],
    rounds: usize,
}

impl Pair {
    fn start(files: &Files, world: World, effort: Effort) -> Result<Self> {
        let mut clients = [World::Bare.client(files, "resolve")?, world.client(files, "resolve")?];
        for client in &mut clients {
            client.ask("pin")?;
        }
        Ok(Self { clients, rounds: effort.pick(3, 600) })
    }

    fn open(&mut self) -> Result {
        self.clients.iter_mut().try_for_each(|client| client.ask("open").map(drop))
    }

    fn measure(&mut self, what: &str, command: &str) -> Result<Row> {
        let measure = |client: &mut Client| Ok([client.ask(command)?.get("ns")]);
        let [[bare], [shim]] = in_turns(&mut self.clients, self.rounds, measure)?;
        Ok(Row::difference(what, Unit::Ns, &bare, &shim))
    }
}

/// Measures all of it.
///
/// # Errors
/// If a client fails.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let mut unlimited = Pair::start(files, World::Unlimited, effort)?;
    let mut limited = Pair::start(files, World::Limited, effort)?;
    for (pair, limits) in [(&mut unlimited, "no limits"), (&mut limited, "limits")] {
        let what = format!("dlsym of another name, {limits}, driver not loaded");
        report.row(&pair.measure(&what, "other 5000")?.at_most(OTHER_NAME));
        pair.open()?;
        let what = format!("dlsym of another name, {limits}, driver loaded");
        report.row(&pair.measure(&what, "other 5000")?.at_most(OTHER_NAME));
    }
    report
        .row(&limited.measure("dlsym of a driver's name that does not exist", "driver-name 1000")?);
    report.row(&limited.measure("dlsym of a name that we intercept", "hooked 5000")?);
    report.row(&limited.measure("dlsym of a driver's other name", "unhooked 5000")?);
    report.row(&limited.measure("cuGetProcAddress of a name that we intercept", "proc 5000")?);
    check(&mut unlimited, &mut limited, report)
}

fn check(unlimited: &mut Pair, limited: &mut Pair, report: &mut Report) -> Result {
    let [bare, shim] = &mut limited.clients;
    let (bare, shim) = (bare.ask("where")?, shim.ask("where")?);
    let hooked = ["alloc", "proc"];
    report.check(
        "look-ups without the shim end in the driver",
        hooked.iter().all(|name| bare.get(name) == 1.0),
    );
    report.check(
        "look-ups with the shim end in a hook",
        hooked.iter().all(|name| shim.get(name) == 0.0),
    );
    report.check("the launch function is the driver's own", shim.get("launch") == 1.0);
    let unlimited = unlimited.clients[1].ask("where")?;
    report.check(
        "without limits nothing is redirected",
        ["alloc", "proc", "launch"].iter().all(|name| unlimited.get(name) == 1.0),
    );
    Ok(())
}
