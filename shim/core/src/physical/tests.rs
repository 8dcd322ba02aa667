//! What keeps physical memory alive, and what does not.

use super::*;

#[test]
fn the_last_release_of_unmapped_memory_frees() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    assert_eq!(physical.release(7), Some("two"));
    assert_eq!(physical.release(7), None, "a second release of the same handle frees nothing");
}

#[test]
fn a_mapping_outlives_the_handle() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.map(0x1000, 0x1000, 7);
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.unmap(0x1000, 0x1000), ["two"]);
}

#[test]
fn a_retained_handle_needs_a_release_of_its_own() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.map(0x1000, 0x1000, 7);
    physical.retain(7, 0x1800);
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.unmap(0x1000, 0x1000), [""; 0]);
    assert_eq!(physical.release(7), Some("two"));
}

#[test]
fn a_released_handle_can_come_back_through_its_mapping() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.map(0x1000, 0x1000, 7);
    assert_eq!(physical.release(7), None);
    physical.retain(9, 0x1fff);
    assert_eq!(physical.unmap(0x1000, 0x1000), [""; 0]);
    assert_eq!(physical.release(9), Some("two"));
}

#[test]
fn a_new_handle_of_the_same_value_is_new_memory() {
    let mut physical = Physical::default();
    physical.create(7, "old");
    physical.map(0x1000, 0x1000, 7);
    assert_eq!(physical.release(7), None);
    physical.create(7, "new");
    assert_eq!(physical.release(7), Some("new"));
    assert_eq!(physical.unmap(0x1000, 0x1000), ["old"]);
}

#[test]
fn unmapping_a_range_ends_only_the_mappings_inside_it() {
    let mut physical = Physical::default();
    for handle in 1..=3 {
        physical.create(handle, handle);
        physical.map(handle * 0x1000, 0x1000, handle);
        assert_eq!(physical.release(handle), None);
    }
    assert_eq!(physical.unmap(0x1000, 0x2000), [1, 2]);
    assert_eq!(physical.unmap(0x3000, 0x800), [0; 0], "half a mapping is not unmapped");
}

#[test]
fn foreign_handles_are_tolerated() {
    let mut physical = Physical::<u8>::default();
    physical.map(0x1000, 0x1000, 5);
    physical.retain(5, 0x1000);
    assert_eq!(physical.release(5), None);
    assert_eq!(physical.unmap(0x1000, 0x1000), []);
}

/// A file of the process.
const FILE: Shareable = Shareable { descriptor: 3, file: (1, 3) };

#[test]
fn each_handle_needs_the_releases_of_its_own() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.export(7, FILE);
    physical.import(8, Some(FILE));
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.release(7), None, "it has no reference left");
    assert_eq!(physical.collect(|_| false), [""; 0], "the import keeps it");
    assert_eq!(physical.release(8), None, "a file is let go of when it is looked for");
    assert_eq!(physical.collect(|_| false), ["two"]);
}

#[test]
fn an_open_file_keeps_its_memory() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.export(7, FILE);
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.collect(|file| *file == FILE), [""; 0]);
    physical.import(9, Some(FILE));
    assert_eq!(physical.collect(|_| false), [""; 0]);
    assert_eq!(physical.release(9), None);
    assert_eq!(physical.collect(|_| false), ["two"]);
}

#[test]
fn an_import_of_a_known_handle_is_another_reference() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.import(7, None);
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.release(7), Some("two"));
}

#[test]
fn an_import_from_others_is_not_counted() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.export(7, FILE);
    physical.import(8, Some(Shareable { file: (1, 4), ..FILE }));
    assert_eq!(physical.release(8), None);
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.collect(|_| false), ["two"]);
}

#[test]
fn a_file_that_stands_for_other_memory_now_keeps_that() {
    let mut physical = Physical::default();
    physical.create(7, "old");
    physical.export(7, FILE);
    physical.create(8, "new");
    physical.export(8, FILE);
    assert_eq!(physical.release(7), Some("old"));
    physical.export(9, FILE); // memory that is not ours
    assert_eq!(physical.release(8), Some("new"));
}

#[test]
fn a_handle_that_came_from_a_foreign_mapping_is_foreign() {
    let mut physical = Physical::default();
    physical.create(7, "two");
    physical.retain(7, 0x5000); // mapped by another process: the value is not our memory's any more
    assert_eq!(physical.release(7), None);
}

#[test]
fn tiles_keep_their_memory_until_the_last_is_taken_away() {
    let at = Subresource { array: 1, level: Some(0), layer: 0 };
    let tiles = |from, count| Region::new([from, 0, 0], [count, 1, 1]);
    let mut physical = Physical::default();
    physical.create(7, "old");
    assert_eq!(physical.map_tiles(at, tiles(0, 4), Operation::Map(7)), [""; 0]);
    assert_eq!(physical.release(7), None);
    assert_eq!(physical.map_tiles(at, tiles(0, 3), Operation::Unmap), [""; 0]);
    physical.create(8, "new");
    assert_eq!(physical.map_tiles(at, tiles(3, 1), Operation::Map(8)), ["old"]);
    assert_eq!(physical.release(8), None);
    let other = physical.take_array(2);
    assert_eq!(physical.array_ended(other), [""; 0]);
    let refused = physical.take_array(1);
    physical.put_back(refused);
    let ended = physical.take_array(1);
    assert_eq!(physical.array_ended(ended), ["new"]);
}
