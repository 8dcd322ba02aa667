//! A caller's arguments, as the implementations see them.
//!
//! An implementation never holds a raw pointer: it gets [`Out`] and [`In`], which check for null and nothing else,
//! since nothing else can be checked. All of them rest on one promise: whoever calls an exported function passes
//! pointers that the driver's contract allows. [`FromCaller`] is used by the exports and by nobody else.

use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{
    CUarray, CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUmemLocation,
    CUmemoryPool, CUmipmappedArray, CUmodule, CUstream, CuError, CuResult,
};
use std::ffi::{CStr, c_char, c_void};

/// Memory of the caller that the driver fills.
pub(crate) struct Out<T>(*mut T);

/// Memory of the caller that the driver reads.
pub(crate) struct In<T>(*const T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl<T> Out<T> {
    /// Fails for null, as the driver does for an output that is not optional.
    pub(crate) fn required(self) -> Result<Self, CuError> {
        if self.0.is_null() { Err(CuError::INVALID_VALUE) } else { Ok(self) }
    }

    /// The address, for arguments that are addresses rather than outputs.
    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    /// The same memory as another type, for untyped outputs whose type another argument tells.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Element `index` of an array of outputs.
    pub(crate) fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }
}

impl<T: Copy> Out<T> {
    /// Writes a required output.
    pub(crate) fn put(self, value: T) -> CuResult {
        self.required()?.put_if_asked(value);
        Ok(())
    }

    /// Writes an optional output.
    pub(crate) fn put_if_asked(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, and the caller of the export promises that outputs are writable.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Reads memory that is both input and output.
    pub(crate) fn get(self) -> Result<T, CuError> {
        In(self.required()?.0.cast_const()).get()
    }
}

impl<T: Word> Out<T> {
    /// Writes a required size or address in the caller's width.
    pub(crate) fn put_word(self, value: u64) -> CuResult {
        self.put(T::saturating_from(value))
    }
}

impl<T: Copy> In<T> {
    /// A copy of a required input.
    pub(crate) fn get(self) -> Result<T, CuError> {
        if self.0.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the export promises that inputs are readable.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Element `index` of an array of inputs.
    pub(crate) fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }
}

impl<T> In<T> {
    /// The address, for arguments that are addresses rather than inputs.
    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    /// Whether the caller passed null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl In<c_char> {
    /// A required C string.
    pub(crate) fn text(self) -> Result<String, CuError> {
        if self.0.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the export promises a terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl Out<c_char> {
    /// Writes a terminated string into a buffer of `length` bytes, cut to fit.
    pub(crate) fn put_text(self, text: &str, length: i32) -> CuResult {
        let room = usize::try_from(length).ok().and_then(|length| length.checked_sub(1));
        let room = room.ok_or(CuError::INVALID_VALUE)?;
        self.required()?;
        let bytes = &text.as_bytes()[..text.len().min(room)];
        for (index, byte) in bytes.iter().chain(&[0]).enumerate() {
            self.at(index).put_if_asked(c_char::from_ne_bytes([*byte]));
        }
        Ok(())
    }
}

/// A raw argument of an export.
pub(crate) trait FromCaller {
    /// What the implementation gets.
    type Arg;
    /// Wraps the argument; `per_thread` says that a null stream means the thread's own default stream.
    ///
    /// # Safety
    /// A pointer must be null or valid for what the driver does with it, until the exported function returns.
    unsafe fn from_caller(self, per_thread: bool) -> Self::Arg;
}

impl<T> FromCaller for *mut T {
    type Arg = Out<T>;
    unsafe fn from_caller(self, _: bool) -> Out<T> {
        Out(self)
    }
}

impl<T> FromCaller for *const T {
    type Arg = In<T>;
    unsafe fn from_caller(self, _: bool) -> In<T> {
        In(self)
    }
}

impl FromCaller for CUstream {
    type Arg = Self;
    unsafe fn from_caller(self, per_thread: bool) -> Self {
        if per_thread && self == Self::NULL { crate::stream::PER_THREAD } else { self }
    }
}

macro_rules! by_value {
    ($($type:ty),* $(,)?) => {$(
        impl FromCaller for $type {
            type Arg = Self;
            unsafe fn from_caller(self, _: bool) -> Self {
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
    CUfunction,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUmemLocation,
    CUmemoryPool,
    CUmipmappedArray,
    CUmodule,
);
by_value!(crate::ipc::Handle, crate::stream::HostFunction, crate::stream::Callback);

/// An untyped argument that is only an address.
pub(crate) type Address = *mut c_void;
