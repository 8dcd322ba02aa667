//! The documents about a container, each as the facts that matter here.
//!
//! Those of other programs (the runtime's state, `config.json`, the driver's and the kubelet's words) are read
//! leniently: an unknown field belongs to another program. Those of the node's administrator are read strictly: an
//! unknown key may be a misspelt policy. What a document means for a limit is the matter of `convention` and `decide`.

pub(crate) mod calibration;
pub(crate) mod card;
pub(crate) mod claims;
pub(crate) mod container;
pub(crate) mod env;
pub(crate) mod identity;
pub(crate) mod node;
pub(crate) mod node_file;
mod paths;
mod seccomp;
pub(crate) mod slice;
pub(crate) mod state;
