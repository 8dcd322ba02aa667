//! `cuInit`: the session begins with it, so that a ledger that cannot be opened is known before anything is allocated.

use crate::call::Call;
use crate::driver::Next;
use gpucap_abi::cuda::{CuError, CuResult};

/// Begins the session. A process that cannot keep a ledger is not let near the card.
pub(crate) fn init(call: &Call, next: impl Next<CuError>, _flags: u32) -> CuResult {
    if call.session().is_err() {
        return Err(CuError::SYSTEM_NOT_READY);
    }
    next().map(drop)
}
