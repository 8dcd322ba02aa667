//! Why a device is limited as it is: one line for each source, then the result.

use core::fmt;

use super::Limits;
use super::ask::Ask;
use super::device::DeviceFacts;
use crate::config::{GPU_CORE_POLICY, GPU_CORE_PRIORITY};
use crate::units::{Bytes, ComputeLimit, Share};

/// One source, or the result, for one device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    /// The variable, the path of the limits file, or `result`.
    pub source: &'static str,
    /// Its value, or the remark about it.
    pub said: String,
    /// The bytes that it comes to on this device.
    pub memory: Option<u64>,
    /// What it comes to of this device's time.
    pub core: Option<ComputeLimit>,
    /// The most of this device's time that it leaves the others.
    pub core_max: Option<Share>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source)?;
        if !self.said.is_empty() {
            write!(f, " ({})", self.said)?;
        }
        // How the others count: nothing by itself.
        if [GPU_CORE_POLICY.name, GPU_CORE_PRIORITY.name].contains(&self.source) {
            return Ok(());
        }
        match self.memory {
            Some(memory) => write!(f, ": memory {}", Bytes(memory))?,
            None => f.write_str(": memory not limited")?,
        }
        match (self.core, self.core_max) {
            (Some(core), _) => write!(f, ", time {core}"),
            (None, Some(most)) => write!(f, ", time at most {most}"),
            (None, None) => f.write_str(", time not limited"),
        }
    }
}

impl Limits {
    /// For each source, what it said and what that means for this device; the result comes last.
    #[must_use]
    pub fn explain(&self, device: &DeviceFacts) -> Vec<Line> {
        let mut lines = Vec::new();
        for source in self.sources() {
            let (said, Ask { memory, compute: core, core_max }) = match source.ask(device) {
                Ok(ask) => (source.said(), ask),
                Err(broken) => (format!("cannot be used: {broken}"), Ask::default()),
            };
            lines.push(Line { source: source.name(), said, memory, core, core_max });
        }
        for error in self.ignored() {
            let said = format!("ignored: {error}");
            let source = error.variable;
            lines.push(Line { source, said, memory: None, core: None, core_max: None });
        }
        lines.push(match self.resolve(device) {
            Ok(resolved) => Line {
                source: "result",
                said: match (resolved.refused, resolved.clamped) {
                    (true, _) => "refused: the limits file does not list this GPU".into(),
                    (false, true) => "more was asked for than the GPU has".into(),
                    (false, false) => String::new(),
                },
                memory: resolved.memory,
                core: resolved.core,
                core_max: None,
            },
            Err(broken) => Line {
                source: "result",
                said: format!("refused: {broken}"),
                memory: Some(0),
                core: None,
                core_max: None,
            },
        });
        lines
    }
}
