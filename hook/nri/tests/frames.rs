//! Messages arrive whole and in order, however they are cut and mixed; what is too long or unknown is skipped.

use super::decoded;
use gpucap_nri::frame::{Connection, Decoder, Kind, LONGEST, Message, encode};
use proptest::prelude::*;
use proptest::sample::Index;

fn message() -> impl Strategy<Value = (bool, Message)> {
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        prop::collection::vec(any::<u8>(), 4000..9000),
    ];
    (any::<bool>(), any::<u32>(), any::<bool>(), body).prop_map(|(plugin, stream, asks, body)| {
        let kind = if asks { Kind::Request } else { Kind::Response };
        (plugin, Message { stream, kind, body: Some(body) })
    })
}

const fn connection(plugin: bool) -> Connection {
    if plugin { Connection::Plugin } else { Connection::Runtime }
}

fn encoded(messages: &[(bool, Message)]) -> Vec<u8> {
    let each = messages.iter().map(|(plugin, it)| {
        encode(connection(*plugin), it.stream, it.kind, it.body.as_deref().unwrap_or_default())
    });
    each.collect::<Vec<_>>().concat()
}

/// The pieces of a stream: connection and bytes.
fn pieces(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut pieces = Vec::new();
    while let Some((header, rest)) = bytes.split_at_checked(8) {
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        let (piece, rest) = rest.split_at(number(4) as usize);
        pieces.push((number(0), piece.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a piece was begun and not ended");
    pieces
}

fn piece(connection: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&connection.to_be_bytes()[..], &length, bytes].concat()
}

proptest! {
    #[test]
    fn however_the_stream_is_cut_the_messages_are_the_same(
        messages in prop::collection::vec(message(), 0..6),
        cuts in prop::collection::vec(any::<Index>(), 0..20),
    ) {
        let bytes = encoded(&messages);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut decoder = Decoder::default();
        let parts = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        let came: Vec<_> = parts.flat_map(|part| decoder.feed(part)).collect();
        let sent: Vec<_> =
            messages.into_iter().map(|(plugin, it)| (connection(plugin), it)).collect();
        prop_assert_eq!(came, sent);
    }

    #[test]
    fn a_message_may_come_in_any_pieces_between_those_of_the_other_connection(
        messages in prop::collection::vec(message(), 1..6),
        sizes in prop::collection::vec((any::<bool>(), 0usize..3000), 1..200),
    ) {
        let bytes = encoded(&messages);
        let of = |id: u32| -> Vec<u8> {
            pieces(&bytes).into_iter().filter(|it| it.0 == id).flat_map(|it| it.1).collect()
        };
        let mut left = [of(1), of(2)];
        let mut mixed = Vec::new();
        // The last two take what is left.
        for (plugin, size) in sizes.into_iter().chain([(true, usize::MAX), (false, usize::MAX)]) {
            let (id, own) = if plugin { (1, &mut left[0]) } else { (2, &mut left[1]) };
            let rest = own.split_off(size.min(own.len()));
            mixed.extend(piece(id, own));
            mixed.extend(piece(7, b"unknown"));
            *own = rest;
        }
        let came = decoded(&mixed);
        for plugin in [true, false] {
            let sent = messages.iter().filter(|it| it.0 == plugin).map(|it| &it.1);
            let came = came.iter().filter(|it| it.0 == connection(plugin)).map(|it| &it.1);
            prop_assert_eq!(came.collect::<Vec<_>>(), sent.collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_piece_is_longer_than_what_the_runtime_reads_through(message in message()) {
        let sent = encoded(&[message]);
        prop_assert!(pieces(&sent).iter().all(|(_, bytes)| bytes.len() <= 4096));
    }

    #[test]
    fn any_bytes_can_be_read(bytes in any::<Vec<u8>>(), more in any::<Vec<u8>>()) {
        let mut decoder = Decoder::default();
        decoder.feed(&bytes);
        decoder.feed(&more);
    }
}

#[test]
fn a_message_that_is_too_long_comes_without_its_body_and_the_next_one_whole() {
    for (length, is_kept) in [(LONGEST, true), (LONGEST + 1, false)] {
        let mut message = u32::try_from(length).unwrap().to_be_bytes().to_vec();
        message.extend([0, 0, 0, 9, 1, 0]);
        message.resize(10 + length, b'x');
        let mut bytes: Vec<u8> = message.chunks(60_000).flat_map(|part| piece(1, part)).collect();
        bytes.extend(encode(Connection::Plugin, 11, Kind::Request, b"next"));
        let [(_, first), (_, next)] = decoded(&bytes).try_into().unwrap();
        assert_eq!((first.stream, first.body.is_some()), (9, is_kept), "{length}");
        assert_eq!((next.stream, next.body.as_deref()), (11, Some(&b"next"[..])));
    }
}

#[test]
fn a_kind_that_is_not_known_is_kept_apart() {
    let bytes = encode(Connection::Plugin, 1, Kind::Other(3), b"");
    assert_eq!(decoded(&bytes)[0].1.kind, Kind::Other(3));
}
