//! The shim's rows against the stub's: a row that this library contradicts does not compile.

use crate::export::Row;

const ALL: &[&[Row]] = &[
    crate::init::ROWS,
    crate::device::ROWS,
    crate::memory::ROWS,
    crate::memory_limits::ROWS,
    crate::process::ROWS,
    crate::telemetry::ROWS,
    crate::utilization::ROWS,
    crate::accounting::ROWS,
];

macro_rules! compare {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?)
        => $($handler:ident)::+, $class:ident;)*) => {
        $(const _: () = {
            let sizes = &[$(size_of::<$type>()),*];
            let same = gpucap_stub_device::rows::same_sizes;
            match find(stringify!($name)) {
                None => panic!(concat!("the stub has no ", stringify!($name))),
                Some(row) => assert!(same(row.arguments, sizes), concat!(stringify!($name), ": other arguments")),
            }
        };)*
    };
}
gpucap_abi::nvml_api!(compare);

const fn find(symbol: &str) -> Option<&'static Row> {
    let mut file = 0;
    while file < ALL.len() {
        let mut at = 0;
        while at < ALL[file].len() {
            if gpucap_stub_device::rows::same_text(ALL[file][at].symbol, symbol) {
                return Some(&ALL[file][at]);
            }
            at += 1;
        }
        file += 1;
    }
    None
}
