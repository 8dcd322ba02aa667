//! What the charge for code asks of the driver, and how code that does not fit goes again.

use super::*;
use gpucap_abi::cuda::CU_MODULE_LAZY_LOADING;

/// Whether functions may be loaded when they are first needed (`CUDA_MODULE_LOADING`). Drivers before 11.7 have no such
/// mode.
pub(crate) fn is_lazy(copy: &DriverCopy) -> bool {
    match answered(|mode| module_get_loading_mode(copy, mode)) {
        Ok(mode) => mode.is_some_and(|mode: c_int| mode == CU_MODULE_LAZY_LOADING),
        Err(_) => true,
    }
}

/// The library of a kernel; drivers before 12.5 do not report it.
pub(crate) fn library_of(copy: &DriverCopy, kernel: CUkernel) -> Option<CUlibrary> {
    filled(|library| kernel_get_library(copy, library, kernel))
}

/// The module of a function.
pub(crate) fn module_of(copy: &DriverCopy, function: CUfunction) -> Option<CUmodule> {
    filled(|module| func_get_module(copy, module, function))
}

/// Unloads a module that the application has never seen.
pub(crate) fn unload(copy: &DriverCopy, module: CUmodule) -> Option<()> {
    module_unload(copy, module)
}

/// Unloads a library that the application has never seen.
pub(crate) fn unload_library(copy: &DriverCopy, library: CUlibrary) -> Option<()> {
    library_unload(copy, library)
}
