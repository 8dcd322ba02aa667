//! Each family of memory, taken and given back as a pair: how its cost grows with what is live, with
//! threads, with processes, and what a live one costs in memory.
//!
//! [`alloc`](crate::alloc) has plain allocations, in more detail. The last family, memory of the
//! host, is none of ours: its differences are the noise of the method.

use crate::alloc::{has_free, together};
use crate::files::Files;
use crate::measure::{Sample, in_turns};
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result};
use crate::world::{Client, World, occupied_bytes};

/// The most that a pair of calls may cost, in nanoseconds.
const PAIR: f64 = 150.0;

const WORLDS: [World; 2] = [World::Bare, World::Limited];

struct Family {
    what: &'static str,
    /// The most that are live at once: what a program of this family may well hold.
    most: usize,
    /// How many pairs of calls one taking and giving back is; none of memory that is not ours.
    pairs: f64,
}

/// In the order of `client/families.c`.
const FAMILIES: [Family; 8] = [
    family("cuMemAllocPitch_v2 + cuMemFree_v2", 100_000, 1.0),
    family("cuMemAllocManaged + cuMemFree_v2", 100_000, 1.0),
    family("cuMemAllocAsync + cuMemFreeAsync", 1_000_000, 1.0),
    family("cuMemAllocFromPoolAsync + cuMemFreeAsync", 1_000_000, 1.0),
    // 2 MiB each: more than ten thousand fit under no limit of this bench.
    family("cuMemCreate + cuMemMap + cuMemUnmap + cuMemRelease", 10_000, 2.0),
    family("cuArray3DCreate_v2 + cuArrayDestroy", 100_000, 1.0),
    family("cuMipmappedArrayCreate + cuMipmappedArrayDestroy", 100_000, 1.0),
    family("cuMemHostAlloc + cuMemFreeHost (not ours)", 100_000, 0.0),
];

const fn family(what: &'static str, most: usize, pairs: f64) -> Family {
    Family { what, most, pairs }
}

/// Measures all of it.
///
/// # Errors
/// If a client fails.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    for (index, family) in FAMILIES.iter().enumerate() {
        let choose = format!("family {index}");
        let part = Part { files, family, choose, ledger: format!("family-{index}"), effort };
        part.live(report)?;
        part.threads(report)?;
        part.processes(report)?;
    }
    Ok(())
}

/// One family's share of the bench.
struct Part<'a> {
    files: &'a Files,
    family: &'a Family,
    /// The command by which a client chooses it.
    choose: String,
    ledger: String,
    effort: Effort,
}

impl Part<'_> {
    /// Pairs beside more and more that are live, and the memory that these take.
    fn live(&self, report: &mut Report) -> Result {
        let Self { files, family, ledger, effort, .. } = self;
        let [bare, shim] = WORLDS;
        let mut clients = [bare.pinned(files, ledger)?, shim.pinned(files, ledger)?];
        for client in &mut clients {
            client.ask(&self.choose)?;
        }
        let free_before = clients[1].ask("info")?.get("free");
        let resident = |client: &mut Client| Ok([client.ask("facts")?.get("resident_kib")]);
        let before = in_turns(&mut clients, 1, resident)?;
        let most = effort.pick(1_000, family.most);
        for count in [0, 1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|it| *it <= most) {
            for client in &mut clients {
                client.ask(&format!("keep {count}"))?;
            }
            let measure = |client: &mut Client| Ok([client.ask("turn 2000")?.get("ns")]);
            let [[bare], [shim]] = in_turns(&mut clients, effort.pick(3, 200), measure)?;
            let row = Row::difference(self.row(&format!("{count} live")), Unit::Ns, &bare, &shim);
            report.row(&if family.pairs > 0.0 { row.at_most(PAIR * family.pairs) } else { row });
        }
        let after = in_turns(&mut clients, 1, resident)?;
        #[expect(clippy::cast_precision_loss, reason = "at most a million")]
        let growth = |world: usize| {
            let kib = after[world][0].median() - before[world][0].median();
            Sample::exact(kib * 1024.0 / most as f64)
        };
        let what = self.row(&format!("memory of the process for each of {most}"));
        report.row(&Row::difference(what, Unit::Bytes, &growth(0), &growth(1)));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let blocks = Sample::exact(occupied_bytes(&files.ledger(ledger))? as f64);
        let what = self.row(&format!("blocks of the ledger file with {most} live"));
        report.row(&Row::single(what, Unit::Bytes, blocks));
        clients[1].ask("keep 0")?;
        let all_back = has_free(&mut clients[1], free_before)?;
        report.check(&self.row("every byte has come back"), all_back);
        Ok(())
    }

    fn threads(&self, report: &mut Report) -> Result {
        let mut clients = [self.opened(WORLDS[0])?, self.opened(WORLDS[1])?];
        for count in [1, 2, 4, 8, 16] {
            let command = format!("crowd {count} {}", self.effort.pick(200, 10_000));
            let measure = |client: &mut Client| Ok([client.ask(&command)?.get("cpu")]);
            let rounds = self.effort.pick(2, 200 / (count + 4));
            let [[bare], [shim]] = in_turns(&mut clients, rounds, measure)?;
            let what = self.row(&format!("{count} threads, time of a processor"));
            report.row(&Row::difference(what, Unit::Ns, &bare, &shim));
        }
        Ok(())
    }

    fn processes(&self, report: &mut Report) -> Result {
        for count in [1, 2, 4, 8] {
            let mut groups = [Vec::new(), Vec::new()];
            for (group, world) in groups.iter_mut().zip(WORLDS) {
                for _ in 0..count {
                    group.push(self.opened(world)?);
                }
            }
            let command = format!("turn {}", self.effort.pick(200, 10_000));
            let rounds = self.effort.pick(2, 100 / (count + 2));
            let measure = |group: &mut Vec<Client>| together(group, &command).map(|ns| [ns]);
            let [[bare], [shim]] = in_turns(&mut groups, rounds, measure)?;
            let what = format!("{count} processes on one ledger, time of a processor");
            report.row(&Row::difference(self.row(&what), Unit::Ns, &bare, &shim));
        }
        Ok(())
    }

    /// A client with a context that has chosen this family.
    fn opened(&self, world: World) -> Result<Client> {
        let mut client = world.client(self.files, &self.ledger)?;
        client.ask("open")?;
        client.ask(&self.choose)?;
        Ok(client)
    }

    fn row(&self, what: &str) -> String {
        format!("{}, {what}", self.family.what)
    }
}
