//! What a program meets: which driver, and whether the shim stands before it.

use crate::{Build, Result, Run, Stop, project};
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// The driver libraries that a program finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Driver {
    /// None at all.
    Absent,
    /// Ours: it has cards, and does as a test tells it.
    Stub,
    /// The machine's own, which has a card.
    Card,
    /// NVIDIA's, of this version, as `ci/drivers` fetched it. Without a card `cuInit` fails, so that only facts about
    /// addresses and refusals of our own can be tested.
    Real(&'static str),
}

impl Driver {
    /// The versions that `ci/drivers` knows.
    pub const REAL: [Self; 5] = [
        Self::Real("470"),
        Self::Real("525"),
        Self::Real("535"),
        Self::Real("550"),
        Self::Real("555"),
    ];

    /// The driver that this run of the tests is about: the stub, or with `GPUCAP_TEST_DRIVER=card` the machine's own.
    #[must_use]
    pub fn available() -> Self {
        match env::var_os("GPUCAP_TEST_DRIVER") {
            Some(named) if named == "card" => Self::Card,
            _ => Self::Stub,
        }
    }

    /// Where the loader is to look for `libcuda.so.1` and `libnvidia-ml.so.1`; `None` if nowhere of its own.
    ///
    /// # Errors
    /// Skips if a real driver has not been fetched.
    pub fn libraries(&self) -> Result<Option<PathBuf>> {
        match self {
            Self::Absent if Self::available() == Self::Card => {
                Err(Stop::skip("a driver is installed here"))
            }
            Self::Absent => Ok(None),
            Self::Card => Ok(env::var_os("LD_LIBRARY_PATH").map(PathBuf::from)),
            Self::Stub => Ok(Some(Build::shipped()?.stub_directory()?.to_path_buf())),
            Self::Real(version) => Ok(Some(fetched(version)?.join("lib"))),
        }
    }

    /// The bytes by which the reserve of a memory pool grows, as the driver says after an allocation of one byte. The
    /// stub's is 1 unless it is told otherwise.
    ///
    /// # Errors
    /// If the driver refuses, or keeps nothing for the allocation.
    pub fn pool_unit(&self) -> Result<u64> {
        const RESERVED_MEM_CURRENT: u32 = 5;
        let mut actor = World::bare(self.clone()).actor()?.start()?;
        actor.expect(&[
            ("init", 0),
            ("context 0", 0),
            ("cuDeviceGetDefaultMemPool p", 0),
            ("async a 1", 0),
        ])?;
        let answer = actor.call(&format!("pool-attribute d p {RESERVED_MEM_CURRENT}"))?;
        match (answer.code, answer.value) {
            (0, unit @ 1..) => Ok(unit),
            _ => Err(Stop::fail(format!("a pool with one byte in use: {answer:?}"))),
        }
    }

    /// The driver's own `nvidia-smi`.
    ///
    /// # Errors
    /// Skips if the driver has not been fetched, or is not a real one.
    pub fn nvidia_smi(&self) -> Result<PathBuf> {
        match self {
            Self::Real(version) => Ok(fetched(version)?.join("bin/nvidia-smi")),
            Self::Absent | Self::Stub | Self::Card => {
                Err(Stop::skip("only a real driver has nvidia-smi"))
            }
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no driver"),
            Self::Stub => f.write_str("stub"),
            Self::Card => f.write_str("card"),
            Self::Real(version) => write!(f, "driver {version}"),
        }
    }
}

fn fetched(version: &str) -> Result<PathBuf> {
    let cache = env::var_os("GPUCAP_DRIVERS")
        .map_or_else(|| project().join("target/drivers"), PathBuf::from);
    let driver = cache.join(version);
    if driver.join("lib/libcuda.so.1").exists() {
        Ok(driver)
    } else {
        Err(Stop::skip(format!("no driver {version}: run ci/drivers")))
    }
}

/// A driver, and perhaps a shim before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    driver: Driver,
    shim: Option<PathBuf>,
    omitted: String,
}

impl World {
    /// The driver alone.
    #[must_use]
    pub const fn bare(driver: Driver) -> Self {
        Self { driver, shim: None, omitted: String::new() }
    }

    /// The driver behind the shim that ships.
    ///
    /// # Errors
    /// If the shim cannot be built.
    pub fn with_shim(driver: Driver) -> Result<Self> {
        let shim = Some(Build::shipped()?.shim()?);
        Ok(Self { driver, shim, omitted: String::new() })
    }

    /// The driver behind a shim that lacks these parts, named as `GPUCAP_TEST_OMIT` names them.
    ///
    /// # Errors
    /// If the shim cannot be built.
    pub fn with_shim_lacking(driver: Driver, parts: &[&str]) -> Result<Self> {
        let shim = Some(Build::with_removable_triggers()?.shim()?);
        Ok(Self { driver, shim, omitted: parts.join(",") })
    }

    /// What a program finds as its driver.
    #[must_use]
    pub const fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The shim that is preloaded.
    #[must_use]
    pub fn shim(&self) -> Option<&Path> {
        self.shim.as_deref()
    }

    /// The parts that the shim lacks, separated by commas.
    pub(crate) fn omitted(&self) -> &str {
        &self.omitted
    }

    /// Prepares a run of `program` in this world.
    ///
    /// # Errors
    /// Skips or fails if the world cannot be had.
    pub fn run(&self, program: &Path) -> Result<Run> {
        Run::new(self, program)
    }
}
