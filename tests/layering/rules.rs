//! The rules: each looks at one file and says on which lines it is broken.
//!
//! A rule knows how to look; what it looks for is in `tables`. Each is a function of a [`Source`] alone, so that
//! `main` can show it a file that breaks it.

use crate::blank::words;
use crate::source::{Source, line_of};
use crate::tables::{
    CODE, DEPENDENCIES, HOSTS, LIBC, LINES, NEVER, PAGES, PUBLIC, UNSAFE, WORDS, WORDS_ALLOWED,
    WORDS_OF_CODE, WORDS_OF_PAGES,
};

/// A broken rule: the line, and what is wrong there.
pub(crate) type Fault = (usize, String);

/// Every module says what it owns.
pub(crate) fn header(source: &Source) -> Vec<Fault> {
    let says = source.text.lines().next().is_some_and(|line| line.starts_with("//! "));
    if !is_rust(source) || says { vec![] } else { vec![(1, "does not start with `//!`".into())] }
}

/// A file that is longer holds more than one idea.
pub(crate) fn length(source: &Source) -> Vec<Fault> {
    let written = [".rs", ".c", ".h", ".py", ".sh", "/run", "/gpu"];
    let lines = source.text.lines().count();
    if written.iter().any(|end| source.path.ends_with(end)) && lines > LINES {
        return vec![(lines, format!("{lines} lines; at most {LINES}"))];
    }
    vec![]
}

/// What is left to do is an issue, not a remark.
pub(crate) fn no_remarks(source: &Source) -> Vec<Fault> {
    let remark = |line: &str| words(line).any(|word| [REMARKS.0, REMARKS.1].contains(&word));
    faults(source.text.lines().map(remark), "left to do: say it in an issue")
}

/// What ships has no code that nothing calls: a file that allows it hides the next such function too.
pub(crate) fn no_uncalled_code(source: &Source) -> Vec<Fault> {
    let ships = is_rust(source) && !is_below(&source.path, &["bench/", "tests/"]);
    let lines = if ships { &source.code } else { "" }.lines();
    faults(lines.map(|line| line.contains("dead_code")), "code that nothing calls: remove it")
}

/// A clone knows nothing of the place where it was written.
pub(crate) fn no_private_places(source: &Source) -> Vec<Fault> {
    let workplace = concat!("/wo", "rk/");
    let named = |line: &str| line.contains(workplace);
    let mut found = faults(source.text.lines().map(named), "a path of the workplace");
    for (at, _) in source.text.match_indices("://") {
        let host = source.text[at + 3..].split(|sign: char| !is_host(sign)).next().unwrap_or("");
        let web = source.text[..at].ends_with("http") || source.text[..at].ends_with("https");
        if web && host.contains('.') && !HOSTS.contains(&host.trim_end_matches('.')) {
            found.push((line_of(&source.text, at), format!("a host that is not in HOSTS: {host}")));
        }
    }
    found
}

/// Sources and documents are written in the terms of the field.
pub(crate) fn plain_words(source: &Source) -> Vec<Fault> {
    let is_text = [".lock", ".svg", ".jsonl"].iter().all(|end| !source.path.ends_with(end));
    if !is_text || is_below(&source.path, WORDS_ALLOWED) {
        return vec![];
    }
    let of_pages = if is_below(&source.path, PAGES) { WORDS_OF_PAGES } else { &[] };
    let of_code = if is_below(&source.path, CODE) { WORDS_OF_CODE } else { &[] };
    let mut found = Vec::new();
    for (line, text) in (1..).zip(source.text.lines()) {
        // In a page a name with an underscore is a name of the code, such as CAP_SYS_ADMIN.
        let anywhere = spaced(text, char::is_alphanumeric);
        let in_pages = spaced(text, |sign| sign.is_alphanumeric() || sign == '_');
        for (words, text) in [(WORDS, &anywhere), (of_code, &anywhere), (of_pages, &in_pages)] {
            let words = words.iter().filter(|(word, _)| text.contains(&format!(" {word} ")));
            found.extend(
                words.map(|(word, instead)| (line, format!("\"{word}\": write {instead}"))),
            );
        }
    }
    found
}

/// The words of a line, in lower case, with one space around each.
fn spaced(text: &str, is_part: impl Fn(char) -> bool) -> String {
    let words = text.split(|sign| !is_part(sign)).filter(|word| !word.is_empty());
    format!(" {} ", words.map(str::to_lowercase).collect::<Vec<_>>().join(" "))
}

/// Unsafe code stands at the borders only. A type of an unsafe function is not unsafe code.
pub(crate) fn unsafe_at_borders(source: &Source) -> Vec<Fault> {
    if is_below(&source.path, UNSAFE) {
        return vec![];
    }
    unsafe_code(source)
        .map(|(line, _)| (line, "unsafe code, and the file is not in UNSAFE".into()))
        .collect()
}

/// Each unsafe block says whose promise it relies on.
pub(crate) fn safety(source: &Source) -> Vec<Fault> {
    let blocks = unsafe_code(source).filter(|(_, what)| matches!(what, '{' | 'i')).count();
    let reasons = source.text.matches("// SAFETY:").count();
    if blocks > reasons {
        return vec![(1, format!("{blocks} unsafe blocks, {reasons} SAFETY comments"))];
    }
    vec![]
}

/// In the shim, libc has one door.
pub(crate) fn libc_at_borders(source: &Source) -> Vec<Fault> {
    if !is_rust(source) || !source.path.starts_with("shim/src/") || is_below(&source.path, LIBC) {
        return vec![];
    }
    let names =
        source.names().iter().filter(|name| name.path == "libc" || name.path.starts_with("libc::"));
    let is_number = |name: &str| {
        name.chars().all(|sign| sign.is_ascii_uppercase() || "_0123456789".contains(sign))
    };
    names
        .filter(|name| !name.path.rsplit("::").next().is_some_and(is_number))
        .map(|name| (name.line, format!("{}, and the file is not in LIBC", name.path)))
        .collect()
}

/// A layer names only what is below it.
pub(crate) fn layers(source: &Source) -> Vec<Fault> {
    let below =
        |(path, _, _): &&(&str, &[&str], &str)| is_rust(source) && source.path.starts_with(path);
    let mut found = Vec::new();
    for (_, never, why) in NEVER.iter().filter(below) {
        for name in *never {
            found.extend(named(source, name, &format!("{name}: {why}")));
        }
    }
    found
}

/// A crate depends on what the table allows it.
pub(crate) fn dependencies(source: &Source) -> Vec<Fault> {
    if !source.path.ends_with("/Cargo.toml") {
        return vec![];
    }
    let Some((_, allowed)) = DEPENDENCIES.iter().find(|(path, _)| *path == source.path) else {
        return vec![(1, "the crate is not in DEPENDENCIES".into())];
    };
    let mut found = Vec::new();
    let mut inside = false;
    for (line, text) in (1..).zip(source.text.lines()) {
        if text.starts_with('[') {
            inside = text.contains("dependencies") && !text.contains("dev-dependencies");
            if text.contains("dependencies.") {
                found.push((line, "a dependency is one line of its section".into()));
            }
        } else if inside && !text.starts_with('#') && !text.trim().is_empty() {
            let name = text.split(['.', '=']).next().unwrap_or(text).trim();
            if !allowed.contains(&name) {
                found.push((line, format!("{name} is not in DEPENDENCIES")));
            }
        }
    }
    found
}

/// The public header takes no name that is not ours.
pub(crate) fn public_names(source: &Source) -> Vec<Fault> {
    if source.path != "include/gpucap.h" {
        return vec![];
    }
    let foreign = |line: &str| {
        let declared = ["#define ", "struct ", "enum ", "union "];
        let rest = declared.iter().find_map(|word| line.strip_prefix(word));
        let name = rest.and_then(|rest| words(rest).next());
        name.is_some_and(|name| !PUBLIC.iter().any(|ours| name.starts_with(ours)))
    };
    faults(source.text.lines().map(foreign), "a public name that does not start with ours")
}

/// Each test binary of the project is a step of `ci/run`: a binary that nothing runs proves nothing.
pub(crate) fn binaries_without_step(manifest: &str, steps: &str) -> Vec<String> {
    let names = manifest.split("[[test]]").skip(1).filter_map(|block| {
        let line = block.lines().find(|line| line.trim_start().starts_with("name"))?;
        line.split('"').nth(1)
    });
    names.filter(|name| !steps.contains(&format!("tests {name}\n"))).map(str::to_owned).collect()
}

const REMARKS: (&str, &str) = (concat!("TO", "DO"), concat!("FIX", "ME"));

fn is_rust(source: &Source) -> bool {
    source.path.ends_with(".rs")
}

fn is_host(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '.' || sign == '-'
}

fn is_below(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)))
}

fn faults(broken: impl Iterator<Item = bool>, what: &str) -> Vec<Fault> {
    (1..)
        .zip(broken)
        .filter(|(_, broken)| *broken)
        .map(|(line, _)| (line, what.to_owned()))
        .collect()
}

/// Where the shipped code names `path`, or anything below it.
fn named(source: &Source, path: &str, what: &str) -> Vec<Fault> {
    let is_it = |name: &str| {
        name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let names = source.names().iter().filter(|name| is_it(&name.path));
    names.map(|name| (name.line, what.to_owned())).collect()
}

/// Where `unsafe` stands, and the first letter of what it opens: `{`, `(` of an attribute, `fn`, `impl`, ...
fn unsafe_code(source: &Source) -> impl Iterator<Item = (usize, char)> {
    let code = if is_rust(source) { &*source.code } else { "" };
    code.match_indices("unsafe").filter_map(|(at, word)| {
        let alone =
            |sign: Option<char>| !sign.is_some_and(|sign| sign.is_alphanumeric() || sign == '_');
        let rest = &code[at + word.len()..];
        if !alone(code[..at].chars().next_back()) || !alone(rest.chars().next()) {
            return None;
        }
        let opened = rest.trim_start();
        let function = opened.trim_start_matches("extern").trim_start();
        let is_type =
            function.strip_prefix("fn").is_some_and(|rest| rest.trim_start().starts_with('('));
        if is_type { None } else { Some((line_of(code, at), opened.chars().next()?)) }
    })
}
