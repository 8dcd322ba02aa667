//! A pool's account, without a driver.

use super::*;
use gpucap_abi::cuda::{CUcontext, CUstream};

const MIB: u64 = 1 << 20;

fn pool() -> Pool {
    Pool::new([1, 4096], Home::Device(0), 0, Ok(0))
}

/// A unit that has seen these reserves.
fn unit(seen: &[(u64, bool)]) -> Unit {
    let mut unit = Unit::default();
    seen.iter().for_each(|(reserved, is_padded)| unit.learn(*reserved, *is_padded));
    unit
}

fn allocate(pool: &mut Pool, bytes: u64, unit: Unit) -> Asked {
    let asked = pool.begin(bytes, false, unit);
    pool.succeeded(asked);
    asked
}

#[test]
fn what_is_freed_pays_for_what_fits_into_it() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    assert_eq!(allocate(&mut pool, 100, exact).charge(), 100);
    pool.freed(100, None);
    assert_eq!((pool.charged(), allocate(&mut pool, 60, exact).charge()), (100, 0));
    assert_eq!((pool.kept, pool.charged()), (40, 100));
}

#[test]
fn an_allocation_sees_that_another_one_has_changed_the_pool_or_that_it_was_destroyed() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    let asked = pool.begin(100, false, exact);
    assert!(pool.is_as_begun(asked));
    let other = pool.begin(50, false, exact);
    assert!(!pool.is_as_begun(asked) && pool.is_as_begun(other));
    (pool.is_ending, pool.is_destroyed) = (true, true);
    assert!(!pool.is_as_begun(other));
    let unknown = Asked::of_unknown(100);
    assert!(!unknown.is_known() && !pool.is_as_begun(unknown));
}

#[test]
fn a_larger_one_is_charged_in_full_unless_it_is_tight() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    allocate(&mut pool, 100, exact);
    pool.freed(100, None);
    let asked = pool.begin(150, false, exact);
    assert_eq!(asked.charge(), 150);
    pool.failed(asked);
    assert_eq!(pool.begin(150, true, exact).charge(), 50);
    assert_eq!((pool.kept, pool.charged()), (0, 150));
}

#[test]
fn a_failure_leaves_the_charge_as_it_was() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    allocate(&mut pool, 100, exact);
    pool.freed(100, None);
    for is_tight in [false, true] {
        let asked = pool.begin(70, is_tight, exact);
        pool.failed(asked);
        assert_eq!((pool.kept, pool.charged()), (100, 100));
    }
}

#[test]
fn steps_are_charged_as_far_as_reserves_have_shown_them() {
    assert_eq!(Unit::default().padding(1), 32 * MIB - 1);
    assert_eq!(unit(&[(6 * MIB, false)]).padding(3 * MIB), MIB);
    assert_eq!(unit(&[(6 * MIB, false), (1001, false)]).padding(3 * MIB), 0);
    // Where there is no room for it, only a step that was seen is insisted on.
    assert_eq!(pool().begin(MIB, true, unit(&[(2 * MIB, false)])).charge(), MIB);
    assert_eq!(pool().begin(MIB, true, unit(&[(2 * MIB, true)])).charge(), 2 * MIB);
}

#[test]
fn what_the_driver_does_not_say_brings_nothing_down() {
    let (mut pool, mut seen) = (pool(), unit(&[(1, false)]));
    allocate(&mut pool, 100, seen);
    pool.freed(60, None);
    assert_eq!(pool.idle(None, &mut seen), None);
    assert_eq!(pool.idle(Some(70), &mut seen), Some(30));
    let mut silent = Pool::new([1, 4096], Home::Device(0), 0, Err(CuError::INVALID_VALUE));
    allocate(&mut silent, 100, seen);
    assert_eq!(silent.idle(None, &mut seen), Some(0));
}

#[test]
fn what_was_to_be_recorded_and_was_taken_is_seen_or_stays_charged() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    allocate(&mut pool, 100, exact);
    assert!(pool.is_taken(150, 50));
    assert!(!pool.is_taken(100, 50));
    pool.freed(100, None);
    assert!(!pool.is_taken(100, 60)); // from what it keeps, if at all
    (pool.is_ending, pool.is_destroyed) = (true, true);
    pool.lose_unseen();
    assert_eq!((pool.kept, pool.charged(), pool.is_over()), (40, 100, false));
}

#[test]
fn only_what_is_beyond_the_threshold_may_be_released() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    allocate(&mut pool, 100, exact);
    assert!(!pool.may_release());
    pool.freed(60, None);
    assert!(pool.may_release());
    pool.threshold = 100;
    assert!(!pool.may_release());
}

/// The driver may refuse to destroy it.
#[test]
fn a_pool_is_not_over_before_the_driver_has_destroyed_it() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    allocate(&mut pool, 100, exact);
    pool.is_ending = true;
    pool.freed(100, None);
    assert!(!pool.is_over() && !pool.keeps() && pool.state().is_none());
    assert_eq!(pool.charged(), 100);
    pool.is_ending = false;
    assert!(pool.keeps() && pool.state().is_some());
}

/// Should the other allocation fail, its charge goes.
#[test]
fn each_allocation_pays_for_its_own_step() {
    let (mut pool, step) = (pool(), unit(&[(32 * MIB, true)]));
    let first = pool.begin(20 * MIB, false, step);
    let second = pool.begin(10 * MIB, false, step);
    pool.failed(first);
    pool.succeeded(second);
    assert_eq!((first.charge(), pool.charged()), (32 * MIB, 32 * MIB), "a step is paid for");
}

#[test]
fn a_destroyed_pool_is_over_when_all_is_freed_and_the_work_is_done() {
    let (mut pool, exact) = (pool(), unit(&[(1, false)]));
    let stream =
        ContextStream::new(CUcontext::from_address(64), CUstream::from_address(128), false);
    allocate(&mut pool, 100, exact);
    allocate(&mut pool, 50, exact);
    (pool.is_ending, pool.is_destroyed) = (true, true);
    pool.freed(100, Some(stream));
    pool.frees.done(stream);
    assert!(!pool.is_over());
    pool.freed(50, Some(stream));
    assert!(!pool.is_over());
    pool.frees.done(stream);
    assert!(pool.is_over());
    assert_eq!(pool.charged(), 150);
}
