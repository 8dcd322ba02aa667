//! What the simulated machine is: read once from the environment, never changed.
//!
//! Invariant: a [`Settings`] that exists is usable. A value that cannot be used ends the process
//! with one line, because a test on another machine than the one it asked for would prove nothing.
//! The table of variables is in the crate's documentation.

use crate::engine::Turns;
use std::collections::HashMap;
use std::fmt::Display;

/// Most physical devices on a machine.
pub const MAX_DEVICES: usize = 8;
/// Most MIG slices on a device.
pub const MAX_SLICES: usize = 7;

/// The machine, as the environment describes it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of the shared card file.
    pub dir: String,
    /// Memory of each device in bytes; its length is the number of devices.
    pub memory: Vec<u64>,
    /// Memory of each MIG slice of each device; empty where MIG is off.
    pub slices: Vec<Vec<u64>>,
    /// Name of every device.
    pub name: String,
    /// What the driver keeps for itself on each device.
    pub reserved: u64,
    /// What one context costs.
    pub context_memory: u64,
    /// What one loaded module costs.
    pub module_memory: u64,
    /// What one function costs, where it is not part of its module.
    pub function_memory: u64,
    /// Functions are loaded with their module, libraries when they are opened.
    pub eager: bool,
    /// What a peer takes of device 0 while a call of this name runs.
    pub concurrent: Vec<(String, i64)>,
    /// Unit in which the card hands out physical memory.
    pub granularity: u64,
    /// Unit in which a pool grows.
    pub pool_granularity: u64,
    /// What the rows of pitched memory are padded to a multiple of.
    pub pitch: u64,
    /// `CUDA_VERSION` form: 13050 is 13.5.
    pub cuda_version: i32,
    /// As `nvidia-smi` prints it.
    pub driver_version: String,
    /// The driver keeps accounts of processes.
    pub accounting: bool,
    /// The driver can limit the memory of a cgroup.
    pub memory_limits: bool,
    /// A card's memory is the machine's: NVML does not tell how large it is.
    pub shared_memory: bool,
    /// Contexts are clients of MPS, as far as the driver tells.
    pub mps: bool,
    /// CUDA's fastest-first order is the reverse of PCI order.
    pub reverse_order: bool,
    /// The clock is moved by the test.
    pub virtual_clock: bool,
    /// Time slice between processes, and what a switch takes.
    pub turns: Turns,
    /// An event is reached in a turn of its process only.
    pub events_in_turn: bool,
    /// A question about an event needs a current context.
    pub events_in_context: bool,
    /// The end of a context drops its work.
    pub drops_at_end: bool,
    /// Duration of a kernel whose name does not say it.
    pub kernel_ns: u64,
    /// Host time that a launch takes.
    pub launch_ns: u64,
    /// Time from a launch until the card sees it, and from its end until the host sees that.
    pub arrival_ns: u64,
    /// A launch waits for its kernel.
    pub launch_blocking: bool,
    /// Step in which events keep the time.
    pub event_step_ns: u64,
    /// Bytes per microsecond of a copy; 0 takes no time.
    pub copy_bytes_per_us: u64,
    /// Operations a stream holds before a launch waits.
    pub queue_depth: usize,
    /// Scripted failures: `name:code@nth,...`.
    pub failures: Vec<Failure>,
    /// File that gets one line per call.
    pub trace: Option<String>,
    /// A call in which the program's tool is called back.
    pub tool: Option<String>,
}

/// One scripted failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exported name.
    pub call: String,
    /// What it returns.
    pub code: u32,
    /// Which call of this process fails, counted from 1; 0 means every call.
    pub nth: u64,
}

impl Settings {
    /// Reads the process environment; ends the process if it cannot be used.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var(name).ok()).unwrap_or_else(|reason| {
            eprintln!("stub gpu: {reason}");
            std::process::abort()
        })
    }

    /// Reads the variables through `lookup`.
    ///
    /// # Errors
    /// Says which variable cannot be used and why.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let text = |name: &str, default: &str| {
            lookup(name).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let size = |name: &str, default: &str| named(name, bytes(&text(name, default)));
        let number = |name: &str, default: &str| named(name, number(&text(name, default)));
        let count = usize::try_from(number("STUB_GPU_COUNT", "1")?).unwrap_or(usize::MAX);
        if count > MAX_DEVICES {
            return Err(format!("STUB_GPU_COUNT={count}: at most {MAX_DEVICES}"));
        }
        Ok(Self {
            dir: lookup("STUB_GPU_DIR").unwrap_or_else(default_dir),
            memory: named("STUB_GPU_MEM", per_device(&text("STUB_GPU_MEM", "80GiB"), count))?,
            slices: named("STUB_GPU_MIG", slices(&text("STUB_GPU_MIG", ""), count))?,
            name: text("STUB_GPU_NAME", "Stub GPU"),
            reserved: size("STUB_GPU_RESERVED", "0")?,
            context_memory: size("STUB_GPU_CONTEXT_MEM", "256MiB")?,
            module_memory: size("STUB_GPU_MODULE_MEM", "0")?,
            function_memory: size("STUB_GPU_FUNCTION_MEM", "0")?,
            eager: text("CUDA_MODULE_LOADING", "LAZY") == "EAGER",
            concurrent: named("STUB_GPU_CONCURRENT", concurrent(&text("STUB_GPU_CONCURRENT", "")))?,
            granularity: size("STUB_GPU_GRANULARITY", "1")?.max(1),
            pool_granularity: size("STUB_GPU_POOL_GRANULARITY", "1")?.max(1),
            pitch: size("STUB_GPU_PITCH", "512")?.max(1),
            cuda_version: i32::try_from(number("STUB_GPU_CUDA_VERSION", "13050")?)
                .map_err(|_| "STUB_GPU_CUDA_VERSION is too large".to_owned())?,
            driver_version: text("STUB_GPU_DRIVER_VERSION", "595.10.01"),
            accounting: choice(
                "STUB_GPU_ACCOUNTING",
                &text("STUB_GPU_ACCOUNTING", "off"),
                "off",
                "on",
            )?,
            memory_limits: choice(
                "STUB_GPU_MEMORY_LIMITS",
                &text("STUB_GPU_MEMORY_LIMITS", "off"),
                "off",
                "on",
            )?,
            shared_memory: choice(
                "STUB_GPU_SHARED_MEMORY",
                &text("STUB_GPU_SHARED_MEMORY", "off"),
                "off",
                "on",
            )?,
            mps: choice("STUB_GPU_MPS", &text("STUB_GPU_MPS", "off"), "off", "on")?,
            reverse_order: choice(
                "STUB_GPU_ORDER",
                &text("STUB_GPU_ORDER", "pci"),
                "pci",
                "reverse",
            )?,
            virtual_clock: choice(
                "STUB_GPU_CLOCK",
                &text("STUB_GPU_CLOCK", "real"),
                "real",
                "virtual",
            )?,
            turns: Turns {
                slice: number("STUB_GPU_SLICE_NS", "2000000")?.max(1),
                switch: number("STUB_GPU_SWITCH_NS", "0")?,
            },
            events_in_turn: choice(
                "STUB_GPU_EVENTS",
                &text("STUB_GPU_EVENTS", "at-once"),
                "at-once",
                "in-turn",
            )?,
            events_in_context: choice(
                "STUB_GPU_EVENT_CONTEXT",
                &text("STUB_GPU_EVENT_CONTEXT", "any"),
                "any",
                "current",
            )?,
            drops_at_end: choice(
                "STUB_GPU_CONTEXT_END",
                &text("STUB_GPU_CONTEXT_END", "waits"),
                "waits",
                "drops",
            )?,
            kernel_ns: number("STUB_GPU_KERNEL_NS", "10000")?,
            launch_ns: number("STUB_GPU_LAUNCH_NS", "0")?,
            arrival_ns: number("STUB_GPU_ARRIVAL_NS", "0")?,
            launch_blocking: lookup("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1"),
            event_step_ns: number("STUB_GPU_EVENT_STEP_NS", "500")?.max(1),
            copy_bytes_per_us: number("STUB_GPU_COPY_BYTES_PER_US", "0")?,
            queue_depth: usize::try_from(number("STUB_GPU_QUEUE_DEPTH", "1024")?)
                .unwrap_or(usize::MAX)
                .max(1),
            failures: named("STUB_GPU_FAIL", failures(&text("STUB_GPU_FAIL", "")))?,
            trace: lookup("STUB_GPU_TRACE").filter(|path| !path.is_empty()),
            tool: lookup("STUB_GPU_TOOL").filter(|call| !call.is_empty()),
        })
    }
}

fn default_dir() -> String {
    // SAFETY: getuid has no precondition and cannot fail.
    let uid = unsafe { libc::getuid() };
    format!("/dev/shm/gpucap-stub-{uid}")
}

fn named<T>(name: &str, value: Result<T, impl Display>) -> Result<T, String> {
    value.map_err(|reason| format!("{name}: {reason}"))
}

fn choice(name: &str, value: &str, no: &str, yes: &str) -> Result<bool, String> {
    match value {
        value if value == no => Ok(false),
        value if value == yes => Ok(true),
        other => Err(format!("{name}={other}: {no} or {yes}")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// `80GiB`, `512MiB`, `4KiB` or plain bytes.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
    UNITS
        .iter()
        .find_map(|(suffix, unit)| {
            text.strip_suffix(suffix)?.trim().parse::<u64>().ok()?.checked_mul(*unit)
        })
        .ok_or_else(|| format!("`{text}` is not a size; use bytes, KiB, MiB or GiB"))
}

/// One size for all devices, or one for each.
fn per_device(text: &str, count: usize) -> Result<Vec<u64>, String> {
    let sizes = text.split(',').map(bytes).collect::<Result<Vec<_>, _>>()?;
    match sizes.as_slice() {
        [one] => Ok(vec![*one; count]),
        many if many.len() == count => Ok(sizes),
        many => Err(format!("{} sizes for {count} devices", many.len())),
    }
}

/// `0=10GiB+20GiB;1=5GiB`: the slices of the devices that have MIG on.
fn slices(text: &str, count: usize) -> Result<Vec<Vec<u64>>, String> {
    let mut all = vec![Vec::new(); count];
    for entry in text.split(';').filter(|entry| !entry.is_empty()) {
        let (device, sizes) =
            entry.split_once('=').ok_or_else(|| format!("`{entry}` has no device=sizes"))?;
        let slot = usize::try_from(number(device)?)
            .ok()
            .and_then(|device| all.get_mut(device))
            .ok_or_else(|| format!("no device {device}"))?;
        *slot = sizes.split('+').map(bytes).collect::<Result<_, _>>()?;
        if slot.len() > MAX_SLICES {
            return Err(format!("more than {MAX_SLICES} slices on device {device}"));
        }
    }
    Ok(all)
}

/// `cuModuleLoadData:1GiB,cuFuncLoad:-4KiB`
fn concurrent(text: &str) -> Result<Vec<(String, i64)>, String> {
    let entries = text.split(',').filter(|entry| !entry.is_empty());
    let entry = |entry: &str| {
        let (call, size) =
            entry.split_once(':').ok_or_else(|| format!("`{entry}` has no call:size"))?;
        let (sign, size) = size.strip_prefix('-').map_or((1, size), |size| (-1, size));
        let size = i64::try_from(bytes(size)?).map_err(|_| format!("`{entry}` is too large"))?;
        Ok((call.to_owned(), sign * size))
    };
    entries.map(entry).collect()
}

/// `cuMemAlloc_v2:2@3,cuInit:100`: the third allocation fails with 2, every cuInit with 100.
fn failures(text: &str) -> Result<Vec<Failure>, String> {
    text.split(',')
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (call, rest) =
                entry.split_once(':').ok_or_else(|| format!("`{entry}` has no call:code"))?;
            let (code, nth) = rest.split_once('@').unwrap_or((rest, "0"));
            let code = code.parse().map_err(|_| format!("`{code}` is not a code"))?;
            Ok(Failure { call: call.to_owned(), code, nth: number(nth)? })
        })
        .collect()
}

/// Scripted failures by name, with the calls counted so far.
#[derive(Debug, Default)]
pub struct Script(HashMap<String, (u64, Vec<Failure>)>);

impl Script {
    /// The script of these failures.
    #[must_use]
    pub fn new(failures: &[Failure]) -> Self {
        let mut script = HashMap::<_, (u64, Vec<_>)>::new();
        for failure in failures {
            script.entry(failure.call.clone()).or_default().1.push(failure.clone());
        }
        Self(script)
    }

    /// Counts one call; the code it must return, if it is one that fails.
    pub fn next(&mut self, call: &str) -> Option<u32> {
        let (count, failures) = self.0.get_mut(call)?;
        *count += 1;
        failures.iter().find(|failure| failure.nth == 0 || failure.nth == *count).map(|f| f.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::from_lookup(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn sizes_take_binary_units_and_nothing_else() {
        assert_eq!(bytes("80GiB"), Ok(80 << 30));
        assert_eq!(bytes("17"), Ok(17));
        assert!(bytes("80G").is_err());
        assert!(bytes("-1").is_err());
    }

    #[test]
    fn one_size_serves_every_device_and_a_list_must_fit() {
        let two = with(&[("STUB_GPU_COUNT", "2"), ("STUB_GPU_MEM", "1GiB,2GiB")]).expect("usable");
        assert_eq!(two.memory, [1 << 30, 2 << 30]);
        let same = with(&[("STUB_GPU_COUNT", "3"), ("STUB_GPU_MEM", "1GiB")]).expect("usable");
        assert_eq!(same.memory, [1 << 30; 3]);
        assert!(with(&[("STUB_GPU_COUNT", "3"), ("STUB_GPU_MEM", "1,2")]).is_err());
    }

    #[test]
    fn slices_belong_to_the_device_they_name() {
        let mig =
            with(&[("STUB_GPU_COUNT", "2"), ("STUB_GPU_MIG", "1=5GiB+10GiB")]).expect("usable");
        assert_eq!(mig.slices, [vec![], vec![5 << 30, 10 << 30]]);
        assert!(with(&[("STUB_GPU_MIG", "1=5GiB")]).is_err());
    }

    #[test]
    fn only_the_scripted_call_fails() {
        let mut script = Script::new(&failures("cuMemAlloc_v2:2@2,cuInit:100").expect("usable"));
        let calls: Vec<_> = (0..3).map(|_| script.next("cuMemAlloc_v2")).collect();
        assert_eq!(calls, [None, Some(2), None]);
        assert_eq!(script.next("cuInit"), Some(100));
        assert_eq!(script.next("cuMemFree_v2"), None);
    }
}
