//! How an argument reaches the handler and the driver: by value, or as a pointer to a copy that only this call uses.
//!
//! Another thread of the caller could change what a pointer leads to between the handler's look and the driver's, so
//! that something else is charged than is done. So a structure is copied once, before both; an output is written to a
//! place of the call, and copied to the caller's when the handler has returned, if it has been written: a call that
//! writes nothing leaves the caller's memory alone, which may be constant, or another thread's output. What only the
//! driver looks at, and arrays and buffers whose length no type states, stay the caller's pointers
//! ([`List`](super::List) copies arrays).

use super::pointer::{Array, In, InOut, Out};
use core::mem::MaybeUninit;

/// An argument of a row.
pub trait Raw: Sized {
    /// What the hook keeps of it during the call.
    type Held;
    /// What the handler and the driver share of that.
    type Lent: Copy;
    /// What the handler receives.
    type Arg;

    /// Takes the argument, and copies what it points to if that is to be read once.
    ///
    /// # Safety
    /// The value must come from the caller of a driver function: a pointer is what that function's contract makes
    /// of it (null, or valid for the driver's use for as long as the call lasts).
    unsafe fn hold(self) -> Self::Held;

    /// Lends what is held.
    fn lend(held: &mut Self::Held) -> Self::Lent;

    /// Returns what the driver is given.
    ///
    /// # Safety
    /// What was lent must still be held.
    unsafe fn given(lent: Self::Lent) -> Self;

    /// Wraps it for the handler.
    ///
    /// # Safety
    /// What was lent must stay held until the handler has returned.
    unsafe fn wrap(lent: Self::Lent) -> Self::Arg;

    /// Copies an output to the caller's memory.
    ///
    /// # Safety
    /// That of [`hold`](Self::hold), for the same call.
    unsafe fn give_back(held: Self::Held);
}

/// What pointers among the arguments of rows lead to.
pub trait Pointee: Sized {
    /// Whether a `*const` leads to one such structure, which a handler reads.
    const IS_INPUT: bool;
    /// Whether a `*mut` leads to one such value, which a handler reads.
    const IS_OUTPUT: bool;
}

/// A pointer of the caller's, and a copy of what it leads to.
#[derive(Debug)]
pub struct Copied<T> {
    there: *mut T,
    copy: Option<MaybeUninit<T>>,
    /// What an output held before the call.
    before: Option<MaybeUninit<T>>,
}

impl<T> Copied<T> {
    const fn left(there: *mut T) -> Self {
        Self { there, copy: None, before: None }
    }

    fn place(&mut self) -> *mut T {
        self.copy.as_mut().map_or(self.there, MaybeUninit::as_mut_ptr)
    }
}

impl<T: Pointee> Raw for *mut T {
    type Held = Copied<T>;
    type Lent = Self;
    type Arg = Out<T>;

    unsafe fn hold(self) -> Copied<T> {
        if !T::IS_OUTPUT || self.is_null() {
            return Copied::left(self);
        }
        // SAFETY: the driver would write there, by the contract that the caller keeps. What the caller has not
        // initialised is not by this. No alignment is asked for.
        let copy = unsafe { self.cast::<MaybeUninit<T>>().read_unaligned() };
        // A second copy of the first one: another thread may write there now.
        // SAFETY: a `MaybeUninit` of a place of this function.
        let before = unsafe { (&raw const copy).read() };
        Copied { there: self, copy: Some(copy), before: Some(before) }
    }

    fn lend(held: &mut Copied<T>) -> Self {
        held.place()
    }

    unsafe fn given(lent: Self) -> Self {
        lent
    }

    unsafe fn wrap(lent: Self) -> Out<T> {
        Out(lent)
    }

    unsafe fn give_back(held: Copied<T>) {
        let Copied { there, copy: Some(copy), before: Some(before) } = held else { return };
        // SAFETY: both were read from the caller's memory, which is of another language: its bytes have values. A
        // `Pointee` that is an output has no padding.
        let [before, after] = [&before, &copy].map(|place| unsafe {
            core::slice::from_raw_parts(place.as_ptr().cast::<u8>(), size_of::<T>())
        });
        if before != after {
            // SAFETY: the caller's place for an output, to which the driver would have written.
            unsafe { there.cast::<MaybeUninit<T>>().write_unaligned(copy) }
        }
    }
}

impl<T: Pointee> Raw for *const T {
    type Held = Copied<T>;
    type Lent = Self;
    type Arg = In<T>;

    unsafe fn hold(self) -> Copied<T> {
        let there = self.cast_mut();
        if !T::IS_INPUT || self.is_null() {
            return Copied::left(there);
        }
        // SAFETY: the driver would read there, by the contract that the caller keeps. No alignment is asked for.
        let copy = unsafe { self.cast::<MaybeUninit<T>>().read_unaligned() };
        Copied { there, copy: Some(copy), before: None }
    }

    fn lend(held: &mut Copied<T>) -> Self {
        held.place()
    }

    unsafe fn given(lent: Self) -> Self {
        lent
    }

    unsafe fn wrap(lent: Self) -> In<T> {
        In(lent)
    }

    unsafe fn give_back(_: Copied<T>) {}
}

/// Declares types of arguments that are passed on as they are.
macro_rules! by_value {
    ($($type:ident $(<$parameter:ident>)?),* $(,)?) => {$(
        impl $(<$parameter>)? $crate::arg::raw::Raw for $type $(<$parameter>)? {
            type Held = Self;
            type Lent = Self;
            type Arg = Self;
            unsafe fn hold(self) -> Self {
                self
            }
            fn lend(held: &mut Self) -> Self {
                *held
            }
            unsafe fn given(lent: Self) -> Self {
                lent
            }
            unsafe fn wrap(lent: Self) -> Self {
                lent
            }
            unsafe fn give_back(_: Self) {}
        }
    )*};
}
pub(crate) use by_value;
by_value!(u8, u16, i32, u32, i64, u64, usize, InOut<T>, Array<T>);

/// Declares what pointers lead to: whether a `*const` and a `*mut` to it are those of single values, which are copied.
macro_rules! pointees {
    ($(input $input:literal, output $output:literal: $($type:ty),* $(,)?;)*) => {$($(
        impl $crate::arg::raw::Pointee for $type {
            const IS_INPUT: bool = $input;
            const IS_OUTPUT: bool = $output;
        }
    )*)*};
}
pub(crate) use pointees;
pointees! {
    // Buffers, texts, options, and lists of pointers.
    input false, output false: core::ffi::c_void, *mut core::ffi::c_void, core::ffi::c_char, i32;
    // Sizes and addresses of the device.
    input false, output true: u32, u64, usize;
}
