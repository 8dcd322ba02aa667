//! What becomes of claims as the scheduler writes them.

use super::*;
use serde_json::{Value, json};

const DEVICE: &str = "gpu-10000000-0000-0000-0000-000000000000";

fn result() -> Value {
    json!({
        "request": "gpu", "driver": "slice.gpucap.io", "pool": "n1", "device": DEVICE,
        "shareID": "7f1c0000-0000-4000-8000-000000000000",
        "consumedCapacity": {"memory": "10Gi", "cores": "30"},
    })
}

fn read(results: Value, config: Value) -> std::result::Result<Vec<Share>, String> {
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"namespace": "ns", "name": "train", "uid": "u"},
        "spec": {}, "status": {"allocation": {"devices": {"results": results, "config": config}}},
    });
    let claim = serde_json::from_value(claim).expect("a claim");
    shares(&claim, "slice.gpucap.io", "n1").map_err(|why| why.to_string())
}

fn changed(pointer: &str, value: Value) -> std::result::Result<Vec<Share>, String> {
    let mut result = result();
    *result.pointer_mut(pointer).expect("a place") = value;
    read(json!([result]), json!([]))
}

#[test]
fn a_share_is_what_the_scheduler_counted() {
    let shares = read(json!([result()]), json!([])).expect("shares");
    let expected = Share {
        request: "gpu".into(),
        pool: "n1".into(),
        device: DEVICE.into(),
        share_id: Some("7f1c0000-0000-4000-8000-000000000000".into()),
        memory: 10 << 30,
        cores: 30,
    };
    assert_eq!(shares, [expected]);
    let slice = shares[0].slice("u-gpu".into(), "ns/train").expect("a slice").to_string();
    let gpu = "GPU-10000000-0000-0000-0000-000000000000";
    assert_eq!(slice, format!("id=u-gpu,gpu={gpu},mem=10737418240,cores=30%,for=ns/train"));
}

#[test]
fn devices_of_other_drivers_are_theirs() {
    let other =
        json!({"request": "nic", "driver": "nic.example.com", "pool": "x", "device": "eth0"});
    let config =
        json!([{"source": "FromClass", "opaque": {"driver": "nic.example.com", "parameters": {}}}]);
    assert_eq!(read(json!([other, result()]), config).expect("shares").len(), 1);
    assert!(read(json!([other]), json!([])).expect_err("none").contains("has no device"));
}

#[test]
fn what_cannot_be_read_is_an_error_and_never_no_limit() {
    let gone = |key: &str| {
        let mut result = result();
        result["consumedCapacity"].as_object_mut().expect("an object").remove(key);
        read(json!([result]), json!([]))
    };
    for (found, why) in [
        (gone("memory"), "counted no memory"),
        (gone("cores"), "counted no cores"),
        (changed("/consumedCapacity", Value::Null), "counted no"),
        (changed("/consumedCapacity/memory", json!("lots")), "not an amount"),
        (changed("/consumedCapacity/memory", json!("0")), "not an amount"),
        (changed("/consumedCapacity/cores", json!("101")), "from 1 to 100"),
        (changed("/consumedCapacity/cores", json!("300m")), "not an amount"),
        (changed("/pool", json!("n2")), "of the pool n2"),
        (changed("/device", json!("gpu-0")), "no GPU has this name"),
        (changed("/device", json!("../../etc")), "no GPU has this name"),
        (
            read(
                json!([result()]),
                json!([{"source": "FromClaim", "opaque": {"driver": "slice.gpucap.io", "parameters": {"burst": 80}}}]),
            ),
            "knows none",
        ),
    ] {
        let said = found.expect_err(why);
        assert!(said.contains(why) && said.starts_with("claim ns/train: "), "{said}");
    }
}

#[test]
fn access_without_a_share_is_not_given() {
    let mut result = result();
    result["adminAccess"] = json!(true);
    assert!(read(json!([result]), json!([])).expect_err("refused").contains("adminAccess"));
}

#[test]
fn a_claim_that_is_not_allocated_has_nothing() {
    let claim = serde_json::from_value(json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"namespace": "ns", "name": "train"}, "spec": {},
    }));
    let why = shares(&claim.expect("a claim"), "slice.gpucap.io", "n1").expect_err("refused");
    assert_eq!(why.to_string(), "claim ns/train: is not allocated");
}
