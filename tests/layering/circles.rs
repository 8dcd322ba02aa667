//! Files of a crate that name each other in a circle, with the arrows that close it.
//!
//! A file names another where a path in its shipped code begins with the module that the other file is. A parent that
//! declares a child does not name it by that alone: it does once it uses an item of the child, and a child that then
//! names its parent closes a circle. Each arrow of a circle is one line of the result, so that a reader sees them all.
//! Arrows that the table allows are left out before circles are looked for, and reported once they close none.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::Modules;
use crate::order::is_of;
use crate::source::{Name, Source};

/// The files that each file names, with the first line on which it does.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// The arrows that close a circle, `path:line: one names other`, and allowed ones that close none.
pub(crate) fn circles(sources: &[Source], modules: &Modules) -> Vec<String> {
    let files = sources.iter().filter(|source| is_of(source, modules));
    let files: BTreeMap<String, &Source> = files.map(|source| (source.module(), source)).collect();
    let named = files.iter().map(|(module, source)| (&**module, named(&files, module, source)));
    let mut arrows: Arrows<'_> = named.collect();
    let mut found = Vec::new();
    for (from, to, _) in modules.circles {
        if !closes(&arrows, from, to) {
            found.push(format!("{}: {from} names {to} in no circle any more", modules.sources));
        }
    }
    for (from, to, _) in modules.circles {
        arrows.get_mut(from).and_then(|named| named.remove(to));
    }
    for (from, named) in &arrows {
        for (to, line) in named.iter().filter(|(to, _)| closes(&arrows, from, to)) {
            found.push(format!("{}:{line}: {from} names {to}", files[*from].path));
        }
    }
    found
}

/// Whether there is this arrow, and a way back.
fn closes(arrows: &Arrows<'_>, from: &str, to: &str) -> bool {
    let mut found = BTreeSet::new();
    let mut open = vec![to];
    while let Some(file) = open.pop() {
        open.extend(
            arrows
                .get(file)
                .into_iter()
                .flatten()
                .map(|(to, _)| to)
                .filter(|to| found.insert(**to)),
        );
    }
    found.contains(from) && arrows.get(from).is_some_and(|named| named.contains_key(to))
}

/// The files that `source`, which is this module, names.
fn named<'a>(
    files: &'a BTreeMap<String, &Source>,
    module: &str,
    source: &Source,
) -> BTreeMap<&'a str, usize> {
    let mut named = BTreeMap::new();
    for name in source.names() {
        if let Some(other) = file_of(files, name).filter(|other| *other != module) {
            named.entry(other).or_insert(name.line);
        }
    }
    named
}

/// The file that holds what a name says: the longest beginning of the name that is a file.
fn file_of<'a>(
    files: &'a BTreeMap<String, &Source>,
    Name { path, module, .. }: &Name,
) -> Option<&'a str> {
    let inside = format!("{module}::{path}");
    let mut path = if path.starts_with("crate::") {
        &**path
    } else {
        // A child of this module. The word alone may be anything.
        let (child, _) = path.split_once("::")?;
        files.contains_key(&format!("{module}::{child}")).then_some(&*inside)?
    };
    loop {
        if let Some((file, _)) = files.get_key_value(path) {
            return Some(file);
        }
        path = path.rsplit_once("::")?.0;
    }
}
