//! Programs that show what a card has and what is used of it.

use crate::{CONTEXT, MIB, PEER, Scene, Sight, same, script};
use gpucap_tests::fetched::{nvtop, program, python};
use gpucap_tests::{Driver, Result, Stop, World, rows, trial};
use libtest_mimic::Trial;
use std::path::PathBuf;

/// Starts a scene with a program in it.
type Prepare = fn(&World) -> Result<Scene>;

/// A program, and how to read from it what it shows.
struct Monitor {
    name: &'static str,
    prepare: Prepare,
    read: fn(&str) -> Option<Shown>,
}

/// In MiB. A program that does not show a number has `None` for it.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    total: u64,
    used: u64,
    free: Option<u64>,
}

const MONITORS: &[Monitor] = &[
    Monitor { name: "nvidia-ml-py, version 1", prepare: |world| nvml(world, "1"), read: keys },
    Monitor { name: "nvidia-ml-py, version 2", prepare: |world| nvml(world, "2"), read: keys },
    Monitor { name: "go-nvml", prepare: go_nvml, read: keys },
    Monitor { name: "gpustat", prepare: gpustat, read: |text| slash(text, "MB") },
    Monitor { name: "nvitop", prepare: nvitop, read: |text| slash(text, "MiB") },
    Monitor { name: "nvtop", prepare: nvtop_on_screen, read: bar },
];

/// Programs that print the processes of a card as `pids`.
const LISTS: [(&str, Prepare); 2] = [("nvidia-ml-py", pids_of_python), ("go-nvml", go_nvml)];

/// The drivers whose nvidia-smi shows what we read.
pub(crate) const SMI: [Driver; 3] = [Driver::Real("535"), Driver::Real("550"), Driver::Real("555")];

/// The same for nvidia-smi: a way to ask it, and how to read the answer.
type Question = (&'static str, &'static [&'static str], fn(&str) -> Option<Shown>);
const QUESTIONS: [Question; 4] = [
    ("table", &[], |text| slash(text, "MiB")),
    ("-q -d MEMORY", &["-q", "-d", "MEMORY"], |text| fields(text, "FB Memory Usage", " : ")),
    ("-q -x", &["-q", "-x"], |text| fields(text, "<fb_memory_usage>", ">")),
    (
        "--query-gpu",
        &["--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader"],
        list,
    ),
];

/// All trials of this file.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for sight in Sight::BOTH {
        for monitor in MONITORS {
            trials.push(trial(format!("{} shows the {sight}", monitor.name), move || {
                judge((monitor.prepare)(&sight.world()?)?, sight, monitor.read)
            }));
        }
        for driver in SMI {
            for (name, arguments, read) in QUESTIONS {
                let driver = driver.clone();
                let rule = format!("nvidia-smi {name} shows the {sight} ({driver})");
                trials.push(trial(rule, move || {
                    judge(smi(&sight.world()?, &driver, arguments)?, sight, read)
                }));
            }
        }
        for (name, prepare) in LISTS {
            trials.push(trial(
                format!("{name} lists the visible processes of the {sight}"),
                move || processes(prepare(&sight.world()?)?, sight),
            ));
        }
    }
    trials.push(trial("go-nvml names the same card with the shim", go_nvml_names));
    for driver in SMI {
        let rule = format!("nvidia-smi -L names the same card with the shim ({driver})");
        trials.push(trial(rule, move || names(&driver)));
    }
    trials
}

fn judge(scene: Scene, sight: Sight, read: fn(&str) -> Option<Shown>) -> Result {
    let output = scene.run.output()?.success()?;
    let shown = read(&output.stdout);
    let shown = shown.ok_or_else(|| Stop::fail(format!("shows no memory: {output}")))?;
    let (total, used) = sight.of(CONTEXT + PEER);
    let free = shown.free.map(|_| (total - used) / MIB);
    same(shown, Shown { total: total / MIB, used: used / MIB, free }, &output)
}

fn smi(world: &World, driver: &Driver, arguments: &[&str]) -> Result<Scene> {
    let scene = Scene::new(world, &driver.nvidia_smi()?)?;
    Ok(scene.with(|run| arguments.iter().fold(run, |run, argument| run.arg(argument))))
}

fn nvml(world: &World, version: &str) -> Result<Scene> {
    let scene = Scene::new(world, &python("nvidia-ml-py")?)?;
    Ok(scene.with(|run| run.arg(script("memory.py")).arg(version)))
}

fn pids_of_python(world: &World) -> Result<Scene> {
    let scene = Scene::new(world, &python("nvidia-ml-py")?)?;
    Ok(scene.with(|run| run.arg(script("processes.py"))))
}

fn go_nvml_names() -> Result {
    let ask = |world: World| go_nvml(&world)?.run.output()?.success();
    let (bare, limited) = (ask(World::bare(Driver::Stub))?, ask(World::with_shim(Driver::Stub)?)?);
    same(bare.value("name")?.is_empty(), false, &bare)?;
    same(limited.value("name")?, bare.value("name")?, &limited)
}

fn go_nvml(world: &World) -> Result<Scene> {
    Scene::new(world, &program("go-nvml", "with_nvml")?)
}

fn module(world: &World, name: &str, argument: &str) -> Result<Scene> {
    let scene = Scene::new(world, &python(name)?)?;
    Ok(scene.with(|run| run.arg("-m").arg(name).arg(argument)))
}

fn gpustat(world: &World) -> Result<Scene> {
    module(world, "gpustat", "--no-color")
}

fn nvitop(world: &World) -> Result<Scene> {
    // Without a locale it draws its frames in ASCII, and still prints signs that are not.
    Ok(module(world, "nvitop", "-1")?.with(|run| run.env("LC_ALL", "C.UTF-8")))
}

/// It draws on a terminal and never ends by itself.
fn nvtop_on_screen(world: &World) -> Result<Scene> {
    let (nvtop, python): (PathBuf, PathBuf) = (nvtop()?, python("nvidia-ml-py")?);
    let scene = Scene::new(world, &python)?;
    let settings = scene.run.directory().to_path_buf();
    Ok(scene.with(|run| {
        let run = run.env("TERM", "xterm").env("XDG_CONFIG_HOME", settings);
        run.arg(script("screen.py")).arg(r"Gi/[0-9.]+Gi\]").arg(nvtop)
    }))
}

fn names(driver: &Driver) -> Result {
    let ask = |world: World| smi(&world, driver, &["-L"])?.run.output()?.success();
    let (bare, limited) = (ask(World::bare(Driver::Stub))?, ask(World::with_shim(Driver::Stub)?)?);
    same(bare.stdout.contains("GPU-"), true, &bare)?;
    same(&limited.stdout, &bare.stdout, &limited)
}

/// Bare, all processes on the card; behind the shim, those of the budget, as soon as the shim knows
/// process lists.
fn processes(scene: Scene, sight: Sight) -> Result {
    let output = scene.run.output()?.success()?;
    let mut all = vec![scene.peer.pid(), scene.outsider.pid()];
    all.sort_unstable();
    let ours = vec![scene.peer.pid()];
    let seen = output.value("pids")?.split_whitespace().filter_map(|pid| pid.parse().ok());
    let seen = seen.collect::<Vec<u32>>();
    let told = rows::has("nvmlDeviceGetComputeRunningProcesses_v3");
    same(seen, if sight == Sight::Slice && told { ours } else { all }, &output)
}

/// `key=bytes`, as our own scripts print.
fn keys(text: &str) -> Option<Shown> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let bytes: u64 = line?.parse().ok()?;
        bytes.is_multiple_of(MIB).then_some(bytes / MIB)
    };
    // Version 1 has no reserve.
    let reserved = value("reserved").unwrap_or(0);
    let shown = Shown { total: value("total")?, used: value("used")?, free: value("free") };
    (reserved == 0).then_some(shown)
}

/// `400MiB / 2048MiB` or `1200MiB / 80.00GiB`: the first slash between two numbers, the second with
/// its unit.
fn slash(text: &str, unit: &str) -> Option<Shown> {
    text.match_indices('/').find_map(|(at, sign)| {
        let before = text[..at].trim_end().trim_end_matches(unit).trim_end();
        let start = before.rfind(|sign: char| !sign.is_ascii_digit() && sign != '.');
        let used = number(&before[start.map_or(0, |at| at + 1)..])?;
        let (total, rest) = split_number(text[at + sign.len()..].trim_start())?;
        match rest.trim_start() {
            rest if rest.starts_with(unit) => Some(Shown { total, used, free: None }),
            rest if rest.starts_with("GiB") => Some(Shown { total: total << 10, used, free: None }),
            _ => None,
        }
    })
}

/// Lines `Total : 2048 MiB` or `<total>2048 MiB</total>` after a heading.
fn fields(text: &str, heading: &str, separator: &str) -> Option<Shown> {
    let section = &text[text.find(heading)?..];
    let value = |name: &str| {
        let is_it = |line: &&str| line.trim().to_lowercase().trim_matches('<').starts_with(name);
        let line = section.lines().skip(1).find(is_it)?;
        split_number(line.split_once(separator)?.1.trim_start()).map(|(number, _)| number)
    };
    let shown = Shown { total: value("total")?, used: value("used")?, free: Some(value("free")?) };
    (value("reserved")? == 0).then_some(shown)
}

/// `2048 MiB, 400 MiB, 1648 MiB`
fn list(text: &str) -> Option<Shown> {
    let mut numbers = text.split(',').map(|field| number(field.trim().strip_suffix("MiB")?.trim()));
    Some(Shown { total: numbers.next()??, used: numbers.next()??, free: numbers.next()? })
}

/// `0.391Gi/2.000Gi]`, at the end of a bar.
fn bar(text: &str) -> Option<Shown> {
    let (before, after) = text.split_once("Gi/")?;
    let start = before.rfind(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
    let mib = |gib: &str| -> Option<u64> {
        let (whole, thousandths) = gib.split_once('.')?;
        let thousandths: u64 = thousandths.parse().ok()?;
        Some(whole.parse::<u64>().ok()? * 1024 + (thousandths * 1024 + 500) / 1000)
    };
    let total = mib(after.split_once("Gi]")?.0)?;
    Some(Shown { total, used: mib(&before[start + 1..])?, free: None })
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    Some((number(&text[..end])?, &text[end..]))
}

/// `400` or `400.0`: a fraction would have been rounded.
fn number(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    fraction.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok())?
}
