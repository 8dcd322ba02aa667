//! The routes. A row says how its program is run, and which parts of the shim catch it: any one of the sets in
//! `cures` suffices, and without all of them the route is missed.

use gpucap_tests::{Compiler, Machine, Program, Result, Run, Stop, World, project};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whose functions the program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Cuda,
    Nvml,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) api: Api,
    /// Compiles the program and sets up its run.
    pub(crate) prepare: fn(&World) -> Result<Run>,
    /// Each set of the shim's parts that suffices.
    pub(crate) cures: &'static [&'static [&'static str]],
}

type Cures = &'static [&'static [&'static str]];

/// While libcuda is initialised. NVML has `gmon` alone.
const LOADING: Cures = &[&["gmon"], &["sched"]];
const LOOK_UP: Cures = &[&["gmon"], &["sched"], &["dlsym"]];
const NVML_LOOK_UP: Cures = &[&["gmon"], &["dlsym"]];
const BOUND_LATER: Cures = &[&["gmon"], &["sched"], &["constructor"]];
const BOUND_BEFORE: Cures = &[&["gmon", "sweep"], &["sched", "sweep"], &["constructor", "sweep"]];

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    let cuda = |name, prepare, cures| Row { name, api: Api::Cuda, prepare, cures };
    let nvml = |name, prepare, cures| Row { name, api: Api::Nvml, prepare, cures };
    vec![
        // Looked up.
        cuda("dlsym", |world| plain(world, "open_look"), LOOK_UP),
        cuda("dlsym of RTLD_DEFAULT", |world| plain(world, "look_default"), LOOK_UP),
        cuda("cuGetProcAddress", |world| plain(world, "proc_address"), LOOK_UP),
        cuda("cuGetProcAddress_v2", |world| plain(world, "proc_address_v2"), LOOK_UP),
        cuda("dlsym from libc's handle", |world| plain(world, "dlsym_of_libc"), LOADING),
        cuda("dlsym from RTLD_NEXT", |world| plain(world, "dlsym_of_next"), LOADING),
        cuda("the program reads the symbol table", |world| plain(world, "own_lookup"), LOADING),
        cuda("another dlsym ahead of the shim", interposer_ahead, LOADING),
        cuda("another dlsym behind the shim", interposer_behind, LOOK_UP),
        cuda("Python ctypes", ctypes, LOOK_UP),
        cuda("dlclose and dlopen again", |world| plain(world, "reopen"), LOOK_UP),
        // Linked.
        cuda("linked lazily", |world| linked(world, "linked", &["-Wl,-z,lazy"]), BOUND_LATER),
        cuda("linked with -z now", |world| linked(world, "linked", NOW), BOUND_BEFORE),
        cuda("LD_BIND_NOW", bind_now, BOUND_BEFORE),
        cuda("linked without PLT", |world| linked(world, "linked", NO_PLT), BOUND_BEFORE),
        cuda("linked at a fixed address", |world| linked(world, "linked", NO_PIE), BOUND_BEFORE),
        cuda("table of pointers", |world| linked(world, "linked_table", &[]), BOUND_BEFORE),
        cuda(
            "constant table of pointers",
            |world| linked(world, "linked_const_table", NOW),
            BOUND_BEFORE,
        ),
        cuda(
            "table at a fixed address",
            |world| linked(world, "linked_const_table", NO_PIE),
            BOUND_BEFORE,
        ),
        // By way of a library.
        cuda(
            "library linked to the driver",
            |world| wrapped(world, "global"),
            &[&["gmon", "sweep"], &["sched", "sweep"], &["dlopen", "dlsym", "sweep"]],
        ),
        cuda(
            "library opened with DEEPBIND",
            |world| wrapped(world, "deepbind"),
            &[&["gmon", "sweep"], &["dlopen", "dlsym", "sweep"]],
        ),
        cuda(
            "library opened by dlmopen",
            |world| wrapped(world, "namespace"),
            &[&["dlmopen", "dlsym", "sweep"]],
        ),
        cuda(
            "constructor of a needed library",
            needs_early,
            &[&["gmon", "sweep"], &["sched", "sweep"]],
        ),
        // By another file name.
        cuda("a link of another name", |world| linked_as(world, "libcuda.so.1"), LOOK_UP),
        cuda("a copy under another name", |world| copied(world, "libcuda.so.1"), LOOK_UP),
        cuda("by the number of an open file", |world| numbered(world, "descriptor"), LOOK_UP),
        cuda("a copy without a file name", |world| numbered(world, "memory"), LOOK_UP),
        // Under conditions.
        cuda("two copies of the shim", two_copies, LOOK_UP),
        cuda("no page may gain execution", no_exec_gain, LOOK_UP),
        cuda("sealed pages, dlsym", sealed, &[&["dlsym"]]),
        cuda("AddressSanitizer, gcc", |world| sanitized(world, GCC_ASAN), LOOK_UP),
        cuda("ThreadSanitizer, gcc", |world| sanitized(world, GCC_TSAN), LOOK_UP),
        cuda("AddressSanitizer, clang", |world| sanitized(world, CLANG_ASAN), LOOK_UP),
        cuda("ThreadSanitizer, clang", |world| sanitized(world, CLANG_TSAN), LOOK_UP),
        // NVML.
        nvml("NVML opened now", |world| Ok(plain(world, "open_nvml")?.arg("now")), NVML_LOOK_UP),
        nvml(
            "NVML opened lazily",
            |world| Ok(plain(world, "open_nvml")?.arg("lazy")),
            NVML_LOOK_UP,
        ),
        nvml(
            "NVML linked",
            |world| linked(world, "nvml_linked", &["-lnvidia-ml"]),
            &[&["gmon", "sweep"], &["constructor", "sweep"]],
        ),
        nvml("NVML by another name", |world| linked_as(world, "libnvidia-ml.so.1"), NVML_LOOK_UP),
        nvml("NVML by libc's dlsym", |world| plain(world, "nvml_dlsym_of_libc"), &[&["gmon"]]),
    ]
}

const NOW: &[&str] = &["-Wl,-z,relro,-z,now"];
const NO_PLT: &[&str] = &["-fno-plt"];
const NO_PIE: &[&str] = &["-no-pie", "-fno-pie", "-Wl,-z,relro,-z,now"];

/// How a program is built for a sanitizer whose runtime is inside the program. With the runtime as a shared library
/// the sanitizer refuses any preload at all.
struct Sanitizer {
    compiler: Compiler,
    flags: &'static [&'static str],
    /// The thread sanitizer wants an address space that is not shuffled.
    unshuffled: bool,
}

const GCC_ASAN: Sanitizer = Sanitizer {
    compiler: Compiler::Cc,
    flags: &["-fsanitize=address", "-static-libasan"],
    unshuffled: false,
};
const GCC_TSAN: Sanitizer = Sanitizer {
    compiler: Compiler::Cc,
    flags: &["-fsanitize=thread", "-static-libtsan"],
    unshuffled: true,
};
const CLANG_ASAN: Sanitizer =
    Sanitizer { compiler: Compiler::Clang, flags: &["-fsanitize=address"], unshuffled: false };
const CLANG_TSAN: Sanitizer =
    Sanitizer { compiler: Compiler::Clang, flags: &["-fsanitize=thread"], unshuffled: true };

fn plain(world: &World, source: &'static str) -> Result<Run> {
    world.run(&Program::new(source).build()?)
}

fn linked(world: &World, source: &'static str, flags: &[&'static str]) -> Result<Run> {
    world.run(&Program::new(source).flags(&["-lcuda"]).flags(flags).build()?)
}

fn bind_now(world: &World) -> Result<Run> {
    Ok(linked(world, "linked", &["-Wl,-z,lazy"])?.env("LD_BIND_NOW", "1"))
}

fn wrapped(world: &World, how: &str) -> Result<Run> {
    let wrapper = Program::library("wrapper").flags(&["-lcuda"]).build()?;
    Ok(plain(world, "open_wrapper")?.arg(wrapper).arg(how))
}

/// The file of a driver library.
fn driver_file(world: &World, library: &str) -> Result<PathBuf> {
    let places = world.driver().libraries()?.into_iter();
    let multiarch = Path::new("/usr/lib").join(Machine::tested().triple());
    let places = places.chain([multiarch, "/usr/lib64".into()]);
    let mut files = places.map(|place| place.join(library));
    files.find(|file| file.exists()).ok_or_else(|| Stop::skip(format!("{library} not found")))
}

/// The program opens `other.so`, which `make` makes of the driver's file.
fn renamed(
    world: &World,
    library: &str,
    make: fn(PathBuf, &Path) -> std::io::Result<()>,
) -> Result<Run> {
    let run = plain(world, "open_file")?;
    let other = run.directory().join("other.so");
    make(driver_file(world, library)?, &other)?;
    Ok(run.arg(other).arg("path"))
}

fn linked_as(world: &World, library: &str) -> Result<Run> {
    renamed(world, library, |file, other| std::os::unix::fs::symlink(file, other))
}

fn copied(world: &World, library: &str) -> Result<Run> {
    renamed(world, library, |file, other| std::fs::copy(file, other).map(drop))
}

fn numbered(world: &World, how: &str) -> Result<Run> {
    Ok(plain(world, "open_file")?.arg(driver_file(world, "libcuda.so.1")?).arg(how))
}

fn needs_early(world: &World) -> Result<Run> {
    let early = Program::library("early").flags(&["-lcuda"]);
    // The link library stands for the driver while linking; it is not where the program will run.
    let flags = ["-Wl,--unresolved-symbols=ignore-in-shared-libs"];
    world.run(&Program::new("needs_early").needs(early).flags(&flags).build()?)
}

fn interposer_ahead(world: &World) -> Result<Run> {
    Ok(plain(world, "open_look")?.preload_before(Program::library("interposer").build()?))
}

fn interposer_behind(world: &World) -> Result<Run> {
    Ok(plain(world, "open_look")?.preload_after(Program::library("interposer").build()?))
}

fn sealed(world: &World) -> Result<Run> {
    Ok(plain(world, "open_look")?.preload_before(Program::library("sealer").build()?))
}

fn no_exec_gain(world: &World) -> Result<Run> {
    let wrapper = Program::new("no_exec_gain").build()?;
    Ok(plain(world, "open_look")?.through(&[wrapper.as_os_str()]))
}

/// A second shim from another file, as when the hook's and the user's own both come to be preloaded.
fn two_copies(world: &World) -> Result<Run> {
    let run = plain(world, "open_look")?;
    let Some(shim) = world.shim() else { return Ok(run) };
    let folder = run.directory().join("second");
    std::fs::create_dir(&folder)?;
    let copy = folder.join("libgpucap.so");
    std::fs::copy(shim, &copy)?;
    Ok(run.preload_after(copy))
}

fn sanitized(world: &World, sanitizer: Sanitizer) -> Result<Run> {
    Machine::not_emulated("a program built for a sanitizer does not start")?;
    let program =
        Program::new("open_look").compiler(sanitizer.compiler).flags(sanitizer.flags).build()?;
    // Looking for leaks at the end needs ptrace, and what a driver keeps is not ours.
    let run = world.run(&program)?.env("ASAN_OPTIONS", "detect_leaks=0");
    if sanitizer.unshuffled {
        Ok(run.through(&["setarch".as_ref(), "-R".as_ref()]))
    } else {
        Ok(run)
    }
}

fn ctypes(world: &World) -> Result<Run> {
    let script = project().join("tests/programs/routes/route.py");
    Ok(world.run(&python()?)?.arg("-S").arg(script))
}

/// The interpreter itself: `python3` on the path may be a script that starts it.
fn python() -> Result<PathBuf> {
    let output = Command::new("python3")
        .args(["-c", "import ctypes, sys; print(sys.executable)"])
        .output()
        .map_err(|error| Stop::skip(format!("python3: {error}")))?;
    if !output.status.success() {
        return Err(Stop::skip("python3 without ctypes"));
    }
    Ok(OsStr::new(String::from_utf8_lossy(&output.stdout).trim()).into())
}
