//! A container that is started again: what it owed when it ended, the next one in its place owes.
//!
//! Its ledger goes with it. So without that a container that runs one long kernel and ends, each time that it is started,
//! would have nearly all of the GPU. The judge is the stub's own count of what its processes had done.

use crate::container::Container;
use crate::peers::start;
use crate::runtime::Runtime;
use crate::sampled::Sampled;
use crate::{expect, trials_of};
use gpucap_tests::{Result, Run, Stop};
use libtest_mimic::Trial;
use serde_json::json;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("a container that is started again owes what it owed when it ended", ended),
        ("a container that is killed in a kernel owes that when it is started again", killed),
        ("what is owed in a pod is owed by the next container of the same name", named),
    ])
}

/// A program in it that launches this kernel once.
fn once(container: &Container, kernel: &str) -> Result<Run> {
    let given = ["--env", "STUB_GPU_CONTEXT_MEM=1048576", "--env", "STUB_GPU_DIR=/card"];
    container.exec(&given, &["/share", kernel, "1", "1"])
}

fn ended(runtime: Runtime) -> Result {
    restarted(runtime, 40, "k_1500ms", 4)?;
    // What each of them owes is less than a second.
    restarted(runtime, 10, "k_95ms", 12)
}

/// Starts a container again and again, which launches this kernel once and ends.
fn restarted(runtime: Runtime, percent: u16, kernel: &str, starts: u32) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(percent))?;
    let (began, mut had_ns, mut last_ns) = (Instant::now(), 0, 0);
    for _ in 0..starts {
        let mut first = start(&container)?;
        last_ns = once(&container, kernel)?.output()?.success()?.number("all")?;
        had_ns += last_ns;
        first.end()?;
    }
    // The last one is still to be paid for.
    let took = began.elapsed().as_secs_f64() * 1e9;
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let [had, last] = [had_ns, last_ns].map(|ns| ns as f64);
    let share = 100.0 * (had - last) / (took - last);
    println!("{kernel}: {share:.1} of {percent} % in {starts} starts");
    let percent = f64::from(percent);
    expect(share <= percent + 2.0, || format!("{share:.1} %\n{}", container.log()))?;
    if share < percent * 0.6 {
        return Err(Stop::late(format!("{share:.1} of {percent} %\n{}", container.log())));
    }
    if kernel == "k_1500ms" {
        let said = container.log().matches("started again").count();
        expect(said == starts as usize - 1, || container.log())?;
    }
    expect(node.node.inside("run/pages/debts").exists(), || "nothing is kept".into())
}

fn killed(runtime: Runtime) -> Result {
    const RAN: Duration = Duration::from_secs(2);
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(40))?;
    let mut first = start(&container)?;
    let began = scope(|scope| -> Result<Instant> {
        let program = scope.spawn(|| once(&container, "k_60000ms")?.output());
        sleep(Duration::from_millis(500));
        let began = Instant::now();
        sleep(RAN);
        first.end()?;
        let ended = program.join().map_err(|_| Stop::fail("it panicked"))??;
        expect(ended.success().is_err(), || "it has not been killed".into())?;
        Ok(began)
    })?;
    let mut first = start(&container)?;
    let said = scope(|scope| -> Result<String> {
        let program = scope.spawn(|| once(&container, "k_1ms")?.output()?.success());
        sleep(Duration::from_millis(700));
        let said = node.status(&container);
        program.join().map_err(|_| Stop::fail("it panicked"))??;
        said
    })?;
    let waited = began.elapsed();
    expect(said.contains("next launch in "), || said)?;
    println!("launches again {:.1} s after 2 s at 40 % began", waited.as_secs_f64());
    expect(waited >= RAN * 10 / 4, || format!("{waited:?}\n{}", container.log()))?;
    if waited > RAN * 5 {
        return Err(Stop::late(format!("{waited:?}")));
    }
    first.end().map(drop)
}

fn named(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let of = |name: &str| -> Result<Container> {
        let annotations = json!({
            "io.kubernetes.cri.sandbox-uid": "2a6c8c7e-0000-4000-8000-0123456789ab",
            "io.kubernetes.cri.sandbox-namespace": "default",
            "io.kubernetes.cri.sandbox-name": "train",
            "io.kubernetes.cri.container-name": name,
        });
        Ok(node.container(Some(10))?.with(|config| config["annotations"] = annotations))
    };
    for (name, is_held) in [("main", false), ("other", false), ("main", true), ("main", true)] {
        let container = of(name)?;
        let mut first = start(&container)?;
        let said = container.log().contains("started again");
        expect(said == is_held, || format!("{name}: {}", container.log()))?;
        if !is_held {
            once(&container, "k_2000ms")?.output()?.success()?;
        }
        first.end()?;
    }
    Ok(())
}
