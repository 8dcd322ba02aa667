//! CRI-O as the kubelet meets it, on a node that `gpucap configure crio` has told: every pod is under the hook, of
//! whatever runtime class.
//!
//! No distribution that the tests know packages it: it is taken from `PATH`, with the two programs that it needs, and
//! skipped aloud without them. Its images are podman's, which has the same store.

use crate::enclosure::{Daemon, Enclosure, Userland};
use crate::enforced::{ASKS, answers_of_a_slice};
use crate::expect;
use crate::pods::{Node, are_the_same, conventions, no_network, seen_by_itself};
use gpucap_tests::{Build, Result, fetched, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;

/// A rule, and the test that holds it for one runtime.
type Rule = (&'static str, fn(Engine) -> Result);

/// Whose userland CRI-O finds, and which runtime of it: a crun before 1.14 does not know the specification's version.
type Engine = (Userland, &'static str);

const ENGINES: [Engine; 4] = [
    (Userland::Machine, "runc"),
    (Userland::Release("trixie"), "crun"),
    (Userland::Release("forky"), "crun"),
    (Userland::Release("forky"), "runc"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let rules: [Rule; 9] = [
        ("a pod is limited, first process and what is executed", limited),
        ("the annotations of each convention reach the planner", annotations),
        ("a pod with users of its own is limited", own_users),
        ("pods that share a card read each other's usage pages", peers),
        ("a container that outlives its CRI-O stays limited", restarted),
        ("the plugin shows the limit, and its refusal is what the kubelet is told", plugin),
        ("the hook holds beside a plugin that hangs", hanging),
        ("a pod that asks for nothing is as it would be without us", the_same),
        ("what was configured can be taken out again", undone),
    ];
    let pairs = ENGINES.into_iter().flat_map(|engine| rules.map(|rule| (engine, rule)));
    let name = |(userland, runtime): Engine| format!("CRI-O, {runtime} of {}", userland.name());
    pairs
        .map(|(engine, (rule, test))| {
            trial(format!("{}: {rule}", name(engine)), move || test(engine))
        })
        .collect()
}

const SOCKET: &str = "/run/crio/crio.sock";
const IMAGE: &str = "localhost/gpucap-test:1";
/// The last that it says before it answers: about NRI, which it always has.
const READY: &str = "starting plugins...";

/// A machine with a CRI-O; it does not run yet.
fn machine((userland, runtime): Engine) -> Result<Enclosure> {
    fetched::in_path("crio")?;
    let pinns = fetched::in_path("pinns")?.display().to_string();
    let enclosure = Enclosure::new(userland, "usr/bin/conmon")?;
    let program = enclosure.output(&["sh", "-c", "command -v \"$1\"", "sh", runtime])?;
    let text = format!(
        "[crio.api]\nstream_address = \"127.0.0.1\"\n\
         [crio.image]\npause_image = \"{IMAGE}\"\npause_command = \"\"\n\
         [crio.network]\nplugin_dirs = [\"/usr/lib/cni\"]\n\
         [crio.runtime]\ncgroup_manager = \"cgroupfs\"\nconmon_cgroup = \"pod\"\n\
         disable_hostport_mapping = true\n\
         pinns_path = \"{pinns}\"\ndefault_runtime = \"{runtime}\"\n\
         [crio.runtime.runtimes.{runtime}]\nruntime_path = \"{}\"\nmonitor_cgroup = \"pod\"\n",
        program.trim()
    );
    fs::create_dir(enclosure.path("/etc/crio"))?;
    fs::write(enclosure.path("/etc/crio/crio.conf"), text)?;
    no_network(&enclosure)?;
    Ok(enclosure)
}

/// `gpucap configure crio` in it, as an administrator says it.
fn configure(enclosure: &Enclosure, options: &[&str]) -> Result<String> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    enclosure.output(&[&[gpucap.as_str(), "configure", "crio"], options].concat())
}

fn start(enclosure: &Enclosure) -> Result<Daemon> {
    enclosure.daemon(&[&fetched::in_path("crio")?.display().to_string()], READY)
}

/// A node of such a machine, told or not.
pub(crate) fn serving(enclosure: Enclosure) -> Result<Node> {
    let daemon = start(&enclosure)?;
    Node::new(enclosure, daemon, SOCKET, IMAGE, |enclosure, file| {
        enclosure.output(&["podman", "load", "--quiet", "--input", file]).map(drop)
    })
}

fn node(engine: Engine) -> Result<Node> {
    let enclosure = machine(engine)?;
    configure(&enclosure, &[])?;
    serving(enclosure)
}

fn limited(engine: Engine) -> Result {
    let node = node(engine)?;
    let pod = node.pod("", json!({}))?;
    let first = format!("{ASKS}; exec sleep infinity");
    let container = pod.container("app", &["sh", "-c", &first], ("GPU_MEM_LIMIT", "1Gi"))?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    pod.first_was_limited("app")?;
    let mut said = pod.refused()?;
    if engine.1 == "crun" {
        // It keeps what a hook says to itself, and tells the kubelet our status alone.
        expect(said.contains("(exit code: 6)"), || said.clone())?;
        said = fs::read_to_string(node.enclosure.path("/var/log/gpucap.log"))?.replace('\\', "");
    }
    expect(said.contains("environment GPU_MEM_LIMIT=\"abc\""), || said)?;
    pod.end()?;
    // Its file of hooks has no place for `poststop`.
    node.enclosure.output(&[&Build::shipped()?.gpucap()?.display().to_string(), "gc"])?;
    let records = fs::read_dir(node.enclosure.path("/run/gpucap/containers"))?.count();
    expect(records == 0, || format!("{records} records of pods that are over"))
}

fn annotations(engine: Engine) -> Result {
    conventions(&node(engine)?, "")
}

fn own_users(engine: Engine) -> Result {
    node(engine)?.limits_own_users("")
}

fn peers(engine: Engine) -> Result {
    let node = node(engine)?;
    node.shows_peers("")?;
    // Its file of hooks has one stage: what `poststop` does elsewhere, this does, or the next start.
    node.enclosure.output(&[&Build::shipped()?.gpucap()?.display().to_string(), "gc"])?;
    node.has_no_pages()
}

fn restarted(engine: Engine) -> Result {
    let node = node(engine)?;
    let pod = node.pod("", json!({}))?;
    let container = pod.container("app", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "1Gi"))?;
    node.enclosure.stop(&node.daemon)?;
    let _daemon = start(&node.enclosure)?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    pod.end()
}

/// What the plugin says once it is asked.
const ASKED: &str = "asks 10-gpucap";

/// The plugin, once it is asked.
fn plugin_of(node: &Node) -> Result<Daemon> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    node.enclosure.daemon(&[&gpucap, "nri"], ASKED)
}

/// A container that asks for 1 GiB is limited; what a command in it sees in its environment.
fn seen(node: &Node) -> Result<String> {
    let pod = node.pod("", json!({"gpucap/core-pct": "30"}))?;
    let container = pod.container("app", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "1Gi"))?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    let limits = pod.exec(&container, &["cat", "/.gpucap/limits"])?;
    expect(limits.contains("\ngpu=*\nmem=1073741824\ncore=30%\n"), || limits)?;
    let env = pod.exec(&container, &["env"])?;
    pod.end()?;
    Ok(env)
}

fn plugin(engine: Engine) -> Result {
    let node = node(engine)?;
    let _plugin = plugin_of(&node)?;
    let env = format!("\n{}", seen(&node)?);
    for entry in ["\nGPU_MEM_LIMIT=1GiB\n", "\nGPU_CORE_PCT=30%\n"] {
        expect(env.contains(entry), || format!("no {entry} in {env}"))?;
    }
    let pod = node.pod("", json!({}))?;
    let said = pod.refused()?;
    let why = "is not made: environment GPU_MEM_LIMIT=\"abc\"";
    expect(
        said.starts_with("gpucap: nri: container bad of pod test/") && said.contains(why),
        || said,
    )?;
    pod.end()
}

fn hanging(engine: Engine) -> Result {
    let node = node(engine)?;
    let plugin = plugin_of(&node)?;
    node.enclosure.signal(&plugin, "STOP")?;
    let env = seen(&node)?;
    expect(!env.contains("GPU_MEM_LIMIT=1GiB"), || format!("it did not hang: {env}"))?;
    node.enclosure.signal(&plugin, "CONT")?;
    plugin.says(ASKED)?;
    let env = seen(&node)?;
    expect(env.contains("GPU_MEM_LIMIT=1GiB"), || format!("it did not come back: {env}"))
}

fn the_same(engine: Engine) -> Result {
    let node = node(engine)?;
    let ours = seen_by_itself(&node, "")?;
    drop(node);
    are_the_same(&ours, &seen_by_itself(&serving(machine(engine)?)?, "")?)
}

fn undone(engine: Engine) -> Result {
    let enclosure = machine(engine)?;
    configure(&enclosure, &[])?;
    configure(&enclosure, &["--undo"])?;
    let node = serving(enclosure)?;
    let pod = node.pod("", json!({}))?;
    let container = pod.container("free", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "abc"))?;
    let mounts = pod.exec(&container, &["cat", "/proc/self/mountinfo"])?;
    expect(!mounts.contains(" /.gpucap"), || mounts)?;
    pod.end()
}
