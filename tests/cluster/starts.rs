//! How long a pod takes to start with each way to a limit: a claim, the NRI plugin, the runtime class, and none.
//!
//! Pods of one image on one node, one after the other, of each way in turn. A table is printed: no time is asserted, but
//! each pod sees its limit. When a pod was created says the audit log of the API server; when it was placed, the
//! scheduler's event; when its program began, containerd's log, in which it writes a line. `Running` in the status of
//! the pod comes later: the kubelet looks at its containers once a second.

use crate::cluster::{Cluster, cluster};
use crate::manifests::{container, pod, request, template};
use gpucap_tests::{Result, Stop, chart, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many pods there are of each way.
const PODS: usize = 20;
const SPACE: &str = "starts";
/// Says that it has started, and ends well if its card has as much memory as the limit.
const LIMITED: &str = "echo started; printf 'init\\ncontext 0\\ntotal d 0\\n' | /actor | {
    while read -r code total rest; do last=\"$code $total\"; done
    [ \"$last\" = '0 1073741824' ]
}";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("pods start limited by a claim, by the NRI plugin and by the runtime class", starts)]
}

/// How a pod comes to its limit.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Way {
    None,
    Class,
    Plugin,
    Claim,
}

impl Way {
    const ALL: [Self; 4] = [Self::None, Self::Class, Self::Plugin, Self::Claim];

    /// As the table has it.
    const fn name(self) -> &'static str {
        match self {
            Self::None => "no limit",
            Self::Class => "runtime class",
            Self::Plugin => "NRI plugin",
            Self::Claim => "claim",
        }
    }

    /// A pod of it.
    fn pod(self, name: &str) -> Value {
        let script = if self == Self::None { "echo started" } else { LIMITED };
        let mut one = pod(SPACE, name, "part", &[container("app", script)]);
        if self != Self::Claim {
            one["spec"]["resourceClaims"] = json!([]);
            one["spec"]["containers"][0]["resources"] = json!({});
            one["spec"]["containers"][0]["env"] = match self {
                Self::None => json!([]),
                _ => json!([{"name": "GPU_MEM_LIMIT", "value": "1Gi"}]),
            };
        }
        if self == Self::Class {
            one["spec"]["runtimeClassName"] = json!("gpucap");
        }
        one
    }
}

/// The moments of a pod, in seconds of the day.
struct Moments {
    created: f64,
    placed: f64,
    started: f64,
}

fn starts() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace(SPACE)?;
    let mut class = chart::object(&chart::rendered(&[])?, "RuntimeClass", "gpucap")?;
    // The node of the test has no labels.
    class["scheduling"].take();
    kubectl.apply(&[class, template(SPACE, "part", &[request("gpu", None, "1Gi", 10)])])?;
    let gpucap = cluster.installation.gpucap().display().to_string();
    // As the installer does it, so that there is a handler of ours.
    let configure = [gpucap.as_str(), "configure", "containerd"];
    cluster.daemons.enclosure.output(&configure)?;
    cluster.restart_containerd()?;
    let mut taken: BTreeMap<Way, Vec<Moments>> = BTreeMap::new();
    for round in 0..PODS {
        for way in Way::ALL {
            let name = format!("p{round}-{}", way as u8);
            // There for its own pods alone.
            if way == Way::Plugin {
                cluster
                    .daemons
                    .start("nri", &[gpucap.as_str(), "nri", "--ready-file", "/run/nri-ready"])?;
                let ready = cluster.daemons.enclosure.path("/run/nri-ready");
                crate::waited("the NRI plugin", || Ok(ready.exists().then_some(())))?;
            }
            kubectl.apply(&[way.pod(&name)])?;
            kubectl.pod(SPACE, &name, "Succeeded")?;
            if way == Way::Plugin {
                cluster.daemons.end("nri", "TERM")?;
            }
            taken.entry(way).or_default().push(moments(&cluster, &name)?);
        }
    }
    eprintln!("| pods of | created to placed | placed to started | created to started |");
    for (way, moments) in &taken {
        let column = |of: fn(&Moments) -> f64| figures(moments.iter().map(of).collect());
        eprintln!(
            "| {} | {} | {} | {} |",
            way.name(),
            column(|it| between(it.created, it.placed)),
            column(|it| between(it.placed, it.started)),
            column(|it| between(it.created, it.started)),
        );
    }
    kubectl.prints(&["delete", "runtimeclass", "gpucap"])?;
    kubectl.end_namespace(SPACE)?;
    cluster.daemons.enclosure.output(&[&configure[..], &["--undo"]].concat())?;
    cluster.restart_containerd()
}

/// When a pod was created, was placed and began.
fn moments(cluster: &Cluster, name: &str) -> Result<Moments> {
    let kubectl = cluster.kubectl();
    let words = ["logs", "--timestamps", "--namespace", SPACE, name];
    let log = kubectl.prints(&words)?;
    let line = log.lines().find(|line| line.ends_with(" started"));
    let field = format!("--field-selector=involvedObject.name={name},reason=Scheduled");
    let events = kubectl.list(&["events", "--namespace", SPACE, &field])?;
    let placed = events.first().map(|event| event["eventTime"].clone()).unwrap_or_default();
    let time = |text: Option<&str>, what: &str| {
        let seconds = text.and_then(seconds_of_day);
        seconds.ok_or_else(|| Stop::fail(format!("{name}: no time of {what}: {text:?}")))
    };
    Ok(Moments {
        created: time(cluster.created(SPACE, name)?.as_deref(), "creation")?,
        placed: time(placed.as_str(), "the scheduler's event")?,
        started: time(line.and_then(|line| line.split(' ').next()), "its line")?,
    })
}

/// Of a time as RFC 3339 has it, in UTC.
fn seconds_of_day(text: &str) -> Option<f64> {
    let time = text.split_once('T')?.1.strip_suffix('Z')?;
    let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some((hours * 60.0 + minutes) * 60.0 + seconds)
}

/// From one moment to a later one of at most a day, in seconds.
fn between(first: f64, second: f64) -> f64 {
    (second - first).rem_euclid(86400.0)
}

/// Median, and what nine of ten do not exceed.
fn figures(mut seconds: Vec<f64>) -> String {
    seconds.sort_by(f64::total_cmp);
    let at = |part: usize| {
        let at = (seconds.len() * part).div_ceil(100).saturating_sub(1);
        1000.0 * seconds.get(at).copied().unwrap_or_default()
    };
    format!("{:.0} ms, p90 {:.0} ms", at(50), at(90))
}
