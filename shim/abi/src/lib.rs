//! What the CUDA driver and NVML look like.
//!
//! Types in the driver's own spelling ([`cuda`], [`nvml`]), the two tables of intercepted functions
//! ([`cuda_api!`], [`nvml_api!`]) the forms in which a handler sees a caller's arguments ([`arg`]),
//! and functions that a program looks up by name ([`function`]).
//! The declarations were written by hand from NVIDIA's public API reference; nothing is generated from or
//! copied out of a header.
//!
//! What belongs here: layouts, names, versions. What never does: behaviour, libc, other crates of ours.
//! The shim, the stub driver and the demo program all read this crate, so one row says once what a function
//! is called, what it takes and since which CUDA version `cuGetProcAddress` answers with it.

#![no_std]

extern crate alloc;

pub mod arg;
pub mod cuda;
mod cuda_api;
mod cuda_copy_api;
mod cuda_fence_api;
mod cuda_time_api;
pub mod function;
pub mod nvml;
mod nvml_api;
