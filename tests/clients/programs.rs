//! Programs that compute and are started as they are: ffmpeg and hashcat.
//!
//! They say in their own words what they did and what they lack, and nothing of the card's time:
//! that is asked of the stub when they have ended, and is judged over all the time that they ran,
//! of which the start is part. So a share is never above its limit, and may be well below it.

use crate::{limited, priced};
use gpucap_tests::{Driver, Output, Program, Result, Run, Stop, World, fetched, trial};
use libtest_mimic::Trial;
use std::time::Instant;

/// A program, by its folder and its path there, with its words: for little work and for much.
struct Tool {
    name: &'static str,
    path: &'static str,
    little: &'static [&'static str],
    much: &'static [&'static str],
    /// The codes with which it ends when it has done its work, and what it then says.
    done: (&'static [i32], &'static str),
    /// The limit of memory that is too small, and what it says then.
    refusal: (&'static str, &'static str),
}

const FFMPEG: Tool = Tool {
    name: "ffmpeg",
    path: "usr/bin/ffmpeg",
    little: &[
        "-f",
        "lavfi",
        "-i",
        "color=size=2048x2048:rate=10:duration=1",
        "-vf",
        SCALED,
        "-f",
        "null",
        "-",
    ],
    much: &[
        "-f",
        "lavfi",
        "-i",
        "color=size=64x64:rate=100:duration=5",
        "-vf",
        SCALED,
        "-f",
        "null",
        "-",
    ],
    done: (&[0], "video:"),
    refusal: ("306Mi", "CUDA_ERROR_OUT_OF_MEMORY"),
};
/// Frames go to the card, are made smaller by a kernel, and come back.
const SCALED: &str = "format=nv12,hwupload_cuda,scale_cuda=32:32,hwdownload,format=nv12";

const HASHCAT: Tool = Tool {
    name: "hashcat",
    path: "usr/share/hashcat/hashcat",
    little: &[HASH, "?d?d?d?d"],
    much: &[HASH, "?d?d?d?d?d?d?d?d", "--runtime=4"],
    // Nothing is found, since no kernel runs; the time may be over before all is tried.
    done: (&[1, 4], "Recovered........: 0/1"),
    refusal: ("340Mi", "Not enough allocatable device memory"),
};
const HASH: &str = "8743b52063cd84097a65d1633f5c74f5";
/// The quickest form of MD5, by CUDA, with nothing kept on disk, and no test of kernels that do not run.
const QUICK: [&str; 14] = [
    "-m0",
    "-a3",
    "-n1",
    "-u1",
    "-O",
    "--force",
    "--quiet",
    "--status",
    "--backend-ignore-opencl",
    "--self-test-disable",
    "--potfile-disable",
    "--hwmon-disable",
    "--logfile-disable",
    "--restore-disable",
];

/// Percent of the card's time, and what a client that never stops asking may have.
const PERCENT: u64 = 30;
const MOST: u128 = 40;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for tool in [&FFMPEG, &HASHCAT] {
        let name = tool.name;
        trials.push(trial(format!("{name} computes on the card"), || bare(tool)));
        trials.push(trial(format!("{name} meets its limit of memory"), || refused(tool)));
        trials
            .push(trial(format!("{name} computes under a limit of time, and keeps to it"), || {
                limited_in_time(tool)
            }));
    }
    trials
}

fn start(tool: &Tool, world: &World, words: &[&str]) -> Result<Run> {
    let tree = fetched::tree(tool.name)?;
    let run = priced(world.run(&tree.join(tool.path))?).more_libraries(tree.join("libraries"));
    let home = run.directory().to_path_buf();
    let run = run.env("HOME", &home);
    let run = if tool.name == "hashcat" {
        // One runs at a time, unless each has a session of its own name.
        let place = home.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy());
        let session = place.collect::<Vec<_>>().join("-");
        QUICK.iter().fold(run, Run::arg).arg(format!("--session={session}"))
    } else {
        run.arg("-nostdin").arg("-hide_banner")
    };
    Ok(words.iter().fold(run, Run::arg))
}

fn says(output: &Output, words: &str) -> Result {
    let said = output.stdout.contains(words) || output.stderr.contains(words);
    if said { Ok(()) } else { Err(Stop::fail(format!("does not say `{words}`: {output}"))) }
}

fn ended(tool: &Tool, output: &Output) -> Result {
    let (codes, words) = tool.done;
    if output.code().is_none_or(|code| !codes.contains(&code)) {
        return Err(Stop::fail(output));
    }
    says(output, words)
}

fn bare(tool: &Tool) -> Result {
    let output = start(tool, &World::bare(Driver::Stub), tool.little)?.output()?;
    ended(tool, &output)
}

fn refused(tool: &Tool) -> Result {
    let world = World::with_shim(Driver::Stub)?;
    let run = limited(start(tool, &world, tool.little)?);
    ended(tool, &run.output()?)?;
    let (limit, words) = tool.refusal;
    let output = run.env("GPU_MEM_LIMIT", limit).output()?;
    if output.code().is_none_or(|code| tool.done.0.contains(&code)) {
        return Err(Stop::fail(output));
    }
    says(&output, words)
}

fn limited_in_time(tool: &Tool) -> Result {
    let run = start(tool, &World::with_shim(Driver::Stub)?, tool.much)?;
    let run = run.env("GPU_CORE_PCT", PERCENT.to_string()).env("STUB_GPU_KERNEL_NS", "2000000");
    let began = Instant::now();
    let output = run.output()?;
    let ran = began.elapsed();
    ended(tool, &output)?;
    let busy = busy_ns(&run)?;
    if busy == 0 || run.waited_ns()? == 0 || u128::from(busy) * 100 > ran.as_nanos() * MOST {
        return Err(Stop::fail(format!("busy for {busy} ns of {ran:?}: {output}")));
    }
    Ok(())
}

/// For how long the stub's card was busy; the answer has 32 bits, which is four seconds.
fn busy_ns(run: &Run) -> Result<u64> {
    let mut caller = run.clone().program(&Program::new("caller").build()?).start()?;
    caller.order("call stubBusy 0")?;
    let line = caller.line()?;
    let busy = line.split(' ').next().and_then(|word| word.parse().ok());
    busy.ok_or_else(|| Stop::fail(line))
}
