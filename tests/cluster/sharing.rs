//! Claims that several containers of a pod name: one after the other, at once, and each its own request.

use crate::cluster::cluster;
use crate::expect;
use crate::manifests::{WAITS, container, pod, request, template};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an init container and the ones after it have the claim in turn", in_turn),
        trial("a container that starts again has the claim again", again),
        trial(
            "of two containers that run at once with one request the pod says why one is refused",
            at_once,
        ),
        trial("two containers that run at once have a request of the claim each", own_requests),
    ]
}

/// Ends well if the card has as much memory as the claim.
const ASKS: &str = "printf 'init\\ncontext 0\\ntotal d 0\\n' | /actor | {
    while read -r code total rest; do last=\"$code $total\"; done
    [ \"$last\" = '0 1073741824' ]
}";

fn in_turn() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("turn")?;
    let mut one = pod("turn", "p", "part", &[container("app", WAITS)]);
    one["spec"]["initContainers"] = json!([container("first", ASKS), container("second", ASKS)]);
    kubectl.apply(&[template("turn", "part", &[request("gpu", None, "1Gi", 10)]), one])?;
    kubectl.pod("turn", "p", "Running")?;
    let total = kubectl.actor("turn", "p", "app")?.call("total d 0")?;
    expect(total.value == GIB, || format!("{total:?}"))?;
    kubectl.end_namespace("turn")
}

fn again() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("again")?;
    let mut one = pod("again", "p", "part", &[container("app", ASKS)]);
    one["spec"]["restartPolicy"] = json!("Always");
    kubectl.apply(&[template("again", "part", &[request("gpu", None, "1Gi", 10)]), one])?;
    let status = |pod: &Value| pod["status"]["containerStatuses"][0].clone();
    let ended = |pods: &[Value]| {
        pods.iter().any(|pod| status(pod)["restartCount"].as_u64().is_some_and(|count| count >= 2))
    };
    let pods = kubectl.wait(&["pods", "--namespace=again"], "two more starts", ended)?;
    let code = status(&pods[0])["lastState"]["terminated"]["exitCode"].clone();
    expect(code == 0, || format!("{pods:?}"))?;
    kubectl.end_namespace("again")
}

fn at_once() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("once")?;
    let two = [container("one", WAITS), container("two", WAITS)];
    let part = template("once", "part", &[request("gpu", None, "1Gi", 10)]);
    kubectl.apply(&[part, pod("once", "p", "part", &two)])?;
    kubectl.event("once", "p", "has the slice of its claim")?;
    kubectl.end_namespace("once")
}

fn own_requests() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("own")?;
    let requests = [request("a", None, "1Gi", 10), request("b", None, "2Gi", 20)];
    let mut containers = [container("one", WAITS), container("two", WAITS)];
    for (container, request) in containers.iter_mut().zip(["a", "b"]) {
        container["resources"]["claims"] = json!([{"name": "gpu", "request": request}]);
    }
    kubectl.apply(&[template("own", "part", &requests), pod("own", "p", "part", &containers)])?;
    kubectl.pod("own", "p", "Running")?;
    for (container, memory) in [("one", GIB), ("two", 2 * GIB)] {
        let total = kubectl.actor("own", "p", container)?.call("total d 0")?;
        expect(total.value == memory, || format!("{container}: {total:?}"))?;
    }
    kubectl.end_namespace("own")
}
