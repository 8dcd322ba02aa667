//! Texts that the driver writes into a buffer: the name of a model, a UUID, a version.
//!
//! The buffer is on the stack, larger than any such text of the public headers (NVML_DEVICE_NAME_V2_BUFFER_SIZE and
//! NVML_DEVICE_UUID_V2_BUFFER_SIZE are 96, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80). A text that is cut off or no
//! UTF-8 is unknown.

use core::ffi::{CStr, c_char, c_uint};

const LENGTH: c_uint = 128;

/// The text that `fill` writes into a buffer of a length; `None` if there is none.
pub(super) fn of(fill: impl FnOnce(*mut c_char, c_uint) -> Option<()>) -> Option<String> {
    let mut text = [0u8; LENGTH as usize];
    fill(text.as_mut_ptr().cast(), LENGTH)?;
    CStr::from_bytes_until_nul(&text).ok()?.to_str().ok().map(str::to_owned)
}
