//! Table rows become hooks, and the driver libraries become things that can be redirected.
//!
//! For each row of [`cuda_api!`](gpucap_abi::cuda_api) and [`nvml_api!`](gpucap_abi::nvml_api) this emits one
//! `extern "C"` function per copy of the driver library, a name, and a place for the original. None is exported: they
//! are reached only through the redirected symbol table.
//!
//! A hook does three things in this order: it finds its original, asks [`Call`] whether limits are to be enforced, and
//! either calls the original or gives it to the row's handler as `next`. The handler is a safe function; `next` is the
//! only way it has to the driver's function, and it can be called at most once.

use crate::call::{Call, Class, Entry};
use crate::driver::{self, COPIES};
use crate::redirect::{HookAddress, Libraries, Library, Row};
use core::sync::atomic::Ordering;
use gpucap_abi::arg::{Raw, Written};

/// Emits everything that follows from the rows of one table, in a module of its own.
macro_rules! library {
    ($table:ident, $handlers:path, $result:path, $driver:path, $name:literal; $(
        $(#[$doc:meta])*
        fn $symbol:ident($($argument:ident: $type:ty),* $(,)?)
            => $module:ident::$handler:ident, $class:ident $(, $base:literal @ $since:literal $($stream:ident)?)?;
    )*) => {
        #[allow(clippy::indexing_slicing, reason = "only in constants, where a wrong index does not compile")]
        pub(crate) mod $table {
            use super::*;
            use $handlers as handlers;
            use driver::copies::$table::{COPIES as DRIVERS, COUNT, ORIGINALS, RowIndex};

            const ROWS: &[Row] = &[$(Row {
                symbol: stringify!($symbol).as_bytes(),
                is_wanted: || Class::$class.is_wanted(),
            }),*];
            #[allow(non_snake_case, reason = "these are the driver's public names")]
            mod functions {
                use super::*;
                $(
                    pub(super) unsafe extern "C" fn $symbol<const COPY: usize>(
                        $($argument: $type),*
                    ) -> $result {
                        let original = const { &ORIGINALS[COPY][RowIndex::$symbol as usize] };
                        let original = original.load(Ordering::Acquire);
                        // SAFETY: a hook is installed only after its original was saved, and the row states the
                        // driver's signature.
                        let original = unsafe {
                            core::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> $result>(original)
                        };
                        let per_thread = const { !concat!("" $($(, stringify!($stream))?)?).is_empty() };
                        let driver = const { &DRIVERS[COPY] };
                        let call = match Call::enter(Class::$class) {
                            // SAFETY: the arguments are those of the application, which keeps the driver's contract.
                            Entry::Pass => return unsafe { original($($argument),*) },
                            Entry::Refuse(error) => return Err(error.into()),
                            Entry::Enforce(policy) => Call { driver, policy, per_thread },
                        };
                        // SAFETY: an argument that the application passed to the driver's function.
                        $(let mut $argument = unsafe { <$type as Raw>::hold($argument) };)*
                        let answer = {
                            $(let $argument = <$type as Raw>::lend(&mut $argument);)*
                            // By value: a reference would keep every argument in memory, on each way of every call.
                            let call_original = move || {
                                // SAFETY: it is held until this block ends, and the handler keeps nothing of it.
                                $(let $argument = unsafe { <$type as Raw>::given($argument) };)*
                                // SAFETY: the application's arguments, or copies that are valid for as long.
                                unsafe { original($($argument),*) }
                            };
                            handlers::$module::$handler(
                                &call,
                                // SAFETY: the original has just returned success for these arguments.
                                move || call_original().map(|()| unsafe { Written::assume() }),
                                // SAFETY: it is held until this block ends.
                                $(unsafe { <$type as Raw>::wrap($argument) }),*
                            )
                        };
                        // SAFETY: the places that the application passed for outputs.
                        $(unsafe { <$type as Raw>::give_back($argument) };)*
                        answer
                    }
                )*
            }

            static HOOKS: [[HookAddress; COUNT]; COPIES] =
                [hooks::<0>(), hooks::<1>(), hooks::<2>(), hooks::<3>()];

            const fn hooks<const COPY: usize>() -> [HookAddress; COUNT] {
                [$(HookAddress(
                    functions::$symbol::<COPY> as unsafe extern "C" fn($($type),*) -> $result as *const ()
                )),*]
            }

            use $driver as extras;

            /// The library as the redirect sees it.
            pub(crate) static LIBRARY: Library = Library {
                name: $name,
                rows: ROWS,
                extras: extras::NAMES,
                copies: &DRIVERS,
                hooks: &[&HOOKS[0], &HOOKS[1], &HOOKS[2], &HOOKS[3]],
            };
        }
    };
}

macro_rules! cuda_library {
    ($($rows:tt)*) => {
        library! { cuda, crate::cuda, gpucap_abi::cuda::CuResult, driver::cuda, b"libcuda.so"; $($rows)* }
    };
}
gpucap_abi::cuda_api!(cuda_library);

macro_rules! nvml_library {
    ($($rows:tt)*) => {
        library! { nvml, crate::nvml, gpucap_abi::nvml::NvmlResult, driver::nvml, b"libnvidia-ml.so"; $($rows)* }
    };
}
gpucap_abi::nvml_api!(nvml_library);

/// The driver libraries.
pub(crate) static LIBRARIES: Libraries = Libraries([&cuda::LIBRARY, &nvml::LIBRARY]);
