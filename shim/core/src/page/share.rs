//! The share file: how much of each GPU's time the node has given a container, for the container's peers to read.
//!
//! The hook writes it beside the container's usage page, as `/.gpucap/pages/NAME.share`; no container can write it. It
//! bounds what peers believe of the page, which the container's own processes write. A page without a share file counts
//! for nothing.
//!
//! ```text
//! GPU-00112233-4455-6677-8899-aabbccddeeff 30
//! MIG-00112233-4455-6677-8899-aabbccddeeff 12.5 80
//! GPU-11112233-4455-6677-8899-aabbccddeeff 0 100
//! * 100
//! ```
//!
//! One line for each entry of the limits file: a device name, or `*` for every GPU that no other line names, and the
//! share in percent; 100 where the entry has no compute limit. A container that borrows has a second number: the most
//! that it may have; and low priority a share of 0. At most [`MAX_LINES`] lines. A library of an earlier release passes
//! over a line with two numbers, and believes no report of that page.

use crate::limits::file::Key;
use crate::units::{ComputeLimit, Share};
use crate::uuid::Uuid;
use core::fmt::Write;

/// What follows the name of a usage page in the name of its share file.
pub const SUFFIX: &str = ".share";
/// The number of lines that are written and read.
pub const MAX_LINES: usize = 64;
/// The hook writes no longer file.
pub const MAX_BYTES: usize = 8 * 1024;

/// Returns the text of the file for these limits, `None` standing for an entry without a compute limit. An entry beyond
/// the first [`MAX_LINES`] is left out.
pub fn write(limits: impl IntoIterator<Item = (Key, Option<ComputeLimit>)>) -> String {
    let mut text = String::new();
    for (key, limit) in limits.into_iter().take(MAX_LINES) {
        let limit = limit.unwrap_or(ComputeLimit::fixed(Share::FULL));
        let percent = |share: Share| share.to_string().trim_end_matches('%').to_owned();
        let share = limit.guaranteed().map_or_else(|| String::from("0"), percent);
        // Writing to a String cannot fail.
        let _ = match limit.borrows() {
            true => writeln!(text, "{key} {share} {}", percent(limit.most())),
            false => writeln!(text, "{key} {share}"),
        };
    }
    text
}

/// Returns the limit of a GPU: that of the first line that names it, else that of the first line for every GPU. `None`
/// if there is no such line, or if the file is longer than [`MAX_BYTES`]. A line of another form is ignored.
#[must_use]
pub fn limit_of(bytes: &[u8], gpu: Uuid) -> Option<ComputeLimit> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let lines = || bytes.split(|&byte| byte == b'\n').take(MAX_LINES).filter_map(line);
    let named = |key| matches!(key, Key::Name(name) if name.uuid == gpu);
    let find = |wanted: &dyn Fn(Key) -> bool| lines().find(|(key, _)| wanted(*key));
    let found = find(&named).or_else(|| find(&|key| key == Key::Every));
    found.map(|(_, limit)| limit)
}

fn line(bytes: &[u8]) -> Option<(Key, ComputeLimit)> {
    let (key, numbers) = core::str::from_utf8(bytes).ok()?.split_once(' ')?;
    let limit = match numbers.split_once(' ') {
        None => ComputeLimit::fixed(numbers.parse().ok()?),
        Some(("0", most)) => ComputeLimit::low_priority(most.parse().ok()?),
        Some((share, most)) => ComputeLimit::burst(share.parse().ok()?, most.parse().ok()?),
    };
    Some((key.parse().ok()?, limit))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn uuid(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    fn percent(percent: u16) -> Option<ComputeLimit> {
        Share::from_percent(percent).map(ComputeLimit::fixed)
    }

    #[test]
    fn each_entry_has_a_line() {
        let half = Share::from_parts(1250).map(ComputeLimit::fixed);
        let text = write([
            (Key::Name(uuid(0x11).gpu()), percent(30)),
            (Key::Name(uuid(0x22).mig()), half),
            (Key::Every, None),
        ]);
        let expected = "GPU-11111111-1111-1111-1111-111111111111 30\n\
                        MIG-22222222-2222-2222-2222-222222222222 12.5\n* 100\n";
        assert_eq!(text, expected);
        let of = |number| limit_of(text.as_bytes(), uuid(number));
        assert_eq!((of(0x11), of(0x22), of(0x33)), (percent(30), half, percent(100)));
    }

    #[test]
    fn a_gpu_that_no_line_names_has_no_share() {
        let text = write([(Key::Name(uuid(1).gpu()), percent(30))]);
        assert_eq!(limit_of(text.as_bytes(), uuid(2)), None);
        assert_eq!(limit_of(b"", uuid(2)), None);
    }

    #[test]
    fn a_line_of_another_form_is_ignored() {
        for wrong in ["* 0", "* 101", "* ", "*", "* 30 40 50", "* 0", "x 30", "* \u{b2}", "*\t30"] {
            let text = format!("{wrong}\n* 20\n");
            assert_eq!(limit_of(text.as_bytes(), uuid(1)), percent(20), "{wrong}");
        }
        assert_eq!(limit_of(b"\xff 30\n* 20", uuid(1)), percent(20));
    }

    #[test]
    fn a_longer_file_has_no_share() {
        let mut text = b"* 20\n".to_vec();
        text.resize(MAX_BYTES, b'\n');
        assert_eq!(limit_of(&text, uuid(1)), percent(20));
        text.push(b'\n');
        assert_eq!(limit_of(&text, uuid(1)), None);
    }

    #[test]
    fn no_more_lines_are_written_or_read_than_a_file_may_have() {
        let keys =
            (0..=u8::try_from(MAX_LINES).expect("small")).map(|it| Key::Name(uuid(it).mig()));
        let text = write(keys.map(|key| (key, Share::from_parts(1234).map(ComputeLimit::fixed))));
        assert_eq!(text.lines().count(), MAX_LINES);
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        let late = format!("{}* 20\n", "\n".repeat(MAX_LINES));
        assert_eq!(limit_of(late.as_bytes(), uuid(1)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            bytes: Vec<u8>, lines in "((GPU-|\\*)?[0-9a-f -]{0,40}\n?){0,9}",
        ) {
            let _ = limit_of(&bytes, uuid(1));
            let _ = limit_of(lines.as_bytes(), uuid(1));
        }

        #[test]
        fn a_limit_that_was_written_is_read(
            parts in 100_u16..=10_000, most in 100_u16..=10_000, is_low: bool, number: u8,
        ) {
            let share = |parts| Share::from_parts(parts).expect("a share");
            let limit = match is_low {
                true => ComputeLimit::low_priority(share(most)),
                false => ComputeLimit::burst(share(parts), share(most)),
            };
            let entry = (Key::Name(uuid(number).gpu()), Some(limit));
            let text = write([(Key::Every, percent(1)), entry]);
            prop_assert_eq!(limit_of(text.as_bytes(), uuid(number)), Some(limit));
        }
    }
}
