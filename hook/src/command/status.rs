//! `gpucap status`: who holds how much of which GPU, in every ledger that is to be seen.
//!
//! Looks only: nothing is reaped, nothing swept. What dead processes held counts as free, as it will be for the next
//! request.

mod json;
mod text;
mod view;

use crate::error::Result;
use crate::exit::Exit;
use crate::ledgers::{self, Look};
use crate::output;
use crate::paint::Paint;
use crate::proc::{self, Process};
use crate::sys;
use gpucap_core::config::GPUCAP_LEDGER;
use gpucap_core::ledger::Identity;
use std::path::Path;
use std::{env, io};
use view::{Book, State, Status, World};

/// The words behind `gpucap status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Prints what is to be seen.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let status = look();
    let text = if options.json {
        json::render(&status)
    } else {
        text::render(&status, Paint::on(&io::stdout()))
    };
    output::print(&text)?;
    Ok(Exit::OK)
}

fn look() -> Status {
    let mut status = Status::default();
    for path in ledgers::all(env::var_os(GPUCAP_LEDGER.name).as_deref()) {
        match ledgers::look(&path) {
            Look::Ledger(map) => status.books.push(Book::of(map.ledger(), &path, &Machine)),
            Look::Unused => status.unused.push(path),
            Look::No(why) => status.unreadable.push((path, why)),
        }
    }
    status
}

/// The processes of this machine.
struct Machine;

impl World for Machine {
    fn state(&self, owner: &Identity) -> State {
        match proc::runs(owner) {
            Some(true) => State::Alive,
            Some(false) => State::Ended,
            None => State::Unknown,
        }
    }

    fn command(&self, owner: &Identity) -> Option<String> {
        Process(owner.pid).command()
    }

    fn now_ns(&self) -> u64 {
        sys::boot_time_ns()
    }
}

/// One ledger as it is shown here: for the demo, which has one of its own.
pub(crate) fn of(path: &Path, paint: Paint) -> Option<String> {
    Some(text::book(&seen(path)?, paint))
}

/// What the living hold by one ledger, on all devices: for the demo.
pub(crate) fn used(path: &Path) -> Option<u64> {
    Some(seen(path)?.devices.iter().map(|device| device.used).sum())
}

fn seen(path: &Path) -> Option<Book> {
    match ledgers::look(path) {
        Look::Ledger(map) => Some(Book::of(map.ledger(), path, &Machine)),
        Look::Unused | Look::No(_) => None,
    }
}
