//! The library comes late, by `dlopen`, or where it can do nothing. It is made to be there when the program starts: its
//! memory of threads is at a fixed distance from each thread's pointer, and what its calls go on to is behind it. So it
//! has to find libc in front of it, and room in what the loader sets aside; or it is not loaded, and `dlopen` says why.

use crate::SUCCESS;
use gpucap_tests::{
    Build, Compiler, Driver, Machine, Output, Program, Result, Run, Stop, World, project, trial,
};
use libtest_mimic::Trial;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("loaded late it holds for later look-ups of the driver", || held(&HERE, "open")),
        trial("loaded late twice, once it holds", || held(&HERE, "twice")),
        trial("without room for its memory of threads it is not loaded", || full(&HERE)),
        trial("loaded late it holds (Debian 11)", || held(&DEBIAN_11, "open")),
        trial("without room for its memory of threads it is not loaded (Debian 11)", || {
            full(&DEBIAN_11)
        }),
        trial("in a namespace of its own it does nothing", namespace),
        trial("it is no auditor, and the program runs", auditor),
    ]
}

/// A C library: of this machine, or of a system that `ci/systems` fetched.
struct System {
    compiler: Compiler,
    name: Option<&'static str>,
}

const HERE: System = System { compiler: Compiler::Cc, name: None };
const DEBIAN_11: System = System { compiler: Compiler::OldGlibc, name: Some("debian-11") };

impl System {
    /// `late`, which is to load the library in some way.
    fn run(&self, how: &Path) -> Result<Run> {
        let program = self.build(Program::new("late"))?;
        let run = World::bare(Driver::Stub).run(&program)?.arg(Build::shipped()?.shim()?).arg(how);
        let ledger = run.directory().join("ledger");
        let run = run.env("GPUCAP_LEDGER", ledger).env("GPU_MEM_LIMIT", "4Gi");
        let run = run.env("GPU_CORE_PCT", "90");
        let Some(name) = self.name else { return Ok(run) };
        let system = system(name)?.join("lib").join(Machine::tested().triple());
        let mut libraries = OsString::from(Build::shipped()?.stub_directory()?);
        libraries.push(":");
        libraries.push(&system);
        let loader = system.join(Machine::tested().loader());
        Ok(run.through(&[loader.as_os_str(), "--library-path".as_ref(), &libraries]))
    }

    /// A library that takes a little of the static memory of threads.
    fn greedy(&self) -> Result<PathBuf> {
        self.build(Program::library("greedy").flags(&["-ftls-model=initial-exec"]))
    }

    fn build(&self, program: Program) -> Result<PathBuf> {
        if self.name.is_some() {
            Machine::not_emulated("ci/systems fetches the libraries of x86-64 alone")?;
            Build::for_old_machines()?;
        }
        program.compiler(self.compiler).build()
    }
}

fn system(name: &str) -> Result<PathBuf> {
    let cache = env::var_os("GPUCAP_SYSTEMS")
        .map_or_else(|| project().join("target/systems"), PathBuf::from);
    let system = cache.join(name);
    if system.exists() {
        Ok(system)
    } else {
        Err(Stop::skip(format!("no {}: run ci/systems", system.display())))
    }
}

/// Memory beyond the limit is refused, and the launches of three threads are charged.
fn held(system: &System, how: &str) -> Result {
    let run = system.run(how.as_ref())?;
    let output = run.output()?.success()?;
    check(&output, &[("loaded", 1), ("over", 2), ("failures", SUCCESS)])?;
    if run.launches()? == 3 { Ok(()) } else { Err(Stop::fail(output)) }
}

fn full(system: &System) -> Result {
    let output = system.run(&system.greedy()?)?.output()?.success()?;
    check(&output, &[("full", 1), ("loaded", 0), ("over", SUCCESS), ("failures", SUCCESS)])?;
    if output.value("why")?.contains("static TLS") { Ok(()) } else { Err(Stop::fail(output)) }
}

/// The loader's public list does not show what is there.
fn namespace() -> Result {
    let output = HERE.run("namespace".as_ref())?.output()?.success()?;
    check(&output, &[("loaded", 1), ("over", SUCCESS), ("failures", SUCCESS)])
}

fn auditor() -> Result {
    let run = HERE.run("open".as_ref())?.env("LD_AUDIT", Build::shipped()?.shim()?);
    let output = run.output()?.success()?;
    check(&output, &[("loaded", 1), ("over", 2), ("failures", SUCCESS)])
}

fn check(output: &Output, expected: &[(&str, u64)]) -> Result {
    for (key, number) in expected {
        if output.number(key)? != *number {
            return Err(Stop::fail(format!("{key} is not {number}: {output}")));
        }
    }
    Ok(())
}
