//! The stub driver's own rules: what a capture forbids, and to whom.

mod driver;

use driver::{Driver, MIB, at, in_child};

const GLOBAL: usize = 0;
const THREAD_LOCAL: usize = 1;
const RELAXED: usize = 2;
/// A node of its own in the graph.
const EXTERNAL: usize = 1;
const INVALID_VALUE: u32 = 1;
const INVALID_HANDLE: u32 = 400;
const UNSUPPORTED: u32 = 900;
const INVALIDATED: u32 = 901;
const ISOLATION: u32 = 905;
const IMPLICIT: u32 = 906;
const CAPTURED: u32 = 907;
const WRONG_THREAD: u32 = 908;

/// Captures a stream while `work` is done: its answer, and that of the capture's end.
fn during<T>(cuda: &Driver, mode: usize, work: impl FnOnce(usize) -> T) -> (T, u32) {
    let stream = cuda.stream(0);
    cuda.ok("cuStreamBeginCapture_v2", [stream, mode]);
    let answer = work(stream);
    (answer, end(cuda, stream))
}

fn end(cuda: &Driver, stream: usize) -> u32 {
    let mut graph = 1usize;
    let code = cuda.call("cuStreamEndCapture", [stream, at(&mut graph)]);
    assert_eq!(code == INVALIDATED, graph == 0, "a spoilt capture leaves no graph");
    code
}

/// An event that the card has come to.
fn reached(cuda: &Driver) -> usize {
    let event = cuda.event();
    cuda.ok("cuEventRecord", [event, 0]);
    event
}

/// Makes this thread's mode another one.
fn exchange(cuda: &Driver, mode: usize) {
    let mut mode = mode;
    cuda.ok("cuThreadExchangeStreamCaptureMode", [at(&mut mode)]);
}

#[test]
fn a_global_capture_forbids_questions_to_every_thread() {
    in_child("a_global_capture_forbids_questions_to_every_thread", &[], |cuda| {
        cuda.start();
        let event = reached(cuda);
        let ask = || cuda.call("cuEventQuery", [event]);
        assert_eq!(during(cuda, GLOBAL, |_| ask()), (UNSUPPORTED, INVALIDATED));
        assert_eq!(during(cuda, GLOBAL, |_| cuda.in_thread(ask)), (UNSUPPORTED, INVALIDATED));
        let wait = || cuda.call("cuEventSynchronize", [event]);
        assert_eq!(during(cuda, GLOBAL, |_| cuda.in_thread(wait)), (UNSUPPORTED, INVALIDATED));
        let mut pointer = 0usize;
        let alloc = |_| cuda.call("cuMemAlloc_v2", [at(&mut pointer), MIB]);
        assert_eq!(during(cuda, GLOBAL, alloc), (UNSUPPORTED, INVALIDATED));
        assert_eq!(ask(), 0, "afterwards nothing is forbidden");
    });
}

#[test]
fn a_thread_that_is_relaxed_may_ask() {
    in_child("a_thread_that_is_relaxed_may_ask", &[], |cuda| {
        cuda.start();
        let event = reached(cuda);
        for mode in [THREAD_LOCAL, RELAXED] {
            let ask = || {
                exchange(cuda, mode);
                cuda.call("cuEventQuery", [event])
            };
            assert_eq!(during(cuda, GLOBAL, |_| cuda.in_thread(ask)), (0, 0));
        }
        let ask = |_: usize| {
            exchange(cuda, RELAXED);
            let answer = cuda.call("cuEventQuery", [event]);
            exchange(cuda, GLOBAL);
            answer
        };
        assert_eq!(during(cuda, GLOBAL, ask), (0, 0));
    });
}

#[test]
fn a_capture_of_another_mode_forbids_only_what_its_mode_says() {
    in_child("a_capture_of_another_mode_forbids_only_what_its_mode_says", &[], |cuda| {
        cuda.start();
        let event = reached(cuda);
        let ask = || cuda.call("cuEventQuery", [event]);
        assert_eq!(during(cuda, THREAD_LOCAL, |_| cuda.in_thread(ask)), (0, 0));
        assert_eq!(during(cuda, THREAD_LOCAL, |_| ask()), (UNSUPPORTED, INVALIDATED));
        assert_eq!(during(cuda, RELAXED, |_| ask()), (0, 0));
    });
}

#[test]
fn an_event_of_a_capture_cannot_be_asked_for_in_any_mode() {
    in_child("an_event_of_a_capture_cannot_be_asked_for_in_any_mode", &[], |cuda| {
        cuda.start();
        let event = cuda.event();
        let ask = |stream| {
            cuda.ok("cuEventRecord", [event, stream]);
            cuda.call("cuEventQuery", [event])
        };
        assert_eq!(during(cuda, RELAXED, ask), (CAPTURED, INVALIDATED));
        assert_eq!(cuda.call("cuEventQuery", [event]), CAPTURED, "until it is recorded again");
        cuda.ok("cuEventRecord", [event, 0]);
        cuda.ok("cuEventQuery", [event]);
    });
}

#[test]
fn the_legacy_stream_cannot_be_used_while_one_that_waits_for_it_is_captured() {
    const TEST: &str = "the_legacy_stream_cannot_be_used_while_one_that_waits_for_it_is_captured";
    in_child(TEST, &[], |cuda| {
        cuda.start();
        let (kernel, event, mut status) = (cuda.kernel("k_10us"), cuda.event(), 0);
        let uses: [&dyn Fn() -> u32; 3] = [
            &|| cuda.call("cuLaunchKernel", [kernel, 1, 1, 1, 32, 1, 1, 0, 0]),
            &|| cuda.call("cuEventRecord", [event, 0]),
            &|| cuda.call("cuStreamSynchronize", [0]),
        ];
        for used in uses {
            assert_eq!(during(cuda, RELAXED, |_| used()), (IMPLICIT, INVALIDATED));
        }
        let ask = |_| cuda.call("cuStreamIsCapturing", [0, at(&mut status)]);
        assert_eq!(during(cuda, RELAXED, ask), (IMPLICIT, 0), "asking spoils nothing");
        let apart = cuda.stream(1);
        cuda.ok("cuStreamBeginCapture_v2", [apart, RELAXED]);
        uses.iter().for_each(|used| assert_eq!(used(), 0));
        assert_eq!(end(cuda, apart), 0);
    });
}

#[test]
fn a_capture_ends_in_its_thread_unless_it_is_relaxed() {
    in_child("a_capture_ends_in_its_thread_unless_it_is_relaxed", &[], |cuda| {
        cuda.start();
        let elsewhere = |stream| cuda.in_thread(|| end(cuda, stream));
        assert_eq!(during(cuda, GLOBAL, elsewhere), (WRONG_THREAD, 0));
        let stream = cuda.stream(0);
        cuda.ok("cuStreamBeginCapture_v2", [stream, RELAXED]);
        assert_eq!(elsewhere(stream), 0);
    });
}

#[test]
fn a_captured_stream_waits_for_no_event_from_outside() {
    in_child("a_captured_stream_waits_for_no_event_from_outside", &[], |cuda| {
        cuda.start();
        let (outside, never) = (reached(cuda), cuda.event());
        let wait = |event, flags| {
            during(cuda, RELAXED, |stream| cuda.call("cuStreamWaitEvent", [stream, event, flags]))
        };
        assert_eq!(wait(outside, 0), (ISOLATION, INVALIDATED));
        assert_eq!(wait(never, 0), (0, 0), "there is nothing to wait for");
        assert_eq!(wait(outside, EXTERNAL), (0, 0), "the graph waits when it runs");
        let stream = cuda.stream(0);
        let record = ["cuEventRecordWithFlags", "cuStreamWaitEvent"];
        assert_eq!(cuda.call(record[0], [outside, stream, EXTERNAL]), INVALID_VALUE);
        assert_eq!(cuda.call(record[1], [stream, outside, EXTERNAL]), INVALID_VALUE);
    });
}

#[test]
fn a_stream_records_no_event_of_another_context() {
    in_child("a_stream_records_no_event_of_another_context", &[], |cuda| {
        cuda.start();
        let event = cuda.event();
        let mut context = 0usize;
        cuda.ok("cuCtxCreate_v2", [at(&mut context), 0, 0]);
        let stream = cuda.stream(0);
        assert_eq!(cuda.call("cuEventRecord", [event, stream]), INVALID_HANDLE);
        assert_eq!(cuda.call("cuEventRecord", [cuda.event(), stream]), 0);
    });
}
