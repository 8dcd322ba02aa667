//! What gpucap decides, apart from everything it touches.
//!
//! * [`units`], [`uuid`]: the words of a limit.
//! * [`config`]: which variables exist, and what they say.
//! * [`limits`]: environment and limits file, resolved for one device by the minimum rule.
//! * [`extent`], [`pitch`], [`image`], [`physical`]: how much an array takes, rows of memory, code; how long physical
//!   memory lives.
//! * [`ledger`]: the memory in which the processes of a container account for what they hold, and the protocol that keeps it right when a process dies.
//! * [`page`]: what its processes tell others on the same cards.
//! * [`throttle`]: which launches wait, for how long, and what the device's time was worth.
//! * [`table`]: numbers by number, for what a process holds.
//! * [`process`]: whether the owner of a place in it still runs.
//!
//! Pure: no unsafe, no clock (time is an argument), no environment (a lookup is an argument), no files, threads or
//! libc. The shim, the hook, the tests and the benches supply the world.

#![forbid(unsafe_code)]
// The documentation is made with private items.
#![allow(rustdoc::private_intra_doc_links)]

pub mod config;
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
