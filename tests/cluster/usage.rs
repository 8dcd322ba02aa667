//! What the scheduler has given of each card, at each moment: every state of every claim, as the API server told it.
//!
//! A watch runs while pods come and go. What claims have together is summed up after each event, so a moment in which
//! a card was given beyond its memory or its time is seen, however short it was.

use crate::cluster::{Cluster, DRIVER, MEMORY};
use crate::expect;
use gpucap_tests::{Result, Stop};
use serde_json::{Deserializer, Value};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

/// A watch of all claims.
pub(crate) struct Watch<'a> {
    cluster: &'a Cluster,
    path: PathBuf,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// States of claims.
    pub(crate) events: usize,
    /// Claims that had a part of a card at some time.
    pub(crate) allocated: usize,
    /// The most claims that one card had at once.
    pub(crate) most_on_one: usize,
    /// The most of its time that a card gave at once, in percent.
    pub(crate) most_cores: u64,
}

/// The parts of cards that a claim has: device, bytes, percent.
type Parts = Vec<(String, u64, u64)>;

impl<'a> Watch<'a> {
    /// Begins, before the first claim is made.
    pub(crate) fn begin(cluster: &'a Cluster) -> Result<Self> {
        let path = cluster.daemons.enclosure.path("/var/log/claims.json");
        File::create(&path)?;
        let program = cluster.kubectl().program.to_owned();
        let script = "exec \"$@\" >/var/log/claims.json";
        let configuration = "/run/kubernetes/admin.conf";
        let words = [
            "sh",
            "-c",
            script,
            "sh",
            &program,
            "--kubeconfig",
            configuration,
            "get",
            "resourceclaims",
            "--all-namespaces",
            "--output-watch-events",
            "--watch",
            "-o",
            "json",
        ];
        cluster.daemons.start("watch", &words)?;
        Ok(Self { cluster, path })
    }

    /// Ends it, and fails if a card was given beyond what it has.
    pub(crate) fn end(self) -> Result<Seen> {
        self.cluster.daemons.end("watch", "TERM")?;
        let text = fs::read_to_string(&self.path)?;
        let mut claims: BTreeMap<String, Parts> = BTreeMap::new();
        let (mut seen, mut allocated) = (Seen::default(), BTreeMap::new());
        for event in Deserializer::from_str(&text).into_iter::<Value>() {
            // The last one may have been cut off.
            let Ok(event) = event else { break };
            let claim = &event["object"];
            let uid = claim["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            seen.events += 1;
            if event["type"] == "DELETED" {
                claims.remove(&uid);
                continue;
            }
            let parts = parts(claim)?;
            if !parts.is_empty() {
                allocated.insert(uid.clone(), ());
            }
            claims.insert(uid, parts);
            let mut cards: BTreeMap<&str, (u64, u64, usize)> = BTreeMap::new();
            for (card, memory, cores) in claims.values().flatten() {
                let given = cards.entry(card).or_default();
                *given = (given.0 + memory, given.1 + cores, given.2 + 1);
            }
            for (card, (memory, cores, count)) in cards {
                let fits = memory <= MEMORY && cores <= 100;
                expect(fits, || format!("{card} was given {memory} bytes, {cores} %: {claims:?}"))?;
                seen.most_on_one = seen.most_on_one.max(count);
                seen.most_cores = seen.most_cores.max(cores);
            }
        }
        seen.allocated = allocated.len();
        Ok(seen)
    }
}

/// What a claim has of this driver's cards.
pub(crate) fn parts(claim: &Value) -> Result<Parts> {
    let results = claim["status"]["allocation"]["devices"]["results"].as_array();
    let own = results.into_iter().flatten().filter(|result| result["driver"] == DRIVER);
    own.map(|result| {
        let amount = |name: &str| bytes(result["consumedCapacity"][name].as_str().unwrap_or("?"));
        let card = result["device"].as_str().unwrap_or_default().to_owned();
        Ok((card, amount("memory")?, amount("cores")?))
    })
    .collect()
}

/// Kubernetes' quantity as a number, of the forms that the tests use.
fn bytes(text: &str) -> Result<u64> {
    let split = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let times = match suffix {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err(Stop::fail(format!("{text} is no amount"))),
    };
    Ok(number.parse::<u64>().map_err(Stop::fail)? * times)
}
