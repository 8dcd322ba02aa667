//! The copies of each driver library that a process has loaded, with a place for every function.
//!
//! All of it is static: the redirect fills the places in where nothing may be allocated.

/// Emits the copies of one library, with a place for the original of each row.
macro_rules! copies {
    ($library:ident, $extras:path; $(
        $(#[$doc:meta])*
        fn $symbol:ident($($argument:ident: $type:ty),* $(,)?)
            => $module:ident::$handler:ident, $class:ident $(, $base:literal @ $since:literal $($stream:ident)?)?;
    )*) => {
        #[allow(clippy::indexing_slicing, reason = "only in constants, where a wrong index does not compile")]
        pub(crate) mod $library {
            use crate::driver::RowsByAddress;
            use crate::driver::library::{self, DriverCopy};
            use crate::orders::Span;
            use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
            use $extras as extras;

            /// The index of each row in the tables.
            #[allow(non_camel_case_types, reason = "these are the driver's public names")]
            #[derive(Clone, Copy)]
            pub(crate) enum RowIndex { $($symbol),* }

            /// How many rows there are.
            pub(crate) const COUNT: usize = [$(RowIndex::$symbol),*].len();

            /// The driver's own functions, by copy and row.
            pub(crate) static ORIGINALS: [[AtomicUsize; COUNT]; library::COPIES] =
                [const { [const { AtomicUsize::new(0) }; COUNT] }; library::COPIES];

            /// The rows by the address of their originals, by copy. Apart from the copies: what the loader relocates is
            /// written in every process, and what is zero costs nothing where there is no GPU.
            static ROWS: [RowsByAddress; library::COPIES] =
                [const { RowsByAddress::new() }; library::COPIES];

            /// The copies.
            pub(crate) static COPIES: [DriverCopy; library::COPIES] = [copy(0), copy(1), copy(2), copy(3)];

            const fn copy(index: usize) -> DriverCopy {
                DriverCopy {
                    span: Span { base: AtomicU64::new(0), range: [const { AtomicU64::new(0) }; 2] },
                    start: AtomicU64::new(0),
                    filled: AtomicUsize::new(0),
                    may_go: AtomicBool::new(false),
                    originals: &ORIGINALS[index],
                    by_address: &ROWS[index],
                    extras: &extras::EXTRAS[index],
                }
            }
        }
    };
}

macro_rules! cuda_copies {
    ($($rows:tt)*) => { copies! { cuda, crate::driver::cuda; $($rows)* } };
}
gpucap_abi::cuda_api!(cuda_copies);

macro_rules! nvml_copies {
    ($($rows:tt)*) => { copies! { nvml, crate::driver::nvml; $($rows)* } };
}
gpucap_abi::nvml_api!(nvml_copies);
