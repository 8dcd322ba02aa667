//! `gpucap metrics`, once and served, of a process that lives at the same time. What a real parser makes of it: `tests/clients`.

use crate::look::{begin, ledger_of};
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Result, Stop, trial};
use libtest_mimic::Trial;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("metrics: a live process is told of", printed),
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
