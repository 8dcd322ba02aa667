//! The programs that run in the cluster's enclosure, on a network that has nothing but its own node.
//!
//! Each has a log below `/var/log`, which is part of what a failed test says. One that a test ends or kills is started
//! again by its name with the same words.

use crate::enclosure::{Daemon, Enclosure};
use crate::waited;
use gpucap_tests::{Result, Run, Stop};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Command;

/// The address of the node: no other machine has one in this range.
pub(crate) const ADDRESS: &str = "192.0.2.1";
/// The address of the API server's service. No proxy for services runs here, so the node has it, too.
pub(crate) const SERVICE: &str = "10.96.0.1";
/// Where etcd listens.
pub(crate) const LOCAL: &str = "127.0.0.1";
/// The network, as a file in the enclosure.
const NETWORK: &str = "/run/network";

/// The enclosure and what runs in it.
pub(crate) struct Daemons {
    pub(crate) enclosure: Enclosure,
    words: RefCell<BTreeMap<String, Vec<String>>>,
    running: RefCell<BTreeMap<String, Daemon>>,
}

impl Daemons {
    /// Makes the network: its own loopback device, which has the node's addresses and takes all that is sent.
    ///
    /// # Errors
    /// Skips without the means.
    pub(crate) fn new(enclosure: Enclosure) -> Result<Self> {
        File::create(enclosure.path(NETWORK))?;
        enclosure.output(&["unshare", &format!("--net={NETWORK}"), "true"])?;
        let network = format!("--net={}", enclosure.path(NETWORK).display());
        let [address, service] = [ADDRESS, SERVICE].map(|it| format!("{it}/32"));
        for words in [
            ["link", "set", "lo", "up"].as_slice(),
            &["address", "add", &address, "dev", "lo"],
            &["address", "add", &service, "dev", "lo"],
            &["route", "add", "default", "dev", "lo"],
        ] {
            let done = Command::new("nsenter").args([&network, "ip"]).args(words).output();
            let done = done.map_err(|why| Stop::skip(format!("no network of its own: {why}")))?;
            if !done.status.success() {
                let why = String::from_utf8_lossy(&done.stderr).into_owned();
                return Err(Stop::skip(format!("no network of its own: ip {words:?}: {why}")));
            }
        }
        Ok(Self { enclosure, words: RefCell::default(), running: RefCell::default() })
    }

    /// A program on that network.
    ///
    /// # Errors
    /// If the harness cannot prepare it.
    pub(crate) fn run<T: AsRef<str>>(&self, words: &[T]) -> Result<Run> {
        let network = format!("--net={NETWORK}");
        let words = words.iter().map(AsRef::as_ref);
        let words: Vec<&str> = ["nsenter", &network, "--"].into_iter().chain(words).collect();
        self.enclosure.run(&words)
    }

    /// Starts a program, which goes by this name from now on.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start<T: AsRef<str>>(&self, name: &str, words: &[T]) -> Result {
        let words: Vec<String> = words.iter().map(|word| word.as_ref().to_owned()).collect();
        self.words.borrow_mut().insert(name.to_owned(), words);
        self.start_again(name)
    }

    /// Starts it as it was started before.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start_again(&self, name: &str) -> Result {
        const SCRIPT: &str =
            "echo $$ >/run/$0.pid; echo begins >&2; exec \"$@\" >>/var/log/$0.log 2>&1";
        let network = format!("--net={NETWORK}");
        let words = self.words.borrow().get(name).cloned().unwrap_or_default();
        let own = words.iter().map(String::as_str);
        let start = ["nsenter", &network, "--", "sh", "-c", SCRIPT, name].into_iter().chain(own);
        let daemon = self.enclosure.daemon(&start.collect::<Vec<_>>(), "begins")?;
        self.running.borrow_mut().insert(name.to_owned(), daemon);
        Ok(())
    }

    /// Sends it this signal and waits until it has ended.
    ///
    /// # Errors
    /// If it does not end.
    pub(crate) fn end(&self, name: &str, signal: &str) -> Result {
        let pid = fs::read_to_string(self.enclosure.path(&format!("/run/{name}.pid")))?;
        let pid = pid.trim();
        self.enclosure.output(&["sh", "-c", "kill -s \"$1\" \"$2\"", "sh", signal, pid])?;
        let place = self.enclosure.path(&format!("/proc/{pid}"));
        waited(&format!("the end of {name}"), || Ok((!place.exists()).then_some(())))?;
        self.running.borrow_mut().remove(name);
        Ok(())
    }

    /// What it has said.
    pub(crate) fn log(&self, name: &str) -> String {
        let path = self.enclosure.path(&format!("/var/log/{name}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// The last lines of all that run.
    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for name in self.words.borrow().keys() {
            let log = self.log(name);
            let lines: Vec<_> = log.lines().collect();
            let last = lines.get(lines.len().saturating_sub(12)..).unwrap_or_default();
            text += &format!("--- {name}\n{}\n", last.join("\n"));
        }
        text
    }
}
