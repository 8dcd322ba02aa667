//! Programs of `tests/programs`, compiled once per test run.
//!
//! A test names a program without its folder: `routes` has the ways to the driver, `processes` what a process does with
//! memory and how it ends, `throttle` what launches, `tools` what a test leads or starts others with.
//!
//! A program knows nothing of the world it will run in: what it links as `-lcuda` or `-lnvidia-ml` is a library made
//! from `include/driver.h`, with names and without code, so that one binary serves the stub and every real driver.

use crate::{Driver, Machine, Result, Stop, scratch};
use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Which compiler a program needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// The machine's C compiler; without it the test fails, as nothing else can be tested either.
    Cc,
    /// clang; a machine without it skips the test.
    Clang,
    /// zig's, for glibc 2.17 whatever is here; a machine without it skips the test.
    OldGlibc,
}

impl Compiler {
    fn command(self) -> Command {
        let machine = Machine::tested();
        match self {
            Self::Cc => Command::new(machine.cc()),
            Self::Clang => {
                let mut command = Command::new("clang");
                command.args(machine.clang_target());
                command
            }
            Self::OldGlibc => {
                let mut command = Command::new("python3");
                command.args(["-m", "ziglang", "cc", "-target"]);
                command.arg(format!("{}.2.17", machine.triple()));
                command
            }
        }
    }
}

/// A C file and how it becomes a program or a shared library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    source: &'static str,
    compiler: Compiler,
    shared: bool,
    flags: Vec<&'static str>,
    needs: Vec<Self>,
}

impl Program {
    /// The program made from `<source>.c`.
    #[must_use]
    pub const fn new(source: &'static str) -> Self {
        Self { source, compiler: Compiler::Cc, shared: false, flags: Vec::new(), needs: Vec::new() }
    }

    /// The shared library `lib<source>.so` made from `<source>.c`.
    #[must_use]
    pub fn library(source: &'static str) -> Self {
        Self { shared: true, ..Self::new(source) }
    }

    /// Adds options of the compiler and linker.
    #[must_use]
    pub fn flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend(flags);
        self
    }

    /// Compiles with this compiler.
    #[must_use]
    pub const fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = compiler;
        self
    }

    /// Links a shared library of ours, which is found beside the program.
    #[must_use]
    pub fn needs(mut self, library: Self) -> Self {
        self.needs.push(library);
        self
    }

    /// Compiles, or answers what an equal program was compiled to.
    ///
    /// # Errors
    /// If the compiler is missing or refuses.
    pub fn build(&self) -> Result<PathBuf> {
        type Slot = Arc<OnceLock<Result<PathBuf>>>;
        static BUILT: OnceLock<Mutex<HashMap<Program, (usize, Slot)>>> = OnceLock::new();
        let (number, slot) = {
            let mut built =
                BUILT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
            let number = built.len();
            built.entry(self.clone()).or_insert_with(|| (number, Slot::default())).clone()
        };
        // A slot of its own for each program, so that two can compile at once.
        slot.get_or_init(|| self.compile(number)).clone()
    }

    fn compile(&self, number: usize) -> Result<PathBuf> {
        let directory = scratch::shared()?.join(format!("program-{number}"));
        std::fs::create_dir_all(&directory)?;
        let mut command = self.compiler.command();
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-O1", "-D_GNU_SOURCE"]);
        // The compiler beside a card may be an untested one; ours must have nothing to say.
        if Driver::available() != Driver::Card {
            command.arg("-Werror");
        }
        command.arg("-I").arg(project().join("include")).arg("-I").arg(programs());
        let output = if self.shared {
            command.args(["-shared", "-fPIC"]);
            directory.join(format!("lib{}.so", self.source))
        } else {
            directory.join(self.source)
        };
        command.arg(source(self.source)?).arg("-o").arg(&output);
        command.arg("-L").arg(link_directory()?);
        for library in &self.needs {
            let path = library.build()?;
            command.arg(&path).arg(format!("-Wl,-rpath,{}", parent(&path).display()));
        }
        // Options come last, so that libraries among them follow the objects that use them.
        command.args(&self.flags).args(["-pthread", "-ldl"]);
        self.call(command)?;
        Ok(output)
    }

    fn call(&self, mut command: Command) -> Result {
        let output = match command.output() {
            Err(error) if self.compiler == Compiler::Cc => {
                return Err(Stop::fail(format!("cc: {error}")));
            }
            Err(error) => return Err(Stop::skip(format!("{:?}: {error}", self.compiler))),
            Ok(output) => output,
        };
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        // A compiler without its sanitizer runtime is a missing means, not a wrong program.
        let lacks_runtime = text.contains("asan") || text.contains("tsan");
        if lacks_runtime && text.contains("No such file") {
            return Err(Stop::skip(format!("{}: no sanitizer runtime: {text}", self.source)));
        }
        if text.contains("No module named ziglang") {
            return Err(Stop::skip("zig is missing (ci/run --install gets it)"));
        }
        Err(Stop::fail(format!("{}: {text}", self.source)))
    }
}

/// The directory of the folders of programs, and of the header that they share.
fn programs() -> PathBuf {
    project().join("tests/programs")
}

/// The C file of this name, in whichever folder it is.
fn source(name: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(programs())? {
        found.push(folder?.path().join(format!("{name}.c")));
    }
    found.retain(|path| path.is_file());
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Stop::fail(format!("no folder of tests/programs has {name}.c"))),
        _ => Err(Stop::fail(format!("{name}.c is in more than one folder of tests/programs"))),
    }
}

/// The directory with `libcuda.so` and `libnvidia-ml.so` to link with.
fn link_directory() -> Result<&'static Path> {
    static DIRECTORY: OnceLock<Result<PathBuf>> = OnceLock::new();
    let make = || {
        let directory = scratch::shared()?.join("link");
        std::fs::create_dir_all(&directory)?;
        for (library, list) in [("libcuda", "CUDA_FUNCTIONS"), ("libnvidia-ml", "NVML_FUNCTIONS")] {
            let status = Command::new(Machine::tested().cc())
                .args(["-shared", "-fPIC", "-nostdlib", &format!("-DFUNCTIONS={list}")])
                .arg(format!("-Wl,-soname,{library}.so.1"))
                .arg("-I")
                .arg(project().join("include"))
                .arg(source("link_library")?)
                .arg("-o")
                .arg(directory.join(format!("{library}.so")))
                .status()?;
            if !status.success() {
                return Err(Stop::fail(format!("{library}.so to link with was not made")));
            }
        }
        Ok(directory)
    };
    DIRECTORY.get_or_init(make).as_deref().map_err(Stop::clone)
}

/// The project's root: `GPUCAP_SOURCES`, for a test that runs on another machine than it was built on.
#[must_use]
pub fn project() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| match env::var_os("GPUCAP_SOURCES") {
        Some(root) => root.into(),
        None => parent(Path::new(env!("CARGO_MANIFEST_DIR"))).to_path_buf(),
    })
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
