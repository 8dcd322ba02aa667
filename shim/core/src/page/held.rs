//! The held file: until when a container is to have no more of a GPU's time, by the driver's samples of it
//! ([`excess`](super::excess)).
//!
//! The node writes it beside the container's usage page, as `/.gpucap/pages/NAME.held`, and no container can write it. Where
//! the node holds containers back each has one, without lines as long as it may have what it asks for.
//!
//! ```text
//! GPU-00112233-4455-6677-8899-aabbccddeeff 1764403200123456789
//! ```
//!
//! One line for each GPU: its name, and a time in ns since 1970, which is the same in each time namespace. The node writes it
//! again as it comes to differ, by its clock being set, too. At most [`MAX_LINES`] lines.

use super::excess::MOST_HELD_NS;
use super::share::{MAX_BYTES, MAX_LINES};
use crate::uuid::{DeviceName, Uuid};
use core::fmt::Write;

/// What follows the name of a usage page in the name of its held file.
pub const SUFFIX: &str = ".held";

/// Returns the text of the file.
pub fn write(until: impl IntoIterator<Item = (Uuid, u64)>) -> String {
    let mut text = String::new();
    for (gpu, until) in until.into_iter().take(MAX_LINES) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {until}", gpu.gpu());
    }
    text
}

/// Returns for how long from `now_ns` since 1970 a GPU is not to be had; 0 if there is no line for it, or if the file is too
/// long. A time that is farther off than any that the node writes is one of another clock: it does not count.
#[must_use]
pub fn left_ns(bytes: &[u8], gpu: Uuid, now_ns: u64) -> u64 {
    if bytes.len() > MAX_BYTES {
        return 0;
    }
    let line = |line| {
        let (name, until) = core::str::from_utf8(line).ok()?.split_once(' ')?;
        let is_it = name.parse::<DeviceName>().is_ok_and(|name| name.uuid == gpu);
        if is_it { until.parse::<u64>().ok() } else { None }
    };
    let until = bytes.split(|&byte| byte == b'\n').take(MAX_LINES).find_map(line);
    let left_ns = until.unwrap_or(0).saturating_sub(now_ns);
    if left_ns <= MOST_HELD_NS.saturating_add(SLACK_NS) { left_ns } else { 0 }
}

/// By how much a time may be farther off because the clock was set by a little in the mean time.
const SLACK_NS: u64 = 60_000_000_000;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_gpu_has_a_line() {
        let uuid = |number| Uuid([number; 16]);
        let text = write([(uuid(0x11), 105), (uuid(0x22), u64::MAX), (uuid(0x33), 99)]);
        assert!(text.starts_with("GPU-11111111-1111-1111-1111-111111111111 105\n"), "{text}");
        let of = |number| left_ns(text.as_bytes(), uuid(number), 100);
        // The second is of another clock, the third is past, and the fourth has none.
        assert_eq!([0x11, 0x22, 0x33, 0x44].map(of), [5, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes: Vec<u8>) {
            let _ = left_ns(&bytes, Uuid([0; 16]), 0);
        }
    }
}
