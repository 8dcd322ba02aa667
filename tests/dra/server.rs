//! An API server of our own: objects by their paths, over plain HTTP on the loopback interface.
//!
//! It knows what the driver needs of one: reading, lists with field selectors, and writing with resource versions. It
//! can be told to be away, or to give no answer. One connection has one request, so that no connection outlives such a
//! change. It counts what was written.

use gpucap_tests::{Result, Stop};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The path of the slices.
pub(crate) const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";

/// How it answers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Mood {
    /// As a server does.
    #[default]
    Well,
    /// It closes each connection.
    Away,
    /// It answers nothing to a question for a claim.
    Silent,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Value>,
    mood: Mood,
    writes: u64,
    /// Questions that wait for an answer that does not come.
    waiting: u64,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

/// The server. Its thread ends with the test binary.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Shared,
}

impl Server {
    /// One with a node of this name.
    ///
    /// # Errors
    /// No port can be had.
    pub(crate) fn start(node: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = Self { address, shared: Shared::default() };
        server.put(
            &format!("/api/v1/nodes/{node}"),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": "node-uid"}}),
        );
        let shared = server.shared.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = shared.clone();
                // A client that goes away in the middle is no matter of the test.
                std::thread::spawn(move || drop(serve(&connection, &shared)));
            }
        });
        Ok(server)
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it answers so.
    pub(crate) fn set(&self, mood: Mood) {
        self.state().mood = mood;
        self.shared.1.notify_all();
    }

    /// Puts an object there.
    pub(crate) fn put(&self, path: &str, object: Value) {
        self.state().objects.insert(path.to_owned(), object);
    }

    /// Takes an object away.
    pub(crate) fn remove(&self, path: &str) {
        self.state().objects.remove(path);
    }

    /// The slices that there are.
    pub(crate) fn slices(&self) -> Vec<Value> {
        let below = format!("{SLICES}/");
        let state = self.state();
        let own = state.objects.iter().filter(|(path, _)| path.starts_with(&below));
        own.map(|(_, object)| object.clone()).collect()
    }

    /// How many times an object was written or deleted by a request.
    pub(crate) fn writes(&self) -> u64 {
        self.state().writes
    }

    /// How many questions wait for an answer.
    pub(crate) fn waiting(&self) -> u64 {
        self.state().waiting
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(mut connection: &TcpStream, (state, changed): &(Mutex<State>, Condvar)) -> Result {
    let (method, path, body) = request(connection)?;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if state.mood == Mood::Silent && path.contains("/resourceclaims/") {
        state.waiting += 1;
        while state.mood == Mood::Silent {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
    }
    if state.mood == Mood::Away {
        return Ok(());
    }
    let (code, answer) = state.answer(&method, &path, body);
    drop(state);
    let text = answer.to_string();
    let head = format!(
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    Ok(connection.write_all(format!("{head}{text}").as_bytes())?)
}

fn request(connection: &TcpStream) -> Result<(String, String, Value)> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut word = || words.next().ok_or_else(|| Stop::fail("no request"));
    let (method, path) = (word()?, word()?);
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(Stop::fail)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((method, path, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

impl State {
    fn answer(&mut self, method: &str, path: &str, mut body: Value) -> (u16, Value) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let there = self.objects.get(path).cloned();
        match (method, there) {
            ("GET", Some(object)) => (200, object),
            ("GET", None) if path == SLICES => (200, self.list(path, query)),
            ("DELETE", Some(object)) => {
                self.writes += 1;
                self.objects.remove(path);
                (200, object)
            }
            ("POST", None) => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return status(409, "AlreadyExists");
                }
                (201, self.write(path, &mut body))
            }
            ("PUT", Some(object)) => {
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                if version(&object) != version(&body) {
                    return status(409, "Conflict");
                }
                (200, self.write(path.to_owned(), &mut body))
            }
            _ => status(404, "NotFound"),
        }
    }

    fn write(&mut self, path: String, object: &mut Value) -> Value {
        self.writes += 1;
        object["metadata"]["resourceVersion"] = json!(self.writes.to_string());
        // As a server does with what its gates leave out or fill in.
        for device in object["spec"]["devices"].as_array_mut().into_iter().flatten() {
            for taint in device["taints"].as_array_mut().into_iter().flatten() {
                taint["timeAdded"] = json!("2026-09-01T10:00:00Z");
            }
        }
        self.objects.insert(path, object.clone());
        object.clone()
    }

    fn list(&self, path: &str, query: &str) -> Value {
        let query = query.replace("%3D", "=").replace("%2C", ",");
        let selector = query.split('&').find_map(|part| part.strip_prefix("fieldSelector="));
        let wanted: Vec<_> =
            selector.unwrap_or_default().split(',').filter_map(|it| it.split_once('=')).collect();
        let fits = |object: &&Value| {
            wanted.iter().all(|(field, value)| {
                object.pointer(&format!("/{}", field.replace('.', "/"))) == Some(&json!(value))
            })
        };
        let below = format!("{path}/");
        let all = self.objects.iter().filter(|(path, _)| path.starts_with(&below)).map(|it| it.1);
        let items: Vec<_> = all.filter(fits).collect();
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSliceList", "metadata": {}, "items": items})
    }
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("the object: {reason}"),
    });
    (code, status)
}
