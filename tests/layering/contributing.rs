//! The tables of layers that CONTRIBUTING.md shows, made from those that the rules hold.
//!
//! Nothing is decided here: what a crate or module may do stands in `tables` and `modules`, and is written out for a
//! reader, so that the document cannot differ from what is enforced.

use std::fmt::Write;

use crate::modules::{CRATES, MODULES, Modules};
use crate::tables::{DEPENDENCIES, LIBC, NEVER, UNSAFE};

/// The document with the tables as they are now; `None` if it has no marks for them.
pub(crate) fn renewed(document: &str) -> Option<String> {
    const BEGIN: &str = "<!-- layers: made by tests/layering -->\n";
    const END: &str = "<!-- end of layers -->\n";
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some([before, BEGIN, &layers(), END, after].concat())
}

fn layers() -> String {
    let mut text =
        "| crate | what it is | of ours it uses | rules |\n|---|---|---|---|\n".to_owned();
    for (path, what) in CRATES {
        // What a module of the crate may do is in the table of modules.
        let is_whole = MODULES.iter().any(|it| it.sources == format!("{path}/src/"));
        let places = [format!("{path}/"), format!("{path}/src/")];
        let rules = if is_whole { never(&places).join("; ") } else { rules(&places) };
        let _ = writeln!(text, "| `{path}` | {what} | {} | {rules} |", of_ours(path));
    }
    for modules in MODULES {
        text.push_str(&order(modules));
    }
    text
}

/// The modules of a crate, and the arrows upward that are allowed.
fn order(modules: &Modules) -> String {
    let name = modules.sources.trim_end_matches('/');
    let mut text = format!("\n`{name}`, the lowest module first:\n\n");
    text.push_str("| module | what it is | rules |\n|---|---|---|\n");
    for (module, what) in modules.order {
        let path = format!("{}{module}", modules.sources);
        let rules = rules(&[format!("{path}.rs"), format!("{path}/")]);
        let _ = writeln!(text, "| `{module}` | {what} | {rules} |");
    }
    if !modules.upward.is_empty() {
        text.push_str("\nUpward, nevertheless:\n\n");
    }
    for (from, to, why) in modules.upward {
        let _ = writeln!(text, "- `{from}` names `{to}`: {why}");
    }
    text.push_str(match modules.circles {
        [] => "\nNo files name each other in a circle.\n",
        _ => "\nNo files name each other in a circle, but for these arrows:\n\n",
    });
    for (from, to, why) in modules.circles {
        let _ = writeln!(text, "- `{from}` names `{to}`: {why}");
    }
    text
}

/// The crates of the project that a crate, or those below this directory, may depend on.
fn of_ours(path: &str) -> String {
    let manifest = format!("{path}/Cargo.toml");
    let own = DEPENDENCIES.iter().filter(|(it, _)| *it == manifest);
    let below = DEPENDENCIES.iter().filter(|(it, _)| it.starts_with(&format!("{path}/")));
    let of_it: Vec<_> = if own.clone().next().is_some() { own.collect() } else { below.collect() };
    let mut names: Vec<_> = of_it.iter().flat_map(|(_, names)| names.iter()).collect();
    names.retain(|name| name.starts_with("gpucap-"));
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What the tables allow and forbid in these places: files, and directories, which end in `/`.
fn rules(places: &[String]) -> String {
    let mut rules = Vec::new();
    for (table, what) in [(UNSAFE, "hold unsafe code"), (LIBC, "name libc")] {
        if table.iter().any(|path| is_one_of(path, places)) {
            rules.push(format!("may {what}"));
        } else {
            let files: Vec<_> = table.iter().filter_map(|path| below(path, places)).collect();
            let files: Vec<_> = files.iter().map(|file| format!("`{file}`")).collect();
            if !files.is_empty() {
                rules.push(format!("may {what} in {}", files.join(", ")));
            }
        }
    }
    rules.extend(never(places));
    rules.join("; ")
}

/// What these places never name, and why.
fn never(places: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for (_, names, why) in NEVER.iter().filter(|(path, ..)| is_one_of(path, places)) {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let rule = format!("never {}: {why}", names.join(", "));
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

fn is_one_of(path: &str, places: &[String]) -> bool {
    places.iter().any(|place| place == path)
}

/// The rest of a path that is below the last of these places.
fn below<'a>(path: &'a str, places: &[String]) -> Option<&'a str> {
    places.last().and_then(|place| path.strip_prefix(&**place))
}
