//! A library of the driver, and the functions of it that this driver has.

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

/// A function of it, if it is as new as that. `F` is the function's type.
pub(crate) fn optional<F: Copy + 'static>(library: &'static Library, name: &str) -> Option<F> {
    // SAFETY: each caller gives the type that the driver documents for this name.
    let function: Symbol<'static, F> = unsafe { library.get(name) }.ok()?;
    Some(*function)
}

/// A function that every driver has.
pub(crate) fn function<F: Copy + 'static>(library: &'static Library, name: &str) -> Result<F> {
    optional(library, name).ok_or_else(|| format!("the driver has no {name}").into())
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
