//! The model checker, asked twice: for each value that a load may find, and for each order of the accesses.
//!
//! Of the accesses to a word the checker remembers the last one only, and takes two loads for independent. So where a
//! process loads a word and then exchanges it, its own load hides another process's load from its exchange, and the order
//! in which the exchange comes before that load is not explored. With loads that exchange the word for itself any two
//! accesses depend on each other, and every order is explored; but then each load finds the latest value. So a model runs
//! both ways.

use std::cell::Cell;
use std::sync::Arc;

// Of the system's threads: the checker runs all threads of a model in one of them.
std::thread_local! {
    static EVERY_ORDER: Cell<bool> = const { Cell::new(false) };
}

/// Whether loads are to be exchanges.
pub(super) fn is_in_every_order() -> bool {
    EVERY_ORDER.get()
}

/// Explores `model` both ways. `preemptions` is how often a thread is stopped in the middle; without it, any number of times.
pub(crate) fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let model = Arc::new(model);
    for every_order in [false, true] {
        EVERY_ORDER.set(every_order);
        let model = Arc::clone(&model);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.check(move || model());
    }
    EVERY_ORDER.set(false);
}
