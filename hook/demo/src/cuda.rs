//! The few functions of the CUDA driver that the program uses, on the first device.

use crate::library::{Result, function, open};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use gpucap_abi::function::Function;
use gpucap_abi::functions;
use libloading::Library;
use std::ptr::null_mut;

functions! {
    fn cuCtxSetCurrent(*mut c_void) -> u32;
    fn cuDeviceGet(*mut c_int, c_int) -> u32;
    fn cuDeviceGetName(*mut c_char, c_int, c_int) -> u32;
    fn cuDevicePrimaryCtxRetain(*mut *mut c_void, c_int) -> u32;
    fn cuGetErrorName(u32, *mut *const c_char) -> u32;
    fn cuInit(c_uint) -> u32;
    fn cuMemAlloc_v2(*mut u64, usize) -> u32;
    fn cuMemGetInfo_v2(*mut usize, *mut usize) -> u32;
}

/// The driver, with a context on the first device that is current on this thread.
pub(crate) struct Cuda {
    library: &'static Library,
    device: c_int,
    mem_info: <cuMemGetInfo_v2 as Function>::Type,
    mem_alloc: <cuMemAlloc_v2 as Function>::Type,
}

impl Cuda {
    /// Loads the driver and makes the context.
    pub(crate) fn start() -> Result<Self> {
        let library = open("libcuda.so.1")?;
        let mut cuda = Self {
            library,
            device: 0,
            mem_info: function::<cuMemGetInfo_v2>(library)?,
            mem_alloc: function::<cuMemAlloc_v2>(library)?,
        };
        let init = function::<cuInit>(library)?;
        let get = function::<cuDeviceGet>(library)?;
        let retain = function::<cuDevicePrimaryCtxRetain>(library)?;
        let set_current = function::<cuCtxSetCurrent>(library)?;
        // SAFETY: the only flag is 0.
        cuda.check("cuInit", unsafe { init(0) })?;
        // SAFETY: the place is writable.
        let code = unsafe { get(&raw mut cuda.device, 0) };
        cuda.check("cuDeviceGet", code)?;
        let mut context = null_mut();
        // SAFETY: the place is writable, the device is the driver's.
        let code = unsafe { retain(&raw mut context, cuda.device) };
        cuda.check("cuDevicePrimaryCtxRetain", code)?;
        // SAFETY: the context was retained just now.
        cuda.check("cuCtxSetCurrent", unsafe { set_current(context) })?;
        Ok(cuda)
    }

    /// The device's name.
    pub(crate) fn name(&self) -> Result<String> {
        let get = function::<cuDeviceGetName>(self.library)?;
        let mut name = [0_u8; 256];
        // SAFETY: writable for the length given, less one for the end.
        let code = unsafe { get(name.as_mut_ptr().cast(), 255, self.device) };
        self.check("cuDeviceGetName", code)?;
        Ok(CStr::from_bytes_until_nul(&name)?.to_string_lossy().into_owned())
    }

    /// Total and free bytes.
    pub(crate) fn info(&self) -> Result<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both places are writable, and a context is current.
        let code = unsafe { (self.mem_info)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok((u64::try_from(total)?, u64::try_from(free)?))
    }

    /// Allocates, for the life of the process; the driver's code if it is refused.
    pub(crate) fn alloc(&self, bytes: usize) -> std::result::Result<(), u32> {
        let mut pointer = 0;
        // SAFETY: the place is writable, and a context is current.
        match unsafe { (self.mem_alloc)(&raw mut pointer, bytes) } {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// The driver's name for a code.
    pub(crate) fn error_name(&self, code: u32) -> String {
        let mut name = std::ptr::null();
        let Ok(ask) = function::<cuGetErrorName>(self.library) else {
            return String::new();
        };
        // SAFETY: the place is writable.
        let result = unsafe { ask(code, &raw mut name) };
        if result != 0 || name.is_null() {
            return String::new();
        }
        // SAFETY: on success it is the driver's constant text.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    fn check(&self, call: &str, code: u32) -> Result {
        if code == 0 {
            return Ok(());
        }
        Err(format!("{call} answers {code} {}", self.error_name(code)).into())
    }
}
