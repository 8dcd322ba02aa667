//! What was measured of the node's cards: `<state_dir>/driver.json`, written by `gpucap calibrate`.
//!
//! ```text
//! { "version": 1, "driver": "595.10.01",
//!   "gpus": { "GPU-<uuid>": { "context_bytes": 435159040, "total_bytes": 85899345920, "native_limits": false } } }
//! ```
//!
//! It belongs to one version of the driver: contexts of another version differ. So its reader passes the version of
//! the running driver, and a file of another version counts as absent. So does a file with any implausible number:
//! the program that wrote one wrong may have written all of them wrong.

use gpucap_core::config::Excerpt;
use gpucap_core::limits::file::Key;
use gpucap_core::uuid::DeviceName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::encoding::json;

/// What was measured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Calibration {
    /// The driver's version, as NVML says it.
    pub driver: String,
    /// Each card, and each MIG instance.
    pub gpus: Vec<Measured>,
}

/// What was measured of one card or MIG instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Measured {
    /// Its name.
    pub name: DeviceName,
    /// Bytes that a context takes there.
    pub context: u64,
    /// Its memory, as `cuDeviceTotalMem` says it: a percentage is one of these bytes.
    pub total: u64,
    /// The driver can limit the memory of a cgroup there.
    pub native_limits: bool,
}

impl Calibration {
    /// The file's name in the node's `state_dir`.
    pub const FILE: &'static str = "driver.json";
    /// A context that takes more is none: on no card that is known does one take a third of it.
    pub const MOST_CONTEXT: u64 = 4 << 30;

    /// The file that has these bytes, on a machine that runs this driver.
    ///
    /// # Errors
    /// It is of another driver, or says something that cannot be.
    pub fn parse(bytes: &[u8], running: Option<&str>) -> Result<Self, String> {
        let value = json::parse(Self::FILE, bytes).map_err(|why| why.to_string())?;
        let driver = json::text(&value, &["driver"]).unwrap_or_default();
        if json::at(&value, &["version"]).and_then(Value::as_u64) != Some(1) || driver.is_empty() {
            return Err(format!("{} is not of this version of gpucap", Self::FILE));
        }
        match running {
            None => return Err("this machine does not say which driver runs".into()),
            Some(running) if running != driver => {
                let [theirs, ours] = [driver, running].map(|word| Excerpt::new(word.as_bytes()));
                return Err(format!("it is that of driver {theirs}, and {ours} runs"));
            }
            Some(_) => {}
        }
        let gpus = json::at(&value, &["gpus"]).and_then(Value::as_object);
        let gpus = gpus.into_iter().flatten().map(|(name, value)| {
            let numbers = Numbers::deserialize(value).map_err(|why| format!("{name:?}: {why}"))?;
            numbers.of(name)
        });
        Ok(Self { driver: driver.to_owned(), gpus: gpus.collect::<Result<_, _>>()? })
    }

    /// What a context costs on what a limits file calls so. For any card, that of the dearest: too much for one of
    /// them, too little for none.
    #[must_use]
    pub fn context(&self, key: Key) -> Option<u64> {
        match key {
            Key::Every => self.gpus.iter().map(|gpu| gpu.context).max(),
            Key::Name(name) => self.of(name).map(|gpu| gpu.context),
        }
    }

    /// What was measured of this card or instance.
    #[must_use]
    pub fn of(&self, name: DeviceName) -> Option<&Measured> {
        self.gpus.iter().find(|gpu| gpu.name.uuid == name.uuid)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let pair = |gpu: &Measured| (gpu.name.to_string(), json!(Numbers::from(gpu)));
        let gpus: Map<_, _> = self.gpus.iter().map(pair).collect();
        let value = json!({"version": 1, "driver": self.driver, "gpus": gpus});
        format!("{value:#}\n")
    }
}

/// What the file says of one of them.
#[derive(Deserialize, Serialize)]
struct Numbers {
    context_bytes: u64,
    total_bytes: u64,
    #[serde(default)]
    native_limits: bool,
}

impl Numbers {
    fn of(self, name: &str) -> Result<Measured, String> {
        let Self { context_bytes: context, total_bytes: total, native_limits } = self;
        for (key, number, most) in [
            ("context_bytes", context, Calibration::MOST_CONTEXT),
            ("total_bytes", total, u64::MAX),
        ] {
            if !(1..=most).contains(&number) {
                return Err(format!("{name:?}: {key} is {number}"));
            }
        }
        let name = name.parse().map_err(|_| format!("{name:?} is no GPU"))?;
        Ok(Measured { name, context, total, native_limits })
    }
}

impl From<&Measured> for Numbers {
    fn from(gpu: &Measured) -> Self {
        let Measured { name: _, context, total, native_limits } = *gpu;
        Self { context_bytes: context, total_bytes: total, native_limits }
    }
}

/// The version in the driver's own file (`/proc/driver/nvidia/version`): the first word of numbers.
#[must_use]
pub fn running_driver(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let numeric = |word: &&str| {
        let mut parts = word.split('.');
        parts.clone().count() > 1
            && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    line.split_whitespace().find(numeric)
}
