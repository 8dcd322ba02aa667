//! The stub driver's own rules: memory, streams, processes.

mod driver;

use driver::{CHILD, Driver, MIB, at, child, in_child};

#[test]
fn calls_fail_in_the_order_driver_then_context_then_argument() {
    in_child("calls_fail_in_the_order_driver_then_context_then_argument", &[], |cuda| {
        let mut pointer = 0u64;
        assert_eq!(cuda.call("cuMemAlloc_v2", [at(&mut pointer), MIB]), 3);
        cuda.ok("cuInit", [0]);
        assert_eq!(cuda.call("cuMemAlloc_v2", [at(&mut pointer), MIB]), 201);
        cuda.start();
        assert_eq!(cuda.call("cuMemAlloc_v2", [0, MIB]), 1);
        assert_eq!(cuda.call("cuMemAlloc_v2", [at(&mut pointer), 0]), 1);
        assert_eq!(cuda.call("cuMemAlloc_v2", [at(&mut pointer), 2 << 30]), 2);
    });
}

#[test]
fn every_byte_taken_is_free_again() {
    in_child("every_byte_taken_is_free_again", &[], |cuda| {
        cuda.start();
        let before = cuda.free_bytes();
        assert_eq!(before, (1 << 30) - 256 * MIB, "a context costs what the table says");
        let mut pointer = 0usize;
        cuda.ok("cuMemAlloc_v2", [at(&mut pointer), 12_345]);
        assert_eq!(cuda.free_bytes(), before - 12_345);
        cuda.ok("cuMemFree_v2", [pointer]);
        assert_eq!(cuda.call("cuMemFree_v2", [pointer]), 1);
        assert_eq!(cuda.free_bytes(), before);
    });
}

#[test]
fn a_pool_keeps_its_reserve_until_something_synchronises() {
    in_child("a_pool_keeps_its_reserve_until_something_synchronises", &[], |cuda| {
        cuda.start();
        let before = cuda.free_bytes();
        let mut pointer = 0usize;
        cuda.ok("cuMemAllocAsync", [at(&mut pointer), MIB, 0]);
        cuda.ok("cuMemFreeAsync", [pointer, 0]);
        assert_eq!(cuda.free_bytes(), before - MIB);
        cuda.ok("cuStreamSynchronize", [0]);
        assert_eq!(cuda.free_bytes(), before);
    });
}

#[test]
fn stream_ordered_memory_is_on_the_device_of_the_stream() {
    let test = "stream_ordered_memory_is_on_the_device_of_the_stream";
    in_child(test, &[("STUB_GPU_COUNT", "2")], |cuda| {
        cuda.start();
        let (mut other, mut first, mut pointer) = (0usize, 0usize, 0usize);
        cuda.ok("cuCtxGetCurrent", [at(&mut first)]);
        cuda.ok("cuDevicePrimaryCtxRetain", [at(&mut other), 1]);
        let stream = cuda.stream(1);
        let here = cuda.free_bytes();
        cuda.ok("cuCtxSetCurrent", [other]);
        let there = cuda.free_bytes();
        cuda.ok("cuMemAllocAsync", [at(&mut pointer), MIB, stream]);
        assert_eq!(cuda.free_bytes(), there, "the current device gives none");
        cuda.ok("cuMemAllocAsync", [at(&mut pointer), 2 * MIB, 0]);
        assert_eq!(cuda.free_bytes(), there - 2 * MIB, "a default stream is the current one's");
        cuda.ok("cuCtxSetCurrent", [first]);
        assert_eq!(cuda.free_bytes(), here - MIB);
    });
}

#[test]
fn a_stream_is_in_order_and_streams_run_side_by_side() {
    in_child("a_stream_is_in_order_and_streams_run_side_by_side", &[], |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_10us");
        let (mut one, mut other) = (0usize, 0usize);
        cuda.ok("cuStreamCreate", [at(&mut one), 1]);
        cuda.ok("cuStreamCreate", [at(&mut other), 1]);
        cuda.launch(kernel, one);
        cuda.launch(kernel, one);
        cuda.launch(kernel, other);
        assert_eq!(cuda.call("cuStreamQuery", [one]), 600);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 20_000);
        // The legacy default stream lets nothing that blocks run beside it.
        let mut blocking = 0usize;
        cuda.ok("cuStreamCreate", [at(&mut blocking), 0]);
        cuda.launch(kernel, blocking);
        cuda.launch(kernel, 0);
        cuda.launch(kernel, blocking);
        cuda.ok("cuCtxSynchronize", []);
        assert_eq!(cuda.now(), 50_000);
    });
}

#[test]
fn the_handle_of_a_destroyed_stream_is_used_again() {
    in_child("the_handle_of_a_destroyed_stream_is_used_again", &[], |cuda| {
        cuda.start();
        let first = cuda.stream(0);
        cuda.ok("cuStreamDestroy_v2", [first]);
        assert_eq!(cuda.call("cuStreamQuery", [first]), 400);
        assert_eq!(cuda.stream(1), first);
        assert_ne!(cuda.stream(0), first);
    });
}

#[test]
fn an_empty_stream_makes_no_call_wait() {
    in_child("an_empty_stream_makes_no_call_wait", &[], |cuda| {
        cuda.start();
        cuda.ok("cuStreamSynchronize", [0]);
        cuda.ok("cuStreamQuery", [0]);
        assert_eq!(cuda.now(), 0);
    });
}

#[test]
fn a_full_stream_makes_the_launch_wait() {
    let depth = [("STUB_GPU_QUEUE_DEPTH", "4")];
    in_child("a_full_stream_makes_the_launch_wait", &depth, |cuda| {
        cuda.start();
        let kernel = cuda.kernel("k_10us");
        (0..4).for_each(|_| cuda.launch(kernel, 0));
        assert_eq!(cuda.now(), 0);
        cuda.launch(kernel, 0);
        assert_eq!(cuda.now(), 10_000);
    });
}

#[test]
fn a_scripted_failure_hits_the_call_it_names() {
    let script = [("STUB_GPU_FAIL", "cuMemAlloc_v2:999@2")];
    in_child("a_scripted_failure_hits_the_call_it_names", &script, |cuda| {
        cuda.start();
        let mut pointer = 0usize;
        let codes = [(); 3].map(|()| cuda.call("cuMemAlloc_v2", [at(&mut pointer), MIB]));
        assert_eq!(codes, [0, 999, 0]);
    });
}

#[test]
fn a_child_of_an_initialised_process_has_no_driver() {
    in_child("a_child_of_an_initialised_process_has_no_driver", &[], |cuda| {
        cuda.start();
        // SAFETY: the child only calls the driver and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let codes = [cuda.call("cuInit", [0]), cuda.call("cuCtxSynchronize", [])];
            // SAFETY: ends the child without running the test harness a second time.
            unsafe { libc::_exit(i32::from(codes != [3, 3])) };
        }
        let mut status = 0;
        // SAFETY: `pid` is a child of this process; `status` is writable.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0);
    });
}

#[test]
fn what_a_killed_process_held_is_free() {
    const TEST: &str = "what_a_killed_process_held_is_free";
    match std::env::var(CHILD).as_deref() {
        Ok("holder") => {
            let cuda = Driver::open();
            cuda.start();
            let mut pointer = 0usize;
            cuda.ok("cuMemAlloc_v2", [at(&mut pointer), 600 * MIB]);
            println!("held");
            loop {
                std::thread::park();
            }
        }
        Ok(_) => {
            let cuda = Driver::open();
            cuda.start();
            let mut pointer = 0usize;
            cuda.ok("cuMemAlloc_v2", [at(&mut pointer), 700 * MIB]);
        }
        Err(_) => {
            let dir =
                std::env::temp_dir().join(format!("stub-rules-{}-{TEST}", std::process::id()));
            let mut holder = child(TEST, "holder", &dir).spawn().expect("it runs");
            let mut lines = std::io::BufReader::new(holder.stdout.take().expect("piped"));
            let mut line = String::new();
            while !line.contains("held") {
                line.clear();
                let read = std::io::BufRead::read_line(&mut lines, &mut line).expect("readable");
                assert_ne!(read, 0, "the holder ended early");
            }
            let refused = child(TEST, "taker", &dir).output().expect("it runs");
            holder.kill().expect("it runs");
            let taken = child(TEST, "taker", &dir).output().expect("it runs");
            holder.wait().expect("killed");
            std::fs::remove_dir_all(&dir).expect("the children made it");
            assert!(!refused.status.success(), "while it lives, the memory is its own");
            assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stdout));
        }
    }
}
