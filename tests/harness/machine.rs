//! The processor for which the tested programs are built: this machine's, or one that the system emulates.
//!
//! `ci/arm64` makes a place in which the kernel starts arm64 programs through an emulator, with their C library and a
//! shell where they look for them, and says so in `GPUCAP_TEST_MACHINE`. Programs are then compiled for it, and the
//! libraries of `GPUCAP_ARTIFACTS` are built for it. The tests themselves run natively, and start each program as ever.

use crate::{Result, Stop};
use std::env;

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// arm64.
    Arm64,
}

impl Machine {
    /// That of this machine.
    const HERE: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::X86_64 };

    /// That of the tested programs.
    #[must_use]
    pub fn tested() -> Self {
        match env::var_os("GPUCAP_TEST_MACHINE") {
            Some(named) if named == "aarch64" => Self::Arm64,
            _ => Self::HERE,
        }
    }

    /// Whether the tested programs need an emulator.
    pub(crate) fn is_emulated() -> bool {
        Self::tested() != Self::HERE
    }

    /// Goes on if the tested programs need no emulator.
    ///
    /// # Errors
    /// Skips with the reason why the test means nothing in one.
    pub fn not_emulated(why: &str) -> Result {
        if Self::is_emulated() {
            Err(Stop::skip(format!("under emulation: {why}")))
        } else {
            Ok(())
        }
    }

    /// The C compiler for it.
    pub(crate) fn cc(self) -> &'static str {
        match self {
            _ if self == Self::HERE => "cc",
            Self::X86_64 => "x86_64-linux-gnu-gcc",
            Self::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }

    /// What clang needs to compile for it; nothing if it is this machine's.
    pub(crate) fn clang_target(self) -> Option<String> {
        (self != Self::HERE).then(|| format!("--target={}", self.triple()))
    }

    /// Its name in directories of libraries and in the targets of zig.
    #[must_use]
    pub const fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Arm64 => "aarch64-linux-gnu",
        }
    }

    /// The file name of glibc's loader.
    #[must_use]
    pub const fn loader(self) -> &'static str {
        match self {
            Self::X86_64 => "ld-linux-x86-64.so.2",
            Self::Arm64 => "ld-linux-aarch64.so.1",
        }
    }
}
