//! What `gpucap metrics` prints, read by the parser of Prometheus's own Python client, which refuses what breaks a rule of
//! OpenMetrics.

use crate::{CONTEXT, LIMIT_BYTES, PEER, Scene, script};
use gpucap_tests::fetched::python;
use gpucap_tests::{Build, Driver, Result, Stop, World, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("prometheus-client reads gpucap's metrics", read)]
}

fn read() -> Result {
    let python = python("prometheus-client")?;
    let scene = Scene::new(&World::with_shim(Driver::Stub)?, &python)?;
    let ledger = scene.budget.directory().join("ledger");
    let parser = World::bare(Driver::Stub).run(&python)?.env("GPUCAP_LEDGER", &ledger);
    let parser = parser.arg(script("openmetrics.py")).arg(Build::shipped()?.gpucap()?).arg(&ledger);
    let output = parser.output()?.success()?;
    let held = (CONTEXT + PEER).to_string();
    for (key, expected) in [
        ("type gpucap_memory_used_bytes", "gauge bytes"),
        ("type gpucap_core_busy_seconds", "counter seconds"),
        ("gpucap_memory_limit_bytes", &LIMIT_BYTES.to_string()),
        ("gpucap_memory_used_bytes", &held),
        ("gpucap_memory_peak_bytes", &held),
        ("gpucap_memory_refusals_total", "0"),
        ("gpucap_processes", "1"),
    ] {
        let said = output.value(key)?;
        if said != expected {
            return Err(Stop::fail(format!("{key} is {said}, not {expected}: {output}")));
        }
    }
    Ok(())
}
