//! What becomes of a context's work when the context ends.
//!
//! `STUB_GPU_CONTEXT_END` says it: no card has been asked. The call that ends the context comes here first, without the
//! driver's lock, since it may wait; afterwards it takes everything away that lives in the context.
//! Streams that were destroyed before count too: their work is the context's.

use crate::driver::{state, unit};
use gpucap_abi::cuda::{CUdevice, CuResult};
use gpucap_stub_device::{card, settings};

/// Has the driver do with the work of a context that is about to end what it does.
pub(crate) fn finish(handle: u64) -> CuResult {
    let mut state = state()?;
    let Some((_, unit)) = state.contexts.owner(handle) else { return Ok(()) };
    if !settings().drops_at_end {
        // Other threads may launch in it until it has ended.
        loop {
            let end = state.streams.end_of_context(handle, unit);
            drop(state);
            let progress = end.progress;
            end.wait();
            state = crate::driver::state()?;
            if state.streams.end_of_context(handle, unit).progress == progress {
                return Ok(());
            }
        }
    }
    let others = state.contexts.all_alive().into_iter();
    let others = others.filter(|&(other, on)| other != handle && on == unit);
    let keep = others.map(|(other, _)| state.streams.end_of_context(other, unit).progress).max();
    card().with_engine(unit, |engine, lane, _| engine.drop_work(lane, keep.unwrap_or(0)));
    Ok(())
}

/// The same for a primary context that at most this many retain.
pub(crate) fn finish_primary(device: CUdevice, users: u32) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let handle = state.contexts.primary(device, unit);
    let is_last = state.contexts.alive(handle).is_some_and(|primary| primary.uses <= users);
    drop(state);
    if is_last { finish(handle) } else { Ok(()) }
}
