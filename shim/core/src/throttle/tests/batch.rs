//! Prepaid room.

use crate::throttle::Batch;

#[test]
fn nothing_fits_a_closed_batch() {
    let batch = Batch::default();
    assert!(!batch.spend(0));
    batch.open(100, 2);
    assert_eq!(batch.close(), (100, 2));
    assert!(!batch.spend(1));
}

#[test]
fn launches_fit_while_there_is_room_and_a_place() {
    let batch = Batch::default();
    batch.open(100, 3);
    assert!(batch.spend(60) && !batch.spend(41) && batch.spend(40) && batch.spend(0));
    assert!(!batch.spend(0), "three places were taken");
}

#[test]
fn a_launch_that_the_driver_refused_gives_its_cost_back() {
    let batch = Batch::default();
    batch.open(100, 3);
    assert!(batch.spend(60));
    batch.put_back(60);
    assert_eq!(batch.close(), (100, 2));
    batch.put_back(60);
    assert_eq!(batch.close(), (0, 0), "a closed batch takes nothing");
}
