//! What no card has been asked yet: each setting of the stub driver does what it says.

mod driver;

use driver::{CHILD, Driver, at, child, in_child};
use std::io::BufRead;

const MS: usize = 1_000_000;

/// Runs `body` in a process with these settings while another one, whose turn it is, has 10 ms of work for the card.
fn beside_another(test: &str, settings: &[(&str, &str)], body: impl FnOnce(&Driver)) {
    match std::env::var(CHILD).as_deref() {
        Ok("other") => {
            let cuda = Driver::open();
            cuda.start();
            let kernel = cuda.kernel("k_10ms");
            cuda.launch(kernel, 0);
            // Its turn has begun.
            cuda.call("stubAdvance", [1]);
            println!("queued");
            loop {
                std::thread::park();
            }
        }
        Ok(_) => body(&Driver::open()),
        Err(_) => {
            let dir =
                std::env::temp_dir().join(format!("stub-switch-{}-{test}", std::process::id()));
            let mut other = child(test, "other", &dir).spawn().expect("it runs");
            let mut lines = std::io::BufReader::new(other.stdout.take().expect("piped")).lines();
            assert!(lines.any(|line| line.expect("readable").contains("queued")), "it ended early");
            let mut tried = child(test, "tried", &dir);
            let output = tried.envs(settings.iter().copied()).output().expect("it runs");
            other.kill().expect("it runs");
            other.wait().expect("killed");
            std::fs::remove_dir_all(&dir).expect("the children made it");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

/// What is asked about an event that was recorded in an empty stream, right away and after a turn of the other process.
fn asked(cuda: &Driver) -> [u32; 2] {
    cuda.start();
    let event = cuda.event();
    cuda.ok("cuEventRecord", [event, 0]);
    let first = cuda.call("cuEventQuery", [event]);
    cuda.call("stubAdvance", [2 * MS + 1]);
    [first, cuda.call("cuEventQuery", [event])]
}

#[test]
fn an_event_is_reached_as_soon_as_its_stream_comes_to_it() {
    let test = "an_event_is_reached_as_soon_as_its_stream_comes_to_it";
    beside_another(test, &[], |cuda| assert_eq!(asked(cuda), [0, 0]));
}

#[test]
fn an_event_is_reached_in_a_turn_of_its_process() {
    let test = "an_event_is_reached_in_a_turn_of_its_process";
    let in_turn = [("STUB_GPU_EVENTS", "in-turn")];
    beside_another(test, &in_turn, |cuda| assert_eq!(asked(cuda), [600, 0]));
}

#[test]
fn a_question_about_an_event_needs_a_context_where_that_is_set() {
    let test = "a_question_about_an_event_needs_a_context_where_that_is_set";
    let current = [("STUB_GPU_EVENT_CONTEXT", "current")];
    beside_another(test, &current, |cuda| {
        assert_eq!(asked(cuda), [0, 0]);
        let event = cuda.event();
        cuda.ok("cuCtxSetCurrent", [0]);
        assert_eq!(cuda.call("cuEventQuery", [event]), 201);
    });
}

#[test]
fn a_switch_takes_time_that_is_nobodys() {
    let switch = [("STUB_GPU_SWITCH_NS", "100000")];
    beside_another("a_switch_takes_time_that_is_nobodys", &switch, |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_1ms");
        cuda.launch(kernel, 0);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 3_100_000, "a turn of the other one, the switch, the kernel");
        assert_eq!(cuda.call("stubBusy", [0]), 3_000_000);
    });
}

#[test]
fn a_time_slice_is_as_long_as_is_set() {
    let slice = [("STUB_GPU_SLICE_NS", "4000000")];
    beside_another("a_time_slice_is_as_long_as_is_set", &slice, |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_1ms");
        cuda.launch(kernel, 0);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 5_000_000);
    });
}

/// A context with 10 ms of work, and the primary one with 5, both since the beginning.
fn two_contexts(cuda: &Driver) -> usize {
    cuda.start();
    let kernel = cuda.kernel("k_5ms");
    cuda.launch(kernel, 0);
    let mut context = 0usize;
    cuda.ok("cuCtxCreate_v2", [at(&mut context), 0, 0]);
    let kernel = cuda.kernel("k_10ms");
    cuda.launch(kernel, 0);
    cuda.call("stubAdvance", [3 * MS]);
    context
}

#[test]
fn the_end_of_a_context_waits_for_its_work() {
    in_child("the_end_of_a_context_waits_for_its_work", &[], |cuda| {
        let context = two_contexts(cuda);
        cuda.ok("cuCtxDestroy_v2", [context]);
        assert_eq!((cuda.now(), cuda.call("stubBusy", [0])), (10_000_000, 10_000_000));
        cuda.ok("cuCtxSynchronize", []);
    });
}

#[test]
fn the_end_of_a_context_drops_its_work_and_that_of_no_other() {
    let drops = [("STUB_GPU_CONTEXT_END", "drops")];
    in_child("the_end_of_a_context_drops_its_work_and_that_of_no_other", &drops, |cuda| {
        let context = two_contexts(cuda);
        cuda.ok("cuCtxDestroy_v2", [context]);
        assert_eq!(cuda.now(), 3_000_000);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 5_000_000, "the primary context's goes on");
        cuda.call("stubAdvance", [20 * MS]);
        assert_eq!(cuda.call("stubBusy", [0]), 5_000_000);
    });
}

#[test]
fn the_last_release_of_a_primary_context_ends_its_work() {
    let drops = [("STUB_GPU_CONTEXT_END", "drops")];
    in_child("the_last_release_of_a_primary_context_ends_its_work", &drops, |cuda| {
        cuda.start();
        cuda.enter();
        let kernel = cuda.kernel("k_5ms");
        cuda.launch(kernel, 0);
        cuda.ok("cuDevicePrimaryCtxRelease_v2", [0]);
        cuda.call("stubAdvance", [MS]);
        cuda.ok("cuDevicePrimaryCtxRelease_v2", [0]);
        cuda.call("stubAdvance", [20 * MS]);
        assert_eq!(cuda.call("stubBusy", [0]), 1_000_000);
    });
}
