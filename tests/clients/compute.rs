//! Programs that compute: each bare, under a limit of memory, and under a limit of time.
//!
//! Bare, a client does what it is made for, and takes memory beyond what the limit will be; so
//! what fails behind the shim fails by the shim. Under the limit of memory it does the same, has
//! what fits, and says in its own words that the rest is not there. Under the limit of time its
//! share is read in the stub's own book, over the time of the card. How close a share is kept is
//! the benches' business: this machine may be busy, and a client waits for more than the card.

use crate::{limited, priced, same, script};
use gpucap_tests::fetched::{self, python};
use gpucap_tests::{Driver, Output, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

/// A client: how it is started, and a part of what it says when there is no memory.
struct Client {
    name: &'static str,
    start: fn(&World) -> Result<Run>,
    refusal: &'static str,
}

const CLIENTS: &[Client] = &[
    Client { name: "tinygrad", start: |world| scripted(world, "tinygrad"), refusal: "MemoryError" },
    Client { name: "PyCUDA", start: pycuda, refusal: "MemoryError" },
    Client { name: "Dr.Jit", start: |world| scripted(world, "drjit"), refusal: "out of memory" },
    Client { name: "Taichi", start: |world| scripted(world, "taichi"), refusal: "memory" },
    Client { name: "Halide", start: |world| scripted(world, "halide"), refusal: "OUT_OF_MEMORY" },
    Client { name: "IREE", start: iree, refusal: "RESOURCE_EXHAUSTED" },
    Client { name: "cudarc", start: cudarc, refusal: "CUDA_ERROR_OUT_OF_MEMORY" },
];

/// The limit of time, in percent, and the most that a client may have: it begins to count when the limit
/// has hardly learnt its kernels. It has to get on, no more: on a busy machine it hardly runs.
const PERCENT: f64 = 30.0;
const MOST: f64 = PERCENT + 10.0;
/// What a kernel lasts while time is looked at.
const KERNEL_NS: &str = "2000000";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for client in CLIENTS {
        let name = client.name;
        trials
            .push(trial(format!("{name} computes on the card, and takes of it"), || bare(client)));
        trials
            .push(trial(format!("{name} computes under a limit of memory, and meets it"), || {
                limited_in_memory(client)
            }));
        trials
            .push(trial(format!("{name} computes under a limit of time, and keeps to it"), || {
                limited_in_time(client)
            }));
    }
    trials
}

/// A script of ours that a package runs.
fn scripted(world: &World, package: &str) -> Result<Run> {
    let run = world.run(&python(package)?)?;
    Ok(run.arg(script(&format!("compute/with_{package}.py"))))
}

fn iree(world: &World) -> Result<Run> {
    python("iree-base-compiler")?;
    let run = world.run(&python("iree-base-runtime")?)?;
    Ok(run.arg(script("compute/with_iree.py")))
}

/// Debian's, with what it needs.
fn pycuda(world: &World) -> Result<Run> {
    let tree = fetched::tree("pycuda")?;
    let run = world.run(&python("numpy")?)?;
    let run = run.env("PYTHONPATH", tree.join("usr/lib/python3/dist-packages"));
    let run = run.arg(script("compute/with_pycuda.py"));
    Ok(run.more_libraries(tree.join("libraries")))
}

/// A program of ours with the crate.
fn cudarc(world: &World) -> Result<Run> {
    world.run(&fetched::program("cudarc", "with_cudarc")?)
}

fn done(client: &Client, world: &World, words: &[&str], change: fn(Run) -> Run) -> Result<Output> {
    let run = change(priced((client.start)(world)?));
    let home = run.directory().to_path_buf();
    // What a client keeps for the next time must not be there the first time.
    let run = run.env("HOME", &home).env("DEV", "CUDA:PTX");
    let output = words.iter().fold(run, Run::arg).output()?.success()?;
    same(output.number("done")?, 1, &output)?;
    Ok(output)
}

fn bare(client: &Client) -> Result {
    let output = done(client, &World::bare(Driver::Stub), &["run", "memory"], |run| run)?;
    same((output.value("within")?, output.value("over")?), ("ok", "ok"), &output)
}

fn limited_in_memory(client: &Client) -> Result {
    let output = done(client, &World::with_shim(Driver::Stub)?, &["run", "memory"], limited)?;
    same(output.value("within")?, "ok", &output)?;
    let said = output.value("over")?;
    if said.contains(client.refusal) { Ok(()) } else { Err(Stop::fail(output)) }
}

fn limited_in_time(client: &Client) -> Result {
    let output = done(client, &World::with_shim(Driver::Stub)?, &["time"], |run| {
        run.env("GPU_CORE_PCT", PERCENT.to_string()).env("STUB_GPU_KERNEL_NS", KERNEL_NS)
    })?;
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
    let share = output.number("busy")? as f64 * 100.0 / output.number("clock")? as f64;
    if share > 0.0 && share <= MOST {
        Ok(())
    } else {
        Err(Stop::fail(format!("{share} %: {output}")))
    }
}
