//! `gpucap`: the command a person uses by hand.
//!
//! Words of the command line, one call, an exit code. What each command does lies in `command`; what several of them
//! need, beside it.

mod ask;
mod command;
mod elf;
mod engine;
mod error;
mod exit;
mod gather;
mod ledgers;
mod output;
mod paint;
mod preload;
mod proc;
mod quantity;
mod sys;
mod table;

use clap::Parser;
use command::Line;
use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(asked) => {
            // Where neither help nor complaint can be written, there is nobody to tell.
            drop(asked.print());
            return if asked.use_stderr() { Exit::USAGE } else { Exit::OK }.into();
        }
    };
    match line.execute() {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::tell(&error);
            error.exit().into()
        }
    }
}
