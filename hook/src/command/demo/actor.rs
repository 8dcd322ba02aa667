//! The programs on the stage: run to their end, or led by the hand.
//!
//! No answer is waited for without a bound. Where one takes more than a second (a real card may), a sign of life is
//! shown on the terminal.

use crate::error::{Error, Result};
use indicatif::ProgressBar;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The longest that a program may be silent.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a program said.
pub(super) struct Output {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started, or does not end.
pub(super) fn output(command: &mut Command, doing: &str) -> Result<Output> {
    let mut child = start(command)?;
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    drop(child.stdin.take());
    let said = wait(&stdout, doing).and_then(|stdout| Ok((stdout, wait(&stderr, doing)?)));
    if said.is_err() {
        drop(child.kill());
    }
    let status = child.wait().map_err(|why| failed(doing, &why))?;
    let (stdout, stderr) = said?;
    Ok(Output { success: status.success(), stdout, stderr })
}

/// A program that executes the demo's orders. Killed when dropped.
pub(super) struct Actor {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    complaints: Receiver<String>,
}

impl Actor {
    /// Starts one.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = start(command)?;
        let orders = child.stdin.take();
        let (answers, complaints) = (lines(child.stdout.take()), lines(child.stderr.take()));
        Ok(Self { child, orders, answers, complaints })
    }

    /// Sends an order. Returns the answer.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn order(&mut self, order: &str) -> Result<String> {
        let orders = self.orders.as_mut();
        let written = orders.is_some_and(|orders| writeln!(orders, "{order}").is_ok());
        let answer = wait(&self.answers, order);
        match answer {
            Ok(answer) if written => Ok(answer),
            _ => {
                let why: Vec<String> = self.complaints.try_iter().collect();
                Err(Error::Demo(format!("{order}: no answer: {}", why.join("; "))))
            }
        }
    }

    /// What it, or the library in it, complained about so far; waits for the first complaint.
    pub(super) fn complaint(&self) -> String {
        self.complaints.recv_timeout(PATIENCE).unwrap_or_default()
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, without a chance to clean up, and waits until it is gone.
    pub(super) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(command: &mut Command) -> Result<Child> {
    let spawned =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|why| failed(&command.get_program().display().to_string(), &why))
}

fn failed(what: &str, why: &std::io::Error) -> Error {
    Error::Demo(format!("{what}: {why}"))
}

/// Waits for what a thread has to say.
fn wait<T>(from: &Receiver<T>, doing: &str) -> Result<T> {
    const SOON: Duration = Duration::from_secs(1);
    let said = from.recv_timeout(SOON).or_else(|error| {
        if error == RecvTimeoutError::Disconnected {
            return Err(error);
        }
        // Shown on a terminal only.
        let sign = ProgressBar::new_spinner().with_message(doing.to_owned());
        sign.enable_steady_tick(Duration::from_millis(100));
        let said = from.recv_timeout(PATIENCE);
        sign.finish_and_clear();
        said
    });
    said.map_err(|_| Error::Demo(format!("{doing}: no answer")))
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, said) = channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            drop(pipe.read_to_end(&mut text));
        }
        drop(send.send(String::from_utf8_lossy(&text).into_owned()));
    });
    said
}

fn lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, said) = channel();
    thread::spawn(move || {
        for line in pipe.map(BufReader::new).into_iter().flat_map(BufRead::lines).flatten() {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    said
}
