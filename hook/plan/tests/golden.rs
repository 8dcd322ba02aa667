//! What each convention means, case by case: `golden/<convention>.json`.
//!
//! A case is what a pod or an engine would say, and the plan that must come of it, in words. Each file is a list, and
//! each case says the rule that it stands for. Every convention has a file.

use crate::case::{decided, named, words};
use gpucap_plan::Source;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory()).expect("the directory of fixtures");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn each_case_comes_to_its_plan() {
    let mut wrong = Vec::new();
    for file in files() {
        let text = named(&std::fs::read_to_string(&file).expect("a fixture"));
        let cases: Vec<Value> =
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{file:?}: {why}"));
        assert!(!cases.is_empty(), "{file:?}");
        for case in cases {
            let found = words(&decided(&case).plan);
            if found != case["plan"] {
                let name = file.file_stem().unwrap_or_default().display();
                wrong.push(format!("{name}: {}\n  {found}\n  not {}", case["rule"], case["plan"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_convention_has_its_cases() {
    let stems = files();
    let stems: BTreeSet<_> = stems.iter().filter_map(|file| file.file_stem()?.to_str()).collect();
    let missing: Vec<_> =
        Source::ALL.iter().map(|it| it.name()).filter(|name| !stems.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
