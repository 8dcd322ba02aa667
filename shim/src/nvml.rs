//! Handlers of NVML: the slice as nvidia-smi and its kin see it.

pub(crate) mod memory;
