//! One container: its bundle, how a runtime starts it, and what the hook left on the host.
//!
//! A runtime runs with a state directory of its own. What a container needs that a test cannot do without touching the
//! machine (unmounting, mounting) is done in a mount namespace that ends with the command.

use crate::image::Image;
use crate::node::Node;
use crate::runtime::Runtime;
use gpucap_tests::{Build, Driver, Output, Program, Result, Run, Scratch, Stop, World};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A container that does not run yet.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    runtime: Runtime,
    id: String,
    config: Value,
    prepare: Vec<String>,
    /// Words that stand before those of the runtime: a runtime that becomes it.
    through: Vec<String>,
    node: Option<Arc<Node>>,
    place: Arc<Place>,
}

/// Where it lies. Deleted, if it still runs, when it is no longer needed.
#[derive(Debug)]
struct Place {
    scratch: Scratch,
    runtime: Runtime,
    id: String,
}

impl Container {
    /// One with a glibc image, `GPU_MEM_LIMIT=1Gi`, and our hook at `createRuntime` and `poststop`.
    ///
    /// # Errors
    /// Skips without the runtime.
    pub(crate) fn new(runtime: Runtime) -> Result<Self> {
        Self::of(runtime, Image::Glibc)
    }

    /// One of another image.
    ///
    /// # Errors
    /// Skips without the runtime.
    pub(crate) fn of(runtime: Runtime, image: Image) -> Result<Self> {
        runtime.needed()?;
        let mut container = Self::plain(runtime, image)?;
        container.config["hooks"]["createRuntime"] = json!([container.hook("createRuntime", &[])?]);
        container.config["hooks"]["poststop"] = json!([container.hook("poststop", &[])?]);
        Ok(container.env("GPU_MEM_LIMIT=1Gi"))
    }

    /// One that has no hook and no limit.
    ///
    /// # Errors
    /// If its directory cannot be made.
    pub(crate) fn plain(runtime: Runtime, image: Image) -> Result<Self> {
        let id = unique();
        let scratch = Scratch::new()?;
        image.make(&scratch.path().join("root"))?;
        let place = Place { scratch, runtime, id: id.clone() };
        Ok(Self {
            runtime,
            id,
            config: config(),
            prepare: runtime.prepare()?,
            through: Vec::new(),
            node: None,
            place: Arc::new(place),
        })
    }

    /// Our hook, called through these words if there are any.
    ///
    /// # Errors
    /// If it is not built.
    pub(crate) fn hook(&self, stage: &str, through: &[&str]) -> Result<Value> {
        let gpucap = Build::shipped()?.gpucap()?.display().to_string();
        let mut words: Vec<&str> = through.to_vec();
        let node = json!({"run_dir": self.path("run"), "log_file": self.path("log")});
        let config = self.path("node.json");
        if !config.exists() {
            fs::write(&config, node.to_string())?;
        }
        let config = config.display().to_string();
        words.extend([gpucap.as_str(), "hook", stage, "--config", &config]);
        Ok(json!({"path": words[0], "args": words, "env": ["PATH=/usr/bin"], "timeout": 30}))
    }

    /// The same with the hooks of another command.
    #[must_use]
    pub(crate) fn called(self, gpucap: &Path) -> Self {
        self.with(|config| {
            for stage in ["createRuntime", "poststop"] {
                let hook = &mut config["hooks"][stage][0];
                hook["path"] = json!(gpucap);
                hook["args"][0] = json!(gpucap);
            }
        })
    }

    /// The same without hooks, made by `gpucap runtime`, which becomes the runtime.
    ///
    /// # Errors
    /// If it is not built.
    pub(crate) fn through_gpucap(mut self) -> Result<Self> {
        let config = self.path("node.json");
        let mut node = json(&config)?;
        node["next_runtime"] = json!([self.runtime.program()]);
        fs::write(&config, node.to_string())?;
        let gpucap = Build::shipped()?.gpucap()?.display().to_string();
        self.through =
            vec![gpucap, "runtime".into(), format!("--gpucap-config={}", config.display())];
        Ok(self.with(|config| config["hooks"] = json!({})))
    }

    /// The same on this node.
    ///
    /// # Errors
    /// If its hooks cannot be told.
    pub(crate) fn on(mut self, node: &Arc<Node>) -> Result<Self> {
        let config = self.path("node.json");
        let mut told = json(&config)?;
        told["run_dir"] = json!(node.path("run"));
        fs::write(&config, told.to_string())?;
        self.prepare.clear();
        self.node = Some(node.clone());
        Ok(self)
    }

    /// The words that stand before those of the runtime.
    pub(crate) fn through(&self) -> &[String] {
        &self.through
    }

    /// Changes its configuration.
    #[must_use]
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.config);
        self
    }

    /// Sets a variable of the image's environment.
    #[must_use]
    pub(crate) fn env(self, entry: &str) -> Self {
        let name = entry.split('=').next().unwrap_or(entry);
        self.with(|config| {
            if let Some(list) = config["process"]["env"].as_array_mut() {
                list.retain(|held| held.as_str().and_then(|it| it.split('=').next()) != Some(name));
                list.push(json!(entry));
            }
        })
    }

    /// Gives it a user namespace.
    #[must_use]
    pub(crate) fn with_users_of_its_own(self) -> Self {
        let mapping = json!([{"containerID": 0, "hostID": 100_000, "size": 65536}]);
        self.with(|config| {
            config["linux"]["uidMappings"] = mapping.clone();
            config["linux"]["gidMappings"] = mapping;
            if let Some(list) = config["linux"]["namespaces"].as_array_mut() {
                list.push(json!({"type": "user"}));
            }
        })
    }

    /// Adds a mount.
    #[must_use]
    pub(crate) fn mount(self, source: &Path, destination: &str, mode: &str) -> Self {
        let mount = json!({
            "destination": destination, "type": "bind", "source": source, "options": ["bind", mode],
        });
        self.with(|config| {
            if let Some(list) = config["mounts"].as_array_mut() {
                list.push(mount);
            }
        })
    }

    /// Has this done by the shell before the runtime starts, in a mount namespace of the command's own.
    #[must_use]
    pub(crate) fn prepare(mut self, command: String) -> Self {
        self.prepare.push(command);
        self
    }

    /// A file of the test, beside the root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.scratch.path().join(name)
    }

    /// The container's root.
    pub(crate) fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// The same with this id: each has a state directory of its own, as an engine has for each of its namespaces.
    #[must_use]
    pub(crate) fn with_id(mut self, id: &str) -> Self {
        self.id = id.into();
        self
    }

    /// The id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// `run` with these words as its first process.
    ///
    /// # Errors
    /// If the bundle cannot be written.
    pub(crate) fn run(&self, words: &[&str]) -> Result<Run> {
        self.write(words)?;
        let bundle = self.path("").display().to_string();
        if self.runtime.needs_an_engine() {
            let engine = Program::new("engine").build()?.display().to_string();
            return self.command(&[&engine, &self.id, &bundle], &[]);
        }
        self.command(&[], &["run", "--bundle", &bundle, &self.id])
    }

    /// `create` with these words as its first process, which nothing starts. Returns the number of the process that
    /// waits for it.
    ///
    /// # Errors
    /// If it is not created.
    pub(crate) fn create(&self, words: &[&str]) -> Result<u32> {
        self.write(words)?;
        let path = |name| self.path(name).display().to_string();
        let (bundle, said, number) = (path(""), path("said"), path("pid"));
        // The process that waits has the runtime's outputs, and keeps them open.
        let starter = ["sh", "-c", "exec \"$@\" </dev/null >\"$0\" 2>&1", &said];
        let words = ["create", "--bundle", &bundle, "--pid-file", &number, &self.id];
        let output = self.command(&starter, &words)?.output()?;
        let said = fs::read_to_string(said).unwrap_or_default();
        let number = fs::read_to_string(number).ok().and_then(|text| text.trim().parse().ok());
        number.ok_or_else(|| Stop::fail(format!("not created: {output}{said}{}", self.log())))
    }

    /// Writes the bundle, with these words for the first process.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, words: &[&str]) -> Result {
        let mut config = self.config.clone();
        config["process"]["args"] = json!(words);
        Ok(fs::write(self.path("config.json"), config.to_string())?)
    }

    /// `exec` of these words in the running container.
    ///
    /// # Errors
    /// If the harness cannot prepare it.
    pub(crate) fn exec(&self, options: &[&str], words: &[&str]) -> Result<Run> {
        self.command(&[], &[&["exec"], options, &[&self.id], words].concat())
    }

    /// `delete` of one that has ended.
    ///
    /// # Errors
    /// If it does not end in time.
    pub(crate) fn delete(&self) -> Result<Output> {
        self.command(&[], &["delete", &self.id])?.output()
    }

    /// The runtime with these words behind its own, started by those.
    fn command(&self, starter: &[&str], words: &[&str]) -> Result<Run> {
        let mut runtime = self.runtime.words(&self.path("state"));
        if !self.through.is_empty() {
            // It finds the runtime itself.
            runtime.splice(0..1, self.through.clone());
        }
        let runtime = runtime.iter().map(String::as_str);
        let words = starter.iter().copied().chain(runtime).chain(words.iter().copied());
        let run = World::bare(Driver::Absent).run(Path::new("sh"))?;
        let script =
            [&["set -e".to_owned()], &self.prepare[..], &["exec \"$@\"".to_owned()]].concat();
        let run = run.arg("-c").arg(script.join("\n")).arg("sh");
        let run = words.fold(run, Run::arg);
        // A runtime alone runs as it is started by hand: what leaks to the host is to be seen.
        Ok(if let Some(node) = &self.node {
            run.through(&node.entering().each_ref().map(OsStr::new))
        } else if self.prepare.is_empty() {
            run
        } else {
            run.through(&["unshare", "--mount", "--propagation", "private"].map(OsStr::new))
        })
    }

    /// Runs these words to their end.
    ///
    /// # Errors
    /// If they do not end in time.
    pub(crate) fn output(&self, words: &[&str]) -> Result<Output> {
        self.run(words)?.output()
    }

    /// What the hook wrote down.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// How many containers the host remembers.
    pub(crate) fn records(&self) -> usize {
        fs::read_dir(self.path("run/containers")).map_or(0, Iterator::count)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut script = self.runtime.prepare().unwrap_or_default();
        script.push("exec \"$@\"".into());
        let mut delete = Command::new("unshare");
        delete.args(["--mount", "--propagation", "private", "sh", "-ec", &script.join("\n"), "sh"]);
        delete.args(self.runtime.words(&self.scratch.path().join("state")));
        // As a rule it is gone already.
        drop(delete.args(["delete", "--force", &self.id]).output());
        // What the hook has mounted on this machine, unless the container's end took it away.
        let pages = self.scratch.path().join("run/pages/all");
        if pages.exists() {
            drop(Command::new("umount").arg("--quiet").arg(pages).output());
        }
    }
}

/// How the name of each container begins; the process number of the test binary follows.
pub(crate) const PREFIX: &str = "gpucap-test-";

/// A name that nothing else on this machine has, and that says whose it is ([`crate::cgroups`]).
pub(crate) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-{count}", std::process::id())
}

/// The JSON document in a file.
///
/// # Errors
/// If it is none.
pub(crate) fn json(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path)?).map_err(std::io::Error::from)?)
}

fn config() -> Value {
    let capabilities =
        ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"];
    let namespaces = ["pid", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false, "user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["true"],
            "env": ["PATH=/bin", "STUB_GPU_DIR=/tmp", "STUB_GPU_CONTEXT_MEM=0"],
            "capabilities": {
                "bounding": capabilities, "effective": capabilities, "permitted": capabilities,
            },
            "noNewPrivileges": true,
        },
        "root": {"path": "root", "readonly": false},
        "hostname": "test",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]},
        ],
        "linux": {"namespaces": namespaces},
    })
}
