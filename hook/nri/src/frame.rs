//! Two layers of frames, all numbers big-endian.
//!
//! The stream is divided into connections: `u32 connection, u32 length`, then `length` bytes of that connection. Each
//! connection carries messages of ttrpc: `u32 length, u32 stream, u8 kind, u8 flags`, then the body. The boundaries
//! of the two layers are independent: a message may come in many pieces, and a piece may hold many messages.
//!
//! A body that is longer than ttrpc allows is passed over, as ttrpc does, and its message comes without one. A connection
//! that is not ours is passed over too. So there is nothing that cannot be read, and nothing is reserved for a length
//! that was only announced.

/// What ttrpc allows a body.
pub const LONGEST: usize = 4 << 20;
/// The most bytes of a sent piece. The runtime reads through a buffer of this size, and drops a connection whose
/// piece does not fit.
const PIECE: usize = 4096;
const HEADER: usize = 10;

/// One of the two connections, named after the side that asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Connection {
    /// On which the runtime asks the plugin.
    Plugin = 1,
    /// On which the plugin asks the runtime.
    Runtime = 2,
}

/// What a message is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A question.
    Request,
    /// The answer to the question of the same stream.
    Response,
    /// Something that a plugin has no use for.
    Other(u8),
}

/// A message of ttrpc.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// Which question it belongs to.
    pub stream: u32,
    /// The kind of message.
    pub kind: Kind,
    /// What it says; none if that was too long.
    pub body: Option<Vec<u8>>,
}

impl Kind {
    const fn of(byte: u8) -> Self {
        match byte {
            1 => Self::Request,
            2 => Self::Response,
            other => Self::Other(other),
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Response => 2,
            Self::Other(byte) => byte,
        }
    }
}

/// A message as it is sent, in pieces. Of one that is too long only its header goes out, as if it were empty.
#[must_use]
pub fn encode(connection: Connection, stream: u32, kind: Kind, body: &[u8]) -> Vec<u8> {
    let body = Some(body).filter(|body| body.len() <= LONGEST).unwrap_or_default();
    // A question is all that its stream will ever say.
    let flags = u8::from(kind == Kind::Request);
    let mut message = length(body).to_vec();
    message.extend(stream.to_be_bytes());
    message.extend([kind.byte(), flags]);
    message.extend(body);
    let mut bytes = Vec::new();
    for piece in message.chunks(PIECE) {
        bytes.extend((connection as u32).to_be_bytes());
        bytes.extend(length(piece));
        bytes.extend(piece);
    }
    bytes
}

fn length(bytes: &[u8]) -> [u8; 4] {
    // No longer than LONGEST.
    u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes()
}

/// What has come so far.
#[derive(Debug, Default)]
pub struct Decoder {
    header: Header<8>,
    piece: Piece,
    plugin: Assembler,
    runtime: Assembler,
}

/// The rest of a piece, and its connection.
#[derive(Debug, Default)]
struct Piece {
    connection: Option<Connection>,
    left: usize,
}

impl Decoder {
    /// The messages that these bytes complete, in the order in which they end.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<(Connection, Message)> {
        let mut messages = Vec::new();
        loop {
            if self.piece.left == 0 {
                let Some(header) = self.header.take(&mut bytes) else { return messages };
                self.piece = Piece::of(header);
            }
            let mut part = split(&mut bytes, self.piece.left);
            self.piece.left = self.piece.left.saturating_sub(part.len());
            let (connection, assembler) = match self.piece.connection {
                Some(Connection::Plugin) => (Connection::Plugin, &mut self.plugin),
                Some(Connection::Runtime) => (Connection::Runtime, &mut self.runtime),
                None if bytes.is_empty() => return messages,
                None => continue,
            };
            while let Some(message) = assembler.take(&mut part) {
                messages.push((connection, message));
            }
            if bytes.is_empty() {
                return messages;
            }
        }
    }
}

impl Piece {
    fn of(header: [u8; 8]) -> Self {
        let [c0, c1, c2, c3, l0, l1, l2, l3] = header;
        let connection = match u32::from_be_bytes([c0, c1, c2, c3]) {
            1 => Some(Connection::Plugin),
            2 => Some(Connection::Runtime),
            _ => None,
        };
        Self { connection, left: size([l0, l1, l2, l3]) }
    }
}

/// The bytes of one connection, made messages.
#[derive(Debug, Default)]
struct Assembler {
    header: Header<HEADER>,
    begun: Option<Begun>,
}

/// A message of which the header is there.
#[derive(Debug)]
struct Begun {
    stream: u32,
    kind: Kind,
    body: Option<Vec<u8>>,
    left: usize,
}

impl Assembler {
    /// Takes bytes off the front until a message is whole, or there are none left.
    fn take(&mut self, bytes: &mut &[u8]) -> Option<Message> {
        let mut begun = match self.begun.take() {
            Some(begun) => begun,
            None => Begun::of(self.header.take(bytes)?),
        };
        let part = split(bytes, begun.left);
        begun.left = begun.left.saturating_sub(part.len());
        if let Some(body) = &mut begun.body {
            body.extend(part);
        }
        if begun.left > 0 {
            self.begun = Some(begun);
            return None;
        }
        Some(Message { stream: begun.stream, kind: begun.kind, body: begun.body })
    }
}

impl Begun {
    fn of(header: [u8; HEADER]) -> Self {
        let [l0, l1, l2, l3, s0, s1, s2, s3, kind, _flags] = header;
        let left = size([l0, l1, l2, l3]);
        Self {
            stream: u32::from_be_bytes([s0, s1, s2, s3]),
            kind: Kind::of(kind),
            body: (left <= LONGEST).then(Vec::new),
            left,
        }
    }
}

/// A header of which some bytes may be there.
#[derive(Debug)]
struct Header<const N: usize> {
    bytes: [u8; N],
    held: usize,
}

impl<const N: usize> Header<N> {
    /// The header, once it is whole.
    fn take(&mut self, bytes: &mut &[u8]) -> Option<[u8; N]> {
        let part = split(bytes, N.saturating_sub(self.held));
        for (place, byte) in self.bytes.iter_mut().skip(self.held).zip(part) {
            *place = *byte;
        }
        self.held = self.held.saturating_add(part.len());
        if self.held < N {
            return None;
        }
        self.held = 0;
        Some(self.bytes)
    }
}

impl<const N: usize> Default for Header<N> {
    fn default() -> Self {
        Self { bytes: [0; N], held: 0 }
    }
}

/// Takes at most `most` bytes off the front.
fn split<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (part, rest) = bytes.split_at_checked(most).unwrap_or((bytes, &[]));
    *bytes = rest;
    part
}

fn size(bytes: [u8; 4]) -> usize {
    // We run where both have the size of a pointer or less.
    usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX)
}
