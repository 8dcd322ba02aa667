//! The stub driver's own rules, seen the way a program sees them: through `dlopen`.
//!
//! A test that needs an environment runs itself again in a child process that has it; the child's
//! part is marked by [`CHILD`]. Each test has a card of its own, on a virtual clock.

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const CHILD: &str = "STUB_TEST_CHILD";
const MIB: usize = 1 << 20;

/// The library that cargo built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.with_file_name("libgpucap_stub_cuda.so")
}

/// A command that runs `test` of this file as a child with its own card.
fn child(test: &str, role: &str, dir: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args([test, "--exact", "--nocapture"]).env(CHILD, role);
    command.env("STUB_GPU_DIR", dir).env("STUB_GPU_CLOCK", "virtual").env("STUB_GPU_MEM", "1GiB");
    command.stdout(Stdio::piped()).stdin(Stdio::piped());
    command
}

/// Runs the child's part when this is the child, else the child itself.
fn in_child(test: &str, settings: &[(&str, &str)], body: impl FnOnce(&Driver)) {
    if std::env::var(CHILD).is_ok() {
        return body(&Driver::open());
    }
    let dir = std::env::temp_dir().join(format!("stub-rules-{}-{test}", std::process::id()));
    let output =
        child(test, "alone", &dir).envs(settings.iter().copied()).output().expect("it runs");
    std::fs::remove_dir_all(&dir).expect("the child made its card there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The driver, by name.
struct Driver(*mut c_void);

impl Driver {
    fn open() -> Self {
        let path = CString::new(library().to_str().expect("a plain path")).expect("no zero in it");
        // SAFETY: a path; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{} is not built", library().display());
        Self(handle)
    }

    /// Calls a function with integer and pointer arguments.
    fn call<const N: usize>(&self, name: &str, arguments: [usize; N]) -> u32 {
        let symbol = CString::new(name).expect("no zero in a name");
        // SAFETY: the handle is open.
        let address = unsafe { libc::dlsym(self.0, symbol.as_ptr()) };
        assert!(!address.is_null(), "no {name}");
        let mut words = [0; 11];
        words[..N].copy_from_slice(&arguments);
        type Function = extern "C" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
        ) -> u32;
        // SAFETY: in this calling convention a function may be called with more integer arguments
        // than it takes, and all of those here are integers or pointers; it returns 32 bits.
        let function = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
        let [a, b, c, d, e, f, g, h, i, j, k] = words;
        function(a, b, c, d, e, f, g, h, i, j, k)
    }

    fn ok<const N: usize>(&self, name: &str, arguments: [usize; N]) {
        assert_eq!(self.call(name, arguments), 0, "{name}");
    }

    /// Initialised, with the primary context of device 0 current.
    fn start(&self) {
        let mut context = 0usize;
        self.ok("cuInit", [0]);
        self.ok("cuDevicePrimaryCtxRetain", [at(&mut context), 0]);
        self.ok("cuCtxSetCurrent", [context]);
    }

    fn free_bytes(&self) -> usize {
        let (mut free, mut total) = (0usize, 0usize);
        self.ok("cuMemGetInfo_v2", [at(&mut free), at(&mut total)]);
        free
    }

    fn kernel(&self, name: &str) -> usize {
        let (mut module, mut function) = (0usize, 0usize);
        let name = CString::new(name).expect("no zero in a name");
        self.ok("cuModuleLoadData", [at(&mut module), c"image".as_ptr() as usize]);
        self.ok("cuModuleGetFunction", [at(&mut function), module, name.as_ptr() as usize]);
        function
    }

    fn launch(&self, function: usize, stream: usize) {
        self.ok("cuLaunchKernel", [function, 1, 1, 1, 32, 1, 1, 0, stream]);
    }

    fn now(&self) -> u32 {
        // The low half is enough: a test's clock starts at 0.
        self.call("stubNow", [])
    }
}

fn at<T>(place: &mut T) -> usize {
    std::ptr::from_mut(place) as usize
}

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
        assert_eq!(before, (1 << 30) - 300 * MIB, "a context costs what the table says");
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
fn an_empty_stream_does_not_make_anybody_wait() {
    in_child("an_empty_stream_does_not_make_anybody_wait", &[], |cuda| {
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
