//! What differs between processors, of the programs into which the library is preloaded: those of this command's own.
//!
//! One block per processor, with the same names in each. Nothing else in this crate asks which processor it is.

pub(crate) use own::{ELF_MACHINE, LOADER, MULTIARCH, NAME};

#[cfg(target_arch = "x86_64")]
mod own {
    /// How messages name it.
    pub(crate) const NAME: &str = "x86-64";
    /// `e_machine` of its files: `EM_X86_64`.
    pub(crate) const ELF_MACHINE: u16 = 62;
    /// The loader that its programs name, below the root.
    pub(crate) const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
    /// Debian's name for it, in directories of libraries.
    pub(crate) const MULTIARCH: &str = "x86_64-linux-gnu";
}

#[cfg(target_arch = "aarch64")]
mod own {
    /// How messages name it.
    pub(crate) const NAME: &str = "arm64";
    /// `e_machine` of its files: `EM_AARCH64`.
    pub(crate) const ELF_MACHINE: u16 = 183;
    /// The loader that its programs name, below the root.
    pub(crate) const LOADER: &str = "lib/ld-linux-aarch64.so.1";
    /// Debian's name for it, in directories of libraries.
    pub(crate) const MULTIARCH: &str = "aarch64-linux-gnu";
}
