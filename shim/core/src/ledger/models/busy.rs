//! Busy time under the model checker: no report is lost or misplaced when two are made at once.

use loom::thread;

use super::{ADA, BEA, DeviceIndex, claim, explore, ledgers};

const WINDOW: u64 = 1 << 27;

/// Two report work in the same window, whose place has one of the previous round; one of them in the next window as
/// well.
#[test]
fn work_reported_at_once_is_all_in_its_windows() {
    explore(4, || {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        ledger.worked(ada, DeviceIndex::FIRST, 3 * WINDOW, WINDOW);
        let second =
            thread::spawn(move || other.worked(bea, DeviceIndex::FIRST, 11 * WINDOW + 5, 7));
        ledger.worked(ada, DeviceIndex::FIRST, 11 * WINDOW - 20, 30);
        second.join().unwrap();
        let busy: Vec<u64> =
            ledger.busy_windows(DeviceIndex::FIRST, 13 * WINDOW).map(|it| it.busy_ns).collect();
        assert_eq!(busy, [0, 0, 0, 0, 32, 5]);
    });
}

/// One comes late with news of a window that has left the ring while another one takes its place.
#[test]
fn late_news_never_takes_a_later_windows_place() {
    explore(4, || {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        let late = thread::spawn(move || other.worked(bea, DeviceIndex::FIRST, 3 * WINDOW, 7));
        ledger.worked(ada, DeviceIndex::FIRST, 11 * WINDOW, 30);
        late.join().unwrap();
        let last = ledger.busy_windows(DeviceIndex::FIRST, 12 * WINDOW).last().unwrap();
        assert_eq!((last.until_ns, last.busy_ns), (11 * WINDOW, 30));
    });
}
