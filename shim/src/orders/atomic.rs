//! The atomics of what is shipped; the models have loom's in their place.

pub(super) use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
