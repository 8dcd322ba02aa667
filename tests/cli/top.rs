//! `gpucap top`: on a terminal, which is always as before once it has ended, and one sample without one.

use crate::look::{begin, ledger_of};
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Actor, Driver, Program, Result, Stop, Terminal, World, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("top: a live view shows a run, one in detail, and ends by q", live),
        trial("top: each way to end it restores the terminal", restored),
        trial("top: a terminal that has ended ends it", hung_up),
        trial("top: a background job is stopped, and can be ended", background),
        trial("top: colours are shown as for the other commands", colours),
        trial("top: a search and a NAME limit the rows", limited),
        trial("top: a program that ends leaves the table", gone),
        trial("top: --once prints one sample", once),
        trial("top: --once --json is the status with the time of the interval", once_in_json),
        trial("top: the time of a program that launches is a rate", rated),
        trial("top: words that cannot be shown are an error before anything is", refused),
    ]
}

/// What ends the alternate screen, and shows the cursor.
const RESTORED: [&str; 2] = ["\x1b[?1049l", "\x1b[?25h"];

fn top(words: &[&str]) -> Result<Terminal> {
    gpucap(&[&["top", "--interval", "0.2"], words].concat())?.on_terminal(80, 24)
}

/// A live view in which the run of this actor has a row.
fn showing(actor: &Actor, words: &[&str]) -> Result<Terminal> {
    let mut terminal = top(words)?;
    terminal.until(&format!("run-{}", actor.pid()))?;
    Ok(terminal)
}

fn live() -> Result {
    let actor = begin()?;
    let run = format!("run-{}", actor.pid());
    let mut terminal = top(&[&run])?;
    let first = terminal.until("356 MiB / 2 GiB")?;
    for part in ["\x1b[?1049h", "CONTAINER", "PROCS", &run] {
        expect(first.contains(part), || format!("no {part:?} in {first:?}"))?;
    }
    terminal.press("\r")?;
    terminal.until("COMMAND")?;
    terminal.until("actor")?;
    terminal.press("\x1b")?;
    terminal.until("CONTAINER")?;
    terminal.press("q")?;
    let (status, last) = terminal.end()?;
    expect(status.success(), || format!("{status}: {last:?}"))?;
    expect(RESTORED.iter().all(|it| last.contains(it)), || format!("{last:?}"))
}

fn restored() -> Result {
    let actor = begin()?;
    type End = fn(&mut Terminal) -> Result;
    let ends: [(&str, End); 5] = [
        ("q", |it| it.press("q")),
        ("Ctrl-C", |it| it.press("\x03")),
        ("Ctrl-C in a search", |it| it.press("/q\x03")),
        ("SIGTERM", |it| it.signal(15)),
        ("SIGINT", |it| it.signal(2)),
    ];
    for (what, end) in ends {
        let run = format!("run-{}", actor.pid());
        let mut terminal = gpucap(&["top", &run])?.on_terminal(80, 24)?;
        // The program may have changed them already; those of a new terminal are all the same.
        let other = gpucap(&["top", "--help"])?.on_terminal(80, 24)?;
        let before = other.modes()?;
        terminal.until("run-")?;
        let during = terminal.modes()?;
        expect(during != before, || format!("{what}: {during:?} is no raw mode"))?;
        end(&mut terminal)?;
        let (status, last) = terminal.end()?;
        let after = terminal.modes()?;
        expect(status.code() == Some(0), || format!("{what}: {status}: {last:?}"))?;
        expect(after == before, || format!("{what}: {before:?} became {after:?}"))?;
        expect(RESTORED.iter().all(|it| last.contains(it)), || format!("{what}: {last:?}"))?;
    }
    Ok(())
}

fn hung_up() -> Result {
    let actor = begin()?;
    let mut terminal = showing(&actor, &[])?;
    terminal.hang_up();
    let (status, _) = terminal.end()?;
    expect(status.code() == Some(0), || status.to_string())
}

/// `timeout` makes a process group of its own, which is not that of the terminal, unless it leads the session.
fn background() -> Result {
    let words = ["sh", "-c", "timeout 1 \"$@\"; exit $?", "sh"].map(OsStr::new);
    let mut terminal = gpucap(&["top"])?.through(&words).on_terminal(80, 24)?;
    let before = terminal.modes()?;
    let (status, written) = terminal.end()?;
    let ended = status.code() == Some(124) && !written.contains("\x1b[?1049h");
    expect(ended && terminal.modes()? == before, || format!("{status}: {written:?}"))
}

fn colours() -> Result {
    let actor = begin()?;
    for (words, variable, expected) in [
        (&[][..], "", true),
        (&[], "1", false),
        (&["--color", "never"], "", false),
        (&["--color", "always"], "1", true),
    ] {
        let run = format!("run-{}", actor.pid());
        let words = [&["top", &run], words].concat();
        let mut terminal = gpucap(&words)?.env("NO_COLOR", variable).on_terminal(80, 24)?;
        let frame = terminal.until("PROCS")? + &terminal.until("2 GiB")?;
        let green = frame.contains("\x1b[38;5;2");
        expect(green == expected, || format!("{words:?} {variable}: {frame:?}"))?;
    }
    Ok(())
}

fn limited() -> Result {
    let (one, other) = (begin()?, begin()?);
    let names = [format!("run-{}", one.pid()), format!("run-{}", other.pid())];
    let mut terminal = showing(&one, &[&names[0]])?;
    terminal.press("/nosuch")?;
    terminal.until("No container or GPU")?;
    terminal.press("\x1b")?;
    let again = terminal.until(&names[0])?;
    expect(!again.contains(&names[1]), || format!("{again:?}"))
}

fn gone() -> Result {
    let mut actor = begin()?;
    let mut terminal = showing(&actor, &[&format!("run-{}", actor.pid())])?;
    let ledger = ledger_of(&actor)?;
    actor.kill()?;
    // What remains of it is swept, as by a later run.
    std::fs::remove_file(ledger)?;
    terminal.until("No process with limits found")?;
    terminal.press("q")?;
    terminal.end().map(drop)
}

fn once() -> Result {
    let actor = begin()?;
    let output = gpucap(&["top", "--once", "--interval", "0.1"])?.output()?.success()?;
    let heading = output.stdout.lines().next().unwrap_or_default();
    let words: Vec<_> = heading.split_whitespace().collect();
    let expected = ["GPU", "CONTAINER", "MEMORY", "TIME", "WAIT", "REFUSED", "PROCS"];
    expect(words == expected, || output.to_string())?;
    let name = format!("/run-{} ", actor.pid());
    let row = output.stdout.lines().find(|line| line.contains(&name));
    expect(row.is_some_and(|row| row.contains("356 MiB / 2 GiB")), || output.to_string())?;
    expect(!output.stdout.contains('\x1b'), || format!("colours in a pipe: {output}"))
}

fn once_in_json() -> Result {
    let actor = begin()?;
    let run = format!("run-{}", actor.pid());
    let words = ["top", &run, "--once", "--json", "--interval", "0.1"];
    let output = gpucap(&words)?.output()?.success()?;
    let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
    let ledgers = json["ledgers"].as_array().map_or(&[][..], Vec::as_slice);
    let path = ledger_of(&actor)?;
    expect(ledgers.len() == 1 && ledgers[0]["path"] == *path, || output.to_string())?;
    let time = &ledgers[0]["devices"][0]["time"];
    expect(time["share_percent"].is_number(), || output.to_string())
}

/// The one device of the ledger, as one sample shows it.
fn sampled(ledger: &Path) -> Result<Value> {
    let top = gpucap(&["top", "--once", "--json", "--interval", "0.2"])?;
    let output = top.env("GPUCAP_LEDGER", ledger).output()?.success()?;
    let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
    let ledgers = json["ledgers"].as_array().into_iter().flatten();
    let is_it = |it: &&Value| it["path"].as_str() == ledger.to_str();
    Ok(ledgers.filter(is_it).map(|it| it["devices"][0].clone()).next().unwrap_or_default())
}

fn rated() -> Result {
    // For a minute: it ends with the test.
    let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    let run = World::with_shim(Driver::Stub)?.run(&share)?.arg("k_2ms").arg("8").arg("60000");
    let ledger = run.directory().join("ledger");
    let run = run.env("GPU_CORE_PCT", "50").env("GPUCAP_LEDGER", &ledger);
    let _program = run.start()?;
    let launches = |device: &Value| device["time"]["launches"].as_u64().unwrap_or(0);
    let mut first = Value::Null;
    let started = Instant::now();
    while launches(&first) == 0 {
        expect(started.elapsed() < Duration::from_secs(50), || format!("no launch: {first}"))?;
        first = sampled(&ledger)?;
    }
    let device = sampled(&ledger)?;
    let used = device["time"]["share_percent"].as_f64().unwrap_or_default();
    expect(used > 0.0 && launches(&device) > launches(&first), || device.to_string())?;
    let top = gpucap(&["top", "--once", "--interval", "0.2", "--sort", "time"])?;
    let output = top.env("GPUCAP_LEDGER", &ledger).output()?.success()?;
    let name = ledger.display().to_string();
    let row = output.stdout.lines().find(|line| line.contains(&name)).unwrap_or_default();
    expect(row.contains('%') && !row.contains(" 0.0%"), || output.to_string())
}

fn refused() -> Result {
    for (words, code, why) in [
        (&["top"][..], 1, "top: standard input and output are not a terminal; --once prints one"),
        (&["top", "nosuch", "--once"], 1, "top: no container under a limit"),
        (&["top", "--once", "--config", "/nosuch"], 1, "/nosuch: no such file"),
        (&["top", "--interval", "0"], 2, "not a number of seconds from 0.1 to 3600"),
        (&["top", "--json"], 2, "--once"),
        (&["top", "--sort", "colour"], 2, "possible values: gpu, name, memory, time"),
    ] {
        let output = gpucap(words)?.output()?;
        ended(&output, code)?;
        says(&output, why)?;
        expect(output.stdout.is_empty(), || output.to_string())?;
    }
    // On a terminal, which is not taken for it.
    let mut terminal = top(&["nosuch"])?;
    let (status, written) = terminal.end()?;
    let said = written.contains("goes by \"nosuch\"") && !written.contains("\x1b[?1049h");
    expect(status.code() == Some(1) && said, || format!("{status}: {written:?}"))
}
