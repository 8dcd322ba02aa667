//! `gpucap metrics`, once and served, of a process that lives at the same time. What a real parser makes of it: `tests/clients`.

use crate::look::{begin, ledger_of};
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Driver, Program, Result, Stop, World, trial};
use libtest_mimic::Trial;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("metrics: a live process is told of", printed),
        trial("metrics: the latest work of a GPU is dated where time is limited", dated),
        trial("metrics: each client is answered, even behind one that sends nothing", served),
        trial("metrics: many that say nothing do not hold up who asks", silent),
        trial("metrics: an address that cannot be had is a failure", taken),
        trial("metrics: HOST:PORT and :PORT are addresses", named),
        trial("metrics: an address without a port is a usage error", no_port),
    ]
}

const MIB: u64 = 1 << 20;

/// What is told of one ledger.
fn told(text: &str, ledger: &str) -> Result {
    for (name, value) in [("limit", 2048 * MIB), ("used", 356 * MIB), ("peak", 356 * MIB)] {
        let start =
            format!("gpucap_memory_{name}_bytes{{kind=\"run\",ledger=\"{ledger}\",gpu=\"GPU-");
        let line = text.lines().find(|line| line.starts_with(&start));
        let said = line.and_then(|line| line.rsplit(' ').next());
        let expected = format!("{value}.0");
        expect(said == Some(expected.as_str()), || format!("no {start}... {expected} in: {text}"))?;
    }
    expect(text.ends_with("# EOF\n"), || format!("no end: {text}"))
}

fn printed() -> Result {
    let actor = begin()?;
    let output = gpucap(&["metrics"])?.output()?.success()?;
    told(&output.stdout, &ledger_of(&actor)?)
}

/// What is printed of a GPU by name, after a program has launched kernels for a tenth of a second under these limits.
fn after_launches(limits: &[(&str, &str)]) -> Result<impl Fn(&str) -> Option<f64>> {
    let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    let run = World::with_shim(Driver::Stub)?.run(&share)?.arg("k_2ms").arg("8").arg("100");
    let run = limits.iter().fold(run, |run, (name, value)| run.env(name, value));
    let ledger = run.directory().join("ledger");
    let run = run.env("GPUCAP_LEDGER", &ledger);
    run.output()?.success()?;
    let text = gpucap(&["metrics"])?.env("GPUCAP_LEDGER", &ledger).output()?.success()?.stdout;
    let ledger = ledger.display().to_string();
    Ok(move |name: &str| {
        let start = format!("gpucap_{name}{{kind=\"other\",ledger=\"{ledger}\",gpu=\"GPU-");
        let line = text.lines().find(|line| line.starts_with(&start))?;
        line.rsplit(' ').next()?.parse().ok()
    })
}

fn dated() -> Result {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map(|it| it.as_secs_f64());
    let before = now().map_err(Stop::fail)?;
    let value = after_launches(&[("GPU_CORE_PCT", "100")])?;
    let after = now().map_err(Stop::fail)?;
    // In whole seconds.
    let last = value("last_launch_timestamp_seconds").unwrap_or_default();
    expect((before.floor()..=after).contains(&last), || format!("{before} {last} {after}"))?;
    let busy = value("core_busy_seconds_total").unwrap_or_default();
    expect(busy > 0.0, || format!("busy for {busy} s"))?;
    // No compute limit: launches are the driver's own functions, so nothing is known, and nothing is claimed.
    let value = after_launches(&[("GPU_MEM_LIMIT", "1Gi")])?;
    let unknown = ["last_launch_timestamp_seconds", "core_busy_seconds_total", "launches_total"];
    let known: Vec<_> = unknown.iter().filter(|name| value(name).is_some()).collect();
    expect(known.is_empty() && value("memory_peak_bytes").is_some(), || format!("{known:?}"))
}

/// A server that is stopped with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Result<Self> {
        Self::at("127.0.0.1:0")
    }

    fn at(listen: &str) -> Result<Self> {
        let mut command = Command::new(Build::shipped()?.gpucap()?);
        let command = command.args(["metrics", "--listen", listen]).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(said) = child.stderr.take() {
            BufReader::new(said).read_line(&mut line)?;
        }
        let address = line.trim_end().strip_prefix("gpucap: metrics: http://");
        let address = address.and_then(|line| line.strip_suffix("/metrics")).map(str::to_owned);
        let address = address.ok_or_else(|| Stop::fail(format!("it says {line:?}")));
        let server = Self { child, address: address.clone().unwrap_or_default() };
        address.map(|_| server)
    }

    fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect(&self.address)?)
    }

    /// Head and body of an answer.
    fn ask(&self, question: &str) -> Result<(String, String)> {
        let mut stream = self.connect()?;
        stream.write_all(question.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let parts = answer.split_once("\r\n\r\n").ok_or_else(|| Stop::fail(&answer))?;
        Ok((parts.0.to_owned(), parts.1.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It goes on until it is stopped; if it is over already, the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn served() -> Result {
    let actor = begin()?;
    let server = Server::start()?;
    let silent = server.connect()?;
    let (head, body) = server.ask("GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n")?;
    drop(silent);
    let is_it = head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;")
        && head.contains(&format!("\r\nContent-Length: {}\r\n", body.len()));
    expect(is_it, || head.clone())?;
    told(&body, &ledger_of(&actor)?)?;
    let (head, _) = server.ask("GET /nothing HTTP/1.1\r\n\r\n")?;
    expect(head.starts_with("HTTP/1.1 404 "), || head.clone())
}

/// As many as a scan of ports, or a client with a grudge, opens; each was waited for, one after the other.
const SILENT: usize = 10;
/// What that takes at least, at half a second each.
const ONE_BY_ONE: Duration = Duration::from_secs(5);

fn silent() -> Result {
    let server = Server::start()?;
    let silent = (0..SILENT).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    let half: Vec<_> = (0..4).map(|_| server.connect()).collect::<Result<_>>()?;
    for mut stream in &half {
        stream.write_all(b"GET /metrics HT")?;
    }
    let asked = Instant::now();
    let (head, _) = server.ask("GET /metrics HTTP/1.1\r\n\r\n")?;
    let took = asked.elapsed();
    drop(silent);
    expect(head.starts_with("HTTP/1.1 200 "), || head.clone())?;
    expect(took < ONE_BY_ONE, || format!("answered after {took:?}"))
}

fn taken() -> Result {
    let other = TcpListener::bind("127.0.0.1:0")?;
    let address = other.local_addr()?.to_string();
    let output = gpucap(&["metrics", "--listen", &address])?.output()?;
    ended(&output, 1)?;
    // The C library of what ships says it in other words than glibc.
    let why = output.stderr.strip_prefix(&format!("gpucap: metrics: {address}: "));
    let says = ["address already in use\n", "address in use\n"];
    expect(why.is_some_and(|why| says.contains(&why)), || output.to_string())
}

fn named() -> Result {
    for listen in ["localhost:0", ":0"] {
        let mut server = Server::at(listen)?;
        let port = server.address.rsplit(':').next().unwrap_or_default().to_owned();
        expect(port != "0", || format!("{listen}: {}", server.address))?;
        // All addresses of the machine are meant by none: one of them is this.
        if listen.starts_with(':') {
            server.address = format!("127.0.0.1:{port}");
        }
        let (head, _) = server.ask("GET /metrics HTTP/1.1\r\n\r\n")?;
        expect(head.starts_with("HTTP/1.1 200 "), || head.clone())?;
    }
    Ok(())
}

fn no_port() -> Result {
    for listen in ["9744", "localhost", "localhost:", ":http", ":65536"] {
        let output = gpucap(&["metrics", "--listen", listen])?.output()?;
        ended(&output, 2)?;
        says(&output, "HOST:PORT")?;
    }
    Ok(())
}
