//! One connection to a runtime: requests, and the answers to them.
//!
//! The plugin names itself; the runtime then asks which events it wants ([`CREATE_CONTAINER`], nothing else), lists
//! the containers that run already, in any number of parts, and from then on asks about each container. Every request
//! is answered without waiting for anything but the decision (`plan`): a runtime that waits two seconds for an answer
//! drops the plugin, and makes containers without it. Requests that arrive in one read are decided one after another,
//! and their answers are returned together after the last decision.
//!
//! A container that cannot be read is refused, since its request is unknown.

use prost::Message as _;
use std::fmt;

use crate::creation::{Adjustment, Creation};
use crate::frame::{Connection, Decoder, Kind, Message, encode};
use crate::message::{
    self, CREATE_CONTAINER, ConfigureRequest, ConfigureResponse, CreateContainerRequest,
    CreateContainerResponse, RegisterPluginRequest, Request, Response, Status, SynchronizeRequest,
    SynchronizeResponse,
};

/// The codes of gRPC that we use.
const OK: i32 = 0;
const INVALID_ARGUMENT: i32 = 3;
const RESOURCE_EXHAUSTED: i32 = 8;
const FAILED_PRECONDITION: i32 = 9;
const UNIMPLEMENTED: i32 = 12;
/// The stream of the only question that we ask.
const REGISTRATION: u32 = 1;

/// What becomes of a container.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is made as it is.
    Leave,
    /// This is added to it.
    Adjust(Box<Adjustment>),
    /// It is not made, for this reason.
    Refuse(String),
}

/// The runtime does not want the plugin; why, in its own words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

/// Under which name and at which place a plugin is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Name {
    name: String,
    index: String,
}

/// A name or index that no runtime accepts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NameError;

impl Name {
    /// A plugin of this name, whose index has two digits.
    ///
    /// # Errors
    /// No runtime would accept it.
    pub fn new(name: &str, index: &str) -> Result<Self, NameError> {
        let fit = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
        let named = !name.is_empty() && name.bytes().all(fit);
        let placed = index.len() == 2 && index.bytes().all(|byte| byte.is_ascii_digit());
        let valid = named && placed;
        valid.then(|| Self { name: name.into(), index: index.into() }).ok_or(NameError)
    }

    /// Of a file that a runtime starts: `10-gpucap`.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn of_file(file: &str) -> Result<Self, NameError> {
        let (index, name) = file.split_once('-').ok_or(NameError)?;
        Self::new(name, index)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.index, self.name)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a plugin has a name of letters, digits, _ . + and -, and an index of two digits",
        )
    }
}

impl std::error::Error for NameError {}

/// A connection.
#[derive(Debug, Default)]
pub struct Session {
    decoder: Decoder,
    runtime: String,
    ready: bool,
}

impl Session {
    /// A new one, and what it says first.
    #[must_use]
    pub fn open(name: &Name) -> (Self, Vec<u8>) {
        let own = RegisterPluginRequest {
            plugin_name: name.name.clone(),
            plugin_idx: name.index.clone(),
        };
        let request = Request {
            service: message::RUNTIME.into(),
            method: "RegisterPlugin".into(),
            payload: own.encode_to_vec(),
        };
        let body = request.encode_to_vec();
        (Self::default(), encode(Connection::Runtime, REGISTRATION, Kind::Request, &body))
    }

    /// Whether the runtime asks us about each container.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// The runtime's name and version, once it has said them.
    #[must_use]
    pub fn runtime(&self) -> &str {
        &self.runtime
    }

    /// Takes bytes that have arrived, and returns the bytes to send. `plan` decides about a container.
    ///
    /// # Errors
    /// The runtime does not want us.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        plan: &mut dyn FnMut(&Creation) -> Answer,
    ) -> Result<Vec<u8>, Refused> {
        let mut said = Vec::new();
        for (connection, message) in self.decoder.feed(bytes) {
            match (connection, message.kind) {
                (Connection::Plugin, Kind::Request) => {
                    let response = self.answer(&message, plan).encode_to_vec();
                    said.extend(encode(connection, message.stream, Kind::Response, &response));
                }
                (Connection::Runtime, Kind::Response) if message.stream == REGISTRATION => {
                    registered(&message)?;
                }
                // A message that was not asked for.
                _ => {}
            }
        }
        Ok(said)
    }

    fn answer(&mut self, message: &Message, plan: &mut dyn FnMut(&Creation) -> Answer) -> Response {
        let Some(body) = &message.body else {
            return failed(RESOURCE_EXHAUSTED, "the message is longer than ttrpc allows");
        };
        let Ok(Request { service, method, payload }) = Request::decode(body.as_slice()) else {
            return failed(INVALID_ARGUMENT, "the request cannot be read");
        };
        if service != message::PLUGIN {
            return failed(UNIMPLEMENTED, &format!("there is no service {service:?} here"));
        }
        let answered = match method.as_str() {
            "Configure" => {
                ConfigureRequest::decode(payload.as_slice()).map(|it| self.configure(&it))
            }
            "Synchronize" => {
                SynchronizeRequest::decode(payload.as_slice()).map(|it| self.synchronize(&it))
            }
            "CreateContainer" => {
                CreateContainerRequest::decode(payload.as_slice()).map(|it| create(it, plan))
            }
            "Shutdown" => {
                self.ready = false;
                Ok(done(&()))
            }
            _ => Ok(failed(UNIMPLEMENTED, &format!("there is no method {method:?} here"))),
        };
        answered.unwrap_or_else(|why| {
            failed(INVALID_ARGUMENT, &format!("the message of {method} cannot be read: {why}"))
        })
    }

    fn configure(&mut self, request: &ConfigureRequest) -> Response {
        // Another's words, for one line of a log.
        let said = format!("{} {}", request.runtime_name, request.runtime_version);
        self.runtime = said.escape_default().take(100).collect();
        done(&ConfigureResponse { events: CREATE_CONTAINER })
    }

    fn synchronize(&mut self, request: &SynchronizeRequest) -> Response {
        self.ready |= !request.more;
        done(&SynchronizeResponse { more: request.more })
    }
}

fn create(request: CreateContainerRequest, plan: &mut dyn FnMut(&Creation) -> Answer) -> Response {
    match plan(&Creation::of(request)) {
        Answer::Leave => done(&CreateContainerResponse::default()),
        Answer::Adjust(adjustment) => {
            let response = CreateContainerResponse { adjust: Some(adjustment.0) };
            if response.encoded_len() >= crate::frame::LONGEST / 2 {
                return failed(RESOURCE_EXHAUSTED, "the answer is longer than ttrpc allows");
            }
            done(&response)
        }
        Answer::Refuse(why) => failed(FAILED_PRECONDITION, &why),
    }
}

fn registered(message: &Message) -> Result<(), Refused> {
    let body = message.body.as_deref().unwrap_or_default();
    let Ok(response) = Response::decode(body) else {
        return Err(Refused("its answer cannot be read".into()));
    };
    match response.status {
        Some(status) if status.code != OK => {
            Err(Refused(status.message.escape_default().take(300).collect()))
        }
        _ => Ok(()),
    }
}

fn done(message: &impl prost::Message) -> Response {
    // Old versions of ttrpc want to see the status of a success too.
    Response { status: Some(Status::default()), payload: message.encode_to_vec() }
}

fn failed(code: i32, why: &str) -> Response {
    let message = why.chars().take(1000).collect();
    Response { status: Some(Status { code, message }), payload: Vec::new() }
}
