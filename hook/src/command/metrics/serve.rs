//! As much of HTTP as a scraper needs: one question, one answer, and the connection ends.
//!
//! Any client that reaches the port may connect, send nothing and receive nothing. So at most [`THREADS`] connections
//! are served at a time, a request is small and has to arrive within [`ASKING`], and a response has to be received
//! within [`TAKING`] in full. Only one thread at a time reads the containers, and an answer is given to all who ask
//! within [`FRESH`] of it: so few are kept at a time, however many clients ask and do not read.

use crate::error::reason;
use crate::terminal::output;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The only thing that there is.
pub(super) const PATH: &str = "/metrics";
/// OpenMetrics, as `status` renders it.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// How long a question may take to come.
const ASKING: Duration = Duration::from_millis(500);
/// How long the taking of its answer may last.
const TAKING: Duration = Duration::from_secs(5);
/// For how long an answer is given to others, too: shorter than scrapers wait.
const FRESH: Duration = Duration::from_secs(1);
/// How many connections are served at once.
const THREADS: usize = 16;
/// How large a question may be.
const LARGEST: usize = 8192;
/// How many header lines it may have.
const LINES: usize = 64;

/// Answers until it is stopped.
pub(super) fn serve(socket: &TcpListener, body: impl Fn() -> String + Sync) {
    let latest = Latest::default();
    let body = || latest.or(&body);
    let last_error = Mutex::new(String::new());
    thread::scope(|scope| {
        for _ in 1..THREADS {
            scope.spawn(|| accept(socket, &body, &last_error));
        }
        accept(socket, &body, &last_error);
    });
}

/// The latest answer, which all get who ask soon after it.
#[derive(Default)]
struct Latest(Mutex<Option<(Instant, Arc<str>)>>);

impl Latest {
    /// Returns it, or makes a new one.
    fn or(&self, body: impl FnOnce() -> String) -> Arc<str> {
        // A look that panicked has changed nothing.
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = latest.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(text);
        }
        let text: Arc<str> = body().into();
        *latest = Some((Instant::now(), Arc::clone(&text)));
        text
    }
}

fn accept(socket: &TcpListener, body: &impl Fn() -> Arc<str>, last_error: &Mutex<String>) {
    loop {
        let served = socket.accept().map(|(stream, _)| stream);
        // A client that disconnects is not an error.
        let Err(why) = served.map(|stream| drop(answer(&stream, body))) else { continue };
        // No descriptor is left, say; what stays as it is was said.
        let why = reason(&why);
        let mut last_error = last_error.lock().unwrap_or_else(PoisonError::into_inner);
        if why != *last_error {
            output::notice(format!("metrics: {why}; trying again"));
            *last_error = why;
        }
        drop(last_error);
        thread::sleep(Duration::from_millis(100));
    }
}

/// Reads one question and answers it.
fn answer(stream: &TcpStream, body: impl Fn() -> Arc<str>) -> io::Result<()> {
    let (status, kind, body) = match question(stream, Instant::now() + ASKING)? {
        Question::Metrics => ("200 OK", TYPE, body()),
        Question::Elsewhere => ("404 Not Found", "text/plain", format!("{PATH}\n").into()),
        Question::Otherwise => ("405 Method Not Allowed", "text/plain", "GET\n".into()),
        Question::None => ("400 Bad Request", "text/plain", "HTTP/1.1\n".into()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let until = Instant::now() + TAKING;
    // Else the kernel may hold the second part back until the first was acknowledged.
    drop(stream.set_nodelay(true));
    say(stream, head.as_bytes(), until)?;
    say(stream, body.as_bytes(), until)
}

/// Writes all of it, however little is taken at a time.
fn say(mut stream: impl Write + Patient, mut text: &[u8], until: Instant) -> io::Result<()> {
    while !text.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.wait_at_most(left)?;
        match stream.write(text) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => text = text.get(taken..).unwrap_or_default(),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// The requested path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Question {
    Metrics,
    /// Another path.
    Elsewhere,
    /// Another method than GET.
    Otherwise,
    /// This is not HTTP.
    None,
}

/// Reads until a question is whole.
fn question(mut stream: impl Read + Patient, until: Instant) -> io::Result<Question> {
    let mut said = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.wait_at_most(left)?;
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece)?;
        said.extend_from_slice(piece.get(..read).unwrap_or_default());
        match parse(&said) {
            _ if said.len() > LARGEST => return Ok(Question::None),
            Some(question) => return Ok(question),
            None if read == 0 => return Ok(Question::None),
            None => {}
        }
    }
}

/// `None` if there is more to come.
fn parse(said: &[u8]) -> Option<Question> {
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(said) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(Question::None),
    }
    let path = request.path.unwrap_or_default();
    Some(match request.method {
        Some("GET") if path.split('?').next() == Some(PATH) => Question::Metrics,
        Some("GET") => Question::Elsewhere,
        _ => Question::Otherwise,
    })
}

/// A stream whose reads and writes can be given a timeout.
trait Patient {
    fn wait_at_most(&self, time: Duration) -> io::Result<()>;
}

impl Patient for &TcpStream {
    fn wait_at_most(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Patient for &[u8] {
        fn wait_at_most(&self, _: Duration) -> io::Result<()> {
            Ok(())
        }
    }

    fn asked(text: &str) -> Question {
        question(text.as_bytes(), Instant::now() + ASKING).expect("a question")
    }

    #[test]
    fn there_is_one_thing_to_ask_for() {
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Question::Metrics);
        assert_eq!(asked("GET /metrics?name=a HTTP/1.0\r\n\r\n"), Question::Metrics);
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n"), Question::Elsewhere);
        assert_eq!(asked("GET /metrics2 HTTP/1.1\r\n\r\n"), Question::Elsewhere);
        assert_eq!(asked("POST /metrics HTTP/1.1\r\n\r\n"), Question::Otherwise);
    }

    #[test]
    fn what_is_no_question_ends() {
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: a\r\n"), Question::None);
        assert_eq!(asked("\u{16}\u{3}\u{1}"), Question::None);
        assert_eq!(asked(&format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(9000))), Question::None);
        let lines = "A: b\r\n".repeat(LINES + 1);
        assert_eq!(asked(&format!("GET /metrics HTTP/1.1\r\n{lines}\r\n")), Question::None);
    }

    #[test]
    fn who_asks_soon_after_another_gets_the_same_answer() {
        let latest = Latest::default();
        let first = latest.or(|| "a".into());
        assert!(Arc::ptr_eq(&first, &latest.or(|| "b".into())));
        let old = Instant::now().checked_sub(FRESH).expect("a time");
        *latest.0.lock().expect("a lock") = Some((old, first));
        assert_eq!(&*latest.or(|| "c".into()), "c");
    }

    /// Takes a byte at a time.
    struct Slow(Vec<u8>);

    impl Write for &mut Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.extend(bytes.first());
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Patient for &mut Slow {
        fn wait_at_most(&self, _: Duration) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_that_is_taken_byte_by_byte_ends() {
        let mut slow = Slow(Vec::new());
        say(&mut slow, b"answer", Instant::now() + TAKING).expect("taken");
        assert_eq!(slow.0, b"answer");
        let late = say(&mut slow, b"answer", Instant::now()).expect_err("too late");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_slow_client_is_disconnected() {
        let late = question(&b"GET"[..], Instant::now()).expect_err("too late");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}
