//! The stub driver's own rules: what takes time, and what events say of it.

mod driver;

use driver::{Driver, MIB, at, in_child};

/// Milliseconds between two events.
fn elapsed(cuda: &Driver, start: usize, end: usize) -> f32 {
    let mut milliseconds = 0f32;
    cuda.ok("cuEventElapsedTime", [at(&mut milliseconds), start, end]);
    milliseconds
}

/// Milliseconds that a pair of events around a kernel of 10 us shows, behind `before`.
fn pair(cuda: &Driver, before: impl FnOnce()) -> f32 {
    let (kernel, start, end) = (cuda.kernel("k_10us"), cuda.event(), cuda.event());
    before();
    cuda.ok("cuEventRecord", [start, 0]);
    cuda.launch(kernel, 0);
    cuda.ok("cuEventRecord", [end, 0]);
    cuda.ok("cuCtxSynchronize", []);
    elapsed(cuda, start, end)
}

#[test]
fn an_event_in_an_empty_stream_is_reached_before_the_kernel_behind_it_arrives() {
    const TEST: &str = "an_event_in_an_empty_stream_is_reached_before_the_kernel_behind_it_arrives";
    in_child(TEST, &[("STUB_GPU_LAUNCH_NS", "4000")], |cuda| {
        cuda.start();
        assert_eq!(pair(cuda, || {}), 0.014, "the launch is part of it");
        let kernel = cuda.kernel("k_1ms");
        assert_eq!(pair(cuda, || cuda.launch(kernel, 0)), 0.01, "behind a kernel it is not");
    });
}

#[test]
fn an_event_keeps_the_time_in_steps() {
    in_child("an_event_keeps_the_time_in_steps", &[], |cuda| {
        cuda.start();
        let (kernel, start, end) = (cuda.kernel("k_1700ns"), cuda.event(), cuda.event());
        cuda.ok("cuEventRecord", [start, 0]);
        cuda.launch(kernel, 0);
        cuda.ok("cuEventRecord", [end, 0]);
        let mut milliseconds = 0f32;
        let asked = || cuda.call("cuEventElapsedTime", [at(&mut milliseconds), start, end]);
        assert_eq!({ asked }(), 600, "not there yet");
        cuda.ok("cuEventSynchronize", [end]);
        assert_eq!(elapsed(cuda, start, end), 0.0015);
        assert_eq!(elapsed(cuda, end, start), -0.0015);
        assert_eq!(cuda.now(), 1700);
    });
}

#[test]
fn setting_and_copying_on_the_device_keeps_the_engine_busy() {
    const TEST: &str = "setting_and_copying_on_the_device_keeps_the_engine_busy";
    in_child(TEST, &[("STUB_GPU_COPY_BYTES_PER_US", "1024")], |cuda| {
        cuda.start();
        let mut pointer = 0usize;
        cuda.ok("cuMemAlloc_v2", [at(&mut pointer), 2 * MIB]);
        cuda.ok("cuMemsetD32Async", [pointer, 7, MIB / 4, 0]);
        assert_eq!(cuda.now(), 0, "the host does not wait");
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 1_024_000);
        cuda.ok("cuMemcpyDtoD_v2", [pointer + MIB, pointer, MIB]);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 2_048_000);
        assert_eq!(cuda.call("stubBusy", [0]), 2_048_000);
    });
}

#[test]
fn a_launch_takes_the_time_of_the_host_that_is_set() {
    let launch = [("STUB_GPU_LAUNCH_NS", "3000"), ("STUB_GPU_QUEUE_DEPTH", "2")];
    in_child("a_launch_takes_the_time_of_the_host_that_is_set", &launch, |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_10us");
        (0..2).for_each(|_| cuda.launch(kernel, 0));
        assert_eq!(cuda.now(), 6_000);
        cuda.launch(kernel, 0);
        assert_eq!(cuda.now(), 13_000, "there is room when the first kernel has ended");
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 33_000);
    });
}

#[test]
fn a_launch_waits_for_its_kernel_where_launches_block() {
    let blocking = [("CUDA_LAUNCH_BLOCKING", "1")];
    in_child("a_launch_waits_for_its_kernel_where_launches_block", &blocking, |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_10us");
        cuda.launch(kernel, 0);
        assert_eq!(cuda.now(), 10_000);
        cuda.ok("cuStreamQuery", [0]);
    });
}

#[test]
fn a_host_function_runs_between_what_stands_before_and_behind_it() {
    const TEST: &str = "a_host_function_runs_between_what_stands_before_and_behind_it";
    unsafe extern "C" fn note(time: *mut u32) {
        // SAFETY: the test waits for the function and passes a place that lives as long.
        unsafe { time.write(Driver::open().now()) };
    }
    in_child(TEST, &[], |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_10us");
        let mut time = 0u32;
        cuda.launch(kernel, 0);
        cuda.ok("cuLaunchHostFunc", [0, note as *const () as usize, at(&mut time)]);
        cuda.launch(kernel, 0);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!((time, cuda.now()), (10_000, 20_000));
    });
}
