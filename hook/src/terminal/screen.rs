//! The whole terminal, for a program that shows something until its user ends it.
//!
//! While a [`Screen`] exists, the terminal is in raw mode, shows the alternate screen, and its cursor is hidden. It is as
//! before once the value is dropped, after a panic, and after each signal that would end the program: those are read in
//! place of keys ([`sys::wait`](crate::sys::wait)). Keys are read here and not by `crossterm`, whose reader does not
//! return once the terminal has ended.

use super::keys::{Key, Keys};
use super::style;
use crate::sys::wait::{Source, Wake};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::style::force_color_output;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The terminal of standard input and output.
pub(crate) struct Screen {
    /// Never dropped: that would write to a terminal which may have ended, and complain to it.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    source: Source,
    keys: Keys,
    colored: bool,
}

/// What happened while a program waited.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Event {
    /// These keys were pressed.
    Keys(Vec<Key>),
    /// The terminal has another size.
    Resized,
    /// The program is to end: a signal says so, or the terminal has ended.
    Ended,
    /// The time is over.
    Nothing,
}

/// Whether the terminal has to be restored.
static OPEN: AtomicBool = AtomicBool::new(false);
/// How long the rest of a key may take over a network.
const REST: Duration = Duration::from_millis(50);

impl Screen {
    /// Whether there is one.
    pub(crate) fn is_there() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Takes the terminal.
    pub(crate) fn open() -> io::Result<Self> {
        // First: a signal that came in between would leave the terminal as it is made below.
        let source = Source::open()?;
        let colored = style::is_shown();
        // Lines have no colours where none are to be shown; NO_COLOR gives way to `--color always`.
        force_color_output(true);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        OPEN.store(true, Ordering::SeqCst);
        let opened = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen))
            .and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout()))));
        match opened {
            Ok(terminal) => {
                let terminal = ManuallyDrop::new(terminal);
                Ok(Self { terminal, source, keys: Keys::default(), colored })
            }
            Err(why) => {
                restore();
                Err(why)
            }
        }
    }

    /// Whether colours are shown.
    pub(crate) const fn is_colored(&self) -> bool {
        self.colored
    }

    /// Draws all of it; what is written is what has changed.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Waits until something happens, for at most this time.
    pub(crate) fn next(&mut self, most: Duration) -> Event {
        let until = Instant::now() + most;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let rest = self.keys.has_part().then_some(REST);
            match self.source.wait(rest.map_or(left, |rest| rest.min(left))) {
                Wake::Bytes(bytes) => {
                    let keys = self.keys.take(&bytes);
                    if !keys.is_empty() {
                        return Event::Keys(keys);
                    }
                }
                Wake::Nothing if rest.is_some() => {
                    if let Some(key) = self.keys.flush() {
                        return Event::Keys(vec![key]);
                    }
                }
                Wake::Nothing => return Event::Nothing,
                Wake::Resized => return Event::Resized,
                Wake::Ended => return Event::Ended,
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. What fails is left out: a terminal that has ended needs nothing.
fn restore() {
    if OPEN.swap(false, Ordering::SeqCst) {
        drop(execute!(io::stdout(), LeaveAlternateScreen, Show));
        drop(disable_raw_mode());
        drop(io::stdout().flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
    use std::env;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::Command;

    const WHY: &str = "a panic on purpose";
    /// Set in the process that has a terminal to lose.
    const IS_CHILD: &str = "GPUCAP_TEST_PANICS";

    fn modes(terminal: &File) -> Termios {
        tcgetattr(terminal).expect("modes")
    }

    #[test]
    fn a_panic_restores_the_terminal() {
        if env::var_os(IS_CHILD).is_some() {
            let mut screen = Screen::open().expect("a terminal");
            screen.draw(|frame| frame.render_widget("drawn", frame.area())).expect("drawn");
            panic!("{WHY}");
        }
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&user).and_then(|()| unlockpt(&user)).expect("a terminal");
        let name = ptsname(&user, Vec::new()).expect("its name");
        let name = name.to_str().expect("a path");
        let mut options = File::options();
        let options = options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let program = options.open(name).expect("a terminal");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&program, size).expect("a size");
        let before = modes(&program);
        let side = || program.try_clone().expect("a descriptor");
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "terminal::screen::tests::a_panic_restores_the_terminal"])
            .args(["--nocapture", "--test-threads=1"])
            .env(IS_CHILD, "1")
            .env("RUST_BACKTRACE", "0")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("started");
        // What it writes fits what a terminal keeps, so it can be read after the end.
        assert!(!child.wait().expect("ended").success());
        let after = modes(&program);
        assert_eq!(
            (before.input_modes, before.output_modes, before.local_modes),
            (after.input_modes, after.output_modes, after.local_modes)
        );
        drop(program);
        let mut written = Vec::new();
        // One call returns what the kernel has passed on by then, not all of it. Linux ends with EIO once no process has
        // the other side open and everything is read.
        let end = File::from(user).read_to_end(&mut written);
        assert_eq!(end.expect_err("an end").raw_os_error(), Some(libc::EIO));
        let written = String::from_utf8_lossy(&written);
        let place = |text: &str| written.find(text);
        let order = [place("\x1b[?1049h"), place("drawn"), place("\x1b[?1049l"), place(WHY)];
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{written:?}");
        assert!(written.contains("\x1b[?25h"), "the cursor: {written:?}");
    }
}
