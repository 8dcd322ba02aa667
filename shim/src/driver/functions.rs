//! Functions of the driver, declared by name and called by the address that was saved when its table was redirected.
//!
//! None of the addresses is a hook. A function that this driver lacks is not called.

use core::mem::MaybeUninit;

/// Declares the functions of one library: their names, a place for each address in each copy, and a typed call. It answers
/// whether the driver did it; with `-> code`, what the driver said.
macro_rules! functions {
    ($result:path; $(
        fn $function:ident = $symbol:ident($($argument:ident: $type:ty),* $(,)?) $(-> $code:ident)?;
    )*) => {
        /// Exported names, in the order of [`EXTRAS`].
        pub(crate) const NAMES: &[&[u8]] = &[$(stringify!($symbol).as_bytes()),*];
        /// Their addresses, per copy of the library.
        pub(crate) static EXTRAS: [[AtomicUsize; NAMES.len()]; COPIES] =
            [const { [const { AtomicUsize::new(0) }; NAMES.len()] }; COPIES];

        #[expect(non_camel_case_types, reason = "one variant per function of the driver")]
        enum FunctionIndex { $($function),* }

        $(
            fn $function(copy: &DriverCopy, $($argument: $type),*) -> functions!(@type $result $(, $code)?) {
                let address = copy.extras.get(FunctionIndex::$function as usize)?.load(Ordering::Acquire);
                if address == 0 {
                    return None;
                }
                // SAFETY: the address was read from the driver's symbol table under this name; the signature is that
                // of the public API reference.
                let function = unsafe {
                    core::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> $result>(address)
                };
                // SAFETY: every pointer is a writable place of the caller, a frame of this file or a part of it.
                let answer = unsafe { function($($argument),*) };
                functions!(@answer answer $(, $code)?)
            }
        )*
    };
    (@type $result:path) => { Option<()> };
    (@type $result:path, code) => { Option<$result> };
    (@answer $answer:ident) => { $answer.ok() };
    (@answer $answer:ident, code) => { Some($answer) };
}

pub(super) use functions;

/// Calls `fill` with a place for a `T` and returns what it wrote.
pub(super) fn filled<T: Copy>(fill: impl FnOnce(*mut T) -> Option<()>) -> Option<T> {
    let mut place = MaybeUninit::<T>::zeroed();
    fill(place.as_mut_ptr())?;
    // SAFETY: only used for numbers, handles, byte arrays and structs of these, for which zeros are valid; the driver
    // has filled it besides.
    Some(unsafe { place.assume_init() })
}

/// The same of a function that says why it refuses; `None` if the driver lacks it.
pub(super) fn answered<T: Copy, E>(
    fill: impl FnOnce(*mut T) -> Option<Result<(), E>>,
) -> Result<Option<T>, E> {
    let mut refusal = None;
    let answer = filled(|place| match fill(place)? {
        Ok(()) => Some(()),
        Err(error) => {
            refusal = Some(error);
            None
        }
    });
    refusal.map_or(Ok(answer), Err)
}
