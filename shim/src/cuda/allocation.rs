//! An allocation of one address: recorded once the driver has made it, and refunded once the driver has freed it.
//!
//! Used by the handlers of all functions that allocate such memory or free it, since one function frees what several
//! have allocated. The charge was made before the driver was called; here it goes into the table, and out of it.

use crate::budget::charge::Charge;
use crate::budget::record::Record;
use crate::call::Call;
use crate::holdings::pools::ContextStream;
use crate::session::Session;
use gpucap_abi::arg::{Out, Word, Written};
use gpucap_core::ledger::Kind;

/// Enters a successful allocation in the table.
#[inline]
pub(super) fn keep<P: Word>(
    session: &'static Session,
    pointer: Out<P>,
    written: &Written,
    charge: Charge,
) {
    if let Some(address) = pointer.get(written) {
        enter(session, address.to_u64(), charge.commit());
    }
}

/// Records the memory at an address that the driver has just returned.
#[inline]
pub(super) fn enter(session: &Session, address: u64, record: Record) {
    if let Some(stale) = session.memory.insert(address, record) {
        session.budget.refund(stale);
    }
}

/// The driver has taken memory back, from a point of a stream on: a pool keeps what was taken from it.
pub(super) fn freed(
    call: &Call,
    session: &'static Session,
    record: Record,
    from: Option<ContextStream>,
) {
    let is_kept = record.kind == Kind::Pool
        && session.pools.freed(call.driver, &session.budget, record.home, record.bytes, from);
    if !is_kept {
        session.budget.refund(record);
    }
}
