//! The form in which a file lists its functions, and what the list becomes.
//!
//! ```text
//! fn SYMBOL(argument: type, ...) => implementation, need;
//! ```
//!
//! The implementation is a function of the same file; `need` is `nothing`, or `library` for what
//! answers UNINITIALIZED before `nvmlInit`.

use gpucap_abi::nvml::{NvmlError, NvmlResult};
use gpucap_stub_device::arg;

/// An output; null is INVALID_ARGUMENT.
pub(crate) type Out<T> = arg::Out<T, NvmlError>;
/// An input; null is INVALID_ARGUMENT.
pub(crate) type In<T> = arg::In<T, NvmlError>;

/// One exported function, for the comparison with the shim's rows.
pub(crate) struct Row {
    /// Exported name.
    pub(crate) symbol: &'static str,
    /// Sizes of its arguments.
    pub(crate) arguments: &'static [usize],
}

/// What must be there before a function does anything.
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "these are words of a row")]
pub(crate) enum Need {
    /// Works before `nvmlInit`.
    nothing,
    /// `nvmlInit` has succeeded.
    library,
}

/// The common beginning of every exported function.
pub(crate) fn enter(name: &str, need: Need) -> NvmlResult {
    if let Some(error) = gpucap_stub_device::call::enter(name).and_then(NvmlError::new) {
        return Err(error);
    }
    if need == Need::library { crate::init::initialised() } else { Ok(()) }
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?)
        => $implementation:ident, $need:ident;)*) => {
        /// The functions of this file.
        pub(crate) const ROWS: &[$crate::export::Row] = &[$($crate::export::Row {
            symbol: stringify!($name),
            arguments: &[$(size_of::<$type>()),*],
        }),*];
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> ::gpucap_abi::nvml::NvmlResult {
                $crate::export::enter(stringify!($name), $crate::export::Need::$need)?;
                $(
                    // SAFETY: the caller of an NVML function promises what its contract asks of the
                    // arguments.
                    let $arg = unsafe { $crate::export::FromCaller::wrap($arg) };
                )*
                self::$implementation($($arg),*)
            }
        )*
    };
}
pub(crate) use exports;

/// A raw argument of an export.
pub(crate) trait FromCaller {
    /// What the implementation gets.
    type Arg;
    /// Wraps the argument.
    ///
    /// # Safety
    /// A pointer must be null or valid for what NVML does with it, until the exported function
    /// returns.
    unsafe fn wrap(self) -> Self::Arg;
}

impl<T> FromCaller for *mut T {
    type Arg = Out<T>;
    unsafe fn wrap(self) -> Out<T> {
        // SAFETY: the promise is the same.
        unsafe { Out::new(self) }
    }
}

impl<T> FromCaller for *const T {
    type Arg = In<T>;
    unsafe fn wrap(self) -> In<T> {
        // SAFETY: the promise is the same.
        unsafe { In::new(self) }
    }
}

macro_rules! by_value {
    ($($type:ty),*) => {$(
        impl FromCaller for $type {
            type Arg = Self;
            unsafe fn wrap(self) -> Self {
                self
            }
        }
    )*};
}
by_value!(i32, u32, u64, gpucap_abi::nvml::nvmlDevice_t);
