//! Words of memory that a stream waits for or writes.
//!
//! Who waits for a word that another stream is about to write waits for that place in the other
//! stream. All else is done by a thread of its own when the stream reaches it, as a host function
//! is ([`crate::host_function`]): the next operation of the stream waits for it on the host. So
//! nothing can be queued behind a wait for a word that is not being written yet, which the real
//! driver allows. A word without memory behind it ([`crate::arena`]) is whatever is waited for.

use crate::arg::Out;
use crate::capture::{self, Operation};
use crate::copy::{Side, device_side};
use crate::driver::state;
use crate::export::exports;
use crate::host_function::run;
use crate::stream::Point;
use gpucap_abi::cuda::{CUdeviceptr, CUstream, CuError, CuResult};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

exports! {
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue32(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => wait_32, context, "cuStreamWaitValue32" @ 8000;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue32_ptsz(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => wait_32, context, "cuStreamWaitValue32" @ 8000 ptsz;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => wait_32, context, "cuStreamWaitValue32" @ 11070;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue32_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => wait_32, context, "cuStreamWaitValue32" @ 11070 ptsz;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue64(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => wait_64, context, "cuStreamWaitValue64" @ 9000;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue64_ptsz(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => wait_64, context, "cuStreamWaitValue64" @ 9000 ptsz;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => wait_64, context, "cuStreamWaitValue64" @ 11070;
    /// What is queued behind it waits for the word.
    fn cuStreamWaitValue64_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => wait_64, context, "cuStreamWaitValue64" @ 11070 ptsz;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue32(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => write_32, context, "cuStreamWriteValue32" @ 8000;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue32_ptsz(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => write_32, context, "cuStreamWriteValue32" @ 8000 ptsz;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => write_32, context, "cuStreamWriteValue32" @ 11070;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue32_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u32,
        flags: u32) => write_32, context, "cuStreamWriteValue32" @ 11070 ptsz;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue64(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => write_64, context, "cuStreamWriteValue64" @ 9000;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue64_ptsz(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => write_64, context, "cuStreamWriteValue64" @ 9000 ptsz;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => write_64, context, "cuStreamWriteValue64" @ 11070;
    /// Written when the stream reaches it.
    fn cuStreamWriteValue64_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u64,
        flags: u32) => write_64, context, "cuStreamWriteValue64" @ 11070 ptsz;
    /// One after the other.
    fn cuStreamBatchMemOp(stream: CUstream, count: u32, operations: *mut Described,
        flags: u32) => batch, context, "cuStreamBatchMemOp" @ 8000;
    /// One after the other.
    fn cuStreamBatchMemOp_ptsz(stream: CUstream, count: u32, operations: *mut Described,
        flags: u32) => batch, context, "cuStreamBatchMemOp" @ 8000 ptsz;
    /// One after the other.
    fn cuStreamBatchMemOp_v2(stream: CUstream, count: u32, operations: *mut Described,
        flags: u32) => batch, context, "cuStreamBatchMemOp" @ 11070;
    /// One after the other.
    fn cuStreamBatchMemOp_v2_ptsz(stream: CUstream, count: u32, operations: *mut Described,
        flags: u32) => batch, context, "cuStreamBatchMemOp" @ 11070 ptsz;
}

/// `CUstreamBatchMemOpParams`: a wait and a write have the same fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Described {
    operation: u32,
    address: CUdeviceptr,
    /// Of 32 bits only the first.
    value: u64,
    flags: u32,
    alias: CUdeviceptr,
    reserved: u64,
}

const _: () = assert!(size_of::<Described>() == 48);

/// The most operations of a batch.
const BATCH: u32 = 255;
/// `CU_STREAM_WAIT_VALUE_FLUSH`: writes of others before the word are seen as well.
const FLUSH: u32 = 1 << 30;
/// How often a word is looked at.
const PATIENCE: Duration = Duration::from_micros(20);

/// A write that a stream will come to.
#[derive(Clone, Copy)]
pub(crate) struct Write {
    value: u64,
    point: Point,
}

/// The latest write that was queued of each word.
pub(crate) type Writes = HashMap<u64, Write>;

/// A word of memory.
#[derive(Clone, Copy)]
struct Word {
    place: Side,
    is_wide: bool,
}

impl Word {
    fn at(address: CUdeviceptr, is_wide: bool) -> Result<Self, CuError> {
        let bytes = if is_wide { 8 } else { 4 };
        if !address.is_multiple_of(bytes) {
            return Err(CuError::INVALID_VALUE);
        }
        Ok(Self { place: device_side(address, bytes)?, is_wide })
    }

    /// Null without memory behind it.
    fn read(self) -> Option<u64> {
        let Side::Real(address) = self.place else { return None };
        if self.is_wide {
            // SAFETY: an aligned word of memory of that size, which the program keeps as long as it
            // is waited for.
            Some(unsafe { AtomicU64::from_ptr(address as *mut u64) }.load(Ordering::SeqCst))
        } else {
            // SAFETY: as above.
            let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
            Some(word.load(Ordering::SeqCst).into())
        }
    }

    fn write(self, value: u64) {
        let Side::Real(address) = self.place else { return };
        if self.is_wide {
            // SAFETY: as in `read`.
            unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::SeqCst);
        } else {
            // SAFETY: as in `read`.
            let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
            word.store(low(value), Ordering::SeqCst);
        }
    }
}

/// What is done with a word.
#[derive(Clone, Copy)]
enum Action {
    /// Until the difference to the value is not negative.
    WaitAtLeast,
    WaitEqual,
    /// Until they have a bit in common.
    WaitAnd,
    /// Until a bit is in neither.
    WaitNor,
    Write,
}

#[derive(Clone, Copy)]
struct Step {
    word: Word,
    value: u64,
    action: Action,
}

impl Step {
    fn wait(word: Word, value: u64, flags: u32) -> Result<Self, CuError> {
        let action = match flags & !FLUSH {
            0 => Action::WaitAtLeast,
            1 => Action::WaitEqual,
            2 => Action::WaitAnd,
            3 => Action::WaitNor,
            _ => return Err(CuError::INVALID_VALUE),
        };
        Ok(Self { word, value, action })
    }

    /// Flag 1: what was done before need not be seen before the word.
    fn write(word: Word, value: u64, flags: u32) -> Result<Self, CuError> {
        if flags > 1 {
            return Err(CuError::INVALID_VALUE);
        }
        Ok(Self { word, value, action: Action::Write })
    }

    fn queue(self, stream: CUstream) -> CuResult {
        let Side::Real(address) = self.word.place else { return Ok(()) };
        if matches!(self.action, Action::Write) {
            let point = run(stream, move || self.carry_out())?;
            state()?.writes.insert(address, Write { value: self.value, point });
            return Ok(());
        }
        let write = state()?.writes.get(&address).copied();
        match write.filter(|it| it.point.reached().is_none() && self.is_fulfilled_by(it.value)) {
            Some(write) => write.point.holds_up(stream),
            None => run(stream, move || self.carry_out()).map(drop),
        }
    }

    fn carry_out(self) {
        match self.action {
            Action::Write => self.word.write(self.value),
            _ => {
                while !self.is_fulfilled() {
                    std::thread::sleep(PATIENCE);
                }
            }
        }
    }

    fn is_fulfilled(self) -> bool {
        self.word.read().is_none_or(|word| self.is_fulfilled_by(word))
    }

    fn is_fulfilled_by(self, word: u64) -> bool {
        let (value, is_wide) = (self.value, self.word.is_wide);
        let all = if is_wide { u64::MAX } else { u32::MAX.into() };
        let sign = all - all / 2;
        match self.action {
            Action::WaitAtLeast => word.wrapping_sub(value) & sign == 0,
            Action::WaitEqual => word == value,
            Action::WaitAnd => word & value != 0,
            Action::WaitNor => (word | value) != all,
            Action::Write => true,
        }
    }
}

fn low(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default()
}

fn queue(stream: CUstream, steps: Vec<Step>) -> CuResult {
    if capture::take(stream, Operation::Work(0))? {
        return Ok(());
    }
    steps.into_iter().try_for_each(|step| step.queue(stream))
}

fn wait_32(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32) -> CuResult {
    queue(stream, vec![Step::wait(Word::at(address, false)?, value.into(), flags)?])
}

fn write_32(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32) -> CuResult {
    queue(stream, vec![Step::write(Word::at(address, false)?, value.into(), flags)?])
}

fn wait_64(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32) -> CuResult {
    queue(stream, vec![Step::wait(Word::at(address, true)?, value, flags)?])
}

fn write_64(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32) -> CuResult {
    queue(stream, vec![Step::write(Word::at(address, true)?, value, flags)?])
}

fn batch(stream: CUstream, count: u32, operations: Out<Described>, flags: u32) -> CuResult {
    if count > BATCH || flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut steps = Vec::new();
    for index in 0..count as usize {
        let Described { operation, address, value, flags, .. } = operations.at(index).get()?;
        let narrow = low(value).into();
        steps.push(match operation {
            1 => Step::wait(Word::at(address, false)?, narrow, flags)?,
            2 => Step::write(Word::at(address, false)?, narrow, flags)?,
            4 => Step::wait(Word::at(address, true)?, value, flags)?,
            5 => Step::write(Word::at(address, true)?, value, flags)?,
            // CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, CU_STREAM_MEM_OP_BARRIER: all is seen in order.
            3 | 6 => continue,
            _ => return Err(CuError::INVALID_VALUE),
        });
    }
    queue(stream, steps)
}
