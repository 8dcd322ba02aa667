//! How a raw argument of an exported function reaches its implementation.

use gpucap_abi::cuda::{
    CUarray, CUcontext, CUevent, CUexternalSemaphore, CUfunction, CUgraph, CUgraphExec,
    CUgraphNode, CUmemLocation, CUmemoryPool, CUmipmappedArray, CUmodule, CUstream, CuError,
};
use gpucap_stub_device::arg;
use std::ffi::c_void;

/// An output; null is INVALID_VALUE.
pub(crate) type Out<T> = arg::Out<T, CuError>;
/// An input; null is INVALID_VALUE.
pub(crate) type In<T> = arg::In<T, CuError>;

/// A raw argument of an export.
pub(crate) trait FromCaller {
    /// What the implementation gets.
    type Arg;
    /// Wraps the argument; `per_thread` says that a null stream means the thread's own default
    /// stream.
    ///
    /// # Safety
    /// A pointer must be null or valid for what the driver does with it, until the exported
    /// function returns.
    unsafe fn wrap(self, per_thread: bool) -> Self::Arg;
}

impl<T> FromCaller for *mut T {
    type Arg = Out<T>;
    unsafe fn wrap(self, _: bool) -> Out<T> {
        // SAFETY: the promise is the same.
        unsafe { Out::new(self) }
    }
}

impl<T> FromCaller for *const T {
    type Arg = In<T>;
    unsafe fn wrap(self, _: bool) -> In<T> {
        // SAFETY: the promise is the same.
        unsafe { In::new(self) }
    }
}

impl FromCaller for CUstream {
    type Arg = Self;
    unsafe fn wrap(self, per_thread: bool) -> Self {
        if per_thread && self == Self::NULL { crate::stream::PER_THREAD } else { self }
    }
}

macro_rules! by_value {
    ($($type:ty),* $(,)?) => {$(
        impl FromCaller for $type {
            type Arg = Self;
            unsafe fn wrap(self, _: bool) -> Self {
                self
            }
        }
    )*};
}
by_value!(
    i32,
    u32,
    u64,
    usize,
    u8,
    u16,
    f32,
    CUarray,
    CUcontext,
    CUevent,
    CUexternalSemaphore,
    CUfunction,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUmemLocation,
    CUmemoryPool,
    CUmipmappedArray,
    CUmodule,
);
by_value!(crate::ipc::Handle, crate::host_function::HostFunction, crate::host_function::Callback);

/// An untyped argument that is only an address.
pub(crate) type Address = *mut c_void;
