//! A real Prometheus scrapes a limited container, over the machine's own loopback: each question of the dashboard has an
//! answer, and it evaluates each alert.
//!
//! `ci/clients prometheus` fetches the server; without it the tests are skipped aloud. What `promtool` finds without a
//! server is in `tests/deploy`.

use crate::container::Container;
use crate::enforced::begin;
use crate::image::add;
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::fetched::program;
use gpucap_tests::{Build, Program, Result, Scratch, Stop, project};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[("a Prometheus answers each question of the dashboard", answered)])
}

/// What has no answer then, never has one.
const ENOUGH: Duration = Duration::from_secs(60);

/// A server that is stopped with the test.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it has ended already, the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// `gpucap metrics` of a node, at a port of its choice.
    fn metrics(config: &Path) -> Result<Self> {
        let mut command = Command::new(Build::shipped()?.gpucap()?);
        let command = command.args(["metrics", "--listen", "127.0.0.1:0", "--config"]).arg(config);
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(said) = child.stderr.take() {
            BufReader::new(said).read_line(&mut line)?;
        }
        let address = line.trim_end().strip_prefix("gpucap: metrics: http://");
        let address = address.and_then(|line| line.strip_suffix("/metrics"));
        let server = Self { child, address: address.unwrap_or_default().to_owned() };
        expect(!server.address.is_empty(), || format!("it says {line:?}"))?;
        Ok(server)
    }

    /// A Prometheus that scrapes one address, with the alerts.
    fn prometheus(scratch: &Scratch, target: &str) -> Result<Self> {
        let prometheus = program("prometheus", "usr/bin/prometheus")?;
        let config = json!({
            "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "250ms"},
            "rule_files": [project().join("hook/deploy/helm/gpucap/files/rules.yml")],
            "scrape_configs": [{"job_name": "gpucap", "static_configs": [{"targets": [target]}]}],
        });
        let file = scratch.path().join("prometheus.yml");
        fs::write(&file, config.to_string())?;
        // It names no port of its own choice: one that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let child = Command::new(prometheus)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", scratch.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, address })
    }

    /// What its API says; `None` while it does not answer.
    fn api(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Whether it has series for a question.
    fn answers(&self, question: &str) -> bool {
        let mut encoded = String::new();
        for byte in question.bytes() {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        let answer = self.api(&format!("query?query={encoded}")).unwrap_or_default();
        answer["data"]["result"].as_array().is_some_and(|series| !series.is_empty())
    }

    /// The alerts that it has evaluated without an error.
    fn evaluated(&self) -> usize {
        let answer = self.api("rules").unwrap_or_default();
        let groups = answer["data"]["groups"].as_array().into_iter().flatten();
        let rules = groups.filter_map(|group| group["rules"].as_array()).flatten();
        rules.filter(|rule| rule["health"] == "ok").count()
    }
}

/// What the panels ask, of all pods.
fn questions() -> Result<Vec<String>> {
    let text = fs::read_to_string(project().join("hook/deploy/helm/gpucap/files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&text).map_err(Stop::fail)?;
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let all = |text: &str| {
        let names = ["$namespace", "$pod", "$gpu"];
        names.iter().fold(text.to_owned(), |text, name| text.replace(name, ".*"))
    };
    Ok(targets.filter_map(|target| target["expr"].as_str()).map(all).collect())
}

fn answered(runtime: Runtime) -> Result {
    program("prometheus", "usr/bin/prometheus")?;
    let container = Container::new(runtime)?.env("GPU_CORE_PCT=30");
    let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    add(&container.root(), &share, "share")?;
    let mut first = begin(&container.run(&["/actor"])?)?;
    first.call("alloc a 1048576")?;
    container.exec(&[], &["/share", "k_2ms", "8", "500"])?.output()?.success()?;

    let metrics = Server::metrics(&container.path("node.json"))?;
    let scratch = Scratch::new()?;
    let prometheus = Server::prometheus(&scratch, &metrics.address)?;
    let mut left = questions()?;
    expect(left.len() >= 10, || format!("{left:?}"))?;
    let rules = fs::read_to_string(project().join("hook/deploy/helm/gpucap/files/rules.yml"))?;
    let rules = rules.matches("- alert:").count();
    let since = Instant::now();
    while !left.is_empty() || prometheus.evaluated() < rules {
        let waits = || format!("no answer: {left:?}; {} of {rules} alerts", prometheus.evaluated());
        expect(since.elapsed() < ENOUGH, waits)?;
        left.retain(|question| !prometheus.answers(question));
    }
    first.end().map(drop)
}
