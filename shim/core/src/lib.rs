//! What gpucap decides, apart from everything it touches.
//!
//! * [`units`], [`uuid`]: the parts of a limit.
//! * [`errno`]: the numbers of failed system calls, in words.
//! * [`config`]: the variables and their values.
//! * [`limits`]: environment and limits file, resolved for one device by the minimum rule.
//! * [`extent`], [`pitch`], [`image`], [`physical`]: how much arrays, rows of memory and code take; how long physical
//!   memory lives.
//! * [`ledger`]: the memory in which the processes of a container account for what they hold, and the protocol that
//!   keeps it correct when a process dies.
//! * [`page`]: what its processes publish for others on the same GPUs.
//! * [`throttle`]: which launches wait, for how long, and how much of the device's time is charged.
//! * [`table`]: numbers by number, for what a process holds.
//! * [`process`]: whether the owner of a slot still runs.
//!
//! Pure: no unsafe, no clock (time is an argument), no environment (a lookup is an argument), no files, threads or
//! libc. The shim, the hook, the tests and the benches supply the world.

#![forbid(unsafe_code)]
// The documentation is made with private items.
#![allow(rustdoc::private_intra_doc_links)]

pub mod config;
pub mod errno;
pub mod extent;
pub mod image;
pub mod ledger;
pub mod limits;
pub mod page;
pub mod physical;
pub mod pitch;
pub mod process;
pub mod sync;
pub mod table;
pub mod throttle;
pub mod units;
pub mod uuid;
