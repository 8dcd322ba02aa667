//! Where each field of version 1 is. A number here changes only together with the version.

use std::mem::{align_of, offset_of, size_of};

use super::super::layout::{Account, Device, Header, Ledger, OwnerRecord};
use super::super::word;

#[test]
fn every_field_is_where_version_1_has_it() {
    assert_eq!(
        [
            offset_of!(Header, magic),
            offset_of!(Header, version),
            offset_of!(Header, size),
            offset_of!(Header, slots),
            offset_of!(Header, devices),
            offset_of!(Header, high_water),
            offset_of!(Header, changes),
            offset_of!(Header, boot),
            offset_of!(Header, attendance),
            offset_of!(Header, looked),
            offset_of!(Header, clocks),
            size_of::<Header>(),
        ],
        [0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 4096]
    );
    assert_eq!(
        [
            offset_of!(Device, total),
            offset_of!(Device, peak),
            offset_of!(Device, refusals),
            offset_of!(Device, bucket),
            offset_of!(Device, busy),
            offset_of!(Device, waited),
            offset_of!(Device, launches),
            offset_of!(Device, uuid),
            offset_of!(Device, windows),
            size_of::<Device>(),
        ],
        [0, 8, 16, 64, 72, 80, 88, 128, 192, 256]
    );
    assert_eq!(
        [
            offset_of!(OwnerRecord, owner),
            offset_of!(OwnerRecord, namespace),
            offset_of!(OwnerRecord, start_time),
            offset_of!(OwnerRecord, image),
            offset_of!(OwnerRecord, touched),
            offset_of!(OwnerRecord, since),
            size_of::<OwnerRecord>(),
        ],
        [0, 8, 16, 24, 32, 40, 64]
    );
    assert_eq!(
        [
            offset_of!(Account, op),
            offset_of!(Account, amounts),
            offset_of!(Account, cap),
            offset_of!(Account, peak),
            offset_of!(Account, refusals),
            offset_of!(Account, busy),
            offset_of!(Account, launches),
            offset_of!(Account, kinds),
            offset_of!(Account, alive),
            offset_of!(Account, unfinished),
            offset_of!(Account, windows),
            size_of::<Account>(),
        ],
        [0, 8, 24, 32, 40, 48, 56, 64, 176, 184, 192, 256]
    );
    assert_eq!(offset_of!(Ledger, devices), size_of::<Header>());
    assert_eq!(align_of::<Ledger>(), 8);
}

#[test]
fn every_word_is_packed_as_version_1_has_it() {
    let op = word::Op(0).next().next();
    assert_eq!(word::Total::new(5, 3, op).0, 5 << 22 | 3 << 12 | 2);
    assert_eq!((op.0, op.closed().0, op.emptying().0), (2 << 2 | 1, 2 << 2, 2 << 2 | 3));
    let owner = word::Owner(0).claimed(77);
    assert_eq!((owner.0, owner.live().0), (1 << 24 | 77 << 2 | 1, 1 << 24 | 77 << 2 | 2));
    assert_eq!(word::Fact::new(9, owner).0, 9 << 16 | 1);
}
