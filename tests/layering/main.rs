//! The layers and the form of files that CONTRIBUTING.md asks for, enforced.
//!
//! Each rule is two tests: `holds` looks at every file of the project, and `bites` shows the rule files that break
//! it and files that do not, so that a rule which finds nothing is known to have looked.

mod ablations;
mod blank;
mod circles;
mod contributing;
mod modules;
mod order;
mod rules;
mod source;
mod tables;

use modules::{MODULES, Modules};
use rules::Fault;
use source::{Source, project};

/// Files as a rule sees them: path and text.
type Examples = &'static [(&'static str, &'static str)];

fn holds(rule: fn(&Source) -> Vec<Fault>) {
    let sources = project();
    assert!(sources.len() > 20, "only {} files found", sources.len());
    let found: Vec<String> = sources
        .iter()
        .flat_map(|source| rule(source).into_iter().map(|fault| (&source.path, fault)))
        .map(|(path, (line, what))| format!("{path}:{line}: {what}"))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

fn bites(rule: fn(&Source) -> Vec<Fault>, broken: Examples, kept: Examples) {
    for (path, text) in broken {
        assert!(!rule(&Source::new(path, text)).is_empty(), "lets {path} pass:\n{text}");
    }
    for (path, text) in kept {
        let found = rule(&Source::new(path, text));
        assert!(found.is_empty(), "stops {path}:\n{text}\n{found:?}");
    }
}

macro_rules! rules {
    ($($name:ident: $rule:path, broken by $broken:expr, kept by $kept:expr;)*) => {$(
        mod $name {
            #[test]
            fn holds() {
                super::holds($rule);
            }

            #[test]
            fn bites() {
                super::bites($rule, &$broken, &$kept);
            }
        }
    )*};
}

rules! {
    each_module_says_what_it_owns: crate::rules::header,
        broken by [("shim/src/a.rs", "use core::ffi;\n"), ("bench/a.rs", "// A plain comment.\n")],
        kept by [("shim/src/a.rs", "//! Owns a.\n"), ("tests/programs/a.c", "int main;\n")];

    no_file_is_longer_than_the_ceiling: crate::rules::length,
        broken by [("shim/src/a.rs", crate::LONG), ("include/a.h", crate::LONG), ("ci/run", crate::LONG)],
        kept by [("shim/src/a.rs", "\n"), ("Cargo.lock", crate::LONG)];

    what_is_left_to_do_is_an_issue: crate::rules::no_remarks,
        broken by [("a.c", concat!("/* TO", "DO: free it */")), ("a.rs", concat!("// FIX", "ME"))],
        kept by [("a.rs", "mktemp todo.XXXXXX")];

    what_ships_is_called: crate::rules::no_uncalled_code,
        broken by [
            ("shim/src/a.rs", "#![expect(dead_code, reason = \"soon\")]"),
            ("hook/src/a.rs", "#[allow(unused, dead_code)]"),
        ],
        kept by [
            ("tests/stub/cuda/src/a.rs", "#[allow(dead_code)]"),
            ("shim/src/a.rs", "// No dead_code."),
        ];

    no_file_names_a_private_place: crate::rules::no_private_places,
        broken by [
            ("README.md", concat!("see /wo", "rk/main")),
            ("Cargo.lock", concat!("source = \"sparse+https", "://crates.example.com/index\"")),
        ],
        kept by [("README.md", "https://github.com/rust-lang, and https://localhost:80"), ("a.rs", "src/work.rs")];

    unsafe_code_stands_at_the_borders: crate::rules::unsafe_at_borders,
        broken by [
            ("shim/src/cuda/memory.rs", "fn f() { unsafe { g() } }"),
            ("shim/core/src/a.rs", "unsafe impl Send for A {}"),
            ("shim/abi/src/cuda.rs", "pub unsafe fn f() {}"),
            ("shim/src/log.rs", "unsafe extern \"C\" { fn g(); }"),
            ("shim/src/log.rs", "#[unsafe(no_mangle)] fn g() {}"),
            ("hook/src/main.rs", "let a = unsafe\n{ g() };"),
        ],
        kept by [
            ("shim/src/sys.rs", "fn f() { unsafe { g() } }"),
            ("shim/abi/src/cuda.rs", "type F = unsafe extern \"C\" fn(i32);\n#![forbid(unsafe_code)]"),
            ("shim/core/src/a.rs", "// unsafe { }\nlet a = \"unsafe { }\"; /* unsafe { } */"),
        ];

    each_unsafe_block_says_why: crate::rules::safety,
        broken by [("shim/src/sys.rs", "// SAFETY: a.\nunsafe { a() };\nunsafe { b() };")],
        kept by [("shim/src/sys.rs", "// SAFETY: a.\nunsafe { a() };\nunsafe fn b() {}")];

    libc_has_one_door_in_the_shim: crate::rules::libc_at_borders,
        broken by [
            ("shim/src/log.rs", "use libc::write;"),
            ("shim/src/log.rs", "fn f() { libc::write(2); }"),
            ("shim/src/log.rs", "use {core::ffi, libc::{ENOENT, write}};"),
            ("shim/src/log.rs", "use libc as c;"),
        ],
        kept by [
            ("shim/src/sys.rs", "use libc::write;"),
            ("shim/src/log.rs", "// libc::write\nuse crate::sys::libc_free;"),
            ("shim/src/log.rs", "use libc::{EFBIG, ENOENT};\nlet a = libc::O_RDWR;"),
            ("hook/src/run.rs", "use libc::write;"),
            ("docs/src/design/costs.md", "It calls libc::write."),
        ];

    a_layer_names_only_what_is_below_it: crate::rules::layers,
        broken by [
            ("shim/core/src/a.rs", "use std::{fmt, time::{Duration, Instant}};"),
            ("shim/core/src/a.rs", "fn f() { std::thread::sleep(a) }"),
            ("shim/core/src/a.rs", "let a = 'a'; let b = std::env::var(\"A\");"),
            ("shim/core/src/a.rs", "#[cfg(test)]\nmod tests { }\nuse std::fs;"),
            ("shim/core/src/a.rs", "#[cfg(not(test))]\nuse std::fs;"),
            ("shim/abi/src/a.rs", "use std::ffi::c_int;"),
            ("shim/src/cuda/memory.rs", "use super::super::nvml::memory;"),
            ("shim/src/nvml/memory.rs", "use crate::redirect::DriverCopy;"),
            ("shim/src/redirect/elf.rs", "use gpucap_core::limits::Limits;"),
            ("shim/src/sys.rs", "let f = libc::dlsym(a, b);"),
            ("tests/stub/cuda/src/lib.rs", "use gpucap_core as core;"),
        ],
        kept by [
            ("shim/core/src/a.rs", "use std::{fmt, time::Duration};\n#[cfg(test)]\nmod tests { use std::env; }"),
            ("shim/core/src/a.rs", "/// As std::env::var.\nfn environment() { let s = r#\"std::fs\"#; }"),
            ("shim/src/cuda/memory.rs", "use super::pool; use crate::cuda::verdict;"),
        ];

    a_module_names_only_modules_below_it: crate::order::upward,
        broken by [
            ("shim/src/sys.rs", "use crate::session::Session;"),
            ("shim/src/sys/file.rs", "use super::super::log;"),
            ("shim/src/log.rs", "use crate::{sys, state::State};"),
            ("shim/src/log.rs", "fn f() { crate::state::get() }"),
            ("shim/src/log.rs", "mod a { use super::super::state; }"),
            ("shim/src/log.rs", "use crate::SOMETHING_OF_THE_ROOT;"),
            ("shim/src/a_new_module.rs", "//! New."),
        ],
        kept by [
            ("shim/src/log.rs", "use crate::sys;\nmod a { use super::*; }\n// crate::state"),
            ("shim/src/sys/file.rs", "use super::Errno; use crate::sys::directory;"),
            ("shim/src/lib.rs", "use state::State; fn f() { crate::session::begin() }"),
            ("shim/src/log.rs", "#[cfg(test)]\nmod tests { use crate::state; }"),
            ("tests/harness/log.rs", "use crate::state;"),
        ];

    a_crate_depends_on_what_is_allowed: crate::rules::dependencies,
        broken by [
            ("shim/core/Cargo.toml", "[dependencies]\nlibc.workspace = true"),
            ("shim/core/Cargo.toml", "[dependencies.libc]\nversion = \"1\""),
            ("tests/stub/cuda/Cargo.toml", "[dependencies]\n\n# Why.\ngpucap-core = { path = \"a\" }"),
            ("shim/Cargo.toml", "[build-dependencies]\ncc = \"1\""),
            ("shim/new/Cargo.toml", "[package]"),
        ],
        kept by [
            ("shim/core/Cargo.toml", "[dev-dependencies]\nproptest.workspace = true\n[lints]\nworkspace = true"),
            ("shim/Cargo.toml", "[dependencies]\nlibc.workspace = true"),
        ];

    words_are_those_of_the_field: crate::rules::plain_words,
        broken by [
            ("README.md", concat!("It is charged to no", "body.")),
            ("shim/src/a.rs", concat!("fn ends_no", "body() {}")),
            ("bench/a.py", concat!("# Waits for so ", "many seconds.")),
            ("docs/src/limits.md", "A cap of 4 GiB."),
            ("SECURITY.md", "The file tells which."),
            ("shim/core/src/a.rs", concat!("to", "ld_at: u64")),
        ],
        kept by [
            ("README.md", "It is charged to no process."),
            ("shim/src/a.rs", "fn ends() { so::few() }"),
            ("shim/src/a.rs", "let cap = tells();"),
            ("docs/src/limits.md", "`cap_bytes`, CAP_SYS_ADMIN"),
        ];

    a_public_name_is_ours: crate::rules::public_names,
        broken by [("include/gpucap.h", "#define EXIT_REFUSED 3\n"), ("include/gpucap.h", "struct ledger {\n")],
        kept by [("include/gpucap.h", "#define GPUCAP_EXIT_REFUSED 3\n"), ("include/driver.h", "#define A\n")];
}

const LONG: &str = {
    const LINES: [u8; tables::LINES + 1] = [b'\n'; tables::LINES + 1];
    match str::from_utf8(&LINES) {
        Ok(lines) => lines,
        Err(_) => unreachable!(),
    }
};

#[test]
fn no_files_name_each_other_in_a_circle() {
    let found: Vec<_> = MODULES.iter().flat_map(|it| circles::circles(project(), it)).collect();
    assert!(found.is_empty(), "{} arrows of circles:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_circle_of_files_is_found() {
    let modules = Modules { sources: "a/src/", order: &[], upward: &[], circles: &[] };
    let circles = |files: &[(&str, &str)]| {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        circles::circles(&sources, &modules)
    };
    let one = ("a/src/one.rs", "use crate::two::Two;");
    let two = ("a/src/two.rs", "mod three;\nfn f() { three::g() }");
    let root = ("a/src/lib.rs", "mod one;\npub use one::One;");
    let three = ("a/src/two/three.rs", "pub(crate) fn four() {}");
    assert_eq!(circles(&[root, one, two, three]), [""; 0]);
    let names_one = [
        "a/src/one.rs:1: crate::one names crate::two",
        "a/src/two.rs:2: crate::two names crate::two::three",
        "a/src/two/three.rs:1: crate::two::three names crate::one",
    ];
    assert_eq!(circles(&[root, one, two, ("a/src/two/three.rs", "use crate::one;")]), names_one);
    let names_parent = [
        "a/src/two.rs:2: crate::two names crate::two::three",
        "a/src/two/three.rs:1: crate::two::three names crate::two",
    ];
    assert_eq!(circles(&[one, two, ("a/src/two/three.rs", "use super::Two;")]), names_parent);
    let names_root =
        ["a/src/lib.rs:2: crate names crate::one", "a/src/one.rs:1: crate::one names crate"];
    assert_eq!(circles(&[root, ("a/src/one.rs", "use crate::One;")]), names_root);
}

#[test]
fn an_arrow_of_a_circle_stands_only_with_a_reason() {
    let allowed = &[("crate::one", "crate::two", "a reason"), ("crate::two", "crate::one", "gone")];
    let sources = [("a/src/one.rs", "use crate::two;"), ("a/src/two.rs", "use crate::one;")];
    let found = |circles, count| {
        let modules = Modules { sources: "a/src/", order: &[], upward: &[], circles };
        let sources = sources.map(|(path, text)| Source::new(path, text));
        circles::circles(&sources[..count], &modules)
    };
    assert_eq!(found(&allowed[..1], 2), [""; 0]);
    let stale = ["a/src/: crate::one names crate::two in no circle any more"];
    assert_eq!(found(&allowed[..1], 1), stale);
    assert_eq!(found(&[], 2).len(), 2);
}

#[test]
fn an_arrow_upward_stands_only_with_a_reason() {
    let order = &[("one", ""), ("two", ""), ("three", "")];
    let upward = &[("one", "two", "a reason")];
    let modules = Modules { sources: "a/src/", order, upward, circles: &[] };
    let source = Source::new("a/src/one.rs", "use crate::two;\nuse crate::three;");
    let found = order::above(&source, &modules);
    assert_eq!(found, [(2, "one names three, which is above it".to_owned())]);
}

#[test]
fn the_order_of_modules_has_only_what_there_is() {
    let stale: Vec<_> = MODULES.iter().flat_map(|it| order::stale(project(), it)).collect();
    assert_eq!(stale, Vec::<String>::new());
}

#[test]
fn an_entry_that_no_file_needs_is_found() {
    let order = &[("one", ""), ("two", ""), ("gone", "")];
    let upward = &[("one", "two", ""), ("one", "gone", "")];
    let modules = Modules { sources: "a/src/", order, upward, circles: &[] };
    let sources = [("a/src/one.rs", "use crate::two;"), ("a/src/two/a.rs", "//! Two.")];
    let sources = sources.map(|(path, text)| Source::new(path, text));
    let expected = ["a/src/: there is no module gone", "a/src/: one does not name gone any more"];
    assert_eq!(order::stale(&sources, &modules), expected);
}

#[test]
fn contributing_shows_the_layers_as_they_are() {
    let document = project().iter().find(|source| source.path == "CONTRIBUTING.md");
    let text = &document.expect("CONTRIBUTING.md").text;
    let renewed = contributing::renewed(text).expect("the marks of the tables of layers");
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../CONTRIBUTING.md");
        std::fs::write(path, renewed).expect("CONTRIBUTING.md is renewed");
        return;
    }
    assert!(*text == renewed, "with BLESS=1 this test makes CONTRIBUTING.md show:\n{renewed}");
}

#[test]
fn each_test_binary_is_a_step_of_ci_run() {
    let sources = project();
    let text = |path: &str| {
        let source = sources.iter().find(|source| source.path == path);
        source.map(|source| source.text.clone()).unwrap_or_else(|| panic!("{path} is missing"))
    };
    let without = rules::binaries_without_step(&text("tests/Cargo.toml"), &text("ci/steps.sh"));
    assert!(without.is_empty(), "no step of ci/run runs {without:?}");
}

#[test]
fn a_test_binary_without_a_step_is_found() {
    let manifest =
        "[lib]\n[[test]]\nname = \"routes\"\n[[test]]\npath = \"a\"\nname = \"limits\"\n";
    assert_eq!(rules::binaries_without_step(manifest, "    tests routes\n"), ["limits"]);
}

/// What plain `cargo test` covers, which the document says in one row.
#[test]
fn contributing_names_the_default_members() {
    let sources = project();
    let text = |path: &str| &sources.iter().find(|it| it.path == path).expect("the file").text;
    let members = text("Cargo.toml").split_once("default-members = [").expect("the list").1;
    let members = members.split_once(']').expect("its end").0;
    let quoted = |text: &str, mark: char| -> Vec<String> {
        text.split(mark).skip(1).step_by(2).map(str::to_owned).collect()
    };
    let (stubs, members): (Vec<_>, Vec<_>) =
        quoted(members, '"').into_iter().partition(|member| member.starts_with("tests/stub/"));
    let row =
        text("CONTRIBUTING.md").lines().find_map(|line| line.strip_prefix("| `cargo test` |"));
    let row = row.expect("the row");
    assert_eq!(quoted(row, '`'), members);
    assert_eq!(row.contains("the stub driver"), !stubs.is_empty());
}

#[test]
fn the_documentation_shows_the_variables_as_they_are() {
    let sources = project();
    let page = sources.iter().find(|source| source.path == "docs/src/limits.md").expect("the page");
    let shown = page.text.split_once("variables: ").and_then(|(_, rest)| rest.split_once("-->\n"));
    let shown =
        shown.and_then(|(_, rest)| rest.split_once("<!-- end of variables")).map(|(it, _)| it);
    let table = gpucap_core::config::manual();
    assert!(shown.map(str::trim) == Some(table.trim()), "docs/src/limits.md should show:\n{table}");
}

#[test]
fn a_part_of_the_meter_can_be_left_out_of_the_code_as_it_is() {
    let sources = project();
    let patches = sources.iter().filter(|source| source.path.starts_with(ablations::PATCHES));
    let patches: Vec<_> = patches.collect();
    assert!(patches.len() > 20, "only {} patches found", patches.len());
    let faults = |patch: &&Source| {
        let path = patch.path.clone();
        let faults = ablations::stale(patch, sources).into_iter();
        faults.map(move |(line, what)| format!("{path}:{line}: {what}")).collect::<Vec<_>>()
    };
    let found: Vec<_> = patches.iter().flat_map(faults).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_patch_that_does_not_fit_any_more_is_found() {
    let text = "// Without it, `judge T1` and `T2 1 ms,\n// waited for` miss their bounds.\n";
    let text = format!("{text}let a = 1;\nlet b = 2;\nlet a = 1;\nlet c = 3;\n");
    let file = Source::new("a.rs", &text);
    let stale = |text: &str| {
        let patch = Source::new("bench/ablations/a.patch", text);
        ablations::stale(&patch, std::slice::from_ref(&file)).len()
    };
    let head = "part: it\ncell: judge T1\n\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n";
    assert_eq!(stale(&format!("{head} let b = 2;\n-let a = 1;\n+let a = 0;\n let c = 3;\n")), 0);
    assert_eq!(stale(&format!("{head}-let a = 1;\n+let a = 0;\n")), 1, "it stands there twice");
    assert_eq!(stale(&format!("{head}-let d = 1;\n+let d = 0;\n")), 1, "it is not there");
    assert_eq!(stale(&format!("{head}-b = 2;\n+b = 0;\n")), 1, "it is a part of a line");
    assert_eq!(stale("part: it\ncell: judge T1\n"), 1, "it changes nothing");
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -2 +2 @@\n-let b = 2;\n+let b = 0;\n";
    assert_eq!(stale(&format!("part: it\n\n{diff}")), 1, "no cell");
    assert_eq!(stale(&format!("cell: T1\n\n{diff}")), 2, "no part, and no bench of the cell");
    let cell = |cell: &str| stale(&format!("part: it\ncell: {cell}\n\n{diff}"));
    assert_eq!(cell("judge T2 1 ms, waited for, 30/70"), 0, "over two lines");
    assert_eq!(cell("lending mixes: T2 1 ms, waited for, [30, 70]"), 0);
    assert_eq!(cell("judge T2 2 ms, waited for, 30/70"), 1, "no comment names it");
    assert_eq!(cell("attacks T1 --quick"), 1, "one word of another bench");
}

#[test]
fn only_code_that_ships_is_held_to_the_layers() {
    let ships = |condition: &str| {
        let text = format!("#[cfg({condition})]\nmod b {{\n    use std::fs;\n}}\n");
        Source::new("shim/core/src/a.rs", &text).shipped.contains("fs")
    };
    for condition in ["test", "loom", "all(test, not(loom))", "any(test, loom)", "all(unix, test)"]
    {
        assert!(!ships(condition), "{condition}");
    }
    for condition in
        ["not(test)", "not(any(test, loom))", "unix", "any(unix, test)", "all(unix, not(test))"]
    {
        assert!(ships(condition), "{condition}");
    }
    let after = Source::new("shim/core/src/a.rs", "#[cfg(test)]\nmod b;\nuse std::fs;\n");
    assert!(after.shipped.contains("fs"), "what follows a module of tests ships");
}
