//! The node with the DRA driver, its kubelet and its API server, as the tests of the driver have them.
//!
//! Files of another test binary, included here: what prepares a claim for a container is what is tested there.
#![allow(dead_code, reason = "the tests of the driver need more of it")]

#[path = "../dra/kubelet.rs"]
pub(crate) mod kubelet;
#[path = "../dra/messages.rs"]
pub(crate) mod messages;
#[path = "../dra/node.rs"]
pub(crate) mod node;
#[path = "../dra/server.rs"]
pub(crate) mod server;
