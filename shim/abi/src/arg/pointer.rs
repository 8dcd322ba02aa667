//! Pointers of a caller as a handler sees them: outputs, inputs, both, and arrays to be filled.

use core::marker::PhantomData;

/// Proof that the driver returned success for the current call, and so has used its output pointers.
#[derive(Debug)]
pub struct Written(PhantomData<*mut ()>);

impl Written {
    /// States that the original call has just succeeded.
    ///
    /// # Safety
    /// The driver's own function must have been called with the pointers of the current hook and must have
    /// returned success.
    #[must_use]
    pub const unsafe fn assume() -> Self {
        Self(PhantomData)
    }
}

/// An output parameter: memory of the caller that the driver writes on success.
#[derive(Debug)]
pub struct Out<T>(pub(super) *mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// The pointer as a number: for parameters that are addresses of the device in a pointer's dress.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    /// The same memory as another type: for parameters whose type another argument determines.
    #[must_use]
    pub fn as_type<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

impl<T: Copy> Out<T> {
    /// What the driver wrote; `None` if the caller passed null (some outputs are optional).
    #[must_use]
    pub fn get(self, _: &Written) -> Option<T> {
        // SAFETY: non-null, and `Written` says that the driver has successfully used this pointer: the driver's
        // contract makes it valid. `read_unaligned` asks for no alignment the caller did not promise.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Replaces what the driver wrote. Null is left alone.
    pub fn set(self, _: &Written, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `get`; the driver has just written the same memory.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Answers in the driver's place, which has written nothing. Null is left alone.
    pub fn answer(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller of the driver's function has stated that there is room for an answer.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Whether the caller passed null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// An input structure of the caller, which may be null.
#[derive(Debug)]
pub struct In<T>(pub(super) *const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// A copy of the structure; `None` if the caller passed null.
    #[must_use]
    pub fn get(self) -> Option<T> {
        // SAFETY: a non-null input pointer must be readable by the driver's contract, which the caller keeps: the
        // driver itself would read the same bytes next. `read_unaligned` asks for no alignment.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl In<core::ffi::c_void> {
    /// Its address, as a number.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    /// Four bytes of it. The address must be one that its own headers name: the driver has followed them before.
    #[must_use]
    pub fn word(self, _: &Written, address: u64) -> u32 {
        let place = address as *const u32;
        if place.is_null() {
            return 0;
        }
        // SAFETY: `Written` says that the driver has just accepted this argument, so what its headers say of its length
        // holds, and the driver has read the same bytes. `read_unaligned` asks for no alignment.
        unsafe { place.read_unaligned() }
    }
}

/// A parameter that the caller has filled and the driver replaces: valid on entry, by the driver's contract. Stands in
/// a row as its own type, since a plain `*mut` is only an output.
#[repr(transparent)]
#[derive(Debug)]
pub struct InOut<T>(*mut T);

impl<T> Clone for InOut<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for InOut<T> {}

impl<T: Copy> InOut<T> {
    /// What it holds; `None` if the caller passed null.
    #[must_use]
    pub fn get(self) -> Option<T> {
        // SAFETY: a non-null in-out parameter is readable by the driver's contract, which the caller keeps.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Replaces it. Null is left alone.
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: a non-null in-out parameter is writable by the driver's contract, which the caller keeps.
            unsafe { self.0.write_unaligned(value) }
        }
    }
}

/// An array of the caller's, to be filled; how many entries it has, another parameter says.
#[repr(transparent)]
#[derive(Debug)]
pub struct Array<T>(*mut T);

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T: Copy> Array<T> {
    /// An array whose address is in a structure of the caller's.
    #[must_use]
    pub const fn at(address: *mut T) -> Self {
        Self(address)
    }

    /// Whether the caller passed null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes `values` into the first entries, which are `stride` bytes apart; at most `room` of them, the caller's
    /// count.
    pub fn fill(self, room: u32, stride: usize, values: impl Iterator<Item = T>) {
        for (index, value) in (0..room).zip(values) {
            let place = self.0.wrapping_byte_add(stride.wrapping_mul(index as usize));
            // SAFETY: the caller of the driver's function has stated that there is room for that many entries.
            unsafe { place.write_unaligned(value) }
        }
    }
}

impl<T: Copy> Array<T> {
    /// Changes the first `count` entries, which the driver has written.
    pub fn change(self, _: &Written, count: u32, change: impl Fn(T) -> T) {
        for index in 0..count {
            let place = self.0.wrapping_add(index as usize);
            // SAFETY: `Written` promises that the driver has succeeded, and the count that it has filled this many
            // entries.
            let value = unsafe { place.read_unaligned() };
            // SAFETY: as above: what the driver has just written can be written.
            unsafe { place.write_unaligned(change(value)) }
        }
    }
}
