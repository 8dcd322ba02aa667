//! Initialisation, versions, errors, the internal table, event sets.

use crate::export::{In, Out, exports};
use crate::own;
use gpucap_abi::nvml::{NvmlError, NvmlResult};
use gpucap_stub_device::settings;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

exports! {
    /// The first form calls the second through its exported name.
    fn nvmlInit() => init, nothing;
    /// The second form calls the third through its exported name.
    fn nvmlInit_v2() => init_v2, nothing;
    /// Counts a use.
    fn nvmlInitWithFlags(flags: u32) => init_with_flags, nothing;
    /// Ends a use.
    fn nvmlShutdown() => shutdown, library;
    /// As `nvidia-smi` prints it.
    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: u32) => driver_version, library;
    /// CUDA's major version and the driver's.
    fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: u32) => nvml_version, nothing;
    /// `CUDA_VERSION` form.
    fn nvmlSystemGetCudaDriverVersion(version: *mut i32) => cuda_version, nothing;
    /// `CUDA_VERSION` form.
    fn nvmlSystemGetCudaDriverVersion_v2(version: *mut i32) => cuda_version, nothing;
    /// Name of a process that can be seen from here.
    fn nvmlSystemGetProcessName(pid: u32, name: *mut c_char, length: u32) => process_name, library;
    /// A table without entries for the one id that nvidia-smi insists on: its first word is its
    /// size, 8.
    fn nvmlInternalGetExportTable(table: *mut *const c_void, id: *const [u8; 16])
        => export_table, nothing;
    /// An event set in which nothing ever happens.
    fn nvmlEventSetCreate(set: *mut *mut c_void) => event_set, library;
    /// Ends an event set.
    fn nvmlEventSetFree(set: *mut c_void) => event_set_free, library;
    /// Nothing ever happens.
    fn nvmlEventSetWait(set: *mut c_void, event: *mut c_void, milliseconds: u32)
        => event_wait, library;
    /// Nothing ever happens.
    fn nvmlEventSetWait_v2(set: *mut c_void, event: *mut c_void, milliseconds: u32)
        => event_wait, library;
    /// No S-class units.
    fn nvmlUnitGetCount(count: *mut u32) => none, library;
    /// No excluded devices.
    fn nvmlGetExcludedDeviceCount(count: *mut u32) => none, library;
    /// No excluded devices.
    fn nvmlGetBlacklistDeviceCount(count: *mut u32) => none, library;
}

/// Uses that have not ended.
static USES: AtomicU32 = AtomicU32::new(0);

const TIMEOUT: NvmlError = NvmlError::new(10).unwrap();

/// UNINITIALIZED before the library is initialised.
pub(crate) fn initialised() -> NvmlResult {
    if USES.load(Ordering::Acquire) == 0 { Err(NvmlError::UNINITIALIZED) } else { Ok(()) }
}

fn init() -> NvmlResult {
    own::init_v2()
}

fn init_v2() -> NvmlResult {
    own::init_with_flags(0)
}

fn init_with_flags(_flags: u32) -> NvmlResult {
    USES.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

fn shutdown() -> NvmlResult {
    let ended = USES.fetch_update(Ordering::AcqRel, Ordering::Acquire, |uses| uses.checked_sub(1));
    ended.map(drop).map_err(|_| NvmlError::UNINITIALIZED)
}

/// Writes a text whole, or says that it does not fit.
pub(crate) fn put_text(out: Out<c_char>, length: u32, text: &str) -> NvmlResult {
    out.required()?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if text.len() >= length {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    out.put_text(text, length)
}

fn driver_version(version: Out<c_char>, length: u32) -> NvmlResult {
    put_text(version, length, &settings().driver_version)
}

fn nvml_version(version: Out<c_char>, length: u32) -> NvmlResult {
    let text = format!("{}.{}", settings().cuda_version / 1000, settings().driver_version);
    put_text(version, length, &text)
}

fn cuda_version(version: Out<i32>) -> NvmlResult {
    version.put(settings().cuda_version)
}

fn process_name(pid: u32, name: Out<c_char>, length: u32) -> NvmlResult {
    let command =
        std::fs::read(format!("/proc/{pid}/cmdline")).map_err(|_| NvmlError::NOT_FOUND)?;
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let room = usize::try_from(length).unwrap_or(usize::MAX);
    name.put_text(&String::from_utf8_lossy(program), room)
}

/// The table of `nvidia-smi`.
const SMI_TABLE: [u8; 16] = 0xc4fe_3e6c_c98f_6c4e_a327_ee69_6e12_f7c4u128.to_be_bytes();
static EMPTY_TABLE: u64 = 8;

fn export_table(table: Out<*const c_void>, id: In<[u8; 16]>) -> NvmlResult {
    if id.get()? == SMI_TABLE {
        table.put((&raw const EMPTY_TABLE).cast())
    } else {
        Err(NvmlError::NOT_FOUND)
    }
}

fn event_set(set: Out<*mut c_void>) -> NvmlResult {
    set.put((&raw const EMPTY_TABLE).cast_mut().cast())
}

fn event_set_free(set: Out<c_void>) -> NvmlResult {
    set.required().map(drop)
}

fn event_wait(set: Out<c_void>, _event: Out<c_void>, milliseconds: u32) -> NvmlResult {
    set.required()?;
    std::thread::sleep(std::time::Duration::from_millis(milliseconds.into()));
    Err(TIMEOUT)
}

fn none(count: Out<u32>) -> NvmlResult {
    count.put(0)
}

/// Text of an error code. It returns a text and not a code, so it is not a row.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    let text: &CStr = match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        13 => c"Function Not Found",
        25 => c"Argument Version Mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}
