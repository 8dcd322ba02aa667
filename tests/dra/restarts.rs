//! The kubelet, the driver and the machine start again, at any moment, and a claim stays what it was.

use crate::expect;
use crate::kubelet::{sockets, waited};
use crate::node::{Node, claim, device, refused, share, well};
use crate::server::Mood;
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;
use std::fs;
use std::thread;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("restarts: a new kubelet finds the driver and gets the same answers", kubelet),
        trial("restarts: a new driver answers as the one before, without an API server", driver),
        trial(
            "restarts: a driver that was killed as it prepared leaves nothing, and the next one prepares",
            middle,
        ),
        trial(
            "restarts: a claim that was kept before its file was written has its file again",
            kept,
        ),
        trial("restarts: a file whose claim was not kept goes", left),
        trial(
            "restarts: a card that went while no driver ran is lost, as long as a claim has it",
            lost_between,
        ),
        trial(
            "restarts: without an answer of NVIDIA's driver, the node keeps its devices and its claims",
            unanswered,
        ),
        trial("restarts: after the machine's, each prepared claim has its file again", machine),
        trial("restarts: a driver that ends well takes its sockets away, and no device", ended),
    ]
}

const ID: &str = "7f1c0000-0000-4000-8000-000000000001";

fn kubelet() -> Result {
    let node = Node::start()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    let before = well(node.kubelet()?.prepare_one(&own)?)?;
    let later = node.kubelet()?;
    let after = well(later.prepare_one(&own)?)?;
    expect(before == after, || format!("{before:?}, then {after:?}"))?;
    expect(later.unprepare(&own)?.is_empty(), || "unprepare".into())
}

fn driver() -> Result {
    let mut node = Node::start()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    let before = well(node.kubelet()?.prepare_one(&own)?)?;
    let file = node.cdi_file(&own.uid)?;
    node.kill_driver()?;
    expect(node.cdi_file(&own.uid)? == file, || "the file went with the driver".into())?;
    node.server.set(Mood::Away);
    // What a killed driver leaves in the registry, a kubelet could take for the next one.
    for socket in sockets(&node.path("k/plugins_registry")) {
        fs::remove_file(socket)?;
    }
    node.start_driver()?;
    let kubelet = node.kubelet()?;
    let after = well(kubelet.prepare_one(&own)?)?;
    expect(before == after, || format!("{before:?}, then {after:?}"))?;
    expect(kubelet.unprepare(&own)?.is_empty() && node.cdi_files().is_empty(), || node.log())
}

fn middle() -> Result {
    let mut node = Node::start()?;
    let kubelet = node.kubelet()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    node.server.set(Mood::Silent);
    let server = node.server.clone();
    thread::scope(|scope| {
        let asking = scope.spawn(|| kubelet.prepare_one(&own));
        waited(|| (server.waiting() > 0).then_some(()))?;
        node.kill_driver()?;
        let answer = asking.join().map_err(|_| Stop::fail("the kubelet has panicked"))?;
        expect(answer.is_err(), || format!("{answer:?}"))
    })?;
    node.server.set(Mood::Well);
    expect(node.cdi_files().is_empty(), || format!("{:?}", node.cdi_files()))?;
    for socket in sockets(&node.path("k/plugins_registry")) {
        fs::remove_file(socket)?;
    }
    node.start_driver()?;
    well(node.kubelet()?.prepare_once_known(&own)?)?;
    expect(node.cdi_files().len() == 1, || format!("{:?}", node.cdi_files()))
}

fn kept() -> Result {
    let mut node = Node::start()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    well(node.kubelet()?.prepare_one(&own)?)?;
    let file = node.cdi_file(&own.uid)?;
    node.kill_driver()?;
    fs::remove_file(node.cdi().join(format!("gpucap-claim-{}.json", own.uid)))?;
    node.start_driver()?;
    let again = waited(|| node.cdi_file(&own.uid).ok())?;
    expect(again == file, || format!("{again}"))
}

fn left() -> Result {
    let mut node = Node::without_driver()?;
    fs::create_dir_all(node.cdi())?;
    let names = [
        "gpucap-claim-dead.json",
        "gpucap-claim-dead.new",
        "gpucap-slice-job7.json",
        "nvidia.json",
    ];
    for name in names {
        fs::write(node.cdi().join(name), "{}")?;
    }
    node.start_driver()?;
    drop(node.kubelet()?);
    expect(node.cdi_files() == names[2..], || format!("{:?}", node.cdi_files()))?;
    expect(!node.cdi().join(names[1]).exists(), || "what was half written stays".into())
}

fn lost_between() -> Result {
    let mut node = Node::start()?;
    let kubelet = node.kubelet()?;
    let goes = device(&node, 1)?;
    let own = claim(&node, "1", &[share(&goes, ID, "10Gi", "30")]);
    well(kubelet.prepare_one(&own)?)?;
    node.published(|devices| devices.len() == 2)?;
    node.end_driver()?;
    node.cards(1, &[])?;
    node.start_driver()?;
    let devices = node.published(|devices| devices.iter().any(|it| it["taints"].is_array()))?;
    let lost = devices.iter().find(|it| it["taints"].is_array());
    expect(lost.is_some_and(|it| it["name"] == goes), || format!("{devices:?}"))?;
    let kubelet = node.kubelet()?;
    refused(&kubelet.prepare_one(&own)?, "was lost")?;
    // A card that no claim has is not missed: an administrator may have taken it out.
    expect(kubelet.unprepare(&own)?.is_empty(), || "unprepare".into())?;
    node.end_driver()?;
    node.start_driver()?;
    node.published(|devices| devices.len() == 1).map(drop)
}

fn unanswered() -> Result {
    let mut node = Node::start()?;
    let own = claim(&node, "1", &[share(&device(&node, 1)?, ID, "10Gi", "30")]);
    let before = well(node.kubelet()?.prepare_one(&own)?)?;
    let published = node.published(|devices| devices.len() == 2)?;
    node.end_driver()?;
    node.installation.script("echo 'error it hangs'; exit 1")?;
    node.start_driver()?;
    let kubelet = node.kubelet()?;
    let mut watch = kubelet.watch("v1")?;
    // Each message is a round: the devices were looked at again by then.
    for _ in 0..3 {
        let healths = watch.next()?;
        let is_unknown =
            healths.devices.len() == 2 && healths.devices.iter().all(|it| it.health == 0);
        expect(is_unknown, || format!("{healths:?}"))?;
    }
    let after = well(kubelet.prepare_one(&own)?)?;
    expect(before == after, || format!("{before:?}, then {after:?}"))?;
    let still = node.published(|_| true)?;
    expect(still == published, || format!("{published:?}, then {still:?}"))
}

fn machine() -> Result {
    let mut node = Node::start()?;
    let card = device(&node, 0)?;
    let claims = ["1", "2"].map(|name| claim(&node, name, &[share(&card, ID, "10Gi", "30")]));
    let kubelet = node.kubelet()?;
    for claim in &claims {
        well(kubelet.prepare_one(claim)?)?;
    }
    node.end_driver()?;
    node.forget_cdi()?;
    node.server.set(Mood::Away);
    node.start_driver()?;
    drop(node.kubelet()?);
    expect(node.cdi_files().len() == 2, || format!("{:?}", node.cdi_files()))
}

fn ended() -> Result {
    let mut node = Node::start()?;
    node.published(|devices| devices.len() == 2)?;
    drop(node.kubelet()?);
    node.end_driver()?;
    let left: Vec<_> = fs::read_dir(node.path("k/plugins_registry"))?.flatten().collect();
    expect(left.is_empty(), || format!("{left:?}"))?;
    expect(node.server.slices().len() == 1, || "a restart would take the devices back".into())
}
