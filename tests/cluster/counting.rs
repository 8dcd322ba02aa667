//! What users could do to the scheduler's count of a card: a request beyond all numbers, and a claim that is in use and
//! loses what keeps it.

use crate::cluster::cluster;
use crate::expect;
use crate::manifests::{WAITS, container, pod, request, template};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;
use serde_json::json;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "a request of more memory than any number is given no card, and no room to others",
            huge,
        ),
        trial("a user who may edit claims cannot have one forgotten that is in use", forgotten),
    ]
}

/// The largest number of the API server, and what it makes of larger ones.
const HUGE: [&str; 2] = ["9223372036854775807", "9999999Ei"];

fn huge() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("huge")?;
    for (memory, name) in HUGE.into_iter().chain(["9Gi"]).zip(["number", "beyond", "after"]) {
        kubectl.apply(&[
            template("huge", name, &[request("gpu", None, memory, 10)]),
            pod("huge", name, name, &[container("app", WAITS)]),
        ])?;
        kubectl.event("huge", name, "cannot allocate all claims")?;
    }
    // What is no whole number of MiB is counted and given as it is.
    kubectl.apply(&[
        template("huge", "odd", &[request("gpu", None, "1073741825", 10)]),
        pod("huge", "odd", "odd", &[container("app", WAITS)]),
    ])?;
    kubectl.pod("huge", "odd", "Running")?;
    let limits = kubectl.exec("huge", "odd", &["cat", "/.gpucap/limits"])?;
    expect(limits.contains("mem=1073741825"), || limits)?;
    kubectl.end_namespace("huge")
}

fn forgotten() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("edits")?;
    let binding =
        ["create", "rolebinding", "edits", "--clusterrole=edit", "--user=someone", "-n", "edits"];
    kubectl.prints(&binding)?;
    let card = &cluster.card_names()?[0];
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"namespace": "edits", "name": "all"},
        "spec": {"devices": {"requests": [request("gpu", Some(card), "8Gi", 100)]}},
    });
    let mut one = pod("edits", "one", "", &[container("app", WAITS)]);
    one["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "all"}]);
    kubectl.apply(&[claim, one])?;
    kubectl.pod("edits", "one", "Running")?;
    let user = ["--as=someone", "-n", "edits"];
    let delete = [&user[..], &["delete", "resourceclaim", "all", "--wait=false"]].concat();
    kubectl.prints(&delete)?;
    let patch = [
        "patch",
        "resourceclaim",
        "all",
        "--type=merge",
        r#"--patch={"metadata":{"finalizers":null}}"#,
    ];
    let refused = kubectl.output(&[&user[..], &patch].concat())?;
    let why = "a claim keeps its finalizer as long as it has a part of a GPU";
    expect(refused.code() == Some(1) && refused.stderr.contains(why), || format!("{refused:?}"))?;
    // Other changes are no matter, and Kubernetes itself ends it after its pod.
    let label = [&user[..], &["label", "resourceclaim", "all", "a=b"]].concat();
    kubectl.prints(&label)?;
    kubectl.prints(&[&user[..], &["delete", "pod", "one"]].concat())?;
    let words = ["resourceclaims", "--namespace=edits"];
    kubectl.wait(&words, "the end of the claim", <[_]>::is_empty)?;
    kubectl.end_namespace("edits")
}
