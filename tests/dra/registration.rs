//! The kubelet's first call as it is on the wire: what it calls the driver by is the path of the socket.
//!
//! gRPC in Go has no host for a socket that it was given by its path, and names the path as `:authority`, in which it
//! writes `/` as `%2F`. A client in Rust cannot send such a name, so the frames are written here, by RFC 9113 and 7541.

use crate::expect;
use crate::kubelet::{sockets, waited};
use crate::node::Node;
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(
        "registration: a kubelet that calls it by the path of its socket is answered",
        by_path,
    )]
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const END_OF_STREAM: u8 = 1;
const END_OF_HEADERS: u8 = 4;

fn by_path() -> Result {
    let node = Node::start()?;
    let socket = waited(|| sockets(&node.path("k/plugins_registry")).pop())?;
    let path = socket.display().to_string();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/pluginregistration.Registration/GetInfo"),
        (":authority", &path.replace('/', "%2F")),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let fields: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    let mut stream = UnixStream::connect(&socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    stream.write_all(&frame(HEADERS, END_OF_HEADERS, 1, &fields))?;
    // An empty message.
    stream.write_all(&frame(DATA, END_OF_STREAM, 1, &[0; 5]))?;
    loop {
        match next(&mut stream)? {
            (DATA, message) => {
                let said = String::from_utf8_lossy(&message).into_owned();
                return expect(said.contains("slice.gpucap.io"), || said);
            }
            (RESET, code) => return Err(Stop::fail(format!("{path}: reset with {code:?}"))),
            _ => {}
        }
    }
}

/// A frame of a stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field that no table has.
fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0], &text(name)[..], &text(value)].concat()
}

/// A text without compression, after its length: what does not fit into 7 bits follows in groups of 7.
fn text(text: &str) -> Vec<u8> {
    let low = |number: usize| number.to_le_bytes()[0];
    let mut bytes = vec![low(text.len().min(127))];
    let mut rest = text.len().checked_sub(127);
    while let Some(number) = rest {
        let more = number >= 128;
        bytes.push(low(number % 128) | if more { 128 } else { 0 });
        rest = more.then_some(number / 128);
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// The next frame that comes: its kind and what it carries.
fn next(stream: &mut UnixStream) -> Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload)?;
    Ok((head[3], payload))
}
