//! Every fuzz target's entry with its seeds, as ordinary tests: what was found once is not found again, and an entry that
//! no longer accepts its input is noticed without a nightly compiler.
//!
//! A target has an entry, a program for the fuzzer and at least two seeds; a test compares the three lists.

#[path = "../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "a crate of its own for the fuzzer")]
mod fuzz;

use fuzz::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name)
}

/// The names in a directory, without their endings.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory of the fuzz targets");
    let stem = |path: PathBuf| path.file_stem().map(|it| it.to_string_lossy().into_owned());
    entries.filter_map(|entry| stem(entry.expect("an entry").path())).collect()
}

#[test]
fn every_entry_bears_its_seeds() {
    for (name, entry) in TARGETS {
        let directory = directory("seeds").join(name);
        let mut seeds: Vec<PathBuf> =
            fs::read_dir(&directory).expect("seeds").map(|it| it.expect("a seed").path()).collect();
        seeds.sort();
        assert!(seeds.len() >= 2, "{name} has {} seeds", seeds.len());
        for seed in seeds {
            // Said before, since a panic does not name the file.
            println!("{}", seed.display());
            entry(&fs::read(seed).expect("a seed"));
        }
    }
}

#[test]
fn each_target_has_an_entry_a_program_and_seeds() {
    let entries: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&directory("targets")), entries);
    assert_eq!(names(&directory("seeds")), entries);
    let manifest = fs::read_to_string(directory("Cargo.toml")).expect("the manifest");
    for name in entries {
        let row = format!("name = \"{name}\"\npath = \"targets/{name}.rs\"\n");
        assert!(manifest.contains(&row), "{name} is no program");
    }
}
