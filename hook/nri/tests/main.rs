//! The protocol as a runtime knows it: bytes to bytes.
//!
//! * [`frames`]: messages come whole, however they are cut and mixed.
//! * [`session`]: each question has its answer.
//! * [`creation`]: what is added to a container brings the hook to the same plan.
//! * [`fuzz`]: the entry of the fuzz target, with random bytes.

mod creation;
mod frames;
#[path = "../../fuzz/src/nri.rs"]
#[expect(unreachable_pub, reason = "part of the fuzz target")]
mod fuzz;
mod session;

use gpucap_nri::frame::{Connection, Decoder, Kind, Message};

/// The messages in these bytes.
fn decoded(bytes: &[u8]) -> Vec<(Connection, Message)> {
    Decoder::default().feed(bytes)
}

/// A question of the runtime's, or the bytes of one.
fn asked(stream: u32, method: &str, message: &impl prost::Message) -> Vec<u8> {
    let request = gpucap_nri::message::Request {
        service: gpucap_nri::message::PLUGIN.into(),
        method: method.into(),
        payload: message.encode_to_vec(),
    };
    let body = prost::Message::encode_to_vec(&request);
    gpucap_nri::frame::encode(Connection::Plugin, stream, Kind::Request, &body)
}
