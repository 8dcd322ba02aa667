//! Stub `libnvidia-ml.so.1` over the simulated card.
//!
//! It shows what the stub libcuda and every other process do to the card ([`gpucap_stub_device`],
//! where the table of environment variables is). Enough of it is answered that the real
//! `nvidia-smi`, the Python bindings and the tools over them run; everything else that driver 535
//! exports exists and answers NOT_SUPPORTED. It calls itself through its exported names, as the
//! real one does ([`own`]).

mod accounting;
mod device;
mod export;
mod init;
mod memory;
mod memory_limits;
mod own;
mod process;
mod rows;
mod telemetry;
mod unsupported;
mod utilization;
