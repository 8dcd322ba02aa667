//! The clocks of the system, and waiting for them.

use core::mem::MaybeUninit;

/// Nanoseconds of the given clock.
fn clock(id: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the place is writable; the clocks used here always exist.
    unsafe { libc::clock_gettime(id, time.as_mut_ptr()) };
    // SAFETY: a zeroed timespec is a valid one, whatever the call did.
    let time = unsafe { time.assume_init() };
    time.tv_sec
        .unsigned_abs()
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec.unsigned_abs())
}

/// Nanoseconds since boot, suspended time included: the same in every process of the machine.
pub(crate) fn boot_time_ns() -> u64 {
    clock(libc::CLOCK_BOOTTIME)
}

/// Nanoseconds of the clock that the meter counts in: it stands still while the machine is suspended, as the card does.
pub(crate) fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// The same to some milliseconds, in a fraction of the time.
pub(crate) fn coarse_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE)
}

/// Sleeps until that clock shows this time, or a signal comes.
pub(crate) fn sleep_until(monotonic_ns: u64) {
    let seconds = i64::try_from(monotonic_ns / 1_000_000_000).unwrap_or(i64::MAX);
    #[expect(clippy::cast_possible_wrap, reason = "a remainder below a thousand million")]
    let rest = (monotonic_ns % 1_000_000_000) as i64;
    let time = libc::timespec { tv_sec: seconds, tv_nsec: rest };
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    // SAFETY: a valid time; the remainder is not asked for.
    unsafe { libc::clock_nanosleep(clock, flags, &raw const time, core::ptr::null_mut()) };
}

/// Sleeps for about a millisecond; used only while another thread starts the session.
pub(crate) fn nap() {
    sleep_ns(1_000_000);
}

/// Sleeps for as short a time as the system can; used only while a preempted thread has a lock.
pub(super) fn nap_briefly() {
    sleep_ns(1_000);
}

fn sleep_ns(ns: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ns };
    // SAFETY: a valid time; the remainder is not asked for.
    unsafe { libc::nanosleep(&raw const time, core::ptr::null_mut()) };
}

/// Nanoseconds since 1970.
pub(crate) fn unix_time_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}
