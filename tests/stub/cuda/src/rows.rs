//! The shim's rows against the stub's: a row that this library contradicts does not compile.
//!
//! The stub declares every function itself, from the driver's documentation and from measured
//! look-ups, so that an error in a row of the shim does not repeat itself in the judge. Here each
//! row of `cuda_api!` is compared: the symbol must exist, with arguments of the same sizes, under
//! the same name, version and stream mode.

use crate::export::{Row, is_per_thread};
use gpucap_stub_device::rows::{same_sizes, same_text};

macro_rules! compare {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?)
        => $($handler:ident)::+, $class:ident, $base:literal @ $since:literal $($ptsz:ident)?;)*) => {
        $(const _: () = {
            let sizes = &[$(size_of::<$type>()),*];
            match find(stringify!($name)) {
                None => panic!(concat!("the stub has no ", stringify!($name))),
                Some(row) => {
                    assert!(same_text(row.base, $base), concat!(stringify!($name), ": other base name"));
                    assert!(row.since == $since, concat!(stringify!($name), ": other version"));
                    assert!(row.per_thread == is_per_thread!($($ptsz)?), concat!(stringify!($name), ": other mode"));
                    assert!(same_sizes(row.arguments, sizes), concat!(stringify!($name), ": other arguments"));
                }
            }
        };)*
    };
}
gpucap_abi::cuda_api!(compare);

const fn find(symbol: &str) -> Option<&'static Row> {
    let mut file = 0;
    while file < crate::ALL_ROWS.len() {
        let rows = crate::ALL_ROWS[file];
        let mut at = 0;
        while at < rows.len() {
            if same_text(rows[at].symbol, symbol) {
                return Some(&rows[at]);
            }
            at += 1;
        }
        file += 1;
    }
    None
}
