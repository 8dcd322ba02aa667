//! The stub driver the way a program sees it: through `dlopen`.
//!
//! A test that needs an environment runs itself again in a child process that has it; the child's
//! part is marked by [`CHILD`]. Each test has a card of its own, on a virtual clock.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) const CHILD: &str = "STUB_TEST_CHILD";
pub(crate) const MIB: usize = 1 << 20;

/// The library that cargo built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.with_file_name("libgpucap_stub_cuda.so")
}

/// A command that runs `test` of this file as a child with its own card.
pub(crate) fn child(test: &str, role: &str, dir: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args([test, "--exact", "--nocapture"]).env(CHILD, role);
    command.env("STUB_GPU_DIR", dir).env("STUB_GPU_CLOCK", "virtual").env("STUB_GPU_MEM", "1GiB");
    command.stdout(Stdio::piped()).stdin(Stdio::piped());
    command
}

/// Runs the child's part when this is the child, else the child itself.
pub(crate) fn in_child(test: &str, settings: &[(&str, &str)], body: impl FnOnce(&Driver)) {
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
pub(crate) struct Driver(*mut c_void);

// SAFETY: a handle of `dlopen`, which any thread may look names up in.
unsafe impl Sync for Driver {}

impl Driver {
    pub(crate) fn open() -> Self {
        let path = CString::new(library().to_str().expect("a plain path")).expect("no zero in it");
        // SAFETY: a path; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{} is not built", library().display());
        Self(handle)
    }

    /// Calls a function with integer and pointer arguments.
    pub(crate) fn call<const N: usize>(&self, name: &str, arguments: [usize; N]) -> u32 {
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

    pub(crate) fn ok<const N: usize>(&self, name: &str, arguments: [usize; N]) {
        assert_eq!(self.call(name, arguments), 0, "{name}");
    }

    /// Initialised, with the primary context of device 0 current.
    pub(crate) fn start(&self) {
        self.ok("cuInit", [0]);
        self.enter();
    }

    /// Makes the primary context of device 0 current in this thread.
    pub(crate) fn enter(&self) {
        let mut context = 0usize;
        self.ok("cuDevicePrimaryCtxRetain", [at(&mut context), 0]);
        self.ok("cuCtxSetCurrent", [context]);
    }

    /// Runs `work` in another thread that has the context too.
    pub(crate) fn in_thread<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let thread = || {
            self.enter();
            work()
        };
        std::thread::scope(|scope| scope.spawn(thread).join().expect("it ends"))
    }

    /// A stream with these flags: 0 waits for the legacy default stream, 1 does not.
    pub(crate) fn stream(&self, flags: usize) -> usize {
        let mut stream = 0usize;
        self.ok("cuStreamCreate", [at(&mut stream), flags]);
        stream
    }

    /// An event with a time.
    pub(crate) fn event(&self) -> usize {
        let mut event = 0usize;
        self.ok("cuEventCreate", [at(&mut event), 0]);
        event
    }

    pub(crate) fn free_bytes(&self) -> usize {
        let (mut free, mut total) = (0usize, 0usize);
        self.ok("cuMemGetInfo_v2", [at(&mut free), at(&mut total)]);
        free
    }

    pub(crate) fn kernel(&self, name: &str) -> usize {
        let (mut module, mut function) = (0usize, 0usize);
        let name = CString::new(name).expect("no zero in a name");
        self.ok("cuModuleLoadData", [at(&mut module), c"image".as_ptr() as usize]);
        self.ok("cuModuleGetFunction", [at(&mut function), module, name.as_ptr() as usize]);
        function
    }

    pub(crate) fn launch(&self, function: usize, stream: usize) {
        self.ok("cuLaunchKernel", [function, 1, 1, 1, 32, 1, 1, 0, stream]);
    }

    pub(crate) fn now(&self) -> u32 {
        // The low half is enough: a test's clock starts at 0.
        self.call("stubNow", [])
    }
}

pub(crate) fn at<T>(place: &mut T) -> usize {
    std::ptr::from_mut(place) as usize
}
