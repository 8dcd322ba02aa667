//! The ledger: what the processes of a container hold of each device, in memory they all share.
//!
//! One sparse file per container, mapped by each process and read in place as a [`Ledger`]:
//!
//! ```text
//! 0        Header    4 KiB        magic, version, size, counts
//! 4096     devices   64 x 256 B   total {bytes, last slot, sequence}, bucket word, UUID, busy time
//! 20480    owners    1024 x 64 B  who has the slot, since when, which devices it touched
//! 86016    accounts     64 x 1024 x 256 B, by device: bytes by kind, peak, refusals, busy time
//! ```
//!
//! Callers: any number of processes at once, with one rule for each: **one thread at a time per slot and device**
//! charges and refunds, and one claim per program image. Any process may reap.
//!
//! Guarantees, if a process is only called dead once it is: the total of a device never exceeds the limit given with a
//! charge; a charge is refused only if it did not fit at that moment; a process that dies between any two
//! instructions leaves only what the next reap removes; no process waits for another (a loop repeats only when
//! another process made progress); with no call in progress, a total is the sum of its accounts. `ledger/account.rs`
//! has the protocol.
//!
//! The bound: a total identifies operations by slot and 12 bits of its sequence. A process that is stopped between
//! reading a total and exchanging it, while one slot makes an exact multiple of 4096 changes and the total comes back
//! to the same byte, takes the new word for the old one. By itself this is harmless. It costs one operation's bytes
//! (the account and the total then differ by them until the file is removed) if, besides, that slot's process dies
//! between its exchange and the store after it, or if the stopped one was emptying a dead process's account that
//! others have emptied since.
//!
//! Zero bytes are a valid ledger that is not formatted yet. No locks, no clock, no files.

mod account;
mod boot;
mod busy;
mod charge;
mod dead;
mod device;
mod format;
mod layout;
mod line;
#[cfg(all(test, loom))]
mod models;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
mod unfinished;
mod view;
mod windows;
mod word;

pub use charge::{Kind, OverQuota};
pub use dead::Count;
pub use device::{DeviceIndex, DeviceView};
pub use format::{MAGIC, Unusable, VERSION};
pub use layout::{DEVICES, Full, Ledger, SLOTS};
pub use line::Line;
pub use slot::{Identity, Slot};
pub use view::{AccountView, ProcessView};
pub use windows::BusyWindow;
