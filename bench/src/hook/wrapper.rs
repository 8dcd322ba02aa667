//! What a container's start pays for `gpucap runtime` before the next runtime begins: the wrapper with `true` in that
//! one's place, against `true` alone.
//!
//! The bundles lie in memory, where engines have theirs. The hook, which the wrapper writes into the container's
//! `config.json`, is paid for as well: the rows beside these.

use super::bundle::{CONTAINERS, START, config};
use crate::measure::in_turns;
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A line that is measured, and the `config.json` that it finds.
struct World {
    words: Vec<String>,
    made: Option<(PathBuf, String)>,
}

/// Measures it in a directory that lies in memory.
pub(super) fn run(gpucap: &Path, memory: &Path, effort: Effort, report: &mut Report) -> Result {
    fs::create_dir_all(memory)?;
    let node = memory.join("node.json");
    fs::write(&node, json!({"next_runtime": ["/bin/true"]}).to_string())?;
    let own = format!("--gpucap-config={}", node.display());
    let gpucap = gpucap.display().to_string();
    let wrapped = |words: &[&str]| {
        let front = [gpucap.as_str(), "runtime", &own];
        front.iter().chain(words).map(|word| (*word).to_owned()).collect()
    };
    let [asks, silent] = CONTAINERS.map(|(name, entry)| (memory.join(name), config(entry)));
    let make = |(bundle, config): &(PathBuf, String)| -> Result<World> {
        fs::create_dir_all(bundle)?;
        let words = wrapped(&["create", "--bundle", &bundle.display().to_string(), "bench"]);
        Ok(World { words, made: Some((bundle.join("config.json"), config.clone())) })
    };
    let alone = World { words: vec!["/bin/true".into(), "state".into()], made: None };
    let other = World { words: wrapped(&["state", "bench"]), made: None };
    let mut worlds = [alone, make(&asks)?, make(&silent)?, other];
    let samples = in_turns(&mut worlds, effort.pick(3, 300), |world| world.time())?;
    let [[alone], [asking], [not_asking], [other]] = samples;
    let hooked = |(bundle, _): &(PathBuf, String)| -> Result<bool> {
        Ok(fs::read_to_string(bundle.join("config.json"))?.contains("createRuntime"))
    };
    report.check("the wrapper gave the container that asked its hook", hooked(&asks)?);
    report.check("the wrapper gave no other a hook", !hooked(&silent)?);
    let row = |what, sample| Row::difference(what, Unit::Ns, &alone, sample);
    report.row(&row("wrapper, container that asks", &asking).at_most(START));
    report.row(&row("wrapper, container that asks for nothing", &not_asking));
    report.row(&row("wrapper, other commands", &other));
    Ok(())
}

impl World {
    /// Nanoseconds of one run, which finds the bundle as an engine has made it.
    fn time(&self) -> Result<[f64; 1]> {
        if let Some((file, config)) = &self.made {
            fs::write(file, config)?;
        }
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).env_clear().stdin(Stdio::null());
        let start = Instant::now();
        let status = command.status()?;
        let ns = start.elapsed().as_secs_f64() * 1e9;
        if status.success() { Ok([ns]) } else { Err(Stop::fail(format!("the wrapper: {status}"))) }
    }
}
