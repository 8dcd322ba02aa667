//! What a container's start pays for the plugin: from a runtime's question to the answer, through a socket.
//!
//! The plugin is a process, as on a node; the bench is its runtime, and asks one question after the other.

use crate::files::Files;
use crate::measure::in_turns;
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use gpucap_nri::frame::{Connection, Decoder, Kind, encode};
use gpucap_nri::message::{
    self, Container, CreateContainerRequest, CreateContainerResponse, PodSandbox, Request, Response,
};
use prost::Message;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The most that an answer may take, in nanoseconds. A runtime waits two seconds.
const ANSWER: f64 = 1_000_000.0;

/// Measures it.
///
/// # Errors
/// If the plugin does not answer as it should.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let mut runtime = Runtime::start(&files.gpucap()?, &files.driver.join("nri"))?;
    let mut questions = [("asks", "GPU_MEM_LIMIT=4Gi"), ("silent", "GPU_MEM_LIMIT=")]
        .map(|(name, entry)| (name == "asks", question(entry)));
    let mut right = true;
    let samples = in_turns(&mut questions, effort.pick(20, 5000), |(asks, question)| {
        let (ns, adjusted) = runtime.create(question)?;
        right &= adjusted == *asks;
        Ok([ns])
    })?;
    let [[asks], [silent]] = samples;
    report.check("each container that asked was adjusted, and no other", right);
    report.row(&Row::single("nri, container that asks", Unit::Ns, asks).at_most(ANSWER));
    report.row(&Row::single("nri, container that asks for nothing", Unit::Ns, silent));
    Ok(())
}

/// A container as Kubernetes makes them: dozens of variables of its services, some annotations.
pub(crate) fn question(entry: &str) -> CreateContainerRequest {
    let services = (0..60).map(|index| format!("SERVICE_{index}_PORT=tcp://10.0.0.{index}:80"));
    let pod = PodSandbox {
        name: "pod".into(),
        uid: "00000000-0000-0000-0000-000000000000".into(),
        namespace: "default".into(),
        annotations: (0..10).map(|it| (format!("example/{it}"), "value".repeat(20))).collect(),
    };
    let env = services.chain([entry.to_owned()]).collect();
    let container = Container { name: "app".into(), env, ..Default::default() };
    CreateContainerRequest { pod: Some(pod), container: Some(container) }
}

/// The bench's side of the connection.
pub(crate) struct Runtime {
    stream: UnixStream,
    decoder: Decoder,
    streams: u32,
    plugin: Child,
}

impl Runtime {
    /// That of a plugin that has just begun, with its files in this directory.
    pub(crate) fn start(gpucap: &Path, place: &Path) -> Result<Self> {
        fs::create_dir_all(place)?;
        fs::write(place.join("node.json"), "{}")?;
        let socket = place.join("socket");
        drop(fs::remove_file(&socket));
        let listener = UnixListener::bind(&socket)?;
        let mut plugin = Command::new(gpucap);
        plugin.args(["nri", "--program", "/gpucap", "--config"]).arg(place.join("node.json"));
        let plugin = plugin.arg("--socket").arg(&socket).stderr(Stdio::null()).spawn()?;
        Self::of(listener.accept()?.0, plugin)
    }

    /// Nanoseconds until a question is answered, and whether the container is to be adjusted.
    pub(crate) fn create(&mut self, question: &CreateContainerRequest) -> Result<(f64, bool)> {
        let start = Instant::now();
        let answer = self.ask("CreateContainer", question)?;
        let ns = start.elapsed().as_secs_f64() * 1e9;
        let created = CreateContainerResponse::decode(answer.as_slice()).map_err(Stop::fail)?;
        Ok((ns, created.adjust.is_some()))
    }

    fn of(stream: UnixStream, plugin: Child) -> Result<Self> {
        let mut runtime = Self { stream, decoder: Decoder::default(), streams: 1, plugin };
        runtime.hear()?;
        let accepted = Response::default().encode_to_vec();
        runtime.say(Connection::Runtime, 1, Kind::Response, &accepted)?;
        runtime.ask("Configure", &message::ConfigureRequest::default())?;
        runtime.ask("Synchronize", &message::SynchronizeRequest::default())?;
        Ok(runtime)
    }

    fn ask(&mut self, method: &str, message: &impl Message) -> Result<Vec<u8>> {
        let request = Request {
            service: message::PLUGIN.into(),
            method: method.into(),
            payload: message.encode_to_vec(),
        };
        self.streams += 2;
        self.say(Connection::Plugin, self.streams, Kind::Request, &request.encode_to_vec())?;
        let response = Response::decode(self.hear()?.as_slice()).map_err(Stop::fail)?;
        match response.status {
            Some(status) if status.code == 0 => Ok(response.payload),
            other => Err(Stop::fail(format!("{method}: {other:?}"))),
        }
    }

    fn say(&mut self, to: Connection, stream: u32, kind: Kind, body: &[u8]) -> Result {
        Ok(self.stream.write_all(&encode(to, stream, kind, body))?)
    }

    /// The body of the next message.
    fn hear(&mut self) -> Result<Vec<u8>> {
        let mut bytes = [0; 16 << 10];
        loop {
            let came = self.stream.read(&mut bytes)?;
            if came == 0 {
                return Err(Stop::fail("the plugin closed the connection"));
            }
            if let Some((_, message)) = self.decoder.feed(&bytes[..came]).pop() {
                return Ok(message.body.unwrap_or_default());
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.plugin.kill());
        drop(self.plugin.wait());
    }
}
