//! `cuInit`: the session begins with it, so that a book that cannot be opened is known before anything is allocated.

use crate::call::Call;
use crate::hooks::Next;
use crate::log::Once;
use gpucap_abi::cuda::{CuError, CuResult};
use gpucap_core::config::LogLevel;
use gpucap_core::limits::Limits;

/// Begins the session. A process that cannot keep a book is not let near the card.
pub(crate) fn init(call: &Call, next: impl Next<CuError>, _flags: u32) -> CuResult {
    if call.session().is_err() {
        return Err(CuError::SYSTEM_NOT_READY);
    }
    warn_of_time(call);
    next().map(drop)
}

/// A limit that is not enforced must not be silent.
fn warn_of_time(call: &Call) {
    static TOLD: Once = Once::new();
    if call.policy.limits.as_ref().is_some_and(Limits::has_core) && TOLD.first() {
        call.policy.log(
            LogLevel::Warn,
            format_args!(
                "time: a share of the GPU's time is asked for, which this version does not limit"
            ),
        );
    }
}
