//! What happens at the door of every exported function: it is written down, and it may be told to
//! fail.
//!
//! Without `STUB_GPU_TRACE`, `STUB_GPU_FAIL`, `STUB_GPU_CONCURRENT` and `STUB_GPU_TOOL` this is two loads, so that a
//! benchmark measures the shim and not the judge. A trace line is `pid name`, written with one `write` to a file opened
//! for appending: lines of different processes never mix.

use crate::settings::{Script, Settings};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, OnceLock};

struct Door {
    trace: Option<File>,
    script: Mutex<Script>,
    concurrent: &'static [(String, i64)],
    tool: Option<&'static str>,
    /// The tool is called back at the end of the call, too.
    is_around: bool,
}

impl Door {
    fn call_back(&self, name: &str) {
        if self.tool == Some(name) {
            // It may call the driver, and come here again.
            let tool = TOOL.lock().map_or(None, |attached| *attached);
            tool.into_iter().for_each(|tool| tool());
        }
    }
}

/// A tool, as CUPTI would call it back: in the thread that calls the driver, from inside the call.
pub type Tool = extern "C" fn();

static TOOL: Mutex<Option<Tool>> = Mutex::new(None);

/// Gives the tool that is called back in the call that `STUB_GPU_TOOL` names.
pub fn attach(tool: Option<Tool>) {
    if let Ok(mut attached) = TOOL.lock() {
        *attached = tool;
    }
}

static DOOR: OnceLock<Option<Door>> = OnceLock::new();

/// Notes a call; the code that it must return, if the script says so.
#[must_use]
pub fn enter(name: &str) -> Option<u32> {
    let door = DOOR.get_or_init(|| open(crate::settings())).as_ref()?;
    if let Some(mut file) = door.trace.as_ref() {
        let line = format!("{} {name}\n", std::process::id());
        // A full disk must not change what the program under test sees.
        let _ = file.write_all(line.as_bytes());
    }
    for (_, bytes) in door.concurrent.iter().filter(|(call, _)| call == name) {
        crate::card().move_peer(*bytes);
    }
    door.call_back(name);
    door.script.lock().ok()?.next(name)
}

/// Notes that a call is about to return.
pub fn leave(name: &str) {
    if let Some(Some(door)) = DOOR.get().map(Option::as_ref)
        && door.is_around
    {
        door.call_back(name);
    }
}

fn open(settings: &'static Settings) -> Option<Door> {
    let scripted = !settings.failures.is_empty() || !settings.concurrent.is_empty();
    if !scripted && settings.trace.is_none() && settings.tool.is_none() {
        return None;
    }
    let trace = settings.trace.as_ref().map(|path| {
        OpenOptions::new().create(true).append(true).open(path).unwrap_or_else(|error| {
            eprintln!("stub gpu: STUB_GPU_TRACE={path}: {error}");
            std::process::abort()
        })
    });
    let script = Mutex::new(Script::new(&settings.failures));
    let around = settings.tool.as_deref().and_then(|tool| tool.strip_suffix(":around"));
    let tool = around.or(settings.tool.as_deref());
    let is_around = around.is_some();
    Some(Door { trace, script, concurrent: &settings.concurrent, tool, is_around })
}
