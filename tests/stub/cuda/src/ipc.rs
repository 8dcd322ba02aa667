//! Memory of another process.

/// `CUipcMemHandle`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Handle(pub(crate) [u8; 64]);
