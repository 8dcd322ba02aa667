//! Untrusted bytes that reach processes of root: one entry for each input.
//!
//! An entry fails by a panic: of the code it calls, or of a check of what that returned. The fuzz targets call one
//! entry each; `hook/tests/seeds.rs` calls every entry with its seeds, `seeds/<target>/`, as ordinary tests. A target
//! is a row of [`TARGETS`], a file `targets/<name>.rs` and a directory of seeds.

mod card;
pub mod elf;
pub mod image;
pub mod ledger;
pub mod limits;
pub mod nri;
pub mod page;
pub mod planner;
pub mod process;
pub mod share;
pub mod usage;

/// What a target does with its input.
pub type Entry = fn(&[u8]);

/// Each target: its name, and its entry.
pub const TARGETS: &[(&str, Entry)] = &[
    ("allocation", planner::allocation),
    ("annotations", planner::annotations),
    ("calibration", planner::calibration),
    ("checkpoint", planner::checkpoint),
    ("claims", planner::claims),
    ("config", planner::config),
    ("elf", elf::elf),
    ("environment", planner::environment),
    ("image", image::image),
    ("ledger", ledger::ledger),
    ("limits", limits::limits),
    ("node", planner::node),
    ("nri", nri::nri),
    ("page", page::page),
    ("process", process::process),
    ("share", share::share),
    ("state", planner::state),
    ("usage", usage::usage),
];
