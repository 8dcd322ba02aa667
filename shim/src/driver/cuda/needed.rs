//! What a charge depends on.
//!
//! Where the driver refuses to say it, the call that would be charged is refused with the same code: a limit that is not
//! known to hold is not assumed to. `None` is the answer of a driver that lacks the function, and with it what would have
//! to be charged, and of one that was asked about what the application does not have (a context, a graph, a stream): it
//! will say so itself. Only for calls that charge; reports and measurements of time do without an answer.

use super::*;
use gpucap_abi::cuda::CuError;

/// What the driver fills in, if anything.
pub(super) fn asked<T: Copy>(
    fill: impl FnOnce(*mut T) -> Option<CuResult>,
) -> Result<Option<T>, CuError> {
    match answered(fill) {
        Err(
            CuError::INVALID_VALUE
            | CuError::NOT_INITIALIZED
            | CuError::DEINITIALIZED
            | CuError::INVALID_CONTEXT
            | CuError::INVALID_HANDLE
            | CuError::STREAM_CAPTURE_IMPLICIT,
        ) => Ok(None),
        answer => answer,
    }
}

/// The device of the calling thread's current context; `None` if there is no such context.
pub(crate) fn current_device(copy: &DriverCopy) -> Result<Option<CUdevice>, CuError> {
    asked(|device| ctx_get_device(copy, device))
}

/// The device of a stream's context; `None` if the driver lacks the question, and for a default stream without a
/// context.
///
/// # Errors
/// The driver does not say, or there is no such stream: the call that asks is refused with the same code.
pub(crate) fn device_of(copy: &DriverCopy, stream: CUstream) -> Result<Option<CUdevice>, CuError> {
    if stream.address() <= CU_STREAM_PER_THREAD.address() {
        return current_device(copy);
    }
    // Drivers from 12.8 on.
    if let Some(device) = filled(|device| stream_get_device(copy, stream, device)) {
        return Ok(Some(device));
    }
    // No such stream: another thread could make one of that name before the driver looks for it.
    let Some(context) = answered(|context| stream_get_ctx(copy, stream, context))? else {
        return Ok(None);
    };
    if context == current_context(copy)? {
        return current_device(copy);
    }
    let device = time::in_context(copy, context, || current_device(copy));
    device.ok_or(CuError::INVALID_CONTEXT)??.ok_or(CuError::INVALID_CONTEXT).map(Some)
}

/// The calling thread's current context; null if there is none.
pub(crate) fn current_context(copy: &DriverCopy) -> Result<CUcontext, CuError> {
    Ok(asked(|context| ctx_get_current(copy, context))?.unwrap_or(CUcontext::NULL))
}

/// The pool that `cuMemAllocAsync` takes from on this device.
pub(crate) fn current_pool(
    copy: &DriverCopy,
    device: CUdevice,
) -> Result<Option<CUmemoryPool>, CuError> {
    asked(|pool| device_get_mem_pool(copy, pool, device))
}

/// The capture that a stream is part of.
#[derive(Clone, Copy)]
pub(crate) struct Capture {
    stream: CUstream,
    per_thread: bool,
    /// Unique in the process; `None` where the driver does not say.
    number: Option<u64>,
}

impl Capture {
    /// Whether what was called in the stream since this was asked has certainly been recorded: the same capture goes on.
    pub(crate) fn goes_on(self, copy: &DriverCopy) -> bool {
        self.number.is_some()
            && self.number == number_of_capture(copy, self.stream, self.per_thread)
    }
}

/// The capture in which an allocation in a stream would be recorded instead of carried out. It is neither where another
/// capture forbids it.
pub(crate) fn capture(
    copy: &DriverCopy,
    stream: CUstream,
    per_thread: bool,
) -> Result<Option<Capture>, CuError> {
    let status = asked(|status| match per_thread {
        true => stream_is_capturing_ptsz(copy, stream, status),
        false => stream_is_capturing(copy, stream, status),
    });
    let is_captured = status?.is_some_and(|status: c_int| status != CU_STREAM_CAPTURE_STATUS_NONE);
    let number = || number_of_capture(copy, stream, per_thread);
    Ok(is_captured.then(|| Capture { stream, per_thread, number: number() }))
}

fn number_of_capture(copy: &DriverCopy, stream: CUstream, per_thread: bool) -> Option<u64> {
    let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
    let number = filled(|number| match per_thread {
        true => stream_get_capture_info_ptsz(copy, stream, &raw mut status, number)?.ok(),
        false => stream_get_capture_info(copy, stream, &raw mut status, number)?.ok(),
    });
    number.filter(|_| status != CU_STREAM_CAPTURE_STATUS_NONE)
}

/// How many threads the device can hold at once: each has a stack of its own.
pub(crate) fn resident_threads(copy: &DriverCopy, device: CUdevice) -> Result<u64, CuError> {
    let attribute = |number| -> Result<u64, CuError> {
        let value = asked(|value| device_get_attribute(copy, value, number, device))?;
        Ok(value.map_or(0, |value: c_int| value.unsigned_abs().into()))
    };
    // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, _MAX_THREADS_PER_MULTIPROCESSOR
    Ok(attribute(16)?.saturating_mul(attribute(39)?).max(1))
}

/// Bytes in use on the current context's device, by all processes.
pub(crate) fn used_bytes(copy: &DriverCopy) -> Result<Option<u64>, CuError> {
    let mut free = 0;
    let ask = || asked(|total| mem_get_info(copy, &raw mut free, total));
    let total: Option<usize> = time::relaxed(copy, ask)?;
    Ok(total.map(|total| total.saturating_sub(free) as u64))
}
