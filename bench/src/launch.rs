//! `cuLaunchKernel`: what a share of the time costs a launch while it is not used up.
//!
//! Below is the null driver, whose events cost a look at the clock and whose kernels take no time:
//! a batch ends because it has had its launches, so that the means hold one measured launch in
//! some fifty. What events cost on a card is to be added: that is what `ci/gpu probe` measures.

use crate::files::Files;
use crate::measure::in_turns;
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use crate::world::{Client, World};

/// The most that a launch may cost where no time is shared: the driver's own function is called.
const NO_SHARE: f64 = 1.0;
/// The most that a launch may cost, in nanoseconds.
const SHARE: f64 = 20.0;

/// Measures all of it.
///
/// # Errors
/// If a client fails.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let worlds = [World::Bare, World::Limited, World::Timed];
    let mut clients = Vec::new();
    for world in worlds {
        clients.push(world.pinned(files, "launch")?);
    }
    let clients: &mut [Client; 3] =
        clients.as_mut_slice().try_into().map_err(|_| Stop::fail("three worlds"))?;
    redirected(clients, report)?;
    let rounds = effort.pick(3, 600);
    for (stream, command) in
        [("the default stream", "launch 5000"), ("a stream", "stream-launch 5000")]
    {
        let samples = in_turns(clients, rounds, |client| Ok([client.ask(command)?.get("ns")]))?;
        let [[bare], [limited], [timed]] = &samples;
        let what = format!("cuLaunchKernel in {stream}, no share of time");
        report.row(&Row::difference(what, Unit::Ns, bare, limited).at_most(NO_SHARE));
        let what = format!("cuLaunchKernel in {stream}, share not used up, mean");
        report.row(&Row::difference(what, Unit::Ns, bare, timed));
    }
    let samples = in_turns(clients, rounds, |client| {
        let spread = client.ask("launch-each 5000")?;
        Ok([spread.get("median"), spread.get("p99")])
    })?;
    let [[bare, bare_p99], _, [timed, timed_p99]] = &samples;
    let what = |which| format!("cuLaunchKernel, share not used up, {which} of single launches");
    report.row(&Row::difference(what("median"), Unit::Ns, bare, timed).at_most(SHARE));
    report.row(&Row::difference(what("p99"), Unit::Ns, bare_p99, timed_p99));
    threads(files, effort, report)?;
    processes(files, effort, report)
}

/// The shim is in the way where time is shared, and nowhere else.
fn redirected(clients: &mut [Client; 3], report: &mut Report) -> Result {
    let [bare, limited, timed] = clients;
    let own = |client: &mut Client| Ok::<_, Stop>(client.ask("where")?.get("launch"));
    let found = [own(bare)?, own(limited)?, own(timed)?];
    report.check("a launch is redirected only where time is shared", found == [1.0, 1.0, 0.0]);
    Ok(())
}

fn threads(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let worlds = [World::Bare, World::Timed];
    let mut clients =
        [worlds[0].client(files, "launch-threads")?, worlds[1].client(files, "launch-threads")?];
    for client in &mut clients {
        client.ask("open")?;
    }
    for count in [1, 2, 4, 8, 16] {
        let command = format!("launch-threads {count} 20000");
        let rounds = effort.pick(2, 800 / (count + 4));
        let measure = |client: &mut Client| Ok([client.ask(&command)?.get("cpu")]);
        let [[bare], [shim]] = in_turns(&mut clients, rounds, measure)?;
        let what = format!("launch, {count} threads in a stream each, time of a processor");
        report.row(&Row::difference(what, Unit::Ns, &bare, &shim));
    }
    Ok(())
}

fn processes(files: &Files, effort: Effort, report: &mut Report) -> Result {
    for count in [1, 2, 4, 8] {
        let mut groups = [Vec::new(), Vec::new()];
        for (group, world) in groups.iter_mut().zip([World::Bare, World::Timed]) {
            for _ in 0..count {
                let mut client = world.client(files, "launch-processes")?;
                client.ask("open")?;
                group.push(client);
            }
        }
        let rounds = effort.pick(2, 400 / (count + 4));
        let [[bare], [shim]] = in_turns(&mut groups, rounds, |group| {
            let command = "launch-threads 1 20000";
            group.iter_mut().try_for_each(|client| client.order(command))?;
            let mut sum = 0.0;
            for client in group.iter_mut() {
                sum += client.hear(command)?.get("cpu");
            }
            #[expect(clippy::cast_precision_loss, reason = "at most eight")]
            Ok([sum / group.len() as f64])
        })?;
        let what = format!("launch, {count} processes that share a bucket, time of a processor");
        report.row(&Row::difference(what, Unit::Ns, &bare, &shim));
    }
    Ok(())
}
