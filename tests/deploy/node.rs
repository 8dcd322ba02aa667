//! `node.sh`, on a node of stand-ins: `nsenter` runs what follows, `ctr` gives a specification, `systemctl` restarts
//! nothing and writes it down, or fails.
//!
//! The invariant: whenever containerd reads its configuration, what that names is there.

use crate::{ended, expect, script, tree};
use gpucap_tests::release::unpacked;
use gpucap_tests::{Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("node: installed, the configuration names a command that is there", installed),
        trial("node: NRI is switched on if asked for, and back when leaving", with_nri),
        trial("node: a second run restarts nothing", twice),
        trial("node: settings that cannot be used leave those before", settings),
        trial("node: a restart that failed is made up for", restart_fails),
        trial(
            "node: its cards are measured, and if they cannot be it is one all the same",
            measured,
        ),
        trial("node: uninstalled, nothing is left and containerd has read so", uninstalled),
        trial("node: files stay while containerd may still name them", leaving_fails),
        trial("node: a configuration whose files were removed is removed too", files_gone),
        trial("node: a broken configuration of containerd stops before anything names us", broken),
    ]
}

const TODAY: &str = "version = 2
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]
runtime_type = \"io.containerd.runc.v2\"
";

/// The DRA driver's own directory.
const OF_DRA: &str = "kubelet/plugins/slice.gpucap.io";

struct Node {
    scratch: Scratch,
    release: PathBuf,
}

impl Node {
    fn new() -> Result<Self> {
        let scratch = Scratch::new()?;
        let release = unpacked(&scratch)?;
        fs::copy(release.join("deploy/node.sh"), release.join("node.sh"))?;
        let node = Self { scratch, release };
        for place in ["bin", "etc", "opt", "cdi", OF_DRA] {
            fs::create_dir_all(node.path(place))?;
        }
        script(
            &node.path("bin/nsenter"),
            "[ \"$*\" != \"${*#-t 1 -m }\" ] || exit 9\nshift 3\nexec \"$@\"",
        )?;
        script(&node.path("bin/ctr"), "echo '{}'")?;
        // At the moment of a restart, what the configuration names must be there.
        let names = "base_runtime_spec = \"\\(.*\\)\"";
        let body = format!(
            "for spec in $(sed -n 's|.*{names}.*|\\1|p' {file}); do\n\
             for it in $(sed -n 's|.*\"path\": \"\\(.*\\)\".*|\\1|p' \"$spec\"); do\n\
             [ -x \"$it\" ] || echo \"missing $it\" >>{log}\ndone\ndone\n\
             [ ! -e {fails} ] || exit 1\necho \"$*\" >>{log}",
            file = node.path("config.toml").display(),
            log = node.path("log").display(),
            fails = node.path("fails").display(),
        );
        script(&node.path("bin/systemctl"), &body)?;
        let body = format!(
            "echo \"$*\" >>{}\n[ ! -e {} ]",
            node.path("measured").display(),
            node.path("no-card").display()
        );
        script(&node.path("bin/systemd-run"), &body)?;
        fs::write(node.path("config.toml"), TODAY)?;
        Ok(node)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn run(&self, word: &str, well: bool) -> Result<String> {
        self.run_with(&[word], well)
    }

    fn run_with(&self, words: &[&str], well: bool) -> Result<String> {
        let path = env::var("PATH").map_err(Stop::fail)?;
        let mut command = Command::new(self.release.join("node.sh"));
        command.args(words).env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("HOST", "").env("PREFIX", self.path("opt/gpucap"));
        command.env("ETC", self.path("etc/gpucap")).env("CONTAINERD", self.path("config.toml"));
        command.env("KUBELET", self.path("kubelet")).env("CDI", self.path("cdi"));
        command.env("SETTINGS", self.path("settings.json"));
        ended(&mut command, well)
    }

    /// Fails unless containerd was restarted that often, and each time found what its configuration named.
    fn restarts(&self, times: usize) -> Result {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let expected = "restart containerd\n".repeat(times);
        expect(log == expected, || format!("not {times} restarts: {log}"))
    }

    fn configured(&self) -> Result<bool> {
        Ok(fs::read_to_string(self.path("config.toml"))?.contains("runtimes.gpucap"))
    }
}

fn installed() -> Result {
    let node = Node::new()?;
    fs::write(node.path("settings.json"), "{}")?;
    node.run("install", true)?;
    node.restarts(1)?;
    expect(node.configured()?, || "containerd was not told".into())?;
    let specification = fs::read_to_string(node.path("etc/gpucap/base-spec.json"))?;
    let command = node.path("opt/gpucap/current/bin/gpucap").display().to_string();
    expect(specification.contains(&command), || specification.clone())?;
    expect(fs::read_to_string(node.path("etc/gpucap/config.json"))? == "{}", || "settings".into())
}

fn with_nri() -> Result {
    let node = Node::new()?;
    let is_on = || -> Result<bool> {
        let text = fs::read_to_string(node.path("config.toml"))?;
        Ok(text.contains("io.containerd.nri.v1.nri") && text.contains("disable = false"))
    };
    node.run("install", true)?;
    expect(!is_on()?, || "switched on unasked".into())?;
    node.run_with(&["install", "--nri"], true)?;
    expect(is_on()?, || "not switched on".into())?;
    node.restarts(2)?;
    node.run("uninstall", true)?;
    let text = fs::read_to_string(node.path("config.toml"))?;
    expect(text == TODAY, || text)
}

fn twice() -> Result {
    let node = Node::new()?;
    node.run("install", true)?;
    // A new version neither: the link is what containerd knows.
    fs::write(node.release.join("VERSION"), "99")?;
    node.run("install", true)?;
    node.restarts(1)
}

fn settings() -> Result {
    let node = Node::new()?;
    let config = node.path("etc/gpucap/config.json");
    let holds = |text: &str| {
        let held = fs::read_to_string(&config).unwrap_or_default();
        expect(held == text, || format!("{held:?}, not {text:?}"))
    };
    // What the hook is told to read is there.
    node.run("install", true)?;
    holds("{}\n")?;
    fs::write(node.path("settings.json"), "{\"lending\": \"allowed\"}")?;
    node.run("install", true)?;
    fs::write(node.path("settings.json"), "{bad")?;
    let said = node.run("install", false)?;
    expect(said.contains("config.json.new"), || said)?;
    holds("{\"lending\": \"allowed\"}")
}

fn measured() -> Result {
    let node = Node::new()?;
    node.run("install", true)?;
    let command = node.path("opt/gpucap/current/bin/gpucap");
    let config = node.path("etc/gpucap/config.json");
    let (command, config) = (command.display(), config.display());
    let expected = format!(
        "--quiet --pipe --wait --collect {command} calibrate --if-needed --config {config}\n"
    );
    let seen = fs::read_to_string(node.path("measured"))?;
    expect(seen == expected, || seen)?;
    fs::write(node.path("no-card"), "")?;
    let said = node.run("install", true)?;
    expect(said.contains("not calibrated; run "), || said)?;
    expect(node.configured()?, || "containerd was not told".into())
}

fn restart_fails() -> Result {
    let node = Node::new()?;
    fs::write(node.path("fails"), "")?;
    node.run("install", false)?;
    node.restarts(0)?;
    fs::remove_file(node.path("fails"))?;
    node.run("install", true)?;
    node.restarts(1)
}

fn uninstalled() -> Result {
    let node = Node::new()?;
    fs::write(node.path("settings.json"), "{}")?;
    node.run("install", true)?;
    // As the DRA driver leaves them, and beside them those of others.
    fs::write(node.path(OF_DRA).join("checkpoint.json"), "{}")?;
    fs::write(node.path("cdi/gpucap-claim-1.json"), "{}")?;
    fs::write(node.path("cdi/other.json"), "{}")?;
    node.run("uninstall", true)?;
    node.restarts(2)?;
    let text = fs::read_to_string(node.path("config.toml"))?;
    expect(text == TODAY, || text)?;
    let left = ["opt", "etc", "kubelet", "cdi"].map(|place| tree(&node.path(place)));
    let left = left.into_iter().collect::<Result<Vec<_>>>()?.concat();
    expect(left == ["plugins", "other.json"], || format!("left: {left:?}"))?;
    // The pod may be started anew.
    node.run("uninstall", true)?;
    node.restarts(2)
}

fn leaving_fails() -> Result {
    let node = Node::new()?;
    node.run("install", true)?;
    fs::write(node.path("fails"), "")?;
    node.run("uninstall", false)?;
    let command = node.path("opt/gpucap/current/bin/gpucap");
    expect(command.exists(), || "containerd still runs what is gone".into())?;
    fs::remove_file(node.path("fails"))?;
    node.run("uninstall", true)?;
    node.restarts(2)?;
    expect(!command.exists(), || "the files were left".into())
}

fn files_gone() -> Result {
    let node = Node::new()?;
    node.run("install", true)?;
    fs::remove_dir_all(node.path("opt/gpucap"))?;
    node.run("uninstall", true)?;
    expect(!node.configured()?, || "the configuration names what is gone".into())?;
    node.restarts(2)
}

fn broken() -> Result {
    let node = Node::new()?;
    fs::write(node.path("config.toml"), "version = \n")?;
    node.run("install", false)?;
    node.restarts(0)?;
    expect(!node.path("etc/gpucap/base-spec.json").exists(), || "it was written".into())
}
