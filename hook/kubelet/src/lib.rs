//! A kubelet plugin for dynamic resource allocation (DRA): the two Unix sockets on a node by which the kubelet finds a
//! driver and calls it. Which devices there are, and what a claim gets, is the driver's ([`Plugin`]).
//!
//! The kubelet finds the first socket in its registry, asks who is there, and then calls the other one. It does so again
//! after each restart of its own, so nothing is remembered of a connection. A socket is only root's. Which message goes
//! to which function is `service`'s to know. Publishing devices (ResourceSlices) is between the driver and the API
//! server, and no part of this.
//!
//! ```no_run
//! use gpucap_kubelet::message::{Claim, Device, DeviceHealths};
//! use gpucap_kubelet::{Plugin, Sockets};
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! struct Driver;
//!
//! impl Plugin for Driver {
//!     type Error = String;
//!     fn name(&self) -> &str {
//!         "driver.example.com"
//!     }
//!     async fn prepare(&self, claim: &Claim) -> Result<Vec<Device>, String> {
//!         Err(format!("nothing is known of claim {}/{}", claim.namespace, claim.name))
//!     }
//!     async fn unprepare(&self, _: &Claim) -> Result<(), String> {
//!         Ok(())
//!     }
//!     fn registered(&self, outcome: Result<(), &str>) {
//!         eprintln!("{outcome:?}");
//!     }
//! }
//!
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
//! let (_healths, watched) = tokio::sync::watch::channel(DeviceHealths::default());
//! let sockets = Sockets::new(Path::new("/var/lib/kubelet"), "driver.example.com");
//! runtime.block_on(sockets.serve(Arc::new(Driver), watched))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod message;
mod plugin;
mod service;
mod sockets;

pub use plugin::Plugin;
pub use sockets::{Error, Sockets};
