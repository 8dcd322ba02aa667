//! The few functions of NVML that the program uses: what `nvidia-smi` shows of each device.

use crate::library::{Result, function, open};
use core::ffi::{CStr, c_char, c_uint};
use gpucap_abi::functions;
use gpucap_abi::nvml::{nvmlDevice_t, nvmlMemory_t};
use libloading::Library;
use std::ptr::null_mut;

functions! {
    fn nvmlDeviceGetCount_v2(*mut c_uint) -> u32;
    fn nvmlDeviceGetHandleByIndex_v2(c_uint, *mut nvmlDevice_t) -> u32;
    fn nvmlDeviceGetMemoryInfo(nvmlDevice_t, *mut nvmlMemory_t) -> u32;
    fn nvmlDeviceGetName(nvmlDevice_t, *mut c_char, c_uint) -> u32;
    fn nvmlInit_v2() -> u32;
}

/// NVML, initialised.
pub(crate) struct Nvml {
    library: &'static Library,
}

/// A device.
pub(crate) struct Card {
    pub(crate) name: String,
    pub(crate) used: u64,
    pub(crate) total: u64,
}

impl Nvml {
    /// Loads and initialises it.
    pub(crate) fn start() -> Result<Self> {
        let library = open("libnvidia-ml.so.1")?;
        let init = function::<nvmlInit_v2>(library)?;
        // SAFETY: no conditions.
        check("nvmlInit", unsafe { init() })?;
        Ok(Self { library })
    }

    /// Every device that is to be seen.
    pub(crate) fn cards(&self) -> Result<Vec<Card>> {
        let count = function::<nvmlDeviceGetCount_v2>(self.library)?;
        let mut devices = 0;
        // SAFETY: the place is writable.
        check("nvmlDeviceGetCount", unsafe { count(&raw mut devices) })?;
        (0..devices).map(|index| self.card(index)).collect()
    }

    fn card(&self, index: c_uint) -> Result<Card> {
        let by_index = function::<nvmlDeviceGetHandleByIndex_v2>(self.library)?;
        let get_name = function::<nvmlDeviceGetName>(self.library)?;
        let memory_info = function::<nvmlDeviceGetMemoryInfo>(self.library)?;
        let mut device = nvmlDevice_t(null_mut());
        // SAFETY: the place is writable.
        let code = unsafe { by_index(index, &raw mut device) };
        check("nvmlDeviceGetHandleByIndex", code)?;
        let mut name = [0_u8; 96];
        // SAFETY: writable for the length given, less one for the end.
        let code = unsafe { get_name(device, name.as_mut_ptr().cast(), 95) };
        check("nvmlDeviceGetName", code)?;
        let mut memory = nvmlMemory_t::default();
        // SAFETY: the place is writable, the handle is NVML's.
        let code = unsafe { memory_info(device, &raw mut memory) };
        check("nvmlDeviceGetMemoryInfo", code)?;
        let name = CStr::from_bytes_until_nul(&name)?.to_string_lossy().into_owned();
        Ok(Card { name, used: memory.used, total: memory.total })
    }
}

fn check(call: &str, code: u32) -> Result {
    if code == 0 { Ok(()) } else { Err(format!("{call} answers {code}").into()) }
}
