//! A runtime's side of NRI: enough of its bytes to ask a plugin, and to read what it answers.
//!
//! Written after the descriptions of ttrpc and protobuf, and after `api.proto` of NRI, whose numbers stand where they
//! are used. What takes longer than a machine that is busy with other things has failed.

use gpucap_tests::{Result, Stop};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A field whose value has a length.
pub(super) fn message(field: u32, bytes: &[u8]) -> Vec<u8> {
    [&varint(u64::from(field << 3 | 2))[..], &varint(bytes.len() as u64), bytes].concat()
}

/// A text.
pub(super) fn text(field: u32, text: &str) -> Vec<u8> {
    message(field, text.as_bytes())
}

/// Texts.
pub(super) fn texts(field: u32, list: &[&str]) -> Vec<u8> {
    list.iter().flat_map(|it| text(field, it)).collect()
}

/// Texts by name.
pub(super) fn map(field: u32, pairs: &[(&str, &str)]) -> Vec<u8> {
    let pair =
        |(key, value): &(&str, &str)| message(field, &[text(1, key), text(2, value)].concat());
    pairs.iter().flat_map(pair).collect()
}

/// Yes or no.
pub(super) fn flag(field: u32, set: bool) -> Vec<u8> {
    [varint(u64::from(field << 3)), varint(u64::from(set))].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

/// A message, read.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Fields {
    numbers: Vec<(u32, u64)>,
    bytes: Vec<(u32, Vec<u8>)>,
}

impl Fields {
    fn of(mut bytes: &[u8]) -> Result<Self> {
        let mut fields = Self::default();
        while !bytes.is_empty() {
            let tag = number(&mut bytes)?;
            let (field, value) =
                (u32::try_from(tag >> 3).map_err(Stop::fail)?, number(&mut bytes)?);
            match tag & 7 {
                0 => fields.numbers.push((field, value)),
                2 => fields.bytes.push((
                    field,
                    take(&mut bytes, usize::try_from(value).map_err(Stop::fail)?)?.to_vec(),
                )),
                other => return Err(Stop::fail(format!("a field of kind {other}"))),
            }
        }
        Ok(fields)
    }

    /// Every message in this field.
    pub(super) fn all(&self, field: u32) -> Vec<Self> {
        let own = self.bytes.iter().filter(|it| it.0 == field);
        own.filter_map(|(_, bytes)| Self::of(bytes).ok()).collect()
    }

    /// Every text in this field.
    pub(super) fn texts(&self, field: u32) -> Vec<String> {
        let own = self.bytes.iter().filter(|it| it.0 == field);
        own.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// The text in this field, which is empty if it is not there.
    pub(super) fn text(&self, field: u32) -> String {
        self.texts(field).pop().unwrap_or_default()
    }

    /// The number in this field, which is 0 if it is not there.
    pub(super) fn number(&self, field: u32) -> u64 {
        self.numbers.iter().find(|it| it.0 == field).map_or(0, |it| it.1)
    }
}

fn number(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Stop::fail("a number without an end"))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let short = || Stop::fail("a message that ends too early");
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(short)?;
    *bytes = rest;
    Ok(taken)
}

fn length(bytes: &[u8]) -> Result<[u8; 4]> {
    Ok(u32::try_from(bytes.len()).map_err(Stop::fail)?.to_be_bytes())
}

/// What a plugin answered.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Answer {
    /// 0, or why it was not done.
    pub(super) code: u64,
    /// The same in words.
    pub(super) why: String,
    fields: Fields,
}

impl std::ops::Deref for Answer {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

impl Answer {
    /// What is to be added to a container.
    pub(super) fn adjustment(&self) -> Result<Fields> {
        let none = || Stop::fail(format!("nothing is added: {self:?}"));
        self.all(1).pop().filter(|_| self.code == 0).ok_or_else(none)
    }
}

/// A runtime with a plugin.
pub(super) struct Runtime {
    stream: UnixStream,
    streams: u32,
}

impl Runtime {
    /// At the other end of this connection.
    pub(super) fn of(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, streams: 0 })
    }

    /// Everything that is said before the first container.
    pub(super) fn begin(&mut self) -> Result {
        self.registered()?;
        self.begun()
    }

    /// The name and index that the plugin gives itself; it is accepted.
    pub(super) fn registered(&mut self) -> Result<(String, String)> {
        let (stream, fields) = self.registration()?;
        self.say(2, stream, 2, &message(1, &[]))?;
        Ok((fields.text(1), fields.text(2)))
    }

    /// The plugin is not accepted.
    pub(super) fn refuse(&mut self, why: &str) -> Result {
        let (stream, _) = self.registration()?;
        let code = [varint(1 << 3), varint(2)].concat();
        self.say(2, stream, 2, &message(1, &[code, text(2, why)].concat()))
    }

    fn registration(&mut self) -> Result<(u32, Fields)> {
        let (stream, body) = self.hear(2, 1)?;
        let request = Fields::of(&body)?;
        let asked = (request.text(1), request.text(2));
        let expected = ("nri.pkg.api.v1alpha1.Runtime".into(), "RegisterPlugin".into());
        if asked != expected || stream % 2 == 0 {
            return Err(Stop::fail(format!("stream {stream}: {asked:?}")));
        }
        Ok((stream, request.all(3).pop().unwrap_or_default()))
    }

    /// The rest of what is said before the first container.
    pub(super) fn begun(&mut self) -> Result {
        for (method, body) in [("Configure", text(2, "fake")), ("Synchronize", vec![])] {
            let answer = self.ask(method, &body)?;
            if answer.code != 0 {
                return Err(Stop::fail(format!("{method}: {answer:?}")));
            }
        }
        Ok(())
    }

    /// A question, and its answer.
    pub(super) fn ask(&mut self, method: &str, body: &[u8]) -> Result<Answer> {
        self.streams += 2;
        let stream = self.streams - 1;
        let names = [text(1, "nri.pkg.api.v1alpha1.Plugin"), text(2, method)].concat();
        self.say(1, stream, 1, &[names, message(3, body)].concat())?;
        self.answer(stream)
    }

    /// The answer to the question of this stream.
    pub(super) fn answer(&mut self, stream: u32) -> Result<Answer> {
        let (own, body) = self.hear(1, 2)?;
        if own != stream {
            return Err(Stop::fail(format!("the answer to {own}, not to {stream}")));
        }
        let response = Fields::of(&body)?;
        let status = response.all(1).pop().ok_or_else(|| Stop::fail("no status"))?;
        let fields = response.all(2).pop().unwrap_or_default();
        Ok(Answer { code: status.number(1), why: status.text(2), fields })
    }

    /// Half of a question.
    pub(super) fn half(&mut self) -> Result {
        self.piece(1, &[0, 0, 0, 99, 0, 0, 0, 99, 1, 0, b'x'])
    }

    /// Bytes on one of the connections.
    pub(super) fn piece(&mut self, connection: u32, bytes: &[u8]) -> Result {
        Ok(self
            .stream
            .write_all(&[&connection.to_be_bytes()[..], &length(bytes)?, bytes].concat())?)
    }

    /// A message, as a runtime sends it: the header first, then the body, each through a buffer.
    fn say(&mut self, connection: u32, stream: u32, kind: u8, body: &[u8]) -> Result {
        let mut bytes = length(body)?.to_vec();
        bytes.extend(stream.to_be_bytes());
        bytes.extend([kind, 0]);
        bytes.extend(body);
        bytes.chunks(4096).try_for_each(|part| self.piece(connection, part))
    }

    /// A message of this kind on this connection: its stream and body.
    fn hear(&mut self, connection: u32, kind: u8) -> Result<(u32, Vec<u8>)> {
        let mut bytes = Vec::new();
        loop {
            let mut header = [0; 8];
            self.stream.read_exact(&mut header)?;
            let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
            if number(0) != connection || number(4) > 4096 {
                return Err(Stop::fail(format!("a piece {header:?}")));
            }
            let mut piece = vec![0; number(4) as usize];
            self.stream.read_exact(&mut piece)?;
            bytes.extend(piece);
            let Some((header, body)) = bytes.split_at_checked(10) else { continue };
            let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
            if body.len() < number(0) as usize {
                continue;
            }
            if header[8] != kind || body.len() > number(0) as usize {
                return Err(Stop::fail(format!("a message {header:?}")));
            }
            return Ok((number(4), body.to_vec()));
        }
    }
}
