//! The exchanges under the model checker: every order of every access, and every value that a load may return.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' cargo test -p gpucap-shim --lib orders
//! ```
//!
//! The files are compiled here once more, with the atomics of the checker. What processes share has its models in
//! `gpucap_core`.

use loom::sync::Arc;
use loom::sync::atomic::{self, AtomicU64, AtomicUsize, Ordering};
use loom::thread;

#[path = "opened.rs"]
mod opened;
#[path = "span.rs"]
mod span;

use opened::Opened;
use span::Span;

/// One thread has opened a driver library and notified another; its scan redirects the library, with plain stores here.
#[test]
fn who_skips_a_scan_sees_what_it_wrote() {
    loom::model(|| {
        let opened = Opened { calls: AtomicUsize::new(0), seen: AtomicUsize::new(0) };
        let shared = Arc::new((opened, AtomicU64::new(0), AtomicU64::new(0)));
        let scanned = Arc::clone(&shared);
        let scan = thread::spawn(move || {
            let (opened, notified, table) = &*scanned;
            opened.note();
            notified.store(1, Ordering::Release);
            let calls = opened.calls();
            table.store(1, Ordering::Relaxed);
            opened.saw(calls);
        });
        let (opened, notified, table) = &*shared;
        if notified.load(Ordering::Acquire) == 1 && opened.all_seen() {
            assert_eq!(table.load(Ordering::Relaxed), 1);
        }
        scan.join().expect("ended");
    });
}

#[test]
fn who_finds_a_copy_finds_its_range_and_what_was_stored_before() {
    loom::model(|| {
        let range = [AtomicU64::new(0), AtomicU64::new(0)];
        let span = Span { base: AtomicU64::new(0), range };
        let shared = Arc::new((span, AtomicU64::new(0)));
        let found = Arc::clone(&shared);
        let redirect = thread::spawn(move || {
            let (span, original) = &*found;
            original.store(15, Ordering::Relaxed);
            span.publish(1, [10, 20]);
        });
        let (span, original) = &*shared;
        match span.holds(15) {
            None => {}
            Some(holds) => assert!(holds && original.load(Ordering::Relaxed) == 15),
        }
        redirect.join().expect("ended");
    });
}
