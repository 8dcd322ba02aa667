//! The few functions of NVML that are used: devices, memory by process, and memory limits by cgroup.

use crate::library::{Result, function, open, optional};
use core::ffi::{CStr, c_char, c_uint};
use gpucap_abi::functions;
use gpucap_abi::nvml::{
    NvmlError, NvmlResult, nvmlDevice_t, nvmlGetMemoryLimits_v1_t, nvmlMemory_t,
    nvmlProcessInfo_v1_t, nvmlSetMemoryLimits_v1_t,
};
use libloading::Library;
use std::ptr::null_mut;

functions! {
    fn nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t, *mut c_uint, *mut nvmlProcessInfo_v1_t) -> u32;
    fn nvmlDeviceGetCount_v2(*mut c_uint) -> u32;
    fn nvmlDeviceGetHandleByIndex_v2(c_uint, *mut nvmlDevice_t) -> u32;
    fn nvmlDeviceGetHandleByUUID(*const c_char, *mut nvmlDevice_t) -> u32;
    fn nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t, *mut c_uint) -> u32;
    fn nvmlDeviceGetMemoryInfo(nvmlDevice_t, *mut nvmlMemory_t) -> u32;
    fn nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t, *mut nvmlGetMemoryLimits_v1_t) -> NvmlResult;
    fn nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t, c_uint, *mut nvmlDevice_t) -> u32;
    fn nvmlDeviceGetUUID(nvmlDevice_t, *mut c_char, c_uint) -> u32;
    fn nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t, *mut nvmlSetMemoryLimits_v1_t) -> NvmlResult;
    fn nvmlErrorString(u32) -> *const c_char;
    fn nvmlInit_v2() -> u32;
    fn nvmlSystemGetDriverVersion(*mut c_char, c_uint) -> u32;
}

/// NVML, initialised until the process ends.
pub(crate) struct Nvml {
    library: &'static Library,
}

/// A longer list of processes is not read: the question is about one.
const MOST_PROCESSES: usize = 4096;

impl Nvml {
    /// Loads and initialises it.
    pub(crate) fn start() -> Result<Self> {
        let library = open("libnvidia-ml.so.1")?;
        let init = function::<nvmlInit_v2>(library)?;
        // SAFETY: no conditions.
        check("nvmlInit", unsafe { init() })?;
        Ok(Self { library })
    }

    /// The driver's version.
    pub(crate) fn driver_version(&self) -> Result<String> {
        let version = function::<nvmlSystemGetDriverVersion>(self.library)?;
        text("nvmlSystemGetDriverVersion", |place, length| {
            // SAFETY: writable for the length given.
            unsafe { version(place, length) }
        })
    }

    /// Every card by its number. One that the driver has lost is an error, and hides no other one.
    pub(crate) fn cards(
        &self,
    ) -> Result<impl Iterator<Item = (c_uint, Result<nvmlDevice_t>)> + '_> {
        Ok((0..self.count()?).map(|index| (index, self.card(index))))
    }

    /// How many cards there are.
    fn count(&self) -> Result<c_uint> {
        let count = function::<nvmlDeviceGetCount_v2>(self.library)?;
        let mut cards = 0;
        // SAFETY: the place is writable.
        check("nvmlDeviceGetCount", unsafe { count(&raw mut cards) })?;
        Ok(cards)
    }

    /// The card with this number.
    pub(crate) fn card(&self, index: c_uint) -> Result<nvmlDevice_t> {
        let by_index = function::<nvmlDeviceGetHandleByIndex_v2>(self.library)?;
        let mut device = nvmlDevice_t(null_mut());
        // SAFETY: the place is writable.
        check("nvmlDeviceGetHandleByIndex", unsafe { by_index(index, &raw mut device) })?;
        Ok(device)
    }

    /// The library, for questions that one module alone asks.
    pub(crate) const fn library(&self) -> &'static Library {
        self.library
    }

    /// The MIG instances of a card; none where MIG is off or unknown.
    pub(crate) fn instances(&self, card: nvmlDevice_t) -> Result<Vec<nvmlDevice_t>> {
        let most = function::<nvmlDeviceGetMaxMigDeviceCount>(self.library)?;
        let by_index = function::<nvmlDeviceGetMigDeviceHandleByIndex>(self.library)?;
        let mut places = 0;
        // SAFETY: the place is writable, the handle is NVML's.
        if unsafe { most(card, &raw mut places) } != 0 {
            return Ok(vec![]);
        }
        let instance = |index| {
            let mut device = nvmlDevice_t(null_mut());
            // SAFETY: the place is writable, the handle is NVML's.
            (unsafe { by_index(card, index, &raw mut device) } == 0).then_some(device)
        };
        // Places without an instance answer NOT_FOUND.
        Ok((0..places).filter_map(instance).collect())
    }

    /// `GPU-...` or `MIG-...`.
    pub(crate) fn name(&self, device: nvmlDevice_t) -> Result<String> {
        let uuid = function::<nvmlDeviceGetUUID>(self.library)?;
        text("nvmlDeviceGetUUID", |place, length| {
            // SAFETY: writable for the length given; the handle is NVML's.
            unsafe { uuid(device, place, length) }
        })
    }

    /// The device with this name.
    pub(crate) fn by_name(&self, name: &str) -> Result<nvmlDevice_t> {
        let by_uuid = function::<nvmlDeviceGetHandleByUUID>(self.library)?;
        let name = std::ffi::CString::new(name)?;
        let mut device = nvmlDevice_t(null_mut());
        // SAFETY: a C string and a writable place.
        let code = unsafe { by_uuid(name.as_ptr(), &raw mut device) };
        check("nvmlDeviceGetHandleByUUID", code).map(|()| device)
    }

    /// The memory of a device. `None`: NVML has no figures of it, as of a device that uses the machine's.
    pub(crate) fn memory(&self, device: nvmlDevice_t) -> Result<Option<nvmlMemory_t>> {
        let info = function::<nvmlDeviceGetMemoryInfo>(self.library)?;
        let mut memory = nvmlMemory_t::default();
        // SAFETY: the place is writable, the handle is NVML's.
        let code = unsafe { info(device, &raw mut memory) };
        if code == NvmlError::NOT_SUPPORTED.code() {
            return Ok(None);
        }
        check("nvmlDeviceGetMemoryInfo", code).map(|()| Some(memory))
    }

    /// Bytes that a process holds, if NVML reports them.
    pub(crate) fn held_by(&self, device: nvmlDevice_t, pid: u32) -> Option<u64> {
        // The first form: its record is the same in every driver.
        let list = optional::<nvmlDeviceGetComputeRunningProcesses>(self.library)?;
        let mut processes = vec![nvmlProcessInfo_v1_t::default(); MOST_PROCESSES];
        let mut count = c_uint::try_from(MOST_PROCESSES).ok()?;
        // SAFETY: this number of records is writable; the handle is NVML's.
        let code = unsafe { list(device, &raw mut count, processes.as_mut_ptr()) };
        let known = processes.iter().take(usize::try_from(count).ok()?);
        let own = known.filter(|_| code == 0).find(|process| process.pid == pid)?;
        // All ones: not available.
        Some(own.usedGpuMemory).filter(|bytes| !matches!(bytes, 0 | &u64::MAX))
    }

    /// Limits what a cgroup may hold of a device. Nothing is kept for it: a soft limit above 0 is a reservation, which
    /// the driver adds to those of the cgroups above and does not take out of them when the cgroup ends.
    pub(crate) fn set_memory_limit(
        &self,
        device: nvmlDevice_t,
        cgroup: &CStr,
        bytes: u64,
    ) -> NvmlResult {
        let set = optional::<nvmlDeviceSetMemoryLimits_v1>(self.library);
        let mut limits =
            nvmlSetMemoryLimits_v1_t { nameSpace: cgroup.as_ptr(), softLimit: 0, hardLimit: bytes };
        // SAFETY: the structure and its text live until the call returns; the handle is NVML's.
        unsafe { set.ok_or(NvmlError::FUNCTION_NOT_FOUND)?(device, &raw mut limits) }
    }

    /// What a cgroup may hold of a device.
    pub(crate) fn memory_limit(
        &self,
        device: nvmlDevice_t,
        cgroup: &CStr,
    ) -> std::result::Result<u64, NvmlError> {
        let get = optional::<nvmlDeviceGetMemoryLimits_v1>(self.library);
        let mut limits = nvmlGetMemoryLimits_v1_t {
            nameSpace: cgroup.as_ptr(),
            softLimit: 0,
            hardLimit: 0,
            currentUsed: 0,
        };
        // SAFETY: the structure and its text live until the call returns; the handle is NVML's.
        unsafe { get.ok_or(NvmlError::FUNCTION_NOT_FOUND)?(device, &raw mut limits) }?;
        Ok(limits.hardLimit)
    }

    /// NVML's words for a code.
    pub(crate) fn text(&self, code: u32) -> String {
        let Some(ask) = optional::<nvmlErrorString>(self.library) else {
            return String::new();
        };
        // SAFETY: any code is allowed.
        let text = unsafe { ask(code) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: NVML's constant text.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// The line of a card that does not answer.
pub(crate) fn lost(index: c_uint, why: &str) -> String {
    format!("lost {index} {}", why.replace('\n', " "))
}

/// A text that a function writes.
pub(crate) fn text(call: &str, write: impl FnOnce(*mut c_char, c_uint) -> u32) -> Result<String> {
    let mut place = [0_u8; 96];
    // Less one for the end.
    check(call, write(place.as_mut_ptr().cast(), 95))?;
    Ok(CStr::from_bytes_until_nul(&place)?.to_string_lossy().into_owned())
}

fn check(call: &str, code: u32) -> Result {
    if code == 0 { Ok(()) } else { Err(format!("{call} answers {code}").into()) }
}
