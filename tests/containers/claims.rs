//! A container with the CDI devices that the DRA driver prepared has the share of its claim, and no more.
//!
//! The edits of the devices are put into the container's `config.json` as an engine does it; nothing else tells the
//! runtime of gpucap. The containers' card is the stub's, as in [`assigned`](crate::assigned).

use crate::assigned::card;
use crate::container::Container;
use crate::dra::messages::Claim;
use crate::dra::node::{Node, claim, device, share, well};
use crate::enforced::{begin, is_limited};
use crate::image::Image;
use crate::refused::refuses;
use crate::runtime::Runtime;
use crate::{GIB, SUCCESS, expect, trials_of};
use gpucap_tests::{Result, Stop};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("a prepared claim is its memory and its time", prepared),
        ("two claims on one card are both the container's", two_claims),
        ("a share of a claim has one container at a time", one_at_a_time),
        ("a container that never started leaves its share to the one in its place", in_its_place),
        ("a container that has started leaves its share to no other", started),
        (
            "a container that never started leaves its share to no container but that",
            not_in_its_place,
        ),
        ("once a claim is undone, no container starts with what it was", undone),
        ("a hook that the bundle does not have is no way to a slice", not_in_bundle),
    ])
}

const IDS: [&str; 2] =
    ["7f1c0000-0000-4000-8000-000000000001", "7f1c0000-0000-4000-8000-000000000002"];

/// A pod, its UID, and a container of it.
const NAMES: [&str; 3] = ["train", "u1", "main"];

/// A node whose card is the one that containers see, and of which each claim here has a part.
struct Prepared {
    node: Node,
    claims: Vec<Claim>,
}

impl Prepared {
    /// Prepares a claim for each amount of memory, with half of the time.
    fn new(runtime: Runtime, memory: &[&str]) -> Result<Self> {
        runtime.needed()?;
        let node = Node::start()?;
        let kubelet = node.kubelet()?;
        // The first card has one name on each machine of the stub.
        let own = device(&node, 0)?;
        expect(own == card()?.to_lowercase(), || own.clone())?;
        let mut claims = Vec::new();
        for (id, memory) in IDS.iter().zip(memory) {
            let name = (claims.len() + 1).to_string();
            let claim = claim(&node, &name, &[share(&own, id, memory, "50")]);
            well(kubelet.prepare_one(&claim)?)?;
            claims.push(claim);
        }
        Ok(Self { node, claims })
    }

    /// The edits of the devices of all claims.
    fn edits(&self) -> Result<Vec<Value>> {
        let files = self.claims.iter().map(|claim| self.node.cdi_file(&claim.uid));
        let files: Vec<Value> = files.collect::<Result<_>>()?;
        let devices =
            files.iter().flat_map(|file| file["devices"].as_array().into_iter().flatten());
        Ok(devices.map(|device| device["containerEdits"].clone()).collect())
    }

    /// A container with these edits that asks for nothing itself.
    fn container(&self, runtime: Runtime) -> Result<Container> {
        let container = Container::plain(runtime, Image::Glibc)?.env("STUB_GPU_MEM=4GiB");
        let settings = json!({"run_dir": self.node.path("run"), "log_file": container.path("log")});
        fs::write(self.node.path("node.json"), settings.to_string())?;
        let edits = self.edits()?;
        Ok(container.with(|config| {
            for edit in edits {
                for hook in edit["hooks"].as_array().into_iter().flatten() {
                    let mut hook = hook.clone();
                    let stage = hook["hookName"].as_str().unwrap_or_default().to_owned();
                    hook.as_object_mut().map(|hook| hook.remove("hookName"));
                    match config["hooks"][&stage].as_array_mut() {
                        Some(list) => list.push(hook),
                        None => config["hooks"][&stage] = json!([hook]),
                    }
                }
            }
        }))
    }

    /// The same as the container of a pod, as containerd names them.
    fn named(&self, runtime: Runtime, [pod, uid, name]: [&str; 3]) -> Result<Container> {
        let names = json!({
            "io.kubernetes.cri.sandbox-namespace": "default", "io.kubernetes.cri.sandbox-name": pod,
            "io.kubernetes.cri.sandbox-uid": uid, "io.kubernetes.cri.container-name": name,
        });
        Ok(self.container(runtime)?.with(|config| config["annotations"] = names))
    }

    fn log(&self, container: &Container) -> String {
        format!("{}{}", container.log(), self.node.log())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // What a hook has mounted on this machine, where a failure has kept the container's end from it.
        let pages = self.node.path("run/pages/all");
        if pages.exists() {
            drop(Command::new("umount").arg("--quiet").arg(pages).output());
        }
    }
}

fn prepared(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let container = prepared.container(runtime)?;
    let run = container.run(&["/actor"])?;
    let mut actor =
        begin(&run).map_err(|stop| stop.explained(|why| why + &prepared.log(&container)))?;
    is_limited(&mut actor)?;
    let mut shown = container.exec(&[], &["cat", "/.gpucap/limits"])?.output()?.stdout;
    shown.retain(|sign| sign != '\r');
    expect(shown.contains("core=50%") && shown.contains("source=slice"), || shown)?;
    actor.end()?.success().map(drop)
}

fn two_claims(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi", "2Gi"])?;
    let container = prepared.container(runtime)?;
    let mut actor = begin(&container.run(&["/actor"])?)?;
    let total = actor.call("total d 0")?;
    expect(total.code == SUCCESS && total.value == 3 * GIB, || format!("{total:?}"))?;
    let shown = container.exec(&[], &["cat", "/.gpucap/limits"])?.output()?.stdout;
    expect(shown.contains("core=100%"), || shown)?;
    actor.end()?.success().map(drop)
}

/// So for an init container and the next one, and for a container that starts again; not for two that run at once.
fn one_at_a_time(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let (first, other) = (prepared.container(runtime)?, prepared.container(runtime)?);
    let mut actor = begin(&first.run(&["/actor"])?)?;
    is_limited(&mut actor)?;
    refuses(&other, "has the slice of its claim")?;
    actor.expect(&[("alloc b 1048576", SUCCESS)])?;
    actor.end()?.success()?;
    let mut actor = begin(&other.run(&["/actor"])?)?;
    is_limited(&mut actor)?;
    actor.end()?.success().map(drop)
}

/// Returns whether this process runs; one that has ended and is still listed does not.
fn runs(number: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// As a kubelet leaves one that is killed while it starts a container, and makes another.
fn in_its_place(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let (first, other) = (prepared.named(runtime, NAMES)?, prepared.named(runtime, NAMES)?);
    let init = first.create(&["/actor"])?;
    expect(runs(init), || "nothing waits".into())?;
    let mut actor = begin(&other.run(&["/actor"])?)
        .map_err(|stop| stop.explained(|why| why + &prepared.log(&other)))?;
    is_limited(&mut actor)?;
    expect(!runs(init), || "the first one can still be started".into())?;
    let records = fs::read_dir(prepared.node.path("run/containers"))?.count();
    expect(records == 1, || format!("{records} records"))?;
    let log = other.log();
    expect(log.contains(first.id()) && log.contains("was never started"), || log)?;
    actor.end()?.success().map(drop)
}

fn started(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let (first, other) = (prepared.named(runtime, NAMES)?, prepared.named(runtime, NAMES)?);
    let mut actor = begin(&first.run(&["/actor"])?)?;
    refuses(&other, "has the slice of its claim")?;
    actor.expect(&[("alloc b 1048576", SUCCESS)])?;
    actor.end()?.success().map(drop)
}

fn not_in_its_place(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let first = prepared.named(runtime, NAMES)?;
    let init = first.create(&["/actor"])?;
    for names in [["serve", "u1", "main"], ["train", "u2", "main"], ["train", "u1", "other"]] {
        refuses(&prepared.named(runtime, names)?, "has the slice of its claim")?;
    }
    refuses(&prepared.container(runtime)?, "has the slice of its claim")?;
    expect(runs(init), || "the first one has ended".into())
}

fn undone(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let [claim] = &prepared.claims[..] else { return Err(Stop::fail("one claim")) };
    let error = prepared.node.kubelet()?.unprepare(claim)?;
    expect(error.is_empty(), || error)?;
    // An engine finds no device of this name, and refuses the container itself.
    expect(prepared.edits().is_err(), || "its file is there".into())
}

fn not_in_bundle(runtime: Runtime) -> Result {
    let prepared = Prepared::new(runtime, &["1Gi"])?;
    let container = prepared.container(runtime)?.with(|config| {
        // As if something had called the hook with a slice that the bundle does not show as ours.
        config["hooks"]["createRuntime"][0]["args"][0] = json!("other");
    });
    refuses(&container, "no entry of this hook with its slice or limit in config.json")
}
