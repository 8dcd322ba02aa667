//! Many processes and threads at once.

use crate::{LIMIT, NO_ROBUST_LOCK, OUT_OF_MEMORY, SUCCESS, all_is_back, free_contexts, limited};
use gpucap_tests::{Actor, Driver, Machine, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("processes that begin at once agree on one book", begin_at_once),
        trial("what fits is never refused, however many ask at once", never_refused),
        trial("the limit is never exceeded, however many ask at once", never_exceeded),
        trial("what pools keep never takes the card beyond the limit", pools_keep),
        trial("deaths in the middle of it leave nothing behind", deaths_between),
        trial(
            "threads that begin at once make one context, and fill the limit to the last byte",
            storm,
        ),
    ]
}

fn begin_at_once() -> Result {
    let run = limited()?;
    let mut crowd: Vec<Actor> = (0..32).map(|_| run.start()).collect::<Result<_>>()?;
    for actor in &mut crowd {
        actor.order("init")?; // none waits for another's answer
    }
    for actor in &mut crowd {
        let answer = actor.answer("init")?;
        if answer.code != SUCCESS {
            return Err(Stop::fail(format!("{answer:?}: {}", actor.end()?)));
        }
    }
    let share = format!("alloc a {}", LIMIT / 32);
    for actor in &mut crowd {
        actor.expect(&[("context 0", SUCCESS), (&share, SUCCESS)])?;
    }
    crowd.iter_mut().try_for_each(|actor| actor.expect(&[("alloc b 1", OUT_OF_MEMORY)]))
}

const PROCESSES: u64 = 4;
const THREADS: u64 = 4;

/// Processes that begin together.
fn hammers(rounds: u64, largest: u64) -> Result<(Run, Vec<Actor>)> {
    let run = World::with_shim(Driver::available())?.run(&Program::new("hammer").build()?)?;
    let held = run.directory().join("held");
    let run = free_contexts(run)
        .arg(THREADS.to_string())
        .arg(rounds.to_string())
        .arg(largest.to_string())
        .arg(LIMIT.to_string())
        .arg(held);
    let mut crowd: Vec<Actor> = (0..PROCESSES).map(|_| run.start()).collect::<Result<_>>()?;
    for actor in &mut crowd {
        actor.order("begin")?;
    }
    Ok((run, crowd))
}

fn check(output: Output, refusals: bool) -> Result {
    let output = output.success()?;
    let right = output.number("over")? == 0
        && output.number("failed")? == 0
        && output.number("done")? > 0
        && (output.number("refused")? > 0) == refusals;
    if right { Ok(()) } else { Err(Stop::fail(output)) }
}

fn never_refused() -> Result {
    let (_, mut crowd) = hammers(20_000, LIMIT / PROCESSES / THREADS)?;
    crowd.iter_mut().try_for_each(|actor| check(actor.end()?, false))
}

fn never_exceeded() -> Result {
    let (_, mut crowd) = hammers(20_000, LIMIT)?;
    crowd.iter_mut().try_for_each(|actor| check(actor.end()?, true))
}

fn deaths_between() -> Result {
    Machine::not_emulated(NO_ROBUST_LOCK)?;
    let (hammering, mut crowd) = hammers(u64::MAX, LIMIT / 4)?;
    for death in 0..20 {
        for (place, actor) in crowd.iter_mut().enumerate() {
            // Each dies after another amount of work.
            for _ in 0..=(7 * death + 3 * place) % 11 {
                actor.line()?;
            }
            actor.kill()?;
            *actor = hammering.start()?;
            actor.order("begin")?;
        }
        if hammering.bytes_in_use()? > LIMIT {
            return Err(Stop::fail("more than the limit is in use"));
        }
    }
    for actor in &mut crowd {
        actor.kill()?;
    }
    if hammering.peak()? > LIMIT {
        return Err(Stop::fail(format!("{} bytes were in use", hammering.peak()?)));
    }
    all_is_back(&hammering.program(&Program::new("actor").build()?))
}

fn storm() -> Result {
    const THREADS: u64 = 16;
    const PRICE: u64 = 16 << 20;
    const CHUNKS: u64 = 3000;
    let chunk = (LIMIT - PROCESSES * PRICE) / CHUNKS;
    // The price is such that nothing is left over.
    let price = (LIMIT - chunk * CHUNKS) / PROCESSES;
    let run = World::with_shim(Driver::available())?.run(&Program::new("storm").build()?)?;
    let run = free_contexts(run).env("GPUCAP_CONTEXT_MEM", price.to_string());
    let run = run.arg(THREADS.to_string()).arg(chunk.to_string());
    let limit = chunk * CHUNKS + price * PROCESSES;
    let run = run.env("GPU_MEM_LIMIT", limit.to_string());
    let mut crowd: Vec<Actor> = (0..PROCESSES).map(|_| run.start()).collect::<Result<_>>()?;
    for actor in &mut crowd {
        if actor.answer("begin")?.code != 0 {
            return Err(Stop::fail(format!("no context: {}", actor.end()?)));
        }
    }
    if run.bytes_in_use()? != price * PROCESSES {
        return Err(Stop::fail(format!("contexts cost {}", run.bytes_in_use()?)));
    }
    for actor in &mut crowd {
        actor.order("")?;
    }
    let mut granted = 0;
    for actor in &mut crowd {
        let answer = actor.answer("take")?;
        if answer.code != 0 {
            return Err(Stop::fail(format!("{answer:?}: {}", actor.end()?)));
        }
        granted += answer.value;
    }
    // A pool keeps up to one of its units beyond what was taken from it. The stub's is a byte: there nothing is kept.
    let kept = Driver::available().pool_unit()?.div_ceil(chunk) - 1;
    let (in_use, peak) = (run.bytes_in_use()?, run.peak()?);
    let filled = if kept == 0 {
        granted == CHUNKS && in_use == limit && peak == limit
    } else {
        let fits = CHUNKS - kept * PROCESSES..=CHUNKS;
        // A unit that a pool took for its last request is back when that is refused; until then it was held.
        fits.contains(&granted) && (limit - chunk + 1..=limit).contains(&peak) && in_use <= peak
    };
    if filled {
        return Ok(());
    }
    Err(Stop::fail(format!("{granted} of {CHUNKS}, in use {in_use}, peak {peak}, {limit}")))
}

fn pools_keep() -> Result {
    Machine::not_emulated(NO_ROBUST_LOCK)?;
    let run = World::with_shim(Driver::available())?.run(&Program::new("keepers").build()?)?;
    // The card has as much as the limit, so a call that passes the shim and does not fit fails there.
    let run = free_contexts(run).env("STUB_GPU_MEM", LIMIT.to_string());
    let trace = run.directory().join("trace");
    let run = run.env("STUB_GPU_TRACE", &trace).arg("5000").arg((LIMIT / 3).to_string());
    let mut crowd: Vec<Actor> = (0..PROCESSES).map(|_| run.start()).collect::<Result<_>>()?;
    let (mut plain, mut pooled, mut refused) = (0, 0, 0);
    for actor in &mut crowd {
        let output = actor.end()?.success()?;
        plain += output.number("plain")?;
        pooled += output.number("pooled")?;
        refused += output.number("refused")?;
        if output.number("failed")? != 0 {
            return Err(Stop::fail(output));
        }
    }
    let text = std::fs::read_to_string(trace)?;
    let calls = |symbol| text.lines().filter(|line| line.split(' ').nth(1) == Some(symbol)).count();
    let seen = (calls("cuMemAlloc_v2") as u64, calls("cuMemAllocAsync") as u64);
    if seen == (plain, pooled) && refused > 0 {
        Ok(())
    } else {
        Err(Stop::fail(format!(
            "of {seen:?} calls that passed {:?} fitted on the card",
            (plain, pooled)
        )))
    }
}
