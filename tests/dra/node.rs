//! A node with the driver on it: its cards are the stub's, its API server and its kubelet our own.
//!
//! The driver is a process that can be killed and started again on the same node. Everything that it writes is in the
//! node's scratch directory. What it said is read when a test fails.

use super::kubelet::{Kubelet, waited};
use super::messages::{Claim, Prepared};
use super::server::Server;
use gpucap_tests::{Build, Installation, Result, Scratch, Stop};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The name of the node, and so of its pool.
pub(crate) const NAME: &str = "n1";
/// The name of the driver.
pub(crate) const DRIVER: &str = "slice.gpucap.io";

/// The node.
pub(crate) struct Node {
    scratch: Scratch,
    pub(crate) installation: Installation,
    pub(crate) server: Server,
    driver: Option<Child>,
}

impl Node {
    /// One with two cards, on which the driver runs.
    ///
    /// # Errors
    /// If something cannot be built or started.
    pub(crate) fn start() -> Result<Self> {
        let mut node = Self::without_driver()?;
        node.start_driver()?;
        Ok(node)
    }

    /// One on which the driver does not run yet.
    ///
    /// # Errors
    /// If something cannot be built.
    pub(crate) fn without_driver() -> Result<Self> {
        let scratch = Scratch::new()?;
        let installation = Installation::new(&scratch.path().join("i"))?;
        let server = Server::start(NAME)?;
        let node = Self { scratch, installation, server, driver: None };
        node.cards(2, &[])?;
        Ok(node)
    }

    /// From now on it has this number of cards, with these settings of the stub.
    ///
    /// # Errors
    /// If they cannot be written down.
    pub(crate) fn cards(&self, count: u32, settings: &[(&str, &str)]) -> Result {
        // Another number of cards is another machine to the stub.
        drop(fs::remove_dir_all(self.installation.card()));
        let count = count.to_string();
        self.installation.driver(&[&[("STUB_GPU_COUNT", count.as_str())], settings].concat())
    }

    /// Starts the driver.
    ///
    /// # Errors
    /// If it cannot be built or started.
    pub(crate) fn start_driver(&mut self) -> Result {
        self.driver = Some(self.command()?.spawn()?);
        Ok(())
    }

    /// Runs the driver to its end, which it finds by itself.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn run_driver(&self) -> Result<ExitStatus> {
        let mut child = self.command()?.spawn()?;
        waited(|| child.try_wait().ok().flatten()).inspect_err(|_| drop(child.kill()))
    }

    fn command(&self) -> Result<Command> {
        let log = File::options().append(true).create(true).open(self.path("log"))?;
        let mut command = Command::new(Build::dra()?);
        command.arg("--node").arg(NAME).arg("--api").arg(self.server.url());
        command.arg("--kubelet").arg(self.path("k")).arg("--cdi").arg(self.cdi());
        command.arg("--command").arg(self.installation.gpucap());
        command.arg("--config").arg(self.path("node.json"));
        command.arg("--asks").arg(self.installation.gpucap().with_file_name("gpucap-driver"));
        command.args(["--interval", "1"]).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(command)
    }

    /// Kills the driver, at whatever it is.
    ///
    /// # Errors
    /// If it had ended by itself.
    pub(crate) fn kill_driver(&mut self) -> Result {
        let Some(mut driver) = self.driver.take() else { return Err(Stop::fail("no driver")) };
        if let Some(status) = driver.try_wait()? {
            return Err(Stop::fail(format!("the driver has ended: {status}\n{}", self.log())));
        }
        driver.kill()?;
        driver.wait()?;
        Ok(())
    }

    /// Ends the driver as a node ends a pod, and waits until it has ended.
    ///
    /// # Errors
    /// If it does not end well.
    pub(crate) fn end_driver(&mut self) -> Result {
        let Some(mut driver) = self.driver.take() else { return Err(Stop::fail("no driver")) };
        let ended = Command::new("kill").arg(driver.id().to_string()).status()?;
        let status = waited(|| driver.try_wait().ok().flatten())?;
        if ended.success() && status.success() { Ok(()) } else { Err(Stop::fail(status)) }
    }

    /// A kubelet that has just started.
    ///
    /// # Errors
    /// If the driver does not register.
    pub(crate) fn kubelet(&self) -> Result<Kubelet> {
        let kubelet = Kubelet::start(&self.path("k"));
        kubelet.map_err(|stop| stop.explained(|why| format!("{why}\n{}", self.log())))
    }

    /// A file of the node.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The directory of CDI files.
    pub(crate) fn cdi(&self) -> PathBuf {
        self.path("cdi")
    }

    /// The names of what is there, but for what is looked at in between.
    pub(crate) fn cdi_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cdi()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(".json")).collect();
        names.sort();
        names
    }

    /// The CDI file of a claim.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn cdi_file(&self, uid: &str) -> Result<Value> {
        let path = self.cdi().join(format!("gpucap-claim-{uid}.json"));
        serde_json::from_slice(&fs::read(path)?).map_err(Stop::fail)
    }

    /// Removes the CDI directory, as a restart of the machine does.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(crate) fn forget_cdi(&self) -> Result {
        Ok(fs::remove_dir_all(self.cdi())?)
    }

    /// What the driver said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The devices that are published, once these are.
    ///
    /// # Errors
    /// They never are.
    pub(crate) fn published(&self, holds: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>> {
        let devices = || {
            let slices = self.server.slices();
            let own = slices.iter().filter(|slice| slice["spec"]["driver"] == DRIVER);
            let own = own
                .flat_map(|slice| slice["spec"]["devices"].as_array().cloned().unwrap_or_default());
            Some(own.collect::<Vec<_>>()).filter(|devices| holds(devices))
        };
        let found = waited(devices);
        found.map_err(|stop| {
            stop.explained(|why| format!("{why}: {:?}\n{}", self.server.slices(), self.log()))
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut driver) = self.driver.take() {
            drop(driver.kill().and_then(|()| driver.wait()));
        }
    }
}

/// The device of the stub's card with this number.
pub(crate) fn device(node: &Node, number: usize) -> Result<String> {
    let devices = node.published(|devices| devices.len() > number)?;
    devices[number]["name"].as_str().map(str::to_owned).ok_or_else(|| Stop::fail("no name"))
}

/// A result of the scheduler: this part of a device.
pub(crate) fn share(device: &str, id: &str, memory: &str, cores: &str) -> Value {
    json!({
        "request": "gpu", "driver": DRIVER, "pool": NAME, "device": device, "shareID": id,
        "consumedCapacity": {"memory": memory, "cores": cores},
    })
}

/// Puts a claim with these results on the server, and returns how the kubelet names it.
pub(crate) fn claim(node: &Node, name: &str, results: &[Value]) -> Claim {
    let uid = format!("00000000-0000-4000-8000-{name:0>12}");
    node.server.put(
        &path(name),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"namespace": "ns", "name": name, "uid": uid}, "spec": {},
            "status": {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod-uid"}],
            },
        }),
    );
    Claim { namespace: "ns".into(), uid, name: name.into() }
}

/// The path of a claim on the server.
pub(crate) fn path(claim: &str) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/{claim}")
}

/// Fails unless the claim was prepared.
pub(crate) fn well(prepared: Prepared) -> Result<Prepared> {
    if prepared.error.is_empty() && !prepared.devices.is_empty() {
        return Ok(prepared);
    }
    Err(Stop::fail(format!("{prepared:?}")))
}

/// Fails unless it was refused, for a reason in which these words are.
pub(crate) fn refused(prepared: &Prepared, why: &str) -> Result {
    let is_one_line = !prepared.error.contains('\n');
    if prepared.error.contains(why) && prepared.devices.is_empty() && is_one_line {
        return Ok(());
    }
    Err(Stop::fail(format!("not refused for {why:?}: {prepared:?}")))
}
