//! What a container that asked for a slice gets, whatever kind of container it is.

use crate::container::Container;
use crate::image::{Image, add, add_nvidia_smi};
use crate::mounts::ours;
use crate::runtime::Runtime;
use crate::{GIB, OUT_OF_MEMORY, SUCCESS, expect, trials_of};
use gpucap_tests::{Actor, Answer, Build, Driver, Output, Program, Result, Run, Stop};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("the first process and one that is executed later share the limit", first_and_later),
        ("a larger limit in the environment of exec buys nothing", exec_cannot_raise),
        ("an empty environment buys nothing", no_environment),
        ("its root may be read-only", read_only),
        ("its user need not be root", other_user),
        ("it may have a user namespace", user_namespace),
        ("the umask of the caller has no say", umask),
        ("the image's own list stays behind our line", own_list),
        ("the hook may run twice", twice),
        ("a description of 2 MiB is read", long_description),
        ("one that did not ask is not touched", not_asked),
        ("the host sees what it holds", status),
        ("many can start at once", many),
        ("the real nvidia-smi shows the slice", nvidia_smi),
        ("OpenCL is hidden", no_opencl),
        ("without a glibc it starts, and the log says so", without_glibc),
        ("the loader of Nix has a list of its own", nix),
        ("its mounts do not reach a host that shares its own", shared_host),
    ])
}

/// The actor as the container's first process, with a context on device 0.
pub(crate) fn begin(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    Ok(actor)
}

/// Fails unless the actor sees a card of 1 GiB, with the price of its contexts in use, and gets no more than that.
pub(crate) fn is_limited(actor: &mut Actor) -> Result {
    let answer = actor.call("total d 0")?;
    let expected = Answer { code: SUCCESS, value: GIB, extra: 0 };
    expect(answer == expected, || format!("total: {answer:?}"))?;
    actor.expect(&[(&format!("alloc a {GIB}"), OUT_OF_MEMORY), ("alloc a 1048576", SUCCESS)])
}

/// The same for the shell of a container whose actor cannot be reached.
pub(crate) const ASKS: &str =
    r"printf 'init\ncontext 0\ntotal d 0\nalloc a 1073741824\nalloc a 1048576\n' | /actor";

/// Fails unless these are the answers to [`ASKS`] in a container of 1 GiB.
pub(crate) fn answers_of_a_slice(printed: &str) -> Result {
    let first = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let codes: Vec<_> = printed.lines().map(first).collect();
    let total = printed.lines().any(|line| line.starts_with(&format!("{SUCCESS} {GIB} ")));
    expect(codes == ["0", "0", "0", "2", "0"] && total, || format!("not a slice: {printed}"))
}

/// The whole proof for one container: it starts, and its first process is limited.
pub(crate) fn is_enforced(container: &Container) -> Result {
    let result = begin(&container.run(&["/actor"])?).and_then(|mut actor| {
        is_limited(&mut actor)?;
        actor.end()?.success().map(drop)
    });
    // What the runtime does not show is in the log.
    result.map_err(|stop| stop.explained(|why| format!("{why}--- log\n{}", container.log())))
}

fn first_and_later(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let mut first = begin(&container.run(&["/actor"])?)?;
    is_limited(&mut first)?;
    let mut later = begin(&container.exec(&[], &["/actor"])?)?;
    is_limited(&mut later)?;
    // Two contexts of 256 MiB and 2 MiB: what is left for both.
    let left = GIB - (512 << 20) - (2 << 20);
    first.expect(&[(&format!("alloc b {left}"), SUCCESS)])?;
    later.expect(&[("alloc b 1", OUT_OF_MEMORY)])?;
    expect(container.records() == 1, || format!("{} records", container.records()))?;
    later.end()?;
    first.end()?.success()?;
    expect(container.records() == 0, || "a record of one that is over".into())
}

fn exec_cannot_raise(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let mut first = begin(&container.run(&["/actor"])?)?;
    let raised = ["--env", "GPU_MEM_LIMIT=64Gi", "--env", "GPUCAP_LEDGER=/tmp/own"];
    is_limited(&mut begin(&container.exec(&raised, &["/actor"])?)?)?;
    let mut lowered = begin(&container.exec(&["--env", "GPU_MEM_LIMIT=512Mi"], &["/actor"])?)?;
    let answer = lowered.call("total d 0")?;
    expect(answer.value == GIB / 2, || format!("{answer:?}"))?;
    lowered.end()?;
    first.end().map(drop)
}

fn no_environment(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let words = ["env", "-i", "STUB_GPU_DIR=/tmp", "STUB_GPU_CONTEXT_MEM=0", "/actor"];
    let mut actor = begin(&container.run(&words)?)?;
    is_limited(&mut actor)?;
    actor.end().map(drop)
}

fn read_only(runtime: Runtime) -> Result {
    is_enforced(&Container::new(runtime)?.with(|config| config["root"]["readonly"] = json!(true)))
}

fn other_user(runtime: Runtime) -> Result {
    let user = json!({"uid": 1000, "gid": 1000});
    is_enforced(&Container::new(runtime)?.with(|config| config["process"]["user"] = user))
}

fn user_namespace(runtime: Runtime) -> Result {
    is_enforced(&Container::new(runtime)?.with_users_of_its_own())
}

fn umask(runtime: Runtime) -> Result {
    let user = json!({"uid": 1000, "gid": 1000});
    for mask in ["000", "077"] {
        let container = Container::new(runtime)?.prepare(format!("umask {mask}"));
        is_enforced(&container.clone().with(|config| config["process"]["user"] = user.clone()))?;
        let mode = |path: &str| -> Result<u32> {
            use std::os::unix::fs::PermissionsExt;
            Ok(fs::metadata(container.root().join(path))?.permissions().mode() & 0o777)
        };
        let modes = (mode(".gpucap")?, mode("etc/ld.so.preload")?);
        expect(modes == (0o755, 0o644), || format!("umask {mask}: {:o} {:o}", modes.0, modes.1))?;
    }
    Ok(())
}

fn own_list(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let library = Program::library("witness").flags(&["-DWITNESS=\"/tmp/witness\""]).build()?;
    add(&container.root(), &library, "opt/own.so")?;
    fs::write(container.root().join("etc/ld.so.preload"), "/opt/own.so\n")?;
    let seen = container.output(&["cat", "/etc/ld.so.preload", "/tmp/witness"])?.success()?;
    let expected = "/.gpucap/libgpucap.so\n/opt/own.so\n/bin/cat\n";
    expect(seen.stdout.ends_with(expected), || seen.to_string())?;
    let image = fs::read_to_string(container.root().join("etc/ld.so.preload"))?;
    expect(image == "/opt/own.so\n", || format!("the image's list was changed: {image}"))?;
    is_enforced(&container)
}

fn twice(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let hook = container.hook("createRuntime", &[])?;
    let older = container.hook("prestart", &[])?;
    let container = container.with(|config| {
        config["hooks"]["createRuntime"] = json!([hook, hook]);
        config["hooks"]["prestart"] = json!([older]);
    });
    let mounts = container.output(&["cat", "/proc/self/mountinfo"])?.success()?;
    let count = mounts.stdout.matches(" /.gpucap").count();
    expect(count == 3, || mounts.to_string())?;
    let log = container.log();
    expect(log.matches("was limited already").count() == 2, || log)?;
    // The container is started again: its root has the places already.
    is_enforced(&container)
}

fn long_description(runtime: Runtime) -> Result {
    let long = "x".repeat(2 << 20);
    is_enforced(
        &Container::new(runtime)?.with(|config| config["annotations"] = json!({"long": long})),
    )
}

fn not_asked(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.env("GPU_MEM_LIMIT=");
    let seen = container.output(&["cat", "/proc/self/mountinfo"])?.success()?;
    expect(ours(&seen.stdout).is_empty(), || seen.to_string())?;
    let root = container.root();
    expect(!root.join(".gpucap").exists(), || "/.gpucap was made".into())?;
    expect(!root.join("etc/ld.so.preload").exists(), || "the list was made".into())?;
    expect(container.log().is_empty() && container.records() == 0, || container.log())
}

fn status(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let run = container.run(&["/actor"])?;
    let mut actor = begin(&run)?;
    let mut other = begin(&container.exec(&[], &["/actor"])?)?;
    other.expect(&[(&format!("alloc a {}", 64 << 20), SUCCESS)])?;
    let config = container.path("node.json").display().to_string();
    let gpucap = Build::shipped()?.gpucap()?;
    let look = || run.clone().program(&gpucap).arg("status").arg("--config").arg(&config);
    let row = look().output()?.success()?;
    expect(row.stdout.contains("576 MiB / 1 GiB"), || row.to_string())?;
    let seen = look().arg("--verbose").output()?.success()?;
    for text in [&format!("Container {}", container.id()), "*: memory 1GiB", "576 MiB of 1 GiB"] {
        expect(seen.stdout.contains(text), || format!("no `{text}` in: {seen}"))?;
    }
    // What the dead held is not in use, though no process in the container has looked yet.
    other.kill()?;
    container.exec(&[], &["true"])?.output()?;
    let seen = look().arg("--json").output()?.success()?;
    let value: Value = serde_json::from_str(&seen.stdout).map_err(Stop::fail)?;
    let ledgers = value["ledgers"].as_array().cloned().unwrap_or_default();
    let ledger = ledgers.iter().find(|it| it["container"]["id"] == container.id());
    let ledger = ledger.ok_or_else(|| Stop::fail(&seen))?;
    let device = &ledger["devices"][0];
    expect(device["cap_bytes"] == GIB && device["processes"][0]["state"] == "alive", || {
        seen.to_string()
    })?;
    actor.end().map(drop)
}

fn many(runtime: Runtime) -> Result {
    let containers = (0..8).map(|_| Container::new(runtime)).collect::<Result<Vec<_>>>()?;
    let runs = containers.iter().map(|it| it.run(&["/actor"])).collect::<Result<Vec<_>>>()?;
    // All of them start before one is spoken to.
    let mut actors = runs.iter().map(Run::start).collect::<Result<Vec<_>>>()?;
    for actor in &mut actors {
        actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
        is_limited(actor)?;
    }
    actors.iter_mut().try_for_each(|actor| actor.end().map(drop))
}

fn nvidia_smi(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    add_nvidia_smi(&container.root(), &Driver::Real("535"))?;
    let words = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader"];
    let seen = container.output(&words)?.success()?;
    expect(seen.stdout.trim() == "1024 MiB", || seen.to_string())
}

fn no_opencl(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let vendors = container.root().join("etc/OpenCL/vendors");
    fs::create_dir_all(&vendors)?;
    for name in ["nvidia.icd", "other.icd"] {
        fs::write(vendors.join(name), "libnvidia-opencl.so.1\n")?;
    }
    let seen = |name: &str| -> Result<Output> {
        container.output(&["cat", &format!("/etc/OpenCL/vendors/{name}")])?.success()
    };
    let (hidden, other) = (seen("nvidia.icd")?, seen("other.icd")?);
    expect(!hidden.stdout.contains("libnvidia"), || hidden.to_string())?;
    expect(other.stdout.contains("libnvidia"), || other.to_string())
}

fn nix(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let seen = ["cat", "/etc/ld-nix.so.preload"];
    let none = container.output(&seen)?;
    expect(none.code() == Some(1), || none.to_string())?;
    fs::create_dir_all(container.root().join("nix/store"))?;
    fs::write(container.root().join("etc/ld-nix.so.preload"), "/nix/a.so\n")?;
    let list = container.output(&seen)?.success()?;
    expect(list.stdout == "/.gpucap/libgpucap.so\n/nix/a.so\n", || list.to_string())?;
    is_enforced(&container)?;
    // Its loader is none that could be looked at.
    let container = Container::of(runtime, Image::Static)?;
    fs::create_dir_all(container.root().join("nix/store"))?;
    container.output(&["/actor"])?.success()?;
    expect(container.log().contains("/nix/store"), || container.log())
}

fn without_glibc(runtime: Runtime) -> Result {
    let container = Container::of(runtime, Image::Static)?;
    container.output(&["/actor"])?.success()?;
    expect(container.log().contains("no glibc"), || container.log())
}

fn shared_host(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    let run = container.run(&["cat", "/proc/self/mountinfo"])?;
    let after = "\"$@\"; echo; cat /proc/self/mountinfo";
    let words = ["unshare", "--mount", "--propagation", "shared", "sh", "-c", after, "sh"];
    let seen = run.through(&words.map(std::ffi::OsStr::new)).output()?.success()?;
    expect(container.log().contains("limited"), || container.log())?;
    let (within, host) = seen.stdout.split_once("\n\n").unwrap_or_default();
    expect(host.contains(" shared:"), || seen.to_string())?;
    expect(ours(host).is_empty(), || seen.to_string())?;
    // What the container mounted on one of a group would be mounted on all of them.
    let ours = ours(within);
    let is_shared = ours.iter().any(|line| line.contains(" shared:"));
    expect(ours.len() > 2 && !is_shared, || seen.to_string())
}
