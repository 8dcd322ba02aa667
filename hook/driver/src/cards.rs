//! `gpucap-driver cards`: the cards of the machine as a scheduler has to know them, for `gpucap-dra`.
//!
//! ```text
//! driver 580.65.06
//! cuda 13000
//! card GPU-<uuid> TOTAL RESERVED MAJOR.MINOR PCI none|mig NAME
//! lost INDEX TEXT
//! ```
//!
//! What the driver does not know is `-`. A card that it has lost is a line of its own and hides no other one: the
//! caller compares with what there was before.

use crate::cuda::Cuda;
use crate::library::{Result, optional};
use crate::nvml::{Nvml, lost, text};
use core::ffi::{CStr, c_char, c_int, c_uint};
use gpucap_abi::functions;
use gpucap_abi::nvml::{nvmlDevice_t, nvmlMemory_v2_t};

/// `nvmlPciInfo_t`: where a card is on the bus.
#[repr(C)]
struct PciInfo {
    legacy: [u8; 16],
    numbers: [c_uint; 5],
    address: [u8; 32],
}

functions! {
    fn nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, *mut c_int, *mut c_int) -> u32;
    fn nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, *mut nvmlMemory_v2_t) -> u32;
    fn nvmlDeviceGetMigMode(nvmlDevice_t, *mut c_uint, *mut c_uint) -> u32;
    fn nvmlDeviceGetName(nvmlDevice_t, *mut c_char, c_uint) -> u32;
    fn nvmlDeviceGetPciInfo_v3(nvmlDevice_t, *mut PciInfo) -> u32;
    fn nvmlSystemGetCudaDriverVersion_v2(*mut c_int) -> u32;
}

/// Prints them.
pub(crate) fn list() -> Result {
    let nvml = Nvml::start()?;
    println!("driver {}", nvml.driver_version()?);
    println!("cuda {}", cuda(&nvml).map_or_else(|| "-".into(), |version| version.to_string()));
    for (index, card) in nvml.cards()? {
        match card.and_then(|card| line(&nvml, card)) {
            Ok(line) => println!("card {line}"),
            Err(why) => println!("{}", lost(index, &why.to_string())),
        }
    }
    Ok(())
}

fn line(nvml: &Nvml, card: nvmlDevice_t) -> Result<String> {
    let name = nvml.name(card)?;
    let nvmlMemory_v2_t { total, reserved, .. } = memory(nvml, card, &name)?;
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let capability = known(capability(nvml, card));
    let address = known(address(nvml, card));
    let mig = if has_mig(nvml, card) { "mig" } else { "none" };
    let product = known(product(nvml, card));
    Ok(format!("{name} {total} {reserved} {capability} {address} {mig} {product}"))
}

/// The version of CUDA that the driver has, as NVML writes it: 1000 times the major one, 10 times the minor.
fn cuda(nvml: &Nvml) -> Option<c_int> {
    let version = optional::<nvmlSystemGetCudaDriverVersion_v2>(nvml.library())?;
    let mut number = 0;
    // SAFETY: the place is writable.
    (unsafe { version(&raw mut number) } == 0).then_some(number)
}

/// All memory and what the driver keeps for itself; without the newer form, none is known to be kept. Of a card that uses
/// the machine's memory, CUDA knows how much that is.
fn memory(nvml: &Nvml, card: nvmlDevice_t, name: &str) -> Result<nvmlMemory_v2_t> {
    let newer = optional::<nvmlDeviceGetMemoryInfo_v2>(nvml.library());
    let version = nvmlMemory_v2_t::VERSION;
    let mut memory = nvmlMemory_v2_t { version, ..nvmlMemory_v2_t::default() };
    if let Some(info) = newer {
        // SAFETY: the place is writable and says its version; the handle is NVML's.
        if unsafe { info(card, &raw mut memory) } == 0 {
            return Ok(memory);
        }
    }
    let total = match nvml.memory(card)? {
        Some(found) => found.total,
        None => u64::try_from(Cuda::find(name)?.total()?)?,
    };
    Ok(nvmlMemory_v2_t { total, reserved: 0, ..memory })
}

fn capability(nvml: &Nvml, card: nvmlDevice_t) -> Option<String> {
    let ask = optional::<nvmlDeviceGetCudaComputeCapability>(nvml.library())?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both places are writable, the handle is NVML's.
    let code = unsafe { ask(card, &raw mut major, &raw mut minor) };
    (code == 0).then(|| format!("{major}.{minor}"))
}

/// The address on the bus, as Linux writes it: four digits of the domain, lower case.
fn address(nvml: &Nvml, card: nvmlDevice_t) -> Option<String> {
    let ask = optional::<nvmlDeviceGetPciInfo_v3>(nvml.library())?;
    let mut info = PciInfo { legacy: [0; 16], numbers: [0; 5], address: [0; 32] };
    // SAFETY: the place is writable, the handle is NVML's.
    let code = unsafe { ask(card, &raw mut info) };
    let text = CStr::from_bytes_until_nul(&info.address).ok()?.to_str().ok()?;
    let (domain, rest) = text.split_once(':')?;
    let domain = domain.get(domain.len().saturating_sub(4)..)?;
    (code == 0).then(|| format!("{domain}:{rest}").to_lowercase())
}

fn has_mig(nvml: &Nvml, card: nvmlDevice_t) -> bool {
    let Some(ask) = optional::<nvmlDeviceGetMigMode>(nvml.library()) else { return false };
    let (mut current, mut pending) = (0, 0);
    // SAFETY: both places are writable, the handle is NVML's.
    (unsafe { ask(card, &raw mut current, &raw mut pending) }) == 0 && current == 1
}

fn product(nvml: &Nvml, card: nvmlDevice_t) -> Option<String> {
    let ask = optional::<nvmlDeviceGetName>(nvml.library())?;
    // SAFETY: writable for the length given; the handle is NVML's.
    text("nvmlDeviceGetName", |place, length| unsafe { ask(card, place, length) }).ok()
}
