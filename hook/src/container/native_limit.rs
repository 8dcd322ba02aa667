//! Limits of memory that the driver itself keeps, by cgroup (`nvmlDeviceSetMemoryLimits_v1`, NVML 13.4): set before a
//! container starts, changed with its other limits, and gone with its cgroup.
//!
//! The planner determines the native limits ([`NativeLimit`]). This module finds their cgroup: the container's own,
//! in which its first process waits when the hook is called. It must be one below the root of the unified hierarchy,
//! which all processes share.

use crate::node::driver::Driver;
use crate::node::proc::Process;
use gpucap_core::uuid::DeviceName;
use gpucap_plan::{NativeLimit, Node};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the driver may take. The runtime waits twice as long for the hook.
const MOST: Duration = Duration::from_secs(5);

/// What the driver keeps for one container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NativeLimitSet {
    /// The directory of the container's cgroup.
    pub(crate) cgroup: String,
    /// What it may hold of each card.
    pub(crate) limits: Vec<NativeLimit>,
}

impl NativeLimitSet {
    /// Has the driver keep them, for the container of this process.
    ///
    /// # Errors
    /// It does not: one line. Some of them may stand.
    pub(crate) fn build(
        pid: u32,
        native_limits: &[NativeLimit],
        node: &Node,
    ) -> Result<Self, String> {
        let cgroup = cgroup_of(pid)?;
        set(&cgroup, native_limits, node)?;
        Ok(Self { cgroup, limits: native_limits.to_vec() })
    }

    /// Moves some of them to other bytes.
    ///
    /// # Errors
    /// The driver does not: one line. Those that it has moved stay so.
    pub(crate) fn change(&self, native_limits: &[NativeLimit], node: &Node) -> Result<(), String> {
        if native_limits.is_empty() { Ok(()) } else { set(&self.cgroup, native_limits, node) }
    }

    /// In a container's record.
    pub(crate) fn record(&self) -> Value {
        let native_limits = self
            .limits
            .iter()
            .map(|native_limit| (native_limit.gpu.to_string(), native_limit.bytes.into()));
        json!({"cgroup": self.cgroup, "gpus": native_limits.collect::<serde_json::Map<_, _>>()})
    }

    /// From a container's record.
    pub(crate) fn of_record(value: &Value) -> Option<Self> {
        let native_limit = |(name, bytes): (&String, &Value)| {
            Some(NativeLimit { gpu: name.parse::<DeviceName>().ok()?, bytes: bytes.as_u64()? })
        };
        let native_limits =
            value["gpus"].as_object()?.iter().map(native_limit).collect::<Option<_>>()?;
        Some(Self { cgroup: value["cgroup"].as_str()?.to_owned(), limits: native_limits })
    }
}

/// Where the unified hierarchy of cgroups is mounted.
///
/// # Errors
/// It is not.
pub(crate) fn unified() -> Result<PathBuf, String> {
    let path = Process::own().path("mountinfo");
    let mounts = fs::read_to_string(&path).map_err(|why| crate::error::reason(&why))?;
    // The fields before the dash are as many as there are; a whole hierarchy is mounted by its root.
    let whole = |line: &&str| line.contains(" - cgroup2 ") && line.split(' ').nth(3) == Some("/");
    let point = mounts.lines().find(whole).and_then(|line| line.split(' ').nth(4));
    point.map(PathBuf::from).ok_or_else(|| "cgroup v2 is not mounted here".into())
}

/// The directory of the cgroup of a container's first process.
fn cgroup_of(pid: u32) -> Result<String, String> {
    let text = fs::read_to_string(Process(pid).path("cgroup"));
    let text = text.map_err(|why| format!("its cgroup: {}", crate::error::reason(&why)))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.map(|path| path.trim_matches('/')).filter(|path| !path.is_empty());
    // Also where an engine without cgroups leaves the container in its caller's cgroup.
    let path = path.ok_or("it has no cgroup of its own in the unified hierarchy")?;
    if Path::new(path).components().any(|part| part.as_os_str() == "..") {
        return Err(format!("its cgroup {path:?} is outside of the visible hierarchy"));
    }
    Ok(unified()?.join(path).display().to_string())
}

fn set(cgroup: &str, native_limits: &[NativeLimit], node: &Node) -> Result<(), String> {
    let mut words = vec!["limit".to_owned(), cgroup.to_owned()];
    words.extend(
        native_limits
            .iter()
            .map(|native_limit| format!("{}={}", native_limit.gpu, native_limit.bytes)),
    );
    let lines = Driver::find(node)?.ask(&words, None, MOST)?;
    let answers = lines.iter().filter_map(|line| Answer::of(line));
    let done: Vec<&str> = answers
        .map(|answer| if answer.code == 0 { Ok(answer.gpu) } else { Err(answer.to_string()) })
        .collect::<Result<_, _>>()?;
    let missing =
        |native_limit: &&NativeLimit| !done.contains(&native_limit.gpu.to_string().as_str());
    match native_limits.iter().find(missing) {
        Some(native_limit) => Err(format!("no answer for {}", native_limit.gpu)),
        None => Ok(()),
    }
}

/// What the driver answered about one card: `limited GPU-... CODE TEXT`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Answer<'a> {
    gpu: &'a str,
    pub(crate) code: u32,
    text: &'a str,
}

impl<'a> Answer<'a> {
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix("limited ")?.splitn(3, ' ');
        let (gpu, code) = (words.next()?, words.next()?.parse().ok()?);
        Some(Self { gpu, code, text: words.next().unwrap_or_default() })
    }
}

impl std::fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gpu, code, text } = self;
        write!(f, "for {gpu} it answers {code} {}", text.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_read() {
        let gpu = "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".parse().expect("a name");
        let native_limits =
            NativeLimitSet { cgroup: "/c/x".into(), limits: vec![NativeLimit { gpu, bytes: 7 }] };
        assert_eq!(NativeLimitSet::of_record(&native_limits.record()), Some(native_limits));
        for value in
            [json!(null), json!({"cgroup": "/c"}), json!({"cgroup": "/c", "gpus": {"x": 1}})]
        {
            assert_eq!(NativeLimitSet::of_record(&value), None, "{value}");
        }
    }

    #[test]
    fn an_answer_is_a_code_for_a_card() {
        let answer = Answer::of("limited GPU-a 3 Not Supported").expect("an answer");
        assert_eq!(answer.to_string(), "for GPU-a it answers 3 Not Supported");
        assert_eq!(Answer::of("limited GPU-a 0").expect("an answer").code, 0);
        for line in ["", "limited", "limited GPU-a", "limited GPU-a x", "context 1"] {
            assert_eq!(Answer::of(line), None, "{line}");
        }
    }
}
