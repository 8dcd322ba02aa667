//! This machine: its processes and programs, its configuration and its files, the installed parts of gpucap, its driver.
//!
//! Facts of the node, and the means to change a file of it. What is read may be stale a moment later. Of a container
//! only the documents are here ([`inputs`]); what is in it is the matter of `container`.

pub(crate) mod driver;
pub(crate) mod elf;
pub(crate) mod inputs;
pub(crate) mod preload;
pub(crate) mod proc;
pub(crate) mod replace;
