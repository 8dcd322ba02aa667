//! The held file: until when a container is to have no more of a GPU's time, by the driver's samples of it
//! ([`excess`](super::excess)).
//!
//! The node writes it beside the container's usage page, as `/.gpucap/pages/NAME.held`, and no container can write it. A
//! container without one, or whose times are past, is not held back.
//!
//! ```text
//! GPU-00112233-4455-6677-8899-aabbccddeeff 81234567890
//! ```
//!
//! One line for each GPU: its name, and a time of the node's CLOCK_MONOTONIC in ns. At most [`MAX_LINES`]
//! lines.

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

/// Returns until when a GPU is not to be had; `None` if there is no line for it, or if the file is too long.
#[must_use]
pub fn until(bytes: &[u8], gpu: Uuid) -> Option<u64> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let line = |line| {
        let (name, until) = core::str::from_utf8(line).ok()?.split_once(' ')?;
        let is_it = name.parse::<DeviceName>().is_ok_and(|name| name.uuid == gpu);
        if is_it { until.parse().ok() } else { None }
    };
    bytes.split(|&byte| byte == b'\n').take(MAX_LINES).find_map(line)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_gpu_has_a_line() {
        let uuid = |number| Uuid([number; 16]);
        let text = write([(uuid(0x11), 5), (uuid(0x22), u64::MAX)]);
        assert!(text.starts_with("GPU-11111111-1111-1111-1111-111111111111 5\n"), "{text}");
        let of = |number| until(text.as_bytes(), uuid(number));
        assert_eq!((of(0x11), of(0x22), of(0x33)), (Some(5), Some(u64::MAX), None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes: Vec<u8>) {
            let _ = until(&bytes, Uuid([0; 16]));
        }
    }
}
