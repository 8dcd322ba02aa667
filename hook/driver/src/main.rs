//! `gpucap-driver`: asks the driver what `gpucap`, which is static and loads no library, wants to know.
//!
//! The program is installed beside the library and is started only by the command, with an environment made by the
//! command. It answers in lines on standard output. The last line is `done`, or `error` and the reason; any other end
//! means that there is no answer.
//!
//! ```text
//! cards                   driver VERSION, cuda NUMBER, card ... for each one, lost INDEX TEXT (`cards`)
//! gpus                    driver VERSION, gpu GPU-... | gpu GPU-... MIG-...   each card, or each of its MIG instances;
//!                         lost INDEX TEXT                                     one that does not answer
//! context NAME            context BYTES process|card, total BYTES             of the one device that CUDA shows
//! limit CGROUP NAME=BYTES ...     limited NAME CODE TEXT                      the driver's answer for each
//! samples                 busy GPU PID PERCENT, look GPU NS, none GPU TEXT, lost INDEX TEXT    (`samples`)
//! ```
//!
//! One device is measured by one process: what a second context in the same process takes is less.

mod cards;
mod cuda;
mod library;
mod nvml;
mod samples;

use cuda::Cuda;
use gpucap_abi::nvml::{NO_MEMORY_LIMIT, nvmlDevice_t};
use gpucap_core::process::FIRST_PID_NAMESPACE;
use library::Result;
use nvml::{Nvml, lost};
use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match &words[..] {
        ["cards"] => cards::list(),
        ["gpus"] => gpus(),
        ["samples"] => samples::follow(),
        ["context", name] => context(name),
        ["limit", cgroup, limits @ ..] => limit(cgroup, limits),
        _ => Err("cards, gpus, context NAME, samples, or limit CGROUP NAME=BYTES ...".into()),
    };
    match outcome {
        Ok(()) => {
            println!("done");
            ExitCode::SUCCESS
        }
        Err(error) => {
            // The output may be closed.
            drop(writeln!(io::stdout(), "error {}", error.to_string().replace('\n', " ")));
            ExitCode::FAILURE
        }
    }
}

/// Which driver this is, and what can be computed on.
fn gpus() -> Result {
    let nvml = Nvml::start()?;
    println!("driver {}", nvml.driver_version()?);
    for (index, card) in nvml.cards()? {
        match card.and_then(|card| gpu_lines(&nvml, card)) {
            Ok(lines) => lines.iter().for_each(|line| println!("gpu {line}")),
            Err(why) => println!("{}", lost(index, &why.to_string())),
        }
    }
    Ok(())
}

/// The name of a card, or with it that of each of its MIG instances.
fn gpu_lines(nvml: &Nvml, card: nvmlDevice_t) -> Result<Vec<String>> {
    let name = nvml.name(card)?;
    let instances = nvml.instances(card)?;
    if instances.is_empty() {
        return Ok(vec![name]);
    }
    instances.into_iter().map(|it| Ok(format!("{name} {}", nvml.name(it)?))).collect()
}

/// Measures the size of a context and of the device's memory. NVML reports what this process holds; where it cannot
/// (in another pid namespace, on some GPUs) the answer is the growth of the device's usage in the mean time, which
/// other processes can affect.
fn context(name: &str) -> Result {
    let nvml = Nvml::start()?;
    let device = nvml.by_name(name)?;
    let before = nvml.memory(device)?;
    let cuda = Cuda::with_context(name)?;
    let after = nvml.memory(device)?;
    let own = first_pid_namespace().then(|| nvml.held_by(device, std::process::id())).flatten();
    match (own, before.zip(after)) {
        (Some(bytes), _) => println!("context {bytes} process"),
        (None, Some((before, after))) => {
            println!("context {} card", after.used.saturating_sub(before.used));
        }
        (None, None) => return Err("NVML has no figures of this device's memory".into()),
    }
    println!("total {}", cuda.total()?);
    Ok(())
}

/// Limits what a cgroup may hold of each device, and looks whether it is so.
fn limit(cgroup: &str, limits: &[&str]) -> Result {
    let nvml = Nvml::start()?;
    let path = CString::new(cgroup)?;
    for limit in limits {
        let (name, bytes) = limit.split_once('=').ok_or("a limit is NAME=BYTES")?;
        let (device, bytes) = (nvml.by_name(name)?, bytes.parse()?);
        let mut answer = nvml.set_memory_limit(device, &path, bytes);
        if answer.is_ok() && bytes != NO_MEMORY_LIMIT {
            answer = match nvml.memory_limit(device, &path) {
                Ok(holds) if holds > bytes => {
                    return Err(format!("{name}: asked for {bytes}, the driver has {holds}").into());
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
        }
        let code = answer.map_or_else(|error| error.code(), |()| 0);
        println!("limited {name} {code} {}", nvml.text(code));
    }
    Ok(())
}

/// Whether the numbers by which NVML knows processes are ours.
fn first_pid_namespace() -> bool {
    fs::metadata("/proc/self/ns/pid").is_ok_and(|it| it.ino() == FIRST_PID_NAMESPACE)
}
