//! A library of the driver, and the functions of it that this driver has.

use gpucap_abi::function::Function;
use libloading::{Library, Symbol};
use std::error::Error;

/// What comes of a question to the driver; the error is one line.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Opens a library by the name that the loader knows.
pub(crate) fn open(name: &str) -> Result<&'static Library> {
    // SAFETY: the driver's libraries may be loaded by any program, and their constructors run on any thread.
    let library = unsafe { Library::new(name) }.map_err(|error| {
        // The source has what the loader says.
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("no NVIDIA driver is found ({why}); `driver_libraries` of the node's settings names its directory")
    })?;
    // Kept for the life of the process, as the functions are.
    Ok(Box::leak(Box::new(library)))
}

/// A function of it, if it is as new as that.
pub(crate) fn optional<F: Function>(library: &'static Library) -> Option<F::Type> {
    // SAFETY: the function has this type, by the promise of `Function`.
    let function: Symbol<'static, F::Type> = unsafe { library.get(F::NAME) }.ok()?;
    Some(*function)
}

/// A function that every driver has.
pub(crate) fn function<F: Function>(library: &'static Library) -> Result<F::Type> {
    optional::<F>(library).ok_or_else(|| format!("the driver has no {}", F::NAME).into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_driver_that_is_not_there_is_said_to_be_missing() {
        let why = super::open("libgpucap-nowhere.so.1").expect_err("there is none").to_string();
        assert!(why.starts_with("no NVIDIA driver is found (libgpucap-nowhere.so.1: "), "{why}");
        assert!(why.contains("driver_libraries") && !why.contains('\n'), "{why}");
    }
}
