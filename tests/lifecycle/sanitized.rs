//! Programs under the sanitizers of the compilers, behind the shim: neither finds anything, and the limits hold.
//!
//! The address sanitizer checks the shim's copies and frees, too, since it takes the place of libc's functions; the thread
//! sanitizer checks the program alone, whose threads wait and are held back in the shim. Its runtime is inside the program:
//! as a shared library it wants to be the first that is loaded, before any preload. A compiler without it skips the test.

use crate::{LIMIT, MIB};
use gpucap_tests::{Compiler, Driver, Machine, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

struct Sanitizer {
    name: &'static str,
    compiler: Compiler,
    flags: &'static [&'static str],
    /// The thread sanitizer wants an address space that is not shuffled.
    unshuffled: bool,
}

const SANITIZERS: [Sanitizer; 4] = [
    Sanitizer {
        name: "AddressSanitizer of gcc",
        compiler: Compiler::Cc,
        flags: &["-fsanitize=address", "-static-libasan", "-g"],
        unshuffled: false,
    },
    Sanitizer {
        name: "AddressSanitizer of clang",
        compiler: Compiler::Clang,
        flags: &["-fsanitize=address", "-g"],
        unshuffled: false,
    },
    Sanitizer {
        name: "ThreadSanitizer of gcc",
        compiler: Compiler::Cc,
        flags: &["-fsanitize=thread", "-static-libtsan", "-g"],
        unshuffled: true,
    },
    Sanitizer {
        name: "ThreadSanitizer of clang",
        compiler: Compiler::Clang,
        flags: &["-fsanitize=thread", "-g"],
        unshuffled: true,
    },
];

/// A program, what it is linked with, and its words, for limits of memory and of time.
const PROGRAMS: [(&str, &[&str], &[&str]); 4] = [
    ("sequence", &[], &["7", "200", "LIMIT", "LEDGER", "DIRECTORY"]),
    ("hammer", &[], &["4", "400", "400000000", "LIMIT", "COUNT"]),
    ("crew", &["-lcuda"], &["own", "300"]),
    ("crew", &["-lcuda"], &["churn", "300"]),
];

pub(crate) fn trials() -> Vec<Trial> {
    let each = |sanitizer: &'static Sanitizer| {
        PROGRAMS.map(|(source, libraries, words)| {
            let said = words.first().filter(|_| source == "crew").copied().unwrap_or_default();
            let name = format!("{} has nothing to say of {source} {said}", sanitizer.name);
            trial(name.trim_end(), move || silent(sanitizer, source, libraries, words))
        })
    };
    SANITIZERS.iter().flat_map(each).collect()
}

fn silent(
    sanitizer: &Sanitizer,
    source: &'static str,
    libraries: &[&'static str],
    words: &[&str],
) -> Result {
    Machine::not_emulated("a program built for a sanitizer does not start")?;
    let program = Program::new(source).compiler(sanitizer.compiler).flags(sanitizer.flags);
    let run = World::with_shim(Driver::Stub)?.run(&program.flags(libraries).build()?)?;
    let directory = run.directory().to_path_buf();
    let word = |run: Run, word: &&str| match *word {
        "LIMIT" => run.arg(LIMIT.to_string()),
        "LEDGER" => run.arg(directory.join("ledger")),
        "COUNT" => run.arg(directory.join("count")),
        "DIRECTORY" => run.arg(&directory),
        said => run.arg(said),
    };
    let run = words
        .iter()
        .fold(run, word)
        .env("GPU_MEM_LIMIT", LIMIT.to_string())
        .env("GPU_CORE_PCT", "50")
        .env("GPUCAP_CONTEXT_MEM", (4 * MIB).to_string())
        .env("STUB_GPU_CONTEXT_MEM", (4 * MIB).to_string())
        // Looking for leaks at the end needs ptrace, and what a driver keeps is not ours.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        // It does not see the locks of code that it was not built into: the shim's, and the driver's.
        .env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    let run = match sanitizer.unshuffled {
        true => run.through(&["setarch".as_ref(), "-R".as_ref()]),
        false => run,
    };
    judge(run.output()?, source)
}

/// A report ends the program with another code, or stands in what it said.
fn judge(output: Output, source: &str) -> Result {
    let output = output.success()?;
    if output.stderr.contains("Sanitizer") {
        return Err(Stop::fail(output));
    }
    let right = match source {
        "sequence" => output.number("peak")? <= LIMIT && output.number("short")? == 0,
        "hammer" => output.number("over")? == 0 && output.number("failed")? == 0,
        _ => output.number("busy")? > 0,
    };
    if right { Ok(()) } else { Err(Stop::fail(output)) }
}
