//! `cuMemAlloc_v2` and `cuMemFree_v2` as a pair, and what else goes through the same ledger: what is refused, and
//! `cuMemGetInfo_v2`, beside up to a thousand processes.

use crate::files::Files;
use crate::measure::{Sample, in_turns};
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result};
use crate::world::{Client, LIMIT, World, occupied_bytes};

/// The most that a pair may cost, in nanoseconds.
const PAIR: f64 = 150.0;

/// The most that a question for free memory may cost, in nanoseconds, and a refusal.
const INFO: f64 = 100.0;
const REFUSAL: f64 = 1000.0;

const WORLDS: [World; 2] = [World::Bare, World::Limited];

/// Measures all of it.
///
/// # Errors
/// If a client fails.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let [bare, shim] = WORLDS;
    let mut clients = [bare.pinned(files, "alloc")?, shim.pinned(files, "alloc")?];
    check(&mut clients, report)?;
    one_thread(&mut clients, files, effort, report)?;
    drop(clients);
    among(files, effort, report)?;
    threads(files, effort, report)?;
    processes(files, effort, report)
}

/// The shim is there where it should be, and nowhere else.
fn check(clients: &mut [Client; 2], report: &mut Report) -> Result {
    // The context takes a part of the limit, so that all of it at once is too much.
    let take = format!("take {LIMIT}");
    let (bare, limited) = (clients[0].ask(&take)?, clients[1].ask(&take)?);
    report.check("the bare driver allows what the limit forbids", bare.get("result") == 0.0);
    report.check("the limit holds: CUDA_ERROR_OUT_OF_MEMORY", limited.get("result") == 2.0);
    let (bare, limited) = (clients[0].ask("info")?, clients[1].ask("info")?);
    // The limit has few digits in binary: exact.
    #[expect(clippy::cast_precision_loss)]
    report.check("total is the limit", limited.get("total") == LIMIT as f64);
    report.check("the card is larger", bare.get("total") > limited.get("total"));
    Ok(())
}

fn one_thread(
    clients: &mut [Client; 2],
    files: &Files,
    effort: Effort,
    report: &mut Report,
) -> Result {
    let rounds = effort.pick(3, 600);
    let free_before = clients[1].ask("info")?.get("free");
    let [[bare], [shim]] =
        in_turns(clients, rounds, |client| Ok([client.ask("async 2000")?.get("ns")]))?;
    let what = "cuMemAllocAsync + cuMemFreeAsync";
    report.row(&Row::difference(what, Unit::Ns, &bare, &shim).at_most(PAIR));
    let resident = |client: &mut Client| Ok([client.ask("facts")?.get("resident_kib")]);
    let before = in_turns(clients, 1, resident)?;
    let most = effort.pick(10_000, 1_000_000);
    for live in [0, 1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|live| *live <= most) {
        at(clients, live, rounds, report)?;
    }
    let after = in_turns(clients, 1, resident)?;
    report.row(&memory_per_allocation(&before, &after, most));
    let ledger = occupied_bytes(&files.ledger("alloc"))?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let ledger = Sample::exact(ledger as f64);
    report.row(&Row::single("ledger file of one process, blocks in use", Unit::Bytes, ledger));
    clients[1].ask("live 0")?;
    report.check("every byte has come back", has_free(&mut clients[1], free_before)?);
    Ok(())
}

/// Pairs while `live` others are held.
fn at(clients: &mut [Client; 2], live: usize, rounds: usize, report: &mut Report) -> Result {
    for client in clients.iter_mut() {
        client.ask(&format!("live {live}"))?;
    }
    let samples = in_turns(clients, rounds, |client| {
        let pairs = client.ask("pairs 2000")?.get("ns");
        let each = client.ask("each 1000")?;
        let random = if live > 0 { client.ask("random 2000")?.get("ns") } else { f64::NAN };
        Ok([pairs, each.get("p99"), random])
    })?;
    let [[bare, bare_p99, bare_random], [shim, shim_p99, shim_random]] = &samples;
    let what = |which: &str| format!("cuMemAlloc_v2 + cuMemFree_v2, {live} live{which}");
    report.row(&Row::difference(what(""), Unit::Ns, bare, shim).at_most(PAIR));
    report.row(&Row::difference(what(", p99 of single pairs"), Unit::Ns, bare_p99, shim_p99));
    if live > 0 {
        let row = Row::difference(what(", a random one"), Unit::Ns, bare_random, shim_random);
        report.row(&row.at_most(PAIR));
    }
    Ok(())
}

fn memory_per_allocation(before: &[[Sample; 1]; 2], after: &[[Sample; 1]; 2], live: usize) -> Row {
    #[expect(clippy::cast_precision_loss, reason = "at most a million")]
    let live = live as f64;
    let [bare, shim] = [0, 1].map(|world: usize| {
        let growth = after[world][0].median() - before[world][0].median();
        Sample::exact(growth * 1024.0 / live)
    });
    let what = format!("memory of the process per live allocation, at {live}");
    Row::difference(what, Unit::Bytes, &bare, &shim)
}

/// The check for dead processes, with more and more processes in the ledger.
fn among(files: &Files, effort: Effort, report: &mut Report) -> Result {
    for count in [1, 16, 256, 1000].into_iter().take(effort.pick(2, 4)) {
        let ledger = format!("among-{count}");
        let [bare, shim] = WORLDS;
        let mut clients = [bare.pinned(files, &ledger)?, shim.client(files, &ledger)?];
        clients[1].ask(&format!("company {}", count - 1))?;
        clients[1].ask("pin")?;
        clients[1].ask("open")?;
        let rounds = effort.pick(3, 300);
        let [[bare], [shim]] =
            in_turns(&mut clients, rounds, |client| Ok([client.ask("infos 2000")?.get("ns")]))?;
        let what = format!("cuMemGetInfo_v2, {count} in the ledger");
        report.row(&Row::difference(what, Unit::Ns, &bare, &shim).at_most(INFO));
        let mut refused = Sample::default();
        for _ in 0..rounds {
            refused.add(clients[1].ask(&format!("refuse {LIMIT} 500"))?.get("ns"));
        }
        let what = format!("cuMemAlloc_v2 that is refused, {count} in the ledger");
        report.row(&Row::single(what, Unit::Ns, refused).at_most(REFUSAL));
    }
    Ok(())
}

fn threads(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let [bare, shim] = WORLDS;
    let mut clients = [bare.client(files, "threads")?, shim.client(files, "threads")?];
    for client in &mut clients {
        client.ask("open")?;
    }
    for count in [1, 2, 4, 8, 16] {
        let command = format!("threads {count} 20000");
        let rounds = effort.pick(2, 800 / (count + 4));
        let measure = |client: &mut Client| Ok([client.ask(&command)?.get("cpu")]);
        let [[bare], [shim]] = in_turns(&mut clients, rounds, measure)?;
        let what = format!("pair, {count} threads, time of a processor");
        report.row(&Row::difference(what, Unit::Ns, &bare, &shim));
    }
    let free = clients[1].ask("info")?;
    report.check("threads have given every byte back", free.get("free") > 0.99 * free.get("total"));
    Ok(())
}

fn processes(files: &Files, effort: Effort, report: &mut Report) -> Result {
    for count in [1, 2, 4, 8] {
        let mut groups = [Vec::new(), Vec::new()];
        for (group, world) in groups.iter_mut().zip(WORLDS) {
            for _ in 0..count {
                let mut client = world.client(files, "processes")?;
                client.ask("open")?;
                group.push(client);
            }
        }
        let rounds = effort.pick(2, 400 / (count + 2));
        let [[bare], [shim]] =
            in_turns(&mut groups, rounds, |group| together(group, "pairs 20000").map(|ns| [ns]))?;
        let what = format!("pair, {count} processes on one ledger, time of a processor");
        report.row(&Row::difference(what, Unit::Ns, &bare, &shim));
    }
    Ok(())
}

/// All at once; the time that one turn kept a processor, on average.
///
/// # Errors
/// If a client has ended.
pub(crate) fn together(group: &mut [Client], command: &str) -> Result<f64> {
    group.iter_mut().try_for_each(|client| client.order(command))?;
    let mut sum = 0.0;
    for client in group.iter_mut() {
        sum += client.hear(command)?.get("cpu");
    }
    #[expect(clippy::cast_precision_loss, reason = "a few processes")]
    Ok(sum / group.len() as f64)
}

/// Whether this much is free again, within the second after which a process that has ended, or memory freed in a stream,
/// holds nothing any more.
///
/// # Errors
/// The client does not answer.
pub fn has_free(client: &mut Client, bytes: f64) -> Result<bool> {
    let began = std::time::Instant::now();
    loop {
        client.ask("settle")?;
        let is_back = client.ask("info")?.get("free") == bytes;
        if is_back || began.elapsed().as_secs() >= 3 {
            return Ok(is_back);
        }
    }
}
