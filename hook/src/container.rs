//! A container on this node: how it is reached, and what the node keeps of it and for it.
//!
//! It is reached through its first process ([`init`], [`root`]); everything that is read there is hostile. The node keeps
//! a record of it, its usage page, and what its driver limits. Here a container is looked at and its pages are made;
//! putting it under its limits is the matter of `inject`.

pub(crate) mod effective_limit;
pub(crate) mod init;
pub(crate) mod ledgers;
pub(crate) mod live;
pub(crate) mod membership;
pub(crate) mod mount_table;
pub(crate) mod mounts;
pub(crate) mod native_limit;
pub(crate) mod pages;
pub(crate) mod records;
pub(crate) mod refusals;
pub(crate) mod root;
pub(crate) mod run_file;
pub(crate) mod slices;
pub(crate) mod waiting;
