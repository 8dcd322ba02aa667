//! What the driver hands out: ordinals, addresses and handles, each of a type of its own.

use crate::arg::{by_value, pointees};
use core::ffi::{c_int, c_void};

/// A device ordinal, as `cuDeviceGet` hands it out.
pub type CUdevice = c_int;
/// A device address.
pub type CUdeviceptr = u64;
/// A device address in the first, 32-bit API.
pub type CUdeviceptr_v1 = u32;
/// A handle of physical memory made by `cuMemCreate`.
pub type CUmemGenericAllocationHandle = u64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub *mut c_void);

        // SAFETY: a handle is a number of the driver, and nothing is read through it; CUDA lets any thread use it.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
        by_value!($name);
        // A list of them stands behind a `*const`.
        pointees! { input false, output true: $name; }
        impl $name {
            /// The null handle.
            pub const NULL: Self = Self(core::ptr::null_mut());
            /// The handle as a number, for tables.
            #[must_use]
            pub fn address(self) -> u64 {
                self.0 as u64
            }
            /// The handle that was this number.
            #[must_use]
            pub fn from_address(address: u64) -> Self {
                Self(address as *mut c_void)
            }
        }
    )*};
}
handles! {
    /// A context.
    CUcontext;
    /// A stream; null, 1 and 2 name the default, legacy and per-thread streams.
    CUstream;
    /// An event.
    CUevent;
    /// A semaphore of another interface.
    CUexternalSemaphore;
    /// A kernel.
    CUfunction;
    /// A module.
    CUmodule;
    /// A library: code that belongs to no context.
    CUlibrary;
    /// A kernel of a library.
    CUkernel;
    /// An array (texture memory).
    CUarray;
    /// A mipmapped array.
    CUmipmappedArray;
    /// A stream-ordered memory pool.
    CUmemoryPool;
    /// A graph.
    CUgraph;
    /// A node of a graph.
    CUgraphNode;
    /// An executable graph.
    CUgraphExec;
    /// A green context: part of a card's multiprocessors.
    CUgreenCtx;
    /// A description of part of a card's resources.
    CUdevResourceDesc;
}

/// `CUuuid`: 16 raw bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CUuuid {
    /// The bytes in the order in which they are printed.
    pub bytes: [u8; 16],
}
