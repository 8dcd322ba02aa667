//! A container that asked for a slice and cannot be held to it: it prints nothing and leaves nothing.

use crate::container::Container;
use crate::enforced::is_enforced;
use crate::image::Image;
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::{Build, Program, Result};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("a limit that cannot be used", bad_limit),
        ("each refusal is counted by its reason, for metrics", counted),
        ("a C library that is too old for ours", old_glibc),
        ("a root that cannot be written", unwritable_root),
        ("a library that is not there", no_library),
        ("a node's configuration that is named and not there", no_configuration),
        ("a library that is no file holds nothing up", no_file),
        ("a library that is not ours is not taken for it", other_library),
        ("a stage that is not known", unknown_stage),
        ("a hook that is killed at any of its steps", killed),
        ("a kernel without the newer means does as well", old_kernel),
        ("a library on a mount without programs is loaded all the same", no_programs),
        ("an image can be checked beforehand", checked),
        ("an image's preload is not loaded into the hook", preloaded_image),
    ])
}

/// Fails unless the container did not start, and for this reason.
pub(crate) fn refuses(container: &Container, reason: &str) -> Result {
    let host = mounts(container)?;
    let output = container.output(&["env"])?;
    expect(output.code() != Some(0), || format!("it ran: {output}"))?;
    expect(output.stdout.is_empty(), || format!("it printed: {output}"))?;
    // crun keeps what a hook says to itself.
    let said = output.stderr.clone() + &container.log();
    expect(said.contains(reason), || format!("no `{reason}` in: {said}"))?;
    expect(container.records() == 0, || "a record was left".into())?;
    expect(mounts(container)? == host, || "a mount was left".into())
}

/// The mounts of this machine on or of a file of the container. Other tests and engines make others.
fn mounts(container: &Container) -> Result<String> {
    let own = container.path("").display().to_string();
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter(|line| line.contains(&own)).collect::<Vec<_>>().join("\n"))
}

fn bad_limit(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.env("GPU_MEM_LIMIT=abc");
    refuses(&container, "GPU_MEM_LIMIT=\\\"abc\\\"")?;
    let log = container.log();
    expect(log.lines().count() == 1 && log.contains(container.id()), || log)
}

fn counted(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.env("GPU_MEM_LIMIT=abc");
    refuses(&container, "GPU_MEM_LIMIT=\\\"abc\\\"")?;
    refuses(&container, "GPU_MEM_LIMIT=\\\"abc\\\"")?;
    let config = container.path("node.json").display().to_string();
    // A refusal after the container's mount namespace was entered.
    let mut node = crate::container::json(container.path("node.json").as_path())?;
    let image = Container::of(runtime, Image::Old)?;
    node["log_file"] = json!(image.path("log"));
    fs::write(image.path("node.json"), node.to_string())?;
    refuses(&image, "its image has 1.")?;
    let gpucap = Build::shipped()?.gpucap()?;
    let metrics = Command::new(gpucap).args(["metrics", "--config", &config]).output()?;
    let text = String::from_utf8_lossy(&metrics.stdout).into_owned();
    for (reason, count) in [("request", 2), ("image", 1), ("node", 0)] {
        let line = format!("\ngpucap_containers_refused_total{{reason=\"{reason}\"}} {count}\n");
        expect(text.contains(&line), || format!("no {line} in: {text}"))?;
    }
    let refused = fs::metadata(container.path("run/refused/request"))?;
    expect(refused.permissions().mode() & 0o777 == 0o600, || format!("{refused:?}"))
}

fn old_glibc(runtime: Runtime) -> Result {
    refuses(&Container::of(runtime, Image::Old)?, "its image has 1.")
}

fn unwritable_root(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let root = container.root().display().to_string();
    let copy = container.path("copy");
    fs::create_dir(&copy)?;
    let copy = copy.display();
    // The file system itself is read-only, not only this mount of it.
    let mount = format!(
        "mount -t tmpfs own '{copy}'; cp -a '{root}/.' '{copy}'; mount --move '{copy}' '{root}'
         mount -o remount,ro '{root}'"
    );
    refuses(&container.prepare(mount), "read-only file system")
}

fn no_library(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let gpucap = container.path("gpucap");
    fs::copy(Build::shipped()?.gpucap()?, &gpucap)?;
    let hook = with_program(container.hook("createRuntime", &[])?, &gpucap.display().to_string());
    refuses(
        &container.with(|config| config["hooks"]["createRuntime"] = json!([hook])),
        "libgpucap.so",
    )
}

/// What it demanded is not known. A container without a GPU or a limit has nothing to do with it.
fn no_configuration(runtime: Runtime) -> Result {
    for env in ["NVIDIA_VISIBLE_DEVICES=all", "GPU_MEM_LIMIT=1Gi"] {
        let container = Container::plain(runtime, Image::Glibc)?.env(env);
        let hook = container.hook("createRuntime", &[])?;
        fs::remove_file(container.path("node.json"))?;
        let container = container.with(|config| config["hooks"]["createRuntime"] = json!([hook]));
        let output = container.output(&["env"])?;
        expect(output.code() != Some(0) && output.stdout.is_empty(), || {
            format!("{env}: {output}")
        })?;
    }
    let other = Container::plain(runtime, Image::Glibc)?;
    let hook = other.hook("createRuntime", &[])?;
    fs::remove_file(other.path("node.json"))?;
    let other = other.with(|config| config["hooks"]["createRuntime"] = json!([hook]));
    other.output(&["true"])?.success().map(drop)
}

fn no_file(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let fifo = container.path("fifo");
    crate::hostile::fifo(&fifo)?;
    let config = container.path("node.json");
    let mut node = crate::container::json(&config)?;
    node["library"] = json!(fifo);
    fs::write(&config, node.to_string())?;
    refuses(&container, "is no file")
}

/// It would be preloaded everywhere, and limit nothing.
fn other_library(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let config = container.path("node.json");
    let mut node = crate::container::json(&config)?;
    node["library"] = json!(Build::shipped()?.stub_directory()?.join("libcuda.so.1"));
    fs::write(&config, node.to_string())?;
    refuses(&container, "another library than libgpucap.so")?;
    let gpucap = Build::shipped()?.gpucap()?;
    let run = container.run(&["true"])?.program(&gpucap).arg("check").arg(container.root());
    let output = run.arg("--config").arg(config).output()?;
    let is_said = output.stderr.contains("another library than libgpucap.so");
    expect(output.code() == Some(1) && is_said, || output.to_string())
}

fn unknown_stage(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let hook = container.hook("createContainer", &[])?;
    let container = container.with(|config| config["hooks"]["createRuntime"] = json!([hook]));
    let output = container.output(&["env"])?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())
}

/// The system calls by which the hook gets on, in the order in which it first makes them.
const STEPS: [libc::c_long; 6] = [
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_move_mount,
    libc::SYS_renameat,
];

fn killed(runtime: Runtime) -> Result {
    let forbid = Program::new("forbid").build()?.display().to_string();
    for step in STEPS {
        let container = Container::new(runtime)?;
        let hook = container.hook("createRuntime", &[&forbid, "kill", &step.to_string()])?;
        let container = container.with(|config| config["hooks"]["createRuntime"] = json!([hook]));
        let output = container.output(&["env"])?;
        expect(output.code() != Some(0), || format!("{step}: it ran: {output}"))?;
        expect(output.stdout.is_empty(), || format!("{step}: it printed: {output}"))?;
        // What it left does not keep the container from starting next time.
        let hook = container.hook("createRuntime", &[])?;
        is_enforced(&container.with(|config| config["hooks"]["createRuntime"] = json!([hook])))?;
    }
    Ok(())
}

/// What Linux 5.12 has and 4.18 lacks.
pub(crate) const NEWER: [libc::c_long; 7] = [
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_openat2,
    libc::SYS_mount_setattr,
];

fn old_kernel(runtime: Runtime) -> Result {
    let forbid = Program::new("forbid").build()?.display().to_string();
    let container = Container::new(runtime)?;
    let numbers = NEWER.map(|number| number.to_string()).join(",");
    let words = [forbid.as_str(), &libc::ENOSYS.to_string(), &numbers];
    let hook = container.hook("createRuntime", &words)?;
    // The second time it finds its own work.
    let container = container.with(|config| config["hooks"]["createRuntime"] = json!([hook, hook]));
    is_enforced(&container)?;
    expect(container.log().contains("was limited already"), || container.log())?;
    let read_only = container.with(|config| config["root"]["readonly"] = json!(true));
    is_enforced(&read_only)
}

fn no_programs(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let (bin, lib) = (container.path("bin"), container.path("lib/gpucap"));
    fs::create_dir_all(&bin)?;
    fs::create_dir_all(&lib)?;
    fs::copy(Build::shipped()?.gpucap()?, bin.join("gpucap"))?;
    fs::copy(Build::shipped()?.shim()?, lib.join("libgpucap.so"))?;
    let hook = with_program(
        container.hook("createRuntime", &[])?,
        &bin.join("gpucap").display().to_string(),
    );
    let lib = lib.display();
    let mount = format!("mount --bind '{lib}' '{lib}'; mount -o remount,bind,noexec '{lib}'");
    is_enforced(
        &container.with(|config| config["hooks"]["createRuntime"] = json!([hook])).prepare(mount),
    )
}

fn preloaded_image(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let witness = container.path("witness").display().to_string();
    let flag: &'static str = Box::leak(format!("-DWITNESS=\"{witness}\"").into_boxed_str());
    let library = Program::library("witness").flags(&[flag]).build()?;
    fs::copy(library, container.root().join("evil.so"))?;
    let container = container.env("LD_PRELOAD=./evil.so");
    is_enforced(&container)?;
    let loaded = fs::read_to_string(&witness).unwrap_or_default();
    expect(loaded.is_empty(), || format!("on the host it was loaded into {loaded}"))
}

fn checked(runtime: Runtime) -> Result {
    for (image, code) in [(Image::Glibc, 0), (Image::Static, 3), (Image::Old, 6)] {
        let container = Container::of(runtime, image)?;
        let gpucap = Build::shipped()?.gpucap()?;
        let run = container.run(&["true"])?.program(&gpucap).arg("check").arg(container.root());
        let output = run.arg("--config").arg(container.path("node.json")).output()?;
        expect(output.code() == Some(code), || format!("{image:?}: {output}"))?;
    }
    let container = Container::new(runtime)?;
    let etc = container.root().join("etc");
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o700))?;
    let gpucap = Build::shipped()?.gpucap()?;
    let run = container.run(&["true"])?.program(&gpucap).arg("check").arg(container.root());
    let output = run.arg("--config").arg(container.path("node.json")).output()?;
    let is_said = output.stdout.contains("/etc cannot be entered by all users");
    expect(output.code() == Some(6) && is_said, || output.to_string())
}

/// The same hook with another program.
fn with_program(mut hook: serde_json::Value, program: &str) -> serde_json::Value {
    hook["path"] = json!(program);
    hook["args"][0] = json!(program);
    hook
}
