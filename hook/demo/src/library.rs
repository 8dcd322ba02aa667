//! A library of the driver, opened as any program opens it.

use libloading::{Library, Symbol};
use std::error::Error;

/// What comes of a question to the driver; the error is one line.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Opens a library by the name that the loader knows.
pub(crate) fn open(name: &str) -> Result<&'static Library> {
    // SAFETY: the driver's libraries may be loaded by any program, and their constructors run on any thread.
    let library = unsafe { Library::new(name) }.map_err(|error| format!("{name}: {error}"))?;
    // Kept for the life of the process, as the functions are.
    Ok(Box::leak(Box::new(library)))
}

/// A function of it. `F` is the function's type.
pub(crate) fn function<F: Copy + 'static>(library: &'static Library, name: &str) -> Result<F> {
    // SAFETY: each caller gives the type that the driver documents for this name.
    let function: Symbol<'static, F> =
        unsafe { library.get(name) }.map_err(|error| format!("{name}: {error}"))?;
    Ok(*function)
}
