//! Words in memory that streams wait for and write.
//!
//! A wait holds its stream until the word is as asked, whoever writes it; the engine is free
//! meanwhile. Each is a host function of the stream's in all but name ([`crate::host_function`]),
//! so that what is queued behind it waits on the host. In a capture it is work that takes no
//! time. The first forms are a module option of the real driver, off unless asked for, and
//! refused likewise.

use crate::arg::Out;
use crate::capture::{self, Operation};
use crate::copy::{Side, device_side};
use crate::export::exports;
use crate::host_function::run;
use gpucap_abi::cuda::{CUdeviceptr, CUstream, CuError, CuResult};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

exports! {
    /// Refused.
    fn cuStreamWaitValue32(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => refused_32, context, "cuStreamWaitValue32" @ 8000;
    /// Refused.
    fn cuStreamWaitValue32_ptsz(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => refused_32, context, "cuStreamWaitValue32" @ 8000 ptsz;
    /// 0: at least, 1: equal, 2: shares a bit, 3: some bit is in neither.
    fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => wait_32, context, "cuStreamWaitValue32" @ 11070;
    /// 0: at least, 1: equal, 2: shares a bit, 3: some bit is in neither.
    fn cuStreamWaitValue32_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => wait_32, context, "cuStreamWaitValue32" @ 11070 ptsz;
    /// Refused.
    fn cuStreamWaitValue64(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => refused_64, context, "cuStreamWaitValue64" @ 9000;
    /// Refused.
    fn cuStreamWaitValue64_ptsz(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => refused_64, context, "cuStreamWaitValue64" @ 9000 ptsz;
    /// The same for 64 bits.
    fn cuStreamWaitValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => wait_64, context, "cuStreamWaitValue64" @ 11070;
    /// The same for 64 bits.
    fn cuStreamWaitValue64_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => wait_64, context, "cuStreamWaitValue64" @ 11070 ptsz;
    /// Refused.
    fn cuStreamWriteValue32(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => refused_32, context, "cuStreamWriteValue32" @ 8000;
    /// Refused.
    fn cuStreamWriteValue32_ptsz(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => refused_32, context, "cuStreamWriteValue32" @ 8000 ptsz;
    /// When the stream reaches it.
    fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => write_32, context, "cuStreamWriteValue32" @ 11070;
    /// When the stream reaches it.
    fn cuStreamWriteValue32_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32)
        => write_32, context, "cuStreamWriteValue32" @ 11070 ptsz;
    /// Refused.
    fn cuStreamWriteValue64(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => refused_64, context, "cuStreamWriteValue64" @ 9000;
    /// Refused.
    fn cuStreamWriteValue64_ptsz(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => refused_64, context, "cuStreamWriteValue64" @ 9000 ptsz;
    /// When the stream reaches it.
    fn cuStreamWriteValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => write_64, context, "cuStreamWriteValue64" @ 11070;
    /// When the stream reaches it.
    fn cuStreamWriteValue64_v2_ptsz(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32)
        => write_64, context, "cuStreamWriteValue64" @ 11070 ptsz;
    /// Refused.
    fn cuStreamBatchMemOp(stream: CUstream, count: u32, list: *mut [u64; 6], flags: u32)
        => refused_batch, context, "cuStreamBatchMemOp" @ 8000;
    /// Refused.
    fn cuStreamBatchMemOp_ptsz(stream: CUstream, count: u32, list: *mut [u64; 6], flags: u32)
        => refused_batch, context, "cuStreamBatchMemOp" @ 8000 ptsz;
    /// Waits and writes in order; barriers and flushes have nothing to do.
    fn cuStreamBatchMemOp_v2(stream: CUstream, count: u32, list: *mut [u64; 6], flags: u32)
        => batch, context, "cuStreamBatchMemOp" @ 11070;
    /// Waits and writes in order; barriers and flushes have nothing to do.
    fn cuStreamBatchMemOp_v2_ptsz(stream: CUstream, count: u32, list: *mut [u64; 6], flags: u32)
        => batch, context, "cuStreamBatchMemOp" @ 11070 ptsz;
}

/// A word in memory.
#[derive(Clone, Copy)]
enum Place {
    Narrow(u64),
    Wide(u64),
}

impl Place {
    const fn bytes(self) -> u64 {
        match self {
            Self::Narrow(_) => 4,
            Self::Wide(_) => 8,
        }
    }

    const fn address(self) -> u64 {
        match self {
            Self::Narrow(address) | Self::Wide(address) => address,
        }
    }

    fn load(self) -> u64 {
        match self {
            Self::Narrow(address) => narrow(address).load(Ordering::Acquire).into(),
            Self::Wide(address) => wide(address).load(Ordering::Acquire),
        }
    }

    fn store(self, value: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "a narrow value came from 32 bits")]
        match self {
            Self::Narrow(address) => narrow(address).store(value as u32, Ordering::Release),
            Self::Wide(address) => wide(address).store(value, Ordering::Release),
        }
    }

    /// Whether the word is as a wait with these flags asks.
    fn is(self, value: u64, flags: u32) -> bool {
        let found = self.load();
        let (ahead, all) = match self {
            Self::Narrow(_) => (found.wrapping_sub(value) & 0x8000_0000 == 0, 0xffff_ffff),
            Self::Wide(_) => (found.wrapping_sub(value) >> 63 == 0, u64::MAX),
        };
        match flags & 3 {
            0 => ahead,
            1 => found == value,
            2 => found & value != 0,
            _ => !(found | value) & all != 0,
        }
    }
}

fn narrow(address: u64) -> &'static AtomicU32 {
    // SAFETY: `queued` found aligned memory of the driver, which it never unmaps, or of the host,
    // for which the program that queued the operation promises as much.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

fn wide(address: u64) -> &'static AtomicU64 {
    // SAFETY: as for a narrow one.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// `CU_STREAM_WAIT_VALUE_FLUSH`
const FLUSH: u32 = 1 << 30;
/// How long a wait looks away: other processes write the word, too, and tell nobody.
const LOOK: Duration = Duration::from_micros(100);

/// Queues what happens to a word; nothing where no memory is behind the address.
fn queued(stream: CUstream, place: Place, act: impl FnOnce(Place) + Send + 'static) -> CuResult {
    if !place.address().is_multiple_of(place.bytes()) {
        return Err(CuError::INVALID_VALUE);
    }
    let side = device_side(place.address(), place.bytes())?;
    if capture::take(stream, Operation::Work(0))? {
        return Ok(());
    }
    run(stream, move || {
        if let Side::Real(_) = side {
            act(place);
        }
    })
}

fn wait(stream: CUstream, place: Place, value: u64, flags: u32) -> CuResult {
    if flags & !(3 | FLUSH) != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    queued(stream, place, move |place| {
        while !place.is(value, flags) {
            std::thread::park_timeout(LOOK);
        }
    })
}

fn write(stream: CUstream, place: Place, value: u64, flags: u32) -> CuResult {
    if flags > 1 {
        return Err(CuError::INVALID_VALUE);
    }
    queued(stream, place, move |place| place.store(value))
}

fn wait_32(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32) -> CuResult {
    wait(stream, Place::Narrow(address), value.into(), flags)
}

fn wait_64(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32) -> CuResult {
    wait(stream, Place::Wide(address), value, flags)
}

fn write_32(stream: CUstream, address: CUdeviceptr, value: u32, flags: u32) -> CuResult {
    write(stream, Place::Narrow(address), value.into(), flags)
}

fn write_64(stream: CUstream, address: CUdeviceptr, value: u64, flags: u32) -> CuResult {
    write(stream, Place::Wide(address), value, flags)
}

/// `CUstreamBatchMemOpParams`: kind, address, value, flags.
fn batch(stream: CUstream, count: u32, list: Out<[u64; 6]>, flags: u32) -> CuResult {
    if flags != 0 || count > 256 {
        return Err(CuError::INVALID_VALUE);
    }
    for index in 0..usize::try_from(count).map_err(|_| CuError::INVALID_VALUE)? {
        let [kind, address, value, flags, ..] = list.at(index).get()?;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is what counts")]
        let (kind, narrow, flags) = (kind as u32, value as u32, flags as u32);
        match kind {
            1 => wait_32(stream, address, narrow, flags)?,
            2 => write_32(stream, address, narrow, flags)?,
            4 => wait_64(stream, address, value, flags)?,
            5 => write_64(stream, address, value, flags)?,
            3 | 6 => {}
            _ => return Err(CuError::INVALID_VALUE),
        }
    }
    Ok(())
}

fn refused_32(_stream: CUstream, _address: CUdeviceptr, _value: u32, _flags: u32) -> CuResult {
    Err(CuError::NOT_SUPPORTED)
}

fn refused_64(_stream: CUstream, _address: CUdeviceptr, _value: u64, _flags: u32) -> CuResult {
    Err(CuError::NOT_SUPPORTED)
}

fn refused_batch(_stream: CUstream, _count: u32, _list: Out<[u64; 6]>, _flags: u32) -> CuResult {
    Err(CuError::NOT_SUPPORTED)
}
