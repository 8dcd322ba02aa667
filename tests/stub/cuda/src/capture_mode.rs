//! What a capture forbids besides its streams, and to whom.
//!
//! A call whose effect a capture cannot see is unsafe while there is one. Each thread has a mode, and
//! each capture the one it was begun with; together they say whether the call is refused, which spoils
//! the captures that forbid it. Of the calls that the documentation calls unsafe, these are: asking for
//! an event, waiting for one, allocating.

use crate::arg::Out;
use crate::capture::{Session, UNSUPPORTED};
use crate::export::exports;
use crate::state::State;
use crate::stream::thread_number;
use gpucap_abi::cuda::{CuError, CuResult};
use std::cell::Cell;

exports! {
    /// The mode of the thread is exchanged.
    fn cuThreadExchangeStreamCaptureMode(mode: *mut i32)
        => exchange_mode, driver, "cuThreadExchangeStreamCaptureMode" @ 10010;
}

/// `CUstreamCaptureMode`
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Captures in this mode forbid to every thread; threads in this mode obey them.
    Global,
    /// Only the thread that captures.
    ThreadLocal,
    /// No process.
    Relaxed,
}

impl Mode {
    pub(crate) fn new(number: i32) -> Result<Self, CuError> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// Refuses an unsafe call of this thread if a capture forbids it, and spoils that capture.
pub(crate) fn unsafe_call(state: &mut State) -> CuResult {
    let thread = thread_number();
    let mode = MODE.try_with(Cell::get).unwrap_or(Mode::Global);
    let forbids = |session: &Session| {
        let own = session.thread == thread && session.mode != Mode::Relaxed;
        let others = session.thread != thread && session.mode == Mode::Global;
        match mode {
            Mode::Global => own || others,
            Mode::ThreadLocal => own,
            Mode::Relaxed => false,
        }
    };
    let mut answer = Ok(());
    for session in state.captures.values_mut().filter(|session| forbids(session)) {
        session.spoilt = true;
        answer = Err(UNSUPPORTED);
    }
    answer
}

fn exchange_mode(mode: Out<i32>) -> CuResult {
    let new = Mode::new(mode.get()?)?;
    mode.put(MODE.try_with(|own| own.replace(new)).unwrap_or(Mode::Global) as i32)
}
