//! What a program that has the terminal waits for: bytes of its input, a signal, or a time.
//!
//! The signals that end such a program, and the one that says that the terminal has another size, are read like bytes:
//! none is handled while another function runs, so the terminal is always restored by the same code. Used by
//! [`crate::terminal::screen`] alone.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

/// The signals that are taken.
const SIGNALS: [i32; 5] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGWINCH];

/// Standard input and these signals.
#[derive(Debug)]
pub(crate) struct Source(File);

/// What there was.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Wake {
    /// Bytes of standard input.
    Bytes(Vec<u8>),
    /// The terminal has another size.
    Resized,
    /// The program is to end: by a signal, or because its terminal has ended.
    Ended,
    /// Nothing for as long as was waited.
    Nothing,
}

impl Source {
    /// Keeps these signals from doing anything else, in this thread and in threads that it makes. A background job is
    /// stopped before that, until it may change the terminal: one that is stopped can be ended by these signals.
    pub(crate) fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        tcsetattr(&stdin, OptionalActions::Now, &tcgetattr(&stdin)?)?;
        let mut set = MaybeUninit::uninit();
        // SAFETY: the place is writable and of the type that the C library documents, which it initialises.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for signal in SIGNALS {
            // SAFETY: initialised above, and a signal that exists.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        // SAFETY: a set that was initialised above; the earlier mask is not asked for.
        let failed =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: a set that was initialised above; -1 asks for a new descriptor.
        let descriptor = unsafe { libc::signalfd(-1, set.as_ptr(), flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: opened just now by the kernel, so no other object owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }.into()))
    }

    /// Waits for at most this time.
    pub(crate) fn wait(&self, most: Duration) -> Wake {
        let stdin = io::stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        // A time that the kernel cannot count is as good as for ever.
        let most = Timespec::try_from(most).ok();
        match poll(&mut asked, most.as_ref()) {
            Ok(0) => return Wake::Nothing,
            // By a signal that is not among these: the program was stopped, and goes on.
            Err(Errno::INTR) => return Wake::Resized,
            Err(_) => return Wake::Ended,
            Ok(_) => {}
        }
        let [input, signal] = asked.map(|it| it.revents());
        if signal.contains(PollFlags::IN) {
            return self.signal();
        }
        if !input.contains(PollFlags::IN) {
            return Wake::Ended;
        }
        let mut bytes = [0; 256];
        match read(&stdin, &mut bytes) {
            Ok(0) => Wake::Ended,
            Ok(count) => Wake::Bytes(bytes.get(..count).unwrap_or_default().to_vec()),
            Err(Errno::INTR | Errno::AGAIN) => Wake::Nothing,
            Err(_) => Wake::Ended,
        }
    }

    /// The signal that has come: the first word of what the kernel says of it is its number.
    fn signal(&self) -> Wake {
        let mut said = [0; size_of::<libc::signalfd_siginfo>()];
        if (&self.0).read_exact(&mut said).is_err() {
            return Wake::Nothing;
        }
        let number = said.first_chunk().map_or(0, |word| i32::from_ne_bytes(*word));
        if number == libc::SIGWINCH { Wake::Resized } else { Wake::Ended }
    }
}
