//! What the processes of a container share: the ledger, the usage page, the limits that the node has changed, until when it
//! holds them back, and which of the processes are alive. Files and system calls; no function of the driver.

pub(crate) mod attendance;
mod executed;
pub(crate) mod held_page;
pub(crate) mod ledger_file;
pub(crate) mod live_limits;
pub(crate) mod mapped_page;
pub(crate) mod usage_page;
