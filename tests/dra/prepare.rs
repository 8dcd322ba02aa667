//! What the kubelet gets for a claim.

use crate::expect;
use crate::messages::Claim;
use crate::node::{NAME, Node, claim, device, refused, share, well};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("prepare: the kubelet is told what it can call, and where", registered),
        trial("prepare: a claim is a CDI device whose hook has its share", prepared),
        trial("prepare: again is the same as once", again),
        trial("prepare: undone is gone, and undone again is well", undone),
        trial("prepare: two claims of one pod have devices of their own", two_claims),
        trial("prepare: two shares of one card in one claim are two devices", two_shares),
        trial("prepare: of two requests each container gets the devices of its own", two_requests),
        trial("prepare: of alternatives a container gets the one that was chosen", alternatives),
        trial("prepare: a claim that fails holds no other up", beside_a_failure),
        trial("prepare: a name that is a path is refused", paths),
    ]
}

const ID: &str = "7f1c0000-0000-4000-8000-000000000001";
const OTHER: &str = "7f1c0000-0000-4000-8000-000000000002";

fn registered() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let info = kubelet.info();
    expect(info.kind == "DRAPlugin" && info.name == "slice.gpucap.io", || format!("{info:?}"))?;
    let services = ["v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"];
    expect(info.supported_versions == services, || format!("{info:?}"))?;
    let endpoint = node.path("k/plugins/slice.gpucap.io/dra.sock");
    expect(info.endpoint == endpoint.display().to_string(), || format!("{info:?}"))
}

fn prepared() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let own = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    let answer = well(kubelet.prepare_one(&own)?)?;
    let gpu = card.replace("gpu-", "GPU-");
    let name = format!("{}-{card}-{ID}", own.uid);
    let [device] = &answer.devices[..] else { return Err(Stop::fail("one device")) };
    let ids = [format!("nvidia.com/gpu={gpu}"), format!("gpucap/slice={name}")];
    expect(device.cdi_device_ids == ids, || format!("{device:?}"))?;
    let says = device.request_names == ["gpu"]
        && device.pool_name == NAME
        && device.device_name == card
        && device.share_id.as_deref() == Some(ID);
    expect(says, || format!("{device:?}"))?;
    let command = node.installation.gpucap();
    let config = node.path("node.json");
    let hook = |stage: &str, more: &[String]| {
        let words = ["gpucap", "hook", stage, "--config"].map(str::to_owned);
        let config = [config.display().to_string()];
        let words = [&words[..], &config, more].concat();
        json!({
            "path": command, "args": words, "timeout": 10,
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "hookName": stage,
        })
    };
    let slice = format!("id={name},gpu={gpu},mem=10737418240,cores=30%,for=ns/1");
    let hooks = [hook("createRuntime", &["--slice".into(), slice]), hook("poststop", &[])];
    let expected = json!({
        "cdiVersion": "0.5.0", "kind": "gpucap/slice",
        "devices": [{"name": name, "containerEdits": {"hooks": hooks}}],
    });
    let found = node.cdi_file(&own.uid)?;
    expect(found == expected, || format!("{found:#}"))
}

fn again() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    let once = well(kubelet.prepare_one(&own)?)?;
    let file = node.cdi_file(&own.uid)?;
    let twice = well(kubelet.prepare_one(&own)?)?;
    expect(once == twice, || format!("{once:?}, then {twice:?}"))?;
    expect(node.cdi_file(&own.uid)? == file, || "another file".into())?;
    expect(node.cdi_files().len() == 1, || format!("{:?}", node.cdi_files()))
}

fn undone() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    well(kubelet.prepare_one(&own)?)?;
    for _ in 0..2 {
        let error = kubelet.unprepare(&own)?;
        expect(error.is_empty(), || error)?;
        expect(node.cdi_files().is_empty(), || format!("{:?}", node.cdi_files()))?;
    }
    Ok(())
}

fn two_claims() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let claims = [
        claim(&node, "1", &[share(&card, ID, "10Gi", "30")]),
        claim(&node, "2", &[share(&card, OTHER, "5Gi", "20")]),
    ];
    let all = kubelet.prepare(&claims)?;
    let mut ids: Vec<_> =
        all.claims.values().flat_map(|it| &it.devices).flat_map(|it| &it.cdi_device_ids).collect();
    ids.retain(|id| id.starts_with("gpucap/"));
    ids.sort();
    ids.dedup();
    expect(ids.len() == 2 && node.cdi_files().len() == 2, || format!("{all:?}"))?;
    expect(kubelet.unprepare(&claims[0])?.is_empty(), || "unprepare".into())?;
    expect(node.cdi_files() == [format!("gpucap-claim-{}.json", claims[1].uid)], || {
        format!("{:?}", node.cdi_files())
    })
}

fn two_shares() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let own =
        claim(&node, "1", &[share(&card, ID, "10Gi", "30"), share(&card, OTHER, "5Gi", "20")]);
    let answer = well(kubelet.prepare_one(&own)?)?;
    let file = node.cdi_file(&own.uid)?;
    let names: Vec<_> =
        file["devices"].as_array().into_iter().flatten().map(|it| it["name"].clone()).collect();
    let told: Vec<_> = answer.devices.iter().filter_map(|it| it.cdi_device_ids.last()).collect();
    let told: Vec<_> = told.iter().map(|id| json!(id.replace("gpucap/slice=", ""))).collect();
    expect(names.len() == 2 && names[0] != names[1] && names == told, || {
        format!("{names:?} {told:?}")
    })
}

/// The kubelet gives a container what has the name of its request.
fn two_requests() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let mut results = [
        share(&device(&node, 0)?, ID, "10Gi", "30"),
        share(&device(&node, 1)?, OTHER, "5Gi", "20"),
    ];
    results[1]["request"] = json!("second");
    let answer = well(kubelet.prepare_one(&claim(&node, "1", &results))?)?;
    let [one, other] = &answer.devices[..] else { return Err(Stop::fail(format!("{answer:?}"))) };
    expect(one.request_names == ["gpu"] && other.request_names == ["second"], || {
        format!("{answer:?}")
    })?;
    expect(one.cdi_device_ids.iter().all(|id| !other.cdi_device_ids.contains(id)), || {
        format!("{answer:?}")
    })
}

/// Containers name the request. The kubelet gives them the devices of that name, and so none of `gpu/large`.
fn alternatives() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let mut chosen = share(&device(&node, 0)?, ID, "10Gi", "30");
    chosen["request"] = json!("gpu/large");
    let answer = well(kubelet.prepare_one(&claim(&node, "1", &[chosen]))?)?;
    let names: Vec<_> = answer.devices.iter().flat_map(|device| &device.request_names).collect();
    expect(names == ["gpu"], || format!("{answer:?}"))
}

fn beside_a_failure() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let good = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    let bad = claim(&node, "2", &[share(&card, OTHER, "much", "20")]);
    let all = kubelet.prepare(&[bad.clone(), good.clone()])?;
    well(all.claims[&good.uid].clone())?;
    refused(&all.claims[&bad.uid], "claim ns/2: ")?;
    expect(node.cdi_files().len() == 1, || format!("{:?}", node.cdi_files()))
}

fn paths() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let named = |uid: &str, namespace: &str, name: &str| Claim {
        uid: uid.into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    for claim in [
        named("../../etc/x", "ns", "1"),
        named("", "ns", "1"),
        named("u", "ns/../x", "1"),
        named("u", "ns", "a,mem=99Gi"),
    ] {
        refused(&kubelet.prepare_one(&claim)?, "is no name that Kubernetes allows")?;
        expect(!kubelet.unprepare(&claim)?.is_empty(), || "undone".into())?;
    }
    expect(node.cdi_files().is_empty(), || format!("{:?}", node.cdi_files()))?;
    let known: Vec<Value> = node.server.slices();
    expect(known.len() <= 1, || format!("{known:?}"))
}
