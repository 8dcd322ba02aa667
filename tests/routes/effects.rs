//! What the redirect must not change, and what it must do besides catching.

use crate::{LIMIT, NOT_READY, OUT_OF_MEMORY, limited, table::Api};
use gpucap_tests::{Driver, Output, Program, Result, Stop, World, trial};
use libtest_mimic::Trial;

/// All trials of this file.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("RTLD_NEXT answers each caller as it would without the shim", next_of_three),
        trial("where there is no driver, no name of one appears", nothing_appears),
        trial("another dlsym behind the shim sees every look-up", interposer_sees_all),
        trial("without an environment the limits file still holds", clears_environment),
        trial("a program's own dl_iterate_phdr hides no driver", own_iterate),
        trial("a thread that is cancelled in a refusal leaves nothing locked", cancelled),
        trial("an object with nothing at its load address is looked up in", offset),
        trial("a driver unloaded with its namespace leaves its place to the next", namespaces),
        trial("an NVML that the program has unloaded is not called", unloaded_nvml),
        trial("a driver that is closed while it is redirected leaves its place", closed_between),
    ];
    for driver in crate::drivers() {
        let each = |rule: &str, body: fn(Driver) -> Result| {
            let driver = driver.clone();
            trial(format!("{rule} ({driver})"), move || body(driver.clone()))
        };
        trials.extend([
            each("without limits nothing is redirected", pass_through),
            each("a library that was closed stays caught", reopened),
            each("no look-up by two threads leads nowhere", threads),
            each("dlvsym finds no more than without the shim", versions),
            each("sealed pages and a limits file: no GPU work", sealed),
        ]);
        if matches!(driver, Driver::Real(_)) {
            trials.push(each("NVML's calls to itself reach itself", nvml_itself));
            trials.push(each("unpinned, NVML's calls to itself are captured", nvml_captured));
            trials.push(each("nvidia-smi shows the limit of the stub's card", nvidia_smi));
        }
    }
    trials
}

fn run(world: &World, source: &'static str) -> Result<Output> {
    let run = world.run(&Program::new(source).build()?)?;
    limited(Api::Nvml, world.driver(), run).output()
}

fn same<T: PartialEq + std::fmt::Debug>(left: T, right: T, output: &Output) -> Result {
    if left == right {
        Ok(())
    } else {
        Err(Stop::fail(format!("{left:?}, not {right:?}: {output}")))
    }
}

fn next_of_three() -> Result {
    let mut program = Program::new("next");
    for number in ["-DNUMBER=1", "-DNUMBER=2", "-DNUMBER=3"] {
        program = program.needs(Program::library("next_library").flags(&[number]));
    }
    let program = program.build()?;
    for world in [World::bare(Driver::Absent), World::with_shim(Driver::Absent)?] {
        let output = world.run(&program)?.env("GPU_MEM_LIMIT", "4Gi").output()?.success()?;
        for (key, answer) in [("default", 1), ("next1", 2), ("next2", 3), ("next3", 0)] {
            same(output.number(key)?, answer, &output)?;
        }
    }
    Ok(())
}

fn nothing_appears() -> Result {
    let output = run(&World::with_shim(Driver::Absent)?, "absent")?.success()?;
    same(output.number("default")?, 0, &output)?;
    same(output.number("weak")?, 0, &output)
}

fn interposer_sees_all() -> Result {
    let program = Program::new("open_look").build()?;
    let interposer = Program::library("interposer").build()?;
    let count = |world: World| -> Result<(u64, Output)> {
        let run = world.run(&program)?.preload_after(interposer.clone());
        let output = run.env("GPU_MEM_LIMIT", "4Gi").output()?.success()?;
        Ok((output.number("interposed")?, output))
    };
    let (bare, _) = count(World::bare(Driver::available()))?;
    let (limited, output) = count(World::with_shim(Driver::available())?)?;
    same(bare > 0, true, &output)?;
    same(limited, bare, &output)
}

fn pass_through(driver: Driver) -> Result {
    for (source, object) in [("open_look", "libcuda.so.1"), ("open_nvml", "libnvidia-ml.so.1")] {
        let program = Program::new(source).build()?;
        let output = World::with_shim(driver.clone())?.run(&program)?.output()?.success()?;
        same(output.value("where")?, object, &output)?;
        same(output.stderr.is_empty(), true, &output)?;
    }
    Ok(())
}

fn reopened(driver: Driver) -> Result {
    let output = run(&World::with_shim(driver)?, "reopen")?.success()?;
    for round in ["round0", "round1", "round2"] {
        same(output.value(round)?, "libgpucap.so", &output)?;
    }
    same(output.value("version2")?, output.value("version0")?, &output)
}

fn threads(driver: Driver) -> Result {
    // Whole, where the redirect comes while the driver is initialised, and where the look-ups themselves race to bring it.
    let mut worlds = vec![World::with_shim(driver.clone())?];
    if driver != Driver::Card {
        worlds.push(World::with_shim_lacking(driver, &["gmon", "sched"])?);
    }
    for world in worlds {
        let output = run(&world, "threads")?.success()?;
        same(output.number("wrong")?, 0, &output)?;
    }
    Ok(())
}

fn versions(driver: Driver) -> Result {
    let bare = run(&World::bare(driver.clone()), "open_look_version")?.success()?;
    let limited = run(&World::with_shim(driver)?, "open_look_version")?.success()?;
    same(&limited.stdout, &bare.stdout.replace("libcuda.so.1", "libgpucap.so"), &limited)
}

/// A limits file that says `LIMIT`.
const FILE: &str = "gpucap-limits=1\nsource=test\ncontainer=test\ngpu=*\nmem=4294967296\n\
                    crc32=4ff89671\n";

/// Where the driver cannot be redirected, the hook's word cannot be kept on every route, so nothing is allowed.
fn sealed(driver: Driver) -> Result {
    let run = World::with_shim(driver)?.run(&Program::new("open_look").build()?)?;
    let run = run.preload_before(Program::library("sealer").build()?).limits_file(FILE)?;
    let output = run.output()?.success()?;
    same(output.number("init")?, NOT_READY, &output)?;
    same(output.stderr.lines().count(), 1, &output)
}

fn clears_environment() -> Result {
    let run =
        World::with_shim(Driver::available())?.run(&Program::new("clears_environment").build()?)?;
    let output = run.limits_file(FILE)?.output()?.success()?;
    same(output.number("init")?, 0, &output)?;
    same(output.number("over")?, OUT_OF_MEMORY, &output)
}

fn own_iterate() -> Result {
    let program = Program::new("own_iterate").flags(&["-rdynamic"]).build()?;
    let run = World::with_shim(Driver::available())?
        .run(&program)?
        .env("GPU_MEM_LIMIT", LIMIT.to_string());
    let output = run.output()?.success()?;
    same(output.number("init")?, 0, &output)?;
    same(output.number("over")?, OUT_OF_MEMORY, &output)
}

fn cancelled() -> Result {
    let output = run(&World::with_shim(Driver::available())?, "cancelled")?.success()?;
    same(output.number("over")?, OUT_OF_MEMORY, &output)?;
    same(output.number("cancelled")?, 1, &output)?;
    same(output.number("small")?, 0, &output)
}

fn offset() -> Result {
    let library = Program::library("next_library")
        .flags(&["-DNUMBER=1", "-Wl,-Ttext-segment=0x10000000"])
        .build()?;
    let program = Program::new("offset_look").flags(&["-DASKED=0x10000000"]).build()?;
    for world in [World::bare(Driver::available()), World::with_shim(Driver::available())?] {
        let run = world.run(&program)?.env("GPU_MEM_LIMIT", LIMIT.to_string()).arg(&library);
        let output = run.output()?.success()?;
        same(output.number("elsewhere")?, 1, &output)?;
        same(output.number("found")?, 1, &output)?;
    }
    Ok(())
}

/// The program's last driver stands between it and the limit, whatever was unloaded before.
fn is_caught(output: &Output) -> Result {
    same(output.value("where")?, "libgpucap.so", output)?;
    same(output.number("over")?, OUT_OF_MEMORY, output)?;
    same(output.number("large")?, 0, output)
}

fn namespaces() -> Result {
    let output = run(&World::with_shim(Driver::Stub)?, "namespaces")?.success()?;
    let rounds = output.number("rounds")?;
    same([output.number("caught")?, output.number("gone")?], [rounds; 2], &output)?;
    is_caught(&output)
}

fn unloaded_nvml() -> Result {
    let run = World::with_shim(Driver::Stub)?.run(&Program::new("unloaded_nvml").build()?)?;
    let output = run.env("GPU_MEM_LIMIT", format!("0={LIMIT}")).output()?.success()?;
    same(output.value("nvml")?, "libgpucap.so", &output)?;
    same(output.number("gone")?, 1, &output)?;
    is_caught(&output)
}

fn closed_between() -> Result {
    let program = Program::new("closed_between").build()?;
    // Redirected by the look-up: in the driver's own code no other thread could close it.
    let run = World::with_shim_lacking(Driver::Stub, &["gmon", "sched"])?.run(&program)?;
    let run = run.preload_after(Program::library("closer").build()?);
    let output = run.env("GPU_MEM_LIMIT", LIMIT.to_string()).output()?.success()?;
    same(output.number("gone")?, output.number("rounds")?, &output)?;
    is_caught(&output)
}

fn nvml_itself(driver: Driver) -> Result {
    let output = run(&World::with_shim(driver)?, "nvml_itself")?.success()?;
    same(output.value("where")?, "libgpucap.so", &output)?;
    same(output.number("elsewhere")?, 0, &output)
}

fn nvml_captured(driver: Driver) -> Result {
    let bare = run(&World::bare(driver.clone()), "nvml_itself")?.success()?;
    if bare.number("own")? == 0 {
        return Err(Stop::skip("this NVML does not call itself for what the shim intercepts"));
    }
    let output = run(&World::with_shim_lacking(driver, &["pin"])?, "nvml_itself")?.success()?;
    same(output.number("elsewhere")? > 0, true, &output)
}

fn nvidia_smi(driver: Driver) -> Result {
    let program = driver.nvidia_smi()?;
    let query = |world: World| {
        let run = world.run(&program)?.env("GPU_MEM_LIMIT", LIMIT.to_string());
        let run = run.arg("--query-gpu=memory.total").arg("--format=csv,noheader,nounits");
        run.output()?.success()
    };
    let bare = query(World::bare(Driver::Stub))?;
    same(bare.stdout.trim() == "4096", false, &bare)?;
    let limited = query(World::with_shim(Driver::Stub)?)?;
    for card in limited.stdout.lines() {
        same(card, "4096", &limited)?;
    }
    same(limited.stdout.is_empty(), false, &limited)
}
