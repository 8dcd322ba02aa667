//! How other programs write values: JSON with fields of any type, protobuf in base64, numbers with suffixes of their
//! own.
//!
//! Pure text to values; nothing here knows which document a value is from. An error names the source that the caller
//! gives.

pub(crate) mod allocate_response;
pub(crate) mod json;
pub(crate) mod number;
