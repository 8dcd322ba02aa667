//! Programs that take memory: by every way they have, exactly what is left of the limit, and not a
//! byte more.

use crate::{CONTEXT, OUT_OF_MEMORY, PEER, Scene, Sight, same, script};
use gpucap_tests::fetched::python;
use gpucap_tests::{Output, Result, World, rows, trial};
use libtest_mimic::Trial;

/// A way of `allocate.py`, the function of the driver that takes the memory, and the same for
/// streams of a thread.
struct Way {
    name: &'static str,
    takes: &'static str,
    per_thread: Option<&'static str>,
}

const fn way(name: &'static str, takes: &'static str) -> Way {
    Way { name, takes, per_thread: None }
}

/// All that cuda-bindings can allocate with. A way is limited if its function is a row;
/// `tests/coverage` has the reason of each that is none.
const WAYS: &[Way] = &[
    way("linear", "cuMemAlloc_v2"),
    way("pitch", "cuMemAllocPitch_v2"),
    way("managed", "cuMemAllocManaged"),
    Way { per_thread: Some("cuMemAllocAsync_ptsz"), ..way("async", "cuMemAllocAsync") },
    Way {
        per_thread: Some("cuMemAllocFromPoolAsync_ptsz"),
        ..way("default pool", "cuMemAllocFromPoolAsync")
    },
    Way {
        per_thread: Some("cuMemAllocFromPoolAsync_ptsz"),
        ..way("own pool", "cuMemAllocFromPoolAsync")
    },
    way("create", "cuMemCreate"),
    way("mapped", "cuMemCreate"),
    way("array", "cuArrayCreate_v2"),
    way("volume", "cuArray3DCreate_v2"),
    way("mipmapped", "cuMipmappedArrayCreate"),
    way("graph", "cuGraphInstantiateWithFlags"),
    way("node of a graph", "cuGraphInstantiateWithFlags"),
    way("host", HOST),
];
/// Memory of the host, which no limit covers; but no machine here has as much of it as the card has.
const HOST: &str = "cuMemHostAlloc";

/// All trials of this file.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for sight in Sight::BOTH {
        for way in WAYS.iter().filter(|way| sight == Sight::Slice || way.takes != HOST) {
            trials
                .push(trial(format!("cuda-bindings takes the {sight}: {}", way.name), move || {
                    bindings(&sight.world()?, sight, way.name, way.takes, "0")
                }));
            if let Some(takes) = way.per_thread {
                let rule =
                    format!("cuda-bindings takes the {sight}: {}, thread's stream", way.name);
                trials.push(trial(rule, move || {
                    bindings(&sight.world()?, sight, way.name, takes, "1")
                }));
            }
        }
        trials.push(trial(format!("numba-cuda takes the {sight}"), move || {
            numba(&sight.world()?, sight)
        }));
    }
    trials
}

fn bindings(world: &World, sight: Sight, way: &str, takes: &str, per_thread: &str) -> Result {
    let scene = Scene::new(world, &python("cuda-bindings")?)?;
    let scene = scene.with(|run| {
        let run = run.env("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", per_thread);
        run.arg(script("allocate.py")).arg(way)
    });
    let output = scene.run.output()?.success()?;
    same(output.number("device")?, sight.of(0).0, &output)?;
    judge(&output, sight, if takes == HOST { None } else { Some(takes) })
}

fn numba(world: &World, sight: Sight) -> Result {
    python("nvidia-cuda-runtime")?;
    let scene = Scene::new(world, &python("numba-cuda")?)?;
    let output = scene.with(|run| run.arg(script("arrays.py"))).run.output()?.success()?;
    judge(&output, sight, Some("cuMemAlloc_v2"))
}

/// `takes` is the function that takes device memory; none does for memory of the host.
fn judge(output: &Output, sight: Sight, takes: Option<&str>) -> Result {
    let (total, used) = sight.of(CONTEXT + PEER + CONTEXT);
    let free = total - used;
    same(output.number("total")?, total, output)?;
    same(output.number("free")?, free, output)?;
    same(output.number("back")?, free, output)?;
    same(output.number("edge")?, 0, output)?;
    // The card itself has an edge too.
    let ends = |takes| sight == Sight::Card || rows::has(takes);
    let (over, left) = match takes {
        Some(takes) if ends(takes) => (OUT_OF_MEMORY, 0),
        _ => (0, free),
    };
    same(output.number("over")?, over, output)?;
    same(output.number("left")?, left, output)?;
    same(output.number("past")?, if left == 0 { OUT_OF_MEMORY } else { 0 }, output)
}
