//! `gpucap demo`: what gpucap does, shown in under a minute on this machine.
//!
//! Every number is read from a program that runs at that moment, and each step checks what it shows: a demo that ends
//! well has seen it all happen. Without a working driver the stub driver takes its place, which is said. Nothing is
//! left behind, and on a real card little is allocated: the cap is 2 GiB at most.

mod actor;
mod card;
mod stage;
mod steps;

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::terminal::output::print;
use crate::terminal::paint::Paint;
use stage::Stage;
use std::io;

const AFTER: &str = "\
Exit status: 0 if everything was as it should be, 1 if not.";

/// The words behind `gpucap demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Options {
    /// Use the stub driver even if there is a GPU
    #[arg(long)]
    stub: bool,
}

/// Shows it.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let show = Show { paint: Paint::on(&io::stdout()) };
    let stage = Stage::set(options.stub)?;
    steps::play(&stage, show)?;
    Ok(Exit::OK)
}

/// How the demo speaks.
#[derive(Clone, Copy)]
struct Show {
    paint: Paint,
}

impl Show {
    /// What the next step is about.
    fn title(self, number: u32, text: &str) -> Result {
        print(&format!("\n{}\n", self.paint.bold(&format!("{number}. {text}"))))
    }

    /// A command as one would type it.
    fn command(self, text: &str) -> Result {
        print(&format!("\n   {} {text}\n", self.paint.dim("$")))
    }

    /// What a program printed.
    fn quote(self, text: &str) -> Result {
        text.lines().try_for_each(|line| print(&format!("{}\n", format!("   {line}").trim_end())))
    }

    /// Prints a remark of the demo.
    fn say(self, text: &str) -> Result {
        print(&format!("   {text}\n"))
    }

    /// Says what was checked, if it is so.
    fn check(self, holds: bool, expected: &str, found: &str) -> Result {
        if holds {
            return print(&format!("   {} {expected}\n", self.paint.good("ok")));
        }
        Err(Error::Demo(format!("expected: {expected}; found: {found}")))
    }
}
