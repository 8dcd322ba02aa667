//! `gpucap`: the command a person uses by hand.
//!
//! The command line: parse, one call, an exit code. Each command is a module of [`command`], which stands above all
//! others: [`inject`] puts a container under its limits, [`container`] reaches one that is there, [`node`] reads this
//! machine, [`terminal`] writes for a person, [`sys`] is the door to libc, [`machine`] knows the processor. A module names only modules below it.

mod command;
mod container;
mod error;
mod exit;
mod inject;
mod machine;
mod node;
mod sys;
mod terminal;

use clap::Parser;
use command::{Line, nri, runtime};
use exit::Exit;
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use terminal::output;

fn main() -> ExitCode {
    let mut words = env::args_os();
    let name = words.next().map(PathBuf::from).unwrap_or_default();
    if name.file_name().is_some_and(|name| name == runtime::NAME) {
        return end(runtime::become_next(&words.collect::<Vec<_>>()));
    }
    if let Some(name) = nri::launched_as(&name) {
        return end(nri::serve_launcher(&name));
    }
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(asked) => {
            let printed = asked.print();
            if !asked.use_stderr() {
                return end(output::printed(printed).map(|()| Exit::OK));
            }
            // The program that `run` becomes may end with any lower code.
            return if Line::is_run() { Exit::NOT_RUN } else { Exit::USAGE }.into();
        }
    };
    end(line.execute())
}

fn end(result: error::Result<Exit>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::notice(&error);
            error.exit().into()
        }
    }
}
