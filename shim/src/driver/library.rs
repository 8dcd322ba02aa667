//! The copies of the driver libraries that a process has loaded, and the addresses of their own functions.
//!
//! The redirect fills a copy in when it first sees it; from then on hooks and handlers reach the driver by these
//! addresses alone. Nothing here knows a hook.

use core::sync::atomic::{AtomicU64, AtomicUsize};
use gpucap_abi::arg::Written;

/// How many copies of one driver library a process may load: the usual one, and further ones by `dlmopen`.
pub(crate) const COPIES: usize = 4;

/// The original of a row, as its handler sees it: to be called at most once.
pub(crate) trait Next<E>: FnOnce() -> Result<Written, E> {}

impl<E, F: FnOnce() -> Result<Written, E>> Next<E> for F {}

/// One loaded copy of a driver library.
pub(crate) struct DriverCopy {
    /// Its load address; 0 while this entry is free.
    pub(crate) base: AtomicU64,
    /// The driver's own functions, one per row; 0 where this driver does not have it, or the row is not wanted.
    pub(crate) originals: &'static [AtomicUsize],
    /// Functions that handlers call, by the order of their names; 0 where this driver does not have it.
    pub(crate) extras: &'static [AtomicUsize],
    /// The lowest and the highest original, so that most slots of a sweep are passed over by two comparisons.
    pub(crate) range: [AtomicU64; 2],
}

/// Emits the copies of one library, with a place for the original of each row.
macro_rules! copies {
    ($library:ident, $extras:path; $(
        $(#[$doc:meta])*
        fn $symbol:ident($($argument:ident: $type:ty),* $(,)?)
            => $module:ident::$handler:ident, $class:ident $(, $base:literal @ $since:literal $($stream:ident)?)?;
    )*) => {
        #[allow(clippy::indexing_slicing, reason = "only in constants, where a wrong index does not compile")]
        pub(crate) mod $library {
            use super::{AtomicU64, AtomicUsize, DriverCopy};
            use $extras as extras;

            /// The place of each row in the tables.
            #[allow(non_camel_case_types, reason = "these are the driver's public names")]
            #[derive(Clone, Copy)]
            pub(crate) enum Place { $($symbol),* }

            /// How many rows there are.
            pub(crate) const COUNT: usize = [$(Place::$symbol),*].len();

            /// The driver's own functions, by copy and row.
            pub(crate) static ORIGINALS: [[AtomicUsize; COUNT]; super::COPIES] =
                [const { [const { AtomicUsize::new(0) }; COUNT] }; super::COPIES];

            /// The copies.
            pub(crate) static COPIES: [DriverCopy; super::COPIES] = [copy(0), copy(1), copy(2), copy(3)];

            const fn copy(index: usize) -> DriverCopy {
                DriverCopy {
                    base: AtomicU64::new(0),
                    originals: &ORIGINALS[index],
                    extras: &extras::EXTRAS[index],
                    range: [const { AtomicU64::new(0) }; 2],
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
