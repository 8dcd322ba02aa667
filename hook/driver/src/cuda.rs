//! The few functions of the CUDA driver that it takes to make a context on the one device that is shown, and to ask how
//! large one is.

use crate::library::{Result, function, open};
use core::ffi::{c_int, c_uint, c_void};
use gpucap_abi::functions;
use libloading::Library;
use std::fmt::Write;
use std::ptr::null_mut;

functions! {
    fn cuCtxSetCurrent(*mut c_void) -> u32;
    fn cuDeviceGet(*mut c_int, c_int) -> u32;
    fn cuDeviceGetUuid_v2(*mut [u8; 16], c_int) -> u32;
    fn cuDevicePrimaryCtxRetain(*mut *mut c_void, c_int) -> u32;
    fn cuDeviceTotalMem_v2(*mut usize, c_int) -> u32;
    fn cuInit(c_uint) -> u32;
}

/// The driver, and one of its devices.
pub(crate) struct Cuda {
    library: &'static Library,
    device: c_int,
}

impl Cuda {
    /// Loads the driver and makes the context, if the device is the one with this name.
    pub(crate) fn with_context(name: &str) -> Result<Self> {
        let cuda = Self::start()?.device(0)?;
        // NAME is `GPU-` or `MIG-` and the UUID.
        let own = cuda.uuid()?;
        if !name.ends_with(&own) {
            return Err(format!("CUDA shows {own} instead of {name}").into());
        }
        let retain = function::<cuDevicePrimaryCtxRetain>(cuda.library)?;
        let set_current = function::<cuCtxSetCurrent>(cuda.library)?;
        let mut context = null_mut();
        // SAFETY: the place is writable, the device is the driver's.
        check("cuDevicePrimaryCtxRetain", unsafe { retain(&raw mut context, cuda.device) })?;
        // SAFETY: the context was retained just now.
        check("cuCtxSetCurrent", unsafe { set_current(context) })?;
        Ok(cuda)
    }

    /// Loads the driver and looks for the device with this name; no context is made.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let first = Self::start()?;
        for ordinal in 0.. {
            let cuda = first.device(ordinal)?;
            if name.ends_with(&cuda.uuid()?) {
                return Ok(cuda);
            }
        }
        Err(format!("CUDA shows no {name}").into())
    }

    /// Loads and initialises the driver; of no device yet.
    fn start() -> Result<Self> {
        let library = open("libcuda.so.1")?;
        let init = function::<cuInit>(library)?;
        // SAFETY: the only flag is 0.
        check("cuInit", unsafe { init(0) })?;
        Ok(Self { library, device: 0 })
    }

    /// The device of this ordinal.
    fn device(&self, ordinal: c_int) -> Result<Self> {
        let get = function::<cuDeviceGet>(self.library)?;
        let mut device = 0;
        // SAFETY: the place is writable.
        check("cuDeviceGet", unsafe { get(&raw mut device, ordinal) })?;
        Ok(Self { library: self.library, device })
    }

    /// Bytes of the device.
    pub(crate) fn total(&self) -> Result<usize> {
        let total = function::<cuDeviceTotalMem_v2>(self.library)?;
        let mut bytes = 0;
        // SAFETY: the place is writable, the device is the driver's.
        check("cuDeviceTotalMem", unsafe { total(&raw mut bytes, self.device) })?;
        Ok(bytes)
    }

    /// Of a MIG instance, that of the instance.
    fn uuid(&self) -> Result<String> {
        let get = function::<cuDeviceGetUuid_v2>(self.library)?;
        let mut bytes = [0; 16];
        // SAFETY: the place is writable, the device is the driver's.
        check("cuDeviceGetUuid", unsafe { get(&raw mut bytes, self.device) })?;
        let mut text = String::new();
        for (place, byte) in bytes.iter().enumerate() {
            let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(text, "{dash}{byte:02x}")?;
        }
        Ok(text)
    }
}

fn check(call: &str, code: u32) -> Result {
    if code == 0 { Ok(()) } else { Err(format!("{call} answers {code}").into()) }
}
