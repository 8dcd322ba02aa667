//! What the driver answers: success, or an error by its number.

use core::num::NonZeroU32;

/// An error of the driver: any `CUresult` but success.
///
/// A `Result<(), CuError>` has the layout of `CUresult` (guaranteed for `NonZero` newtypes), so an original's
/// answer can be used with `?` and handed on without being looked at.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CuError(NonZeroU32);

/// `CUresult`: success is 0.
pub type CuResult = Result<(), CuError>;

const _: () = assert!(size_of::<CuResult>() == size_of::<u32>());

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl CuError {
            $($(#[$doc])* pub const $name: Self = Self(NonZeroU32::new($code).unwrap());)*
        }
    };
}
errors! {
    /// `CUDA_ERROR_INVALID_VALUE`
    INVALID_VALUE = 1;
    /// `CUDA_ERROR_OUT_OF_MEMORY`
    OUT_OF_MEMORY = 2;
    /// `CUDA_ERROR_NOT_INITIALIZED`
    NOT_INITIALIZED = 3;
    /// `CUDA_ERROR_DEINITIALIZED`
    DEINITIALIZED = 4;
    /// `CUDA_ERROR_NO_DEVICE`
    NO_DEVICE = 100;
    /// `CUDA_ERROR_INVALID_DEVICE`
    INVALID_DEVICE = 101;
    /// `CUDA_ERROR_INVALID_CONTEXT`
    INVALID_CONTEXT = 201;
    /// `CUDA_ERROR_INVALID_HANDLE`
    INVALID_HANDLE = 400;
    /// `CUDA_ERROR_NOT_FOUND`
    NOT_FOUND = 500;
    /// `CUDA_ERROR_NOT_READY`: not an error but an answer, that work is not done yet
    NOT_READY = 600;
    /// `CUDA_ERROR_NOT_PERMITTED`
    NOT_PERMITTED = 800;
    /// `CUDA_ERROR_NOT_SUPPORTED`
    NOT_SUPPORTED = 801;
    /// `CUDA_ERROR_SYSTEM_NOT_READY`
    SYSTEM_NOT_READY = 802;
    /// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: the default stream would wait for a stream that is captured
    STREAM_CAPTURE_IMPLICIT = 906;
    /// `CUDA_ERROR_UNKNOWN`
    UNKNOWN = 999;
}

impl CuError {
    /// The error with this code; `None` for 0, which is success.
    #[must_use]
    pub const fn new(code: u32) -> Option<Self> {
        match NonZeroU32::new(code) {
            Some(code) => Some(Self(code)),
            None => None,
        }
    }

    /// Returns whether this is an error of a kernel after which the context cannot be used: the driver's documentation says of
    /// these "the process must be terminated and relaunched" (`CUresult`: an illegal address, a timeout, an assertion, and
    /// `CUDA_ERROR_HARDWARE_STACK_ERROR` to `CUDA_ERROR_LAUNCH_FAILED`).
    #[must_use]
    pub const fn ends_context(self) -> bool {
        matches!(self.code(), 700 | 702 | 710 | 714..=719)
    }

    /// The driver's number.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0.get()
    }
}
