//! libgpucap.so: stands between a program and the CUDA driver, and keeps the program inside its slice.
//!
//! Preloaded into every process of a container. In a process that uses no GPU it does nothing but look once, in its
//! constructor, whether the driver is there. When the driver is first seen and limits exist, the driver's own symbol
//! table is redirected ([`redirect`]); from then on each intercepted function is a hook ([`hooks`]) that gives the call
//! to its handler ([`cuda`], [`nvml`]). Handlers charge the container's ledger ([`session`], [`container`]) and answer for the
//! slice. The pages of `docs/src/design` describe the whole.
//!
//! Never in this crate: a panic, an exit, a signal handler, a thread, standard output, a lock that is held across the
//! driver (named exceptions: [`cuda::context`], [`cuda::vmm`], and in [`throttle`] while an event is asked for).

#![allow(rustdoc::private_intra_doc_links, reason = "its readers document private items too")]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing
)]

mod budget;
mod call;
mod container;
mod cuda;
mod driver;
mod fork_page;
mod holdings;
mod hooks;
mod launch;
mod log;
mod machine;
mod nvml;
mod orders;
mod redirect;
mod session;
mod state;
mod sys;
mod throttle;
mod topology;
mod triggers;

/// Runs when the library is loaded: the driver may be mapped already, as a dependency of the program.
#[ctor::ctor(unsafe)]
fn start() {
    let _errno = sys::Errno::keep();
    sys::note_standard_error();
    redirect::at_start(&hooks::LIBRARIES);
}
