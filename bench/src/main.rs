//! The command: runs benches, prints their table, writes JSON lines.
//!
//! `gpucap-bench [name...] [--quick] [--only NAME] [--json FILE]`, or `gpucap-bench --table FILE` for the table
//! of an earlier run, or `--picture FILE` for its shares as SVG.
//!
//! `gpucap-bench judge [--only NAME]` and `gpucap-bench search [--cells N] [--seed S]` judge the
//! limit of time in virtual time alone, and build nothing.

use gpucap_bench::files::Files;
use gpucap_bench::report::{Report, text_of_lines};
use gpucap_bench::{
    Effort, Result, Stop, accuracy, alloc, counts, families, hook, judge, launch, ledger, lending,
    machine, nri, resolve, share, start,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

#[derive(Clone, Copy)]
enum Bench {
    /// On a machine, with files that are built for it.
    Real(fn(&Files, Effort, &mut Report) -> Result),
    /// In virtual time: nothing is built.
    Simulated(fn(Effort, &mut Report)),
}

const BENCHES: [(&str, Bench); 13] = [
    ("alloc", Bench::Real(alloc::run)),
    ("families", Bench::Real(families::run)),
    ("launch", Bench::Real(launch::run)),
    ("resolve", Bench::Real(resolve::run)),
    ("start", Bench::Real(start::run)),
    ("hook", Bench::Real(hook::run)),
    ("nri", Bench::Real(nri::run)),
    ("ledger", Bench::Real(ledger::run)),
    ("counts", Bench::Real(counts::run)),
    ("accuracy", Bench::Simulated(accuracy::run)),
    ("lending", Bench::Simulated(lending::run)),
    ("attacks", Bench::Simulated(lending::attack)),
    ("share", Bench::Real(share::run)),
];

const USAGE: &str = "usage: gpucap-bench \
                     [alloc|families|launch|resolve|start|hook|nri|ledger|counts|accuracy|lending|share|attacks...] \
                     [--quick] [--only NAME] [--json FILE]\n       gpucap-bench --table FILE\n       \
                     gpucap-bench --picture FILE\n       \
                     gpucap-bench judge [--only NAME] [--every] [--quick]\n       \
                     gpucap-bench search [--cells N] [--seed S] | --cell SEED";

fn main() -> ExitCode {
    match command(env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Stop::Skip(text) | Stop::Fail(text)) => {
            eprintln!("gpucap-bench: {text}");
            ExitCode::from(2)
        }
    }
}

/// What the command line asks for.
struct Plan {
    benches: Vec<(&'static str, Bench)>,
    effort: Effort,
    json: Option<PathBuf>,
    /// Part of the names of the simulated cells, or of the parts of a bench, that are run.
    only: String,
}

/// True if every self-check held.
fn command(mut arguments: impl Iterator<Item = String>) -> Result<bool> {
    let mut plan =
        Plan { benches: Vec::new(), effort: Effort::Full, json: None, only: String::new() };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| Stop::fail(USAGE));
        match argument.as_str() {
            "--quick" => plan.effort = Effort::Quick,
            "--json" => plan.json = Some(value()?.into()),
            "--only" => plan.only = value()?,
            "--table" => return table(value()?.as_ref()).map(|()| true),
            "--picture" => return picture(value()?.as_ref()).map(|()| true),
            "judge" => return judge(arguments),
            "search" => return search(arguments),
            "--worker" => return ledger::work(value()?.as_ref()).map(|()| true),
            name => {
                let bench = BENCHES.iter().find(|(known, _)| *known == name);
                plan.benches.push(*bench.ok_or_else(|| Stop::fail(USAGE))?);
            }
        }
    }
    if plan.benches.is_empty() {
        // What it finds are holes that are known.
        plan.benches = BENCHES.into_iter().filter(|(name, _)| *name != "attacks").collect();
    }
    run(&plan)
}

/// `judge [--only NAME] [--every] [--quick]`: the cells of the judge as a table, without building anything. Each under
/// the switches under which it is worst, or under every one; in a quick run not all are tried.
fn judge(mut arguments: impl Iterator<Item = String>) -> Result<bool> {
    let (mut only, mut every, mut effort) = (String::new(), false, Effort::Full);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next().ok_or_else(|| Stop::fail(USAGE))?,
            "--every" => every = true,
            "--quick" => effort = Effort::Quick,
            _ => return Err(Stop::fail(USAGE)),
        }
    }
    judge::print(&only, effort, every)
}

/// `search [--cells N] [--seed S]`: cells of the judge that chance makes. `search --cell SEED`: one of them again.
fn search(mut arguments: impl Iterator<Item = String>) -> Result<bool> {
    let (mut cells, mut seed) = (1_000, 1);
    while let Some(argument) = arguments.next() {
        let number = arguments.next().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| Stop::fail(USAGE))?;
        match argument.as_str() {
            "--cells" => cells = number,
            "--seed" => seed = number,
            "--cell" => return Ok(judge::search::again(number)),
            _ => return Err(Stop::fail(USAGE)),
        }
    }
    Ok(judge::search::run(cells, seed))
}

fn run(plan: &Plan) -> Result<bool> {
    let is_real = plan.benches.iter().any(|(_, bench)| matches!(bench, Bench::Real(_)));
    if is_real && !plan.only.is_empty() {
        return Err(Stop::fail("--only NAME is for accuracy, lending and attacks"));
    }
    let files = if is_real { Some(Files::build(plan.effort)?) } else { None };
    let shim_build = files.as_ref().map_or("none", |files| files.shim_build);
    let mut report = Report::new(machine::facts(shim_build)).with_only(plan.only.clone());
    for (name, bench) in &plan.benches {
        eprintln!("{name} ...");
        report.begin(name);
        let found = match (bench, &files) {
            (Bench::Real(run), Some(files)) => run(files, plan.effort, &mut report),
            (Bench::Simulated(run), _) => {
                run(plan.effort, &mut report);
                Ok(())
            }
            (Bench::Real(_), None) => Err(Stop::fail("nothing was built")),
        };
        match found {
            Ok(()) => {}
            Err(Stop::Skip(why)) => report.skip(&why),
            Err(Stop::Fail(why)) => report.check(&why, false),
        }
    }
    if !is_real && report.wanted() == 0 {
        return Err(Stop::fail(format!("no cell has '{}' in its name", plan.only)));
    }
    if let Some(path) = &plan.json {
        fs::write(path, report.json_lines())?;
    }
    print!("{}", report.text());
    let (held, failed, skipped) = report.checks();
    let result = if failed == 0 { "ok" } else { "FAILED" };
    // In the form of test binaries, so that a script that sums those up can sum this up too.
    println!("\ntest result: {result}. {held} passed; {failed} failed; {skipped} ignored");
    Ok(failed == 0)
}

fn picture(path: &Path) -> Result {
    let lines = fs::read_to_string(path)?;
    let lines = lines.lines().map(serde_json::from_str).collect::<std::result::Result<Vec<_>, _>>();
    print!("{}", accuracy::picture::svg(&lines.map_err(Stop::fail)?));
    Ok(())
}

fn table(path: &Path) -> Result {
    print!("{}", text_of_lines(&fs::read_to_string(path)?).map_err(Stop::fail)?);
    Ok(())
}
