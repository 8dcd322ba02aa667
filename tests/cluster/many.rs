//! Many pods at once, of random parts: the scheduler gives no card beyond what it has, and nothing is left of them, even
//! if the driver and the kubelet are killed in between.
//!
//! How long the kubelet waited for the driver is printed, of each kind of call, as the kubelet's own metrics say it.

use crate::cluster::{Cluster, NODE, cluster};
use crate::expect;
use crate::manifests::{container, pod, request, template};
use crate::usage::Watch;
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How many pods there are.
const PODS: u64 = 200;
/// What takes longer hangs: all of them, on a machine that does a dozen other things.
const LONGEST: Duration = Duration::from_secs(1200);
/// How many kinds of them.
const KINDS: u64 = 20;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("of 200 random pods none makes a card give more than it has", random),
        trial("nothing is left of 200 pods when driver and kubelet are killed in between", killed),
    ]
}

/// Random numbers below a bound.
struct Random(RandomState, u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.1 += 1;
        self.0.hash_one(self.1) % bound
    }
}

/// Makes all the pods, of random kinds, that are started again by this policy.
fn make(cluster: &Cluster, space: &str, restart: &str, random: &mut Random) -> Result {
    let kubectl = cluster.kubectl();
    kubectl.namespace(space)?;
    let kinds = (0..KINDS).map(|kind| {
        let memory = format!("{}Mi", 1 + random.below(6 << 10));
        let cores = u32::try_from(1 + random.below(60)).unwrap_or(1);
        template(space, &format!("k{kind}"), &[request("gpu", None, &memory, cores)])
    });
    kubectl.apply(&kinds.collect::<Vec<_>>())?;
    let pods = (0..PODS).map(|number| {
        let kind = format!("k{}", random.below(KINDS));
        let script = format!("exec sleep 0.{}", random.below(10));
        let mut one = pod(space, &format!("p{number}"), &kind, &[container("app", &script)]);
        one["spec"]["restartPolicy"] = json!(restart);
        one
    });
    kubectl.apply(&pods.collect::<Vec<_>>())
}

/// How many pods have come to this end.
fn ended(pods: &[Value], phase: &str) -> usize {
    pods.iter().filter(|pod| pod["status"]["phase"] == phase).count()
}

/// Ends the pods, and fails if the node keeps something of one.
fn nothing_left(cluster: &Cluster, space: &str) -> Result {
    cluster.kubectl().end_namespace(space)?;
    let files = crate::waited("the end of all claims on the node", || {
        let (files, claims) = (cluster.cdi_files()?, cluster.checkpoint()?);
        Ok((files.is_empty() && claims.is_empty()).then_some(()))
    });
    files.map_err(|stop| {
        let left = (cluster.cdi_files(), cluster.checkpoint());
        stop.explained(|why| format!("{why}: {left:?}\n{}", cluster.daemons.logs()))
    })?;
    let path = cluster.daemons.enclosure.path("/run/gpucap/containers");
    let records = fs::read_dir(path)?.count();
    expect(records == 0, || format!("{records} records of containers that are over"))
}

fn random() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    let watch = Watch::begin(&cluster)?;
    let mut random = Random(RandomState::new(), 0);
    make(&cluster, "random", "Never", &mut random)?;
    let all = |pods: &[Value]| ended(pods, "Succeeded") as u64 == PODS;
    let words = ["pods", "--namespace=random"];
    kubectl.wait_within(LONGEST, &words, "the end of all pods", all)?;
    let seen = watch.end()?;
    eprintln!("{seen:?}");
    // It was a test of the scheduler only if cards were shared, and full.
    let shared = seen.allocated as u64 == PODS && seen.most_on_one >= 2 && seen.most_cores >= 60;
    expect(shared, || format!("{seen:?}"))?;
    for (method, figures) in durations(&cluster)? {
        eprintln!("{method}: {figures}");
    }
    nothing_left(&cluster, "random")
}

fn killed() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    let watch = Watch::begin(&cluster)?;
    let mut random = Random(RandomState::new(), 0);
    // containerd ends a container that a kubelet has it start, when that kubelet is killed.
    make(&cluster, "killed", "OnFailure", &mut random)?;
    let mut kills = BTreeMap::from([("driver", 0_u32), ("kubelet", 0)]);
    let mut before = 0;
    let words = ["pods", "--namespace=killed"];
    kubectl.wait_within(LONGEST, &words, "the end of all pods", |pods| {
        let done = ended(pods, "Succeeded");
        // After every few pods, at whatever the two do then.
        if done >= before + 10 && (done as u64) < PODS {
            before = done;
            let names: &[&str] = match random.below(4) {
                0 | 1 => &["kubelet"],
                2 => &["driver"],
                _ => &["driver", "kubelet"],
            };
            // As a fault ends them, and as the node does.
            let signal = ["KILL", "TERM"][usize::from(random.below(4) == 0)];
            for name in names {
                *kills.entry(name).or_default() += 1;
                let ended = cluster.daemons.end(name, signal);
                if let Err(why) = ended.and_then(|()| cluster.daemons.start_again(name)) {
                    eprintln!("{why:?}");
                }
            }
        }
        done as u64 == PODS
    })?;
    eprintln!("killed {kills:?}: {:?}", watch.end()?);
    expect(kills.values().sum::<u32>() >= 8, || format!("only {kills:?}"))?;
    nothing_left(&cluster, "killed")
}

/// How long the calls of each kind took, by the buckets of the kubelet's histogram.
fn durations(cluster: &Cluster) -> Result<BTreeMap<String, String>> {
    const NAME: &str = "dra_grpc_operations_duration_seconds_";
    let path = format!("/api/v1/nodes/{NODE}/proxy/metrics");
    let text = cluster.kubectl().prints(&["get", "--raw", &path])?;
    let mut buckets: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
    let mut sums = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix(NAME)) {
        let value = |label: &str| {
            let (_, rest) = line.split_once(&format!("{label}=\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let number = line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok());
        let (Some(method), Some(number)) = (value("method_name"), number) else { continue };
        match value("le") {
            Some(bound) => buckets.entry(method).or_default().push((bound, number)),
            None if line.starts_with("sum{") => drop(sums.insert(method, number)),
            None => {}
        }
    }
    let figures = buckets.into_iter().map(|(method, buckets)| {
        let total = buckets.last().map_or(0.0, |(_, count)| *count);
        let within = |part: f64| {
            let found = buckets.iter().find(|(_, count)| *count >= part * total);
            found.map(|(bound, _)| bound.clone()).unwrap_or_default()
        };
        let mean = 1000.0 * sums.get(&method).copied().unwrap_or_default() / total;
        let (half, most) = (within(0.5), within(0.99));
        let text = format!("{total} calls, mean {mean:.1} ms, p50 <= {half} s, p99 <= {most} s");
        (method, text)
    });
    Ok(figures.collect())
}
