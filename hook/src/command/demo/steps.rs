//! The steps of the demo: what is done, what is printed, and what must hold.

use super::actor::{Actor, output};
use super::card::{Card, table};
use super::show::Show;
use super::stage::{PROGRAM, Stage};
use crate::command::status;
use crate::error::{Error, Result};
use crate::terminal::output::print;
use crate::terminal::quantity::{exact, size};
use crate::terminal::style;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Plays them all.
pub(super) fn play(stage: &Stage, show: Show) -> Result {
    if let Some(why) = &stage.stub {
        show.say(&style::warn(
            "No NVIDIA driver works here, so the stub driver stands in: the numbers are the stub's.",
        ))?;
        show.say(&style::dim(&format!("({why})")))?;
    }
    let card = before(stage, show)?;
    let limit = limit_for(&card)?;
    after(stage, show, limit)?;
    edge(stage, show, limit)?;
    let survivor = shared(stage, show, limit)?;
    slice(stage, show, limit)?;
    ledger(stage, show)?;
    drop(survivor);
    where_next(show)
}

/// The limit: 2 GiB, or what fits on a small or busy card.
fn limit_for(card: &Card) -> Result<u64> {
    let fits = |limit: &u64| *limit <= card.total && limit + 512 <= card.free;
    let limit = [2048, 1024, 640].into_iter().find(fits);
    limit.map(|mib| mib * MIB).ok_or_else(|| {
        Error::Demo(format!("only {} MiB of the GPU are free; it takes 1152", card.free))
    })
}

fn before(stage: &Stage, show: Show) -> Result<Card> {
    show.title(1, "An ordinary program sees the whole GPU")?;
    show.command(PROGRAM)?;
    view(show, &mut stage.bare(&[]))
}

fn after(stage: &Stage, show: Show, limit: u64) -> Result {
    show.title(2, "The same program, in a slice")?;
    show.command(&format!("gpucap run --mem {} -- {PROGRAM}", short(limit)))?;
    let card = view(show, &mut stage.limited(limit, &[]))?;
    let mib = limit / MIB;
    show.check(
        card.total == mib && card.free < mib,
        &format!("CUDA: the GPU has {mib} MiB, less the program's own context"),
        &format!("{card:?}"),
    )?;
    if card.table.is_empty() {
        return Ok(());
    }
    let used = mib - card.free;
    let expected = format!("NVML: the same GPU, {used} MiB of it in use");
    show.check(card.table.contains(&(used, mib)), &expected, &format!("{card:?}"))
}

/// Runs the program and shows what it prints.
fn view(show: Show, command: &mut Command) -> Result<Card> {
    let said = output(command, PROGRAM)?;
    show.quote(&said.stdout)?;
    let unread = || Error::Demo(format!("{PROGRAM}: {}", said.stderr.trim()));
    if said.success { Card::parse(&said.stdout).ok_or_else(unread) } else { Err(unread()) }
}

fn edge(stage: &Stage, show: Show, limit: u64) -> Result {
    show.title(3, "The limit holds to the byte")?;
    show.say(&format!("limit {} bytes; usage is read from the ledger", exact(limit)))?;
    let mut program = Actor::start(&mut stage.limited(limit, &["--obey"]))?;
    program.order("info")?;
    let mut request = |bytes: u64, granted: bool| -> Result {
        let answer = program.order(&format!("alloc {bytes}"))?;
        let used = used(stage)?;
        let what = if bytes == 1 { "1 byte".into() } else { format!("{} bytes", exact(bytes)) };
        let outcome = if answer == "ok" { style::good("granted") } else { style::warn("refused") };
        let why = if answer == "ok" { "" } else { answer.as_str() };
        let line = format!("{what:>19}  {outcome}   in use {:>13}   {why}", exact(used));
        show.say(line.trim_end())?;
        let as_expected = (answer == "ok") == granted && used <= limit;
        if as_expected { Ok(()) } else { Err(unexpected(&what, granted, &answer)) }
    };
    request(limit - used(stage)? - 1, true)?;
    request(1, true)?;
    request(1, false)?;
    let complaint = program.complaint();
    show.say(&style::dim(&format!("stderr: {complaint}")))?;
    let now = used(stage)?;
    show.check(now == limit, "the last byte was granted, one more was refused", &exact(now))
}

fn shared(stage: &Stage, show: Show, limit: u64) -> Result<Actor> {
    show.title(4, "Two processes share the limit, and what a dead one held comes back")?;
    let mut first = Actor::start(&mut stage.limited(limit, &["--obey"]))?;
    let half = limit / 2;
    first.order("info")?;
    ask(show, &mut first, "A", half, true)?;
    let mut second = Actor::start(&mut stage.limited(limit, &["--obey"]))?;
    let free = free(&second.order("info")?)?;
    show.say(&format!("B  sees {} free", size(free)))?;
    let expected = limit - used(stage)?;
    let holds = free == expected && free < half;
    show.check(holds, "what A holds is gone for B too", &size(free))?;
    ask(show, &mut second, "B", half, false)?;
    let pid = first.pid();
    first.kill();
    show.command(&format!("kill -9 {pid}    {}", style::dim("# A, with no chance to clean up")))?;
    ask(show, &mut second, "B", half, true)?;
    let now = used(stage)?;
    let holds = (half..=limit - half / 2).contains(&now);
    show.check(holds, "what A held came back at once", &size(now))?;
    Ok(second)
}

fn ask(show: Show, program: &mut Actor, name: &str, bytes: u64, granted: bool) -> Result {
    let answer = program.order(&format!("alloc {bytes}"))?;
    let size = size(bytes);
    if (answer == "ok") != granted {
        return Err(unexpected(&format!("{name} asks for {size}"), granted, &answer));
    }
    let outcome =
        if granted { style::good("granted") } else { style::warn(&format!("refused: {answer}")) };
    show.say(&format!("{name}  asks for {size}: {outcome}"))
}

fn unexpected(what: &str, granted: bool, answer: &str) -> Error {
    let expected = if granted { "granted" } else { "refused" };
    Error::Demo(format!("{what}: expected to be {expected}, the answer was: {answer}"))
}

fn slice(stage: &Stage, show: Show, limit: u64) -> Result {
    show.title(5, "What nvidia-smi shows in the slice")?;
    show.command(&format!("gpucap run --mem {} -- {PROGRAM} --table", short(limit)))?;
    let said = output(&mut stage.limited(limit, &["--table"]), "reading NVML")?;
    if !said.success {
        return show.say(&format!("no NVML here: {}", said.stderr.trim()));
    }
    show.quote(&said.stdout)?;
    let now = used(stage)?;
    let seen = table(&said.stdout);
    let (used, total) = (now / MIB, limit / MIB);
    let expected = format!("{used}MiB / {total}MiB: what B holds, of the limit");
    show.check(seen.contains(&(used, total)), &expected, &format!("{seen:?}"))
}

fn ledger(stage: &Stage, show: Show) -> Result {
    show.title(6, "Usage by process")?;
    show.command("gpucap status --verbose")?;
    let text = status::of(&stage.ledger).ok_or_else(no_ledger)?;
    show.quote(&text)
}

fn where_next(show: Show) -> Result {
    print(&format!("\n{}\n", style::bold("All of it held. Next:")))?;
    show.say("gpucap run --mem 2Gi -- PROGRAM   limit a program of yours")?;
    show.say("gpucap status                     usage by container and process")?;
    show.say("gpucap explain --pid PID          whether a process is limited, and why")
}

/// What the living hold, by the ledger.
fn used(stage: &Stage) -> Result<u64> {
    status::used(&stage.ledger).ok_or_else(no_ledger)
}

fn no_ledger() -> Error {
    Error::Demo("the ledger cannot be read".into())
}

/// The free bytes in the answer `ok TOTAL FREE`.
fn free(answer: &str) -> Result<u64> {
    let free = answer.strip_prefix("ok ").and_then(|numbers| numbers.split(' ').nth(1));
    let unread = || Error::Demo(format!("info: {answer}"));
    free.and_then(|free| free.parse().ok()).ok_or_else(unread)
}

/// A size as one would type it.
fn short(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 30) {
        format!("{}Gi", bytes >> 30)
    } else {
        format!("{}Mi", bytes >> 20)
    }
}
