//! A caller's arguments, as the implementations of both libraries see them.
//!
//! An implementation never holds a raw pointer: it gets [`Out`] and [`In`], which check for null
//! and nothing else, since nothing else can be checked. All of them rest on one promise, taken
//! where they are made: the caller of an exported function passes pointers that the function's
//! contract allows. The exports make them, no other process.

use gpucap_abi::arg::Word;
use gpucap_abi::cuda::CuError;
use gpucap_abi::nvml::NvmlError;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// An error type that has an answer to arguments that cannot be used.
pub trait Refusal {
    /// That answer.
    const BAD_ARGUMENT: Self;
}

impl Refusal for CuError {
    const BAD_ARGUMENT: Self = Self::INVALID_VALUE;
}

impl Refusal for NvmlError {
    const BAD_ARGUMENT: Self = Self::INVALID_ARGUMENT;
}

/// Memory of the caller that the driver fills.
pub struct Out<T, E>(*mut T, PhantomData<fn() -> E>);

/// Memory of the caller that the driver reads.
pub struct In<T, E>(*const T, PhantomData<fn() -> E>);

impl<T, E> Clone for Out<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, E> Copy for Out<T, E> {}

impl<T, E> Clone for In<T, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, E> Copy for In<T, E> {}

impl<T, E: Refusal> Out<T, E> {
    /// Takes a pointer argument.
    ///
    /// # Safety
    /// It must be null, or valid for what the called function does with it until that function
    /// returns.
    #[must_use]
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer, PhantomData)
    }

    /// Itself, unless it is null: an output that is not optional.
    ///
    /// # Errors
    /// [`Refusal::BAD_ARGUMENT`] for null; likewise in all methods below.
    pub fn required(self) -> Result<Self, E> {
        if self.0.is_null() { Err(E::BAD_ARGUMENT) } else { Ok(self) }
    }

    /// Whether the caller passed null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address, for arguments that are addresses rather than outputs.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    /// The same memory as another type, for untyped outputs whose type another argument tells.
    #[must_use]
    pub fn cast<U>(self) -> Out<U, E> {
        Out(self.0.cast(), PhantomData)
    }

    /// Element `index` of an array of outputs.
    #[must_use]
    pub fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index), PhantomData)
    }
}

impl<T: Copy, E: Refusal> Out<T, E> {
    /// Writes a required output.
    ///
    /// # Errors
    /// See [`Out::required`].
    pub fn put(self, value: T) -> Result<(), E> {
        self.required()?.put_if_asked(value);
        Ok(())
    }

    /// Writes an optional output.
    pub fn put_if_asked(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, and the caller of the export promises that outputs are writable.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Reads memory that is both input and output.
    ///
    /// # Errors
    /// See [`Out::required`].
    pub fn get(self) -> Result<T, E> {
        In(self.required()?.0.cast_const(), PhantomData).get()
    }
}

impl<T: Word, E: Refusal> Out<T, E> {
    /// Writes a required size or address in the caller's width.
    ///
    /// # Errors
    /// See [`Out::required`].
    pub fn put_word(self, value: u64) -> Result<(), E> {
        self.put(T::saturating_from(value))
    }
}

impl<T: Copy, E: Refusal> In<T, E> {
    /// A copy of a required input.
    ///
    /// # Errors
    /// See [`Out::required`].
    pub fn get(self) -> Result<T, E> {
        if self.0.is_null() {
            return Err(E::BAD_ARGUMENT);
        }
        // SAFETY: not null, and the caller of the export promises that inputs are readable.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Element `index` of an array of inputs.
    #[must_use]
    pub fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index), PhantomData)
    }
}

impl<T, E> In<T, E> {
    /// Takes a pointer argument.
    ///
    /// # Safety
    /// It must be null, or valid for what the called function does with it until that function
    /// returns.
    #[must_use]
    pub unsafe fn new(pointer: *const T) -> Self {
        Self(pointer, PhantomData)
    }

    /// The address, for arguments that are addresses rather than inputs.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    /// Whether the caller passed null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<E: Refusal> In<c_char, E> {
    /// A required C string.
    ///
    /// # Errors
    /// See [`Out::required`].
    pub fn text(self) -> Result<String, E> {
        if self.0.is_null() {
            return Err(E::BAD_ARGUMENT);
        }
        // SAFETY: not null, and the caller of the export promises a terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl<E: Refusal> Out<c_char, E> {
    /// Writes a terminated string into a buffer of `length` bytes, cut to fit.
    ///
    /// # Errors
    /// See [`Out::required`]; also for a buffer without room for the end.
    pub fn put_text(self, text: &str, length: usize) -> Result<(), E> {
        let room = length.checked_sub(1).ok_or(E::BAD_ARGUMENT)?;
        self.required()?;
        let bytes = &text.as_bytes()[..text.len().min(room)];
        for (index, byte) in bytes.iter().chain(&[0]).enumerate() {
            self.at(index).put_if_asked(c_char::from_ne_bytes([*byte]));
        }
        Ok(())
    }
}
