//! `gpucap check ROOT`: whether the library can be loaded in an image, asked before a container is made of it.
//!
//! The hook checks the same for each container; image builders and administrators can check it in advance.

use crate::command::hook::library;
use crate::error::{Error, Result, reason};
use crate::exit::Exit;
use crate::inject::{self, Fit};
use crate::machine::NAME;
use crate::node::inputs;
use crate::terminal::output;
use gpucap_plan::{NoGlibc, Node};
use std::path::PathBuf;

const AFTER: &str = "\
Exit status: 0 its programs load it, 3 nothing there loads it, 6 a container of it would be refused,
1 it cannot be looked at.

Examples:
  gpucap check /run/image/rootfs";

/// The words behind `gpucap check`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// The root directory of the image
    root: PathBuf,
    /// The node's configuration: which library, and whether images without glibc are refused
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Says it.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let root = options.root.display();
    let wrong = |why: String| Error::Check(format!("{root}: {why}"));
    let node = inputs::node(&options.config).map_err(|why| wrong(why.to_string()))?;
    let library = library(&node).map_err(|why| wrong(why.to_string()))?;
    let fit = inject::fit(&library, &options.root).map_err(|why| wrong(reason(&why)))?;
    let refused = node.no_glibc == NoGlibc::Refuse;
    let (exit, what) = match fit {
        Fit::Loads => (Exit::OK, "its programs load the library".to_owned()),
        Fit::NoGlibc if refused => (
            Exit::REFUSED,
            format!("it has no glibc for {NAME}, and this node refuses such images"),
        ),
        Fit::NoGlibc => (
            Exit::NOT_LIMITED,
            format!("it has no glibc for {NAME}: nothing there loads the library"),
        ),
        Fit::TooNew { needs, has } => {
            let what =
                format!("the library needs glibc {needs}, it has {has}: it would be refused");
            (Exit::REFUSED, what)
        }
        Fit::Lacks(name) => (
            Exit::REFUSED,
            format!("the library needs {name}, which it lacks: it would be refused"),
        ),
    };
    let fault = inject::fault(&options.root).map_err(|why| wrong(reason(&why)))?;
    let (exit, what) = match fault {
        Some((directory, why)) => {
            let what = format!("its {directory} {why}, so the library would not hold: refused");
            (Exit::REFUSED, what)
        }
        None => (exit, what),
    };
    output::print(&format!("{root}: {what}\n"))?;
    Ok(exit)
}
