//! A library of the driver, opened as any program opens it.

use gpucap_abi::function::Function;
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

/// A function of it.
pub(crate) fn function<F: Function>(library: &'static Library) -> Result<F::Type> {
    // SAFETY: the function has this type, by the promise of `Function`.
    let function: Symbol<'static, F::Type> =
        unsafe { library.get(F::NAME) }.map_err(|error| format!("{}: {error}", F::NAME))?;
    Ok(*function)
}
