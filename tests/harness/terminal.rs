//! A program on a pseudo-terminal of its own: keys that a test presses, what the program writes, and the terminal's modes.
//!
//! The program leads a session whose terminal this is, so that the end of the terminal reaches it as a hangup. The test
//! keeps an end of each side open: the modes can be compared once the program has ended.

use crate::process::hangs;
use crate::{Result, Run, Stop};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::ExitStatus;
use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A program, and the terminal that it has. Killed when dropped.
#[derive(Debug)]
pub struct Terminal {
    /// `None` once it was hung up: what a user has, and what the program has.
    sides: Option<[File; 2]>,
    pid: libc::pid_t,
    ended: Receiver<io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
    written: Vec<u8>,
    /// Keeps its files.
    _run: Run,
}

/// The modes of a terminal: of input, output, control and local processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes([libc::tcflag_t; 4]);

/// How long is read at a time while the program's end is waited for.
const PART: Duration = Duration::from_millis(20);

impl Run {
    /// Starts the program on a terminal of this size.
    ///
    /// # Errors
    /// If there can be no terminal, or the program cannot be started.
    pub fn on_terminal(&self, columns: u16, rows: u16) -> Result<Terminal> {
        let sides = open(columns, rows)?;
        let side = || sides[1].try_clone();
        let mut command = self.command()?;
        command.stdin(side()?).stdout(side()?).stderr(side()?).env("TERM", "xterm-256color");
        let lead = || {
            // SAFETY: between fork and exec; the call takes no argument and is async-signal-safe.
            if unsafe { libc::setsid() } < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: standard input is the terminal, opened above; the call takes a number.
            if unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        };
        // SAFETY: `lead` makes two system calls and allocates nothing, as is required between fork and exec.
        unsafe { command.pre_exec(lead) };
        let mut child = command.spawn()?;
        let pid = libc::pid_t::try_from(child.id()).map_err(Stop::fail)?;
        let (send, ended) = channel();
        thread::spawn(move || drop(send.send(child.wait())));
        let (written, run) = (Vec::new(), self.clone());
        Ok(Terminal { sides: Some(sides), pid, ended, status: None, written, _run: run })
    }
}

/// Both sides of a new terminal: the user's, which does not block, and the program's.
fn open(columns: u16, rows: u16) -> Result<[File; 2]> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let [mut user, mut program] = [-1; 2];
    // SAFETY: two numbers and a size, alive for as long as the call lasts; the others are not asked for.
    let result = unsafe {
        libc::openpty(
            &raw mut user,
            &raw mut program,
            ptr::null_mut(),
            ptr::null(),
            &raw const size,
        )
    };
    if result < 0 {
        return Err(Stop::skip(format!("no terminal: {}", io::Error::last_os_error())));
    }
    let own = |number| {
        // SAFETY: opened just now, so no other object owns it.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        // SAFETY: open, and the call takes a number. Programs that are started get what they are given alone.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        File::from(file)
    };
    let sides = [own(user), own(program)];
    // SAFETY: open, and the call takes a number.
    unsafe { libc::fcntl(sides[0].as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    Ok(sides)
}

impl Terminal {
    fn sides(&self) -> Result<&[File; 2]> {
        self.sides.as_ref().ok_or_else(|| Stop::fail("the terminal was hung up"))
    }

    /// Presses keys: the bytes that a terminal sends for them.
    ///
    /// # Errors
    /// If the terminal does not take them.
    pub fn press(&mut self, keys: &str) -> Result {
        Ok((&self.sides()?[0]).write_all(keys.as_bytes())?)
    }

    /// The modes that it has now.
    ///
    /// # Errors
    /// If it has none.
    pub fn modes(&self) -> Result<Modes> {
        // SAFETY: numbers alone, for which zeros are valid.
        let mut modes: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the terminal is open, and the place is writable for as long as the call lasts.
        if unsafe { libc::tcgetattr(self.sides()?[1].as_raw_fd(), &raw mut modes) } < 0 {
            return Err(io::Error::last_os_error().into());
        }
        Ok(Modes([modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag]))
    }

    /// Waits until the program has written this behind what was waited for before; returns what is between, and this.
    ///
    /// # Errors
    /// If it does not.
    pub fn until(&mut self, text: &str) -> Result<String> {
        let late = Instant::now() + hangs();
        loop {
            let found = self.written.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(place) = found {
                let written: Vec<u8> = self.written.drain(..place + text.len()).collect();
                return Ok(String::from_utf8_lossy(&written).into_owned());
            }
            if Instant::now() > late || self.status.is_some() {
                return Err(Stop::fail(format!("no {text:?} in {:?}", self.last())));
            }
            self.turn(PART)?;
        }
    }

    /// Waits until the program has ended; returns how, and what it has written since the last time.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn end(&mut self) -> Result<(ExitStatus, String)> {
        let late = Instant::now() + hangs();
        while Instant::now() < late {
            self.turn(PART)?;
            if let Some(status) = self.status {
                return Ok((status, String::from_utf8_lossy(&self.written).into_owned()));
            }
        }
        Err(Stop::fail(format!("has not ended: {:?}", self.last())))
    }

    /// The last that it has written: a failure shows no more.
    fn last(&self) -> String {
        let start = self.written.len().saturating_sub(2000);
        String::from_utf8_lossy(&self.written[start..]).into_owned()
    }

    /// Reads what there is, or waits for the program's end.
    fn turn(&mut self, most: Duration) -> Result {
        if self.status.is_none() {
            match self.ended.recv_timeout(most) {
                Ok(status) => self.status = Some(status?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(why) => return Err(Stop::fail(why)),
            }
        }
        let Some([user, _]) = &self.sides else { return Ok(()) };
        let (mut user, mut bytes) = (user, [0; 4096]);
        loop {
            match user.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => self.written.extend_from_slice(&bytes[..count]),
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&self, number: i32) -> Result {
        // SAFETY: no memory is involved; process numbers are not given out again that fast.
        let result = unsafe { libc::kill(self.pid, number) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error().into()) }
    }

    /// Ends the terminal, as a connection that breaks does.
    pub fn hang_up(&mut self) {
        self.sides = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.status.is_none() && self.ended.try_recv().is_err() {
            // It has not ended, or not long ago.
            drop(self.signal(libc::SIGKILL));
        }
    }
}
