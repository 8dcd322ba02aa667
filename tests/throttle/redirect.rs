//! Without a limit of time every launch is the driver's own function, whichever way a program asks for it.

use gpucap_tests::{Driver, Output, Program, Result, Run, Stop, World, limits_text, rows, trial};
use libtest_mimic::Trial;

const OURS: &str = "libgpucap.so";
const DRIVERS: &str = "libcuda.so.1";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("a limits file that speaks of time counts even at 100 %", file_at_100),
        trial("limits that cannot be used refuse every launch, and nothing else", broken),
    ];
    for driver in [Driver::Stub].into_iter().chain(Driver::REAL) {
        let each = |rule: &str, variable: &'static str, value: &'static str, met: Met| {
            let driver = driver.clone();
            trial(format!("{rule} ({driver})"), move || {
                owners(&run(driver.clone())?.env(variable, value), met)
            })
        };
        let all = Met { launch: true, order: true, sync: true };
        let no_time = Met { launch: false, order: false, sync: true };
        trials.extend([
            each("with a limit of memory alone no launch is met", "GPU_MEM_LIMIT", "4Gi", no_time),
            each("with a share of time every launch is met", "GPU_CORE_PCT", "30", all),
            each("with a share of time of another card too", "GPU_CORE_PCT", "7=30", all),
            each("with a profile every launch is met", "GPU_PROFILE", "1g", all),
            each(
                "with limits that cannot be used only launches are met",
                "GPU_CORE_PCT",
                "a third",
                Met { launch: true, order: false, sync: false },
            ),
        ]);
    }
    trials
}

/// Which of the rows that a limit of time needs lead to the shim. Those of `sync` are needed by a limit as well.
#[derive(Clone, Copy)]
struct Met {
    launch: bool,
    order: bool,
    sync: bool,
}

fn run(driver: Driver) -> Result<Run> {
    let program = Program::new("owners").flags(&["-lcuda", "-Wl,-z,relro,-z,now"]).build()?;
    let mut run = World::with_shim(driver)?.run(&program)?;
    for row in rows::CUDA {
        let Some(asked) = row.asked else { continue };
        let flags = if asked.per_thread { "2" } else { "1" };
        run = run.arg(row.symbol).arg(asked.base).arg(asked.since.to_string()).arg(flags);
    }
    Ok(run)
}

/// Every row, by each way of asking.
fn owners(run: &Run, met: Met) -> Result {
    let output = run.output()?.success()?;
    let mut seen = 0;
    for row in rows::CUDA {
        let ours = match row.class {
            "launch" => met.launch,
            "order" => met.order,
            "sync" => met.sync,
            _ => true,
        };
        let Some(found) = output.find(row.symbol) else { continue };
        is_from(&output, row.symbol, found, ours)?;
        seen += 1;
        match output.value(&format!("{} by cuGetProcAddress", row.symbol))? {
            "none" => {} // an older driver
            found => is_from(&output, row.symbol, found, ours)?,
        }
    }
    for (symbol, ours) in
        [("cuLaunchKernel", met.launch), ("cuStreamSynchronize", met.sync), ("cuMemAlloc_v2", true)]
    {
        is_from(&output, symbol, output.value(&format!("bound {symbol}"))?, ours)?;
    }
    if seen < 100 { Err(Stop::fail(format!("only {seen} rows: {output}"))) } else { Ok(()) }
}

fn is_from(output: &Output, symbol: &str, found: &str, ours: bool) -> Result {
    if found == if ours { OURS } else { DRIVERS } {
        Ok(())
    } else {
        Err(Stop::fail(format!("{symbol} is from {found}: {output}")))
    }
}

fn file_at_100() -> Result {
    let run = run(Driver::Stub)?.limits_file(&limits_text("gpu=*\ncore=100\n"))?;
    owners(&run, Met { launch: true, order: true, sync: true })
}

/// Each row is called with zeros; the driver must not see one that launches.
fn broken() -> Result {
    let program = Program::new("caller").build()?;
    let run = World::with_shim(Driver::Stub)?.run(&program)?.env("GPU_CORE_PCT", "0");
    let trace = run.directory().join("trace");
    let mut caller = run.env("STUB_GPU_TRACE", &trace).start()?;
    let of_time =
        || rows::CUDA.iter().filter(|row| matches!(row.class, "launch" | "order" | "sync"));
    for row in of_time() {
        caller.order(&format!("call {} 0", row.symbol))?;
        let answer = caller.line()?;
        // CUDA_ERROR_NOT_INITIALIZED, which the driver also returns after a refused `cuInit`.
        if !answer.starts_with("3 ") {
            return Err(Stop::fail(format!("{}: {answer}", row.symbol)));
        }
    }
    let output = caller.end()?;
    let trace = std::fs::read_to_string(&trace)?;
    for row in of_time() {
        let called = trace.lines().any(|line| line.split(' ').nth(1) == Some(row.symbol));
        if called == (row.class == "launch") {
            return Err(Stop::fail(format!(
                "{} reached the driver: {called}: {output}",
                row.symbol
            )));
        }
    }
    Ok(())
}
