//! The form in which a noun's file lists its functions, and what the list becomes.
//!
//! ```text
//! fn SYMBOL(argument: type, ...) => implementation, need, "base name" @ since [ptsz];
//! ```
//!
//! The implementation is a function of the same file. A row becomes the exported function and an
//! entry for `cuGetProcAddress`. `need` is what must be there before the implementation is asked:
//! `nothing`, `driver` (an initialised one) or `context` (a current one). `ptsz` rows are the
//! per-thread default stream forms: a null stream reaches the implementation as the thread's own.

use crate::driver;
use gpucap_abi::cuda::{CuError, CuResult};

/// One exported function.
pub(crate) struct Row {
    /// Exported name.
    pub(crate) symbol: &'static str,
    /// Name by which `cuGetProcAddress` knows it.
    pub(crate) base: &'static str,
    /// First CUDA version for which that name means this function.
    pub(crate) since: i32,
    /// The form for per-thread default streams.
    pub(crate) per_thread: bool,
    /// Sizes of its arguments.
    pub(crate) arguments: &'static [usize],
    /// Where it is.
    pub(crate) address: fn() -> usize,
}

/// What must be there before a function does anything.
#[derive(Clone, Copy)]
#[expect(non_camel_case_types, reason = "these are words of a row")]
pub(crate) enum Need {
    /// Works before `cuInit`.
    nothing,
    /// `cuInit` has succeeded in this very process.
    driver,
    /// A context is current.
    context,
}

/// The common beginning of every exported function.
pub(crate) fn enter(name: &str, need: Need) -> CuResult {
    if let Some(error) = gpucap_stub_device::call::enter(name).and_then(CuError::new) {
        return Err(error);
    }
    driver::end_unused();
    match need {
        Need::nothing => Ok(()),
        Need::driver => driver::driver().map(drop),
        Need::context => crate::context::current().map(drop),
    }
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?)
        => $implementation:ident, $need:ident, $base:literal @ $since:literal $($ptsz:ident)?;)*) => {
        /// The functions of this file.
        pub(crate) const ROWS: &[$crate::export::Row] = &[$($crate::export::Row {
            symbol: stringify!($name),
            base: $base,
            since: $since,
            per_thread: $crate::export::is_per_thread!($($ptsz)?),
            arguments: &[$(size_of::<$type>()),*],
            address: || $name as *const () as usize,
        }),*];
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> ::gpucap_abi::cuda::CuResult {
                #[allow(dead_code, reason = "a function without arguments has nothing to wrap")]
                const PER_THREAD: bool = $crate::export::is_per_thread!($($ptsz)?);
                $crate::export::enter(stringify!($name), $crate::export::Need::$need)?;
                $(
                    // SAFETY: the caller of a driver function promises what its contract asks of
                    // the arguments.
                    let $arg = unsafe { $crate::arg::FromCaller::wrap($arg, PER_THREAD) };
                )*
                let answer = self::$implementation($($arg),*);
                ::gpucap_stub_device::call::leave(stringify!($name));
                answer
            }
        )*
    };
}
pub(crate) use exports;

macro_rules! is_per_thread {
    () => {
        false
    };
    (ptsz) => {
        true
    };
}
pub(crate) use is_per_thread;
