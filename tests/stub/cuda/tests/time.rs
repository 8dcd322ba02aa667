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

#[test]
fn what_waits_for_a_word_runs_when_it_is_written() {
    in_child("what_waits_for_a_word_runs_when_it_is_written", &[], |cuda| {
        cuda.start();
        let mut word = 0usize;
        cuda.ok("cuMemAllocHost_v2", [at(&mut word), 8]);
        let (kernel, behind, before) = (cuda.kernel("k_10us"), cuda.stream(1), cuda.stream(1));
        cuda.launch(kernel, before);
        cuda.ok("cuStreamWriteValue32", [before, word, 7, 0]);
        cuda.ok("cuStreamWaitValue32", [behind, word, 7, 1]);
        cuda.launch(kernel, behind);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 20_000, "one kernel behind the other");
        for (value, sense) in [(6, 0), (7, 0), (2, 2), (8, 3)] {
            cuda.ok("cuStreamWaitValue64", [behind, word, value, sense]);
        }
        cuda.ok("cuStreamSynchronize", [behind]);
        assert_eq!(cuda.call("cuStreamWaitValue32", [behind, word, 7, 9]), 1, "no such sense");
        assert_eq!(cuda.call("cuStreamWaitValue32", [behind, word + 1, 7, 0]), 1, "not aligned");
        assert_eq!(cuda.call("cuStreamWaitValue64", [behind, word + 8, 7, 0]), 1, "not its memory");
    });
}

#[test]
fn a_batch_of_operations_is_carried_out_in_order() {
    in_child("a_batch_of_operations_is_carried_out_in_order", &[], |cuda| {
        cuda.start();
        let mut word = 0usize;
        cuda.ok("cuMemAllocHost_v2", [at(&mut word), 16]);
        // Each: operation, address, value, flags. What is waited for is written by the one before.
        let mut steps = [
            [2, word, 5, 0, 0, 0],
            [1, word, 5, 1, 0, 0],
            [5, word + 8, 6, 0, 0, 0],
            [4, word + 8, 6, 1, 0, 0],
        ];
        cuda.ok("cuStreamBatchMemOp_v2", [0, 4, at(&mut steps), 0]);
        cuda.ok("cuCtxSynchronize", []);
        let mut read = [0usize; 2];
        cuda.ok("cuMemcpyDtoH_v2", [at(&mut read), word, 16]);
        assert_eq!(read, [5, 6]);
        assert_eq!(cuda.call("cuStreamBatchMemOp_v2", [0, 256, at(&mut steps), 0]), 1);
        steps[3][0] = 99;
        assert_eq!(cuda.call("cuStreamBatchMemOp_v2", [0, 4, at(&mut steps), 0]), 1);
    });
}

#[test]
fn what_waits_for_a_semaphore_runs_when_it_is_signalled() {
    in_child("what_waits_for_a_semaphore_runs_when_it_is_signalled", &[], |cuda| {
        cuda.start();
        let (mut semaphore, values) = (0usize, [0usize; 18]);
        let mut kind = [1usize; 12];
        cuda.ok("cuImportExternalSemaphore", [at(&mut semaphore), at(&mut kind)]);
        let mut these = (semaphore, values);
        let (handles, values) = (at(&mut these.0), at(&mut these.1));
        let (kernel, behind, before) = (cuda.kernel("k_10us"), cuda.stream(1), cuda.stream(1));
        for round in 1..=2 {
            cuda.launch(kernel, before);
            cuda.ok("cuSignalExternalSemaphoresAsync", [handles, values, 1, before]);
            cuda.ok("cuWaitExternalSemaphoresAsync", [handles, values, 1, behind]);
            cuda.launch(kernel, behind);
            cuda.ok("cuCtxSynchronize", []);
            assert_eq!(cuda.now(), round * 20_000, "a wait takes the signal");
        }
        cuda.ok("cuDestroyExternalSemaphore", [semaphore]);
        let gone = cuda.call("cuWaitExternalSemaphoresAsync", [handles, values, 1, behind]);
        assert_eq!(gone, 400, "it is gone");
    });
}

#[test]
fn prefetching_takes_the_time_of_a_copy() {
    const TEST: &str = "prefetching_takes_the_time_of_a_copy";
    in_child(TEST, &[("STUB_GPU_COPY_BYTES_PER_US", "1024")], |cuda| {
        cuda.start();
        let (mut pointer, mut bytes, mut index) = (0usize, MIB, 0usize);
        cuda.ok("cuMemAllocManaged", [at(&mut pointer), MIB, 1]);
        cuda.ok("cuMemPrefetchAsync", [pointer, MIB, 0, 0]);
        let mut place = 1usize;
        let (pointers, sizes) = (at(&mut pointer), at(&mut bytes));
        let (places, indices) = (at(&mut place), at(&mut index));
        let batch = |flags| [pointers, sizes, 1, places, indices, 1, flags, 0];
        cuda.ok("cuMemPrefetchBatchAsync", batch(0));
        assert_eq!(cuda.now(), 0, "the host does not wait");
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 2_048_000);
        assert_eq!(cuda.call("cuMemPrefetchBatchAsync", batch(1)), 1, "no such flag");
    });
}
