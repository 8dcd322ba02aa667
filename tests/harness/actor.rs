//! A process that a test leads by the hand: `tests/programs/tools/actor.c`.
//!
//! Each command is answered before the next one is given, so that the order of what several processes do is the
//! test's, and nothing waits for time to pass.

use crate::process::Process;
use crate::{Output, Program, Result, Run, Stop, World};
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A running actor. Killed when dropped.
#[derive(Debug)]
pub struct Actor {
    process: Process,
    answers: Receiver<String>,
    run: Run,
}

/// What the driver said to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The driver's code.
    pub code: u64,
    /// The address, handle or total that it gave.
    pub value: u64,
    /// Pitch, free or used bytes.
    pub extra: u64,
}

impl World {
    /// Prepares an actor in this world. [`Run::start`] lets it begin.
    ///
    /// # Errors
    /// Skips or fails if the world cannot be had.
    pub fn actor(&self) -> Result<Run> {
        self.run(&Program::new("actor").build()?)
    }
}

impl Run {
    /// Starts an actor.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> Result<Actor> {
        let mut process = self.spawn()?;
        let (send, answers) = channel();
        let stdout = process.stdout.take();
        thread::spawn(move || {
            for line in stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines).flatten() {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Actor { process, answers, run: self.clone() })
    }
}

impl Actor {
    /// Gives a command and waits for its answer.
    ///
    /// # Errors
    /// If the actor does not answer.
    pub fn call(&mut self, command: &str) -> Result<Answer> {
        self.order(command)?;
        self.answer(command)
    }

    /// Waits for the answer to a command that was given as an order.
    ///
    /// # Errors
    /// If it does not come, or is none.
    pub fn answer(&mut self, command: &str) -> Result<Answer> {
        let line = self.line()?;
        let mut numbers = line.split(' ').map(str::parse);
        let mut number = || {
            numbers
                .next()
                .and_then(|it| it.ok())
                .ok_or_else(|| Stop::fail(format!("{command}: `{line}` is not an answer")))
        };
        Ok(Answer { code: number()?, value: number()?, extra: number()? })
    }

    /// Waits for the next line that it prints.
    ///
    /// # Errors
    /// If none comes.
    pub fn line(&mut self) -> Result<String> {
        match self.answers.recv_timeout(self.run.limit()) {
            Ok(line) => Ok(line),
            Err(why) => Err(Stop::fail(format!("no answer: {why}: {}", self.end()?))),
        }
    }

    /// Gives commands and checks the driver's code for each.
    ///
    /// # Errors
    /// If one is answered with another code.
    pub fn expect(&mut self, commands: &[(&str, u64)]) -> Result {
        for (command, expected) in commands {
            let answer = self.call(command)?;
            if answer.code != *expected {
                return Err(Stop::fail(format!(
                    "{command}: {answer:?}, expected {expected}: {}",
                    self.end()?
                )));
            }
        }
        Ok(())
    }

    /// Gives a command that is not answered, because the actor ends by it.
    ///
    /// # Errors
    /// If the actor does not read it.
    pub fn order(&mut self, command: &str) -> Result {
        let orders = self.process.stdin.as_mut();
        let orders = orders.ok_or_else(|| Stop::fail("the actor has ended"))?;
        Ok(writeln!(orders, "{command}")?)
    }

    /// Kills it without a chance to clean up, and waits until it is gone.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> Result {
        self.process.kill()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&self, number: i32) -> Result {
        let pid = libc::pid_t::try_from(self.pid()).map_err(Stop::fail)?;
        // SAFETY: no memory is involved; process numbers are not given out again that fast.
        let result = unsafe { libc::kill(pid, number) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
    }

    /// Gives no more commands and waits for its end.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn end(&mut self) -> Result<Output> {
        self.process.stdin = None;
        let status = self.process.wait(self.run.limit())?;
        self.process.kill()?;
        let stdout = self.answers.iter().collect::<Vec<_>>().join("\n");
        let stderr = self.process.stderr.recv().unwrap_or_default();
        Ok(Output { command: self.run.to_string(), status, stdout, stderr })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}
