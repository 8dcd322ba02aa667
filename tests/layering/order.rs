//! The order of modules: each names only what is below it, and no files name each other in a circle.
//!
//! The orders are in `modules`. [`upward`] looks at one file, as the other rules do; [`circle`] and [`stale`] look at
//! all files of a crate, since a circle has several and an entry of a table may have none.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{MODULES, Modules};
use crate::rules::Fault;
use crate::source::Source;

/// A module names only what is below it.
pub(crate) fn upward(source: &Source) -> Vec<Fault> {
    MODULES
        .iter()
        .filter(|modules| is_of(source, modules))
        .flat_map(|it| above(source, it))
        .collect()
}

pub(crate) fn above(source: &Source, modules: &Modules) -> Vec<Fault> {
    let path = source.module();
    let Some(own) = module_of(&path) else { return vec![] };
    let place = |name: &str| modules.order.iter().position(|(module, _)| *module == name);
    let Some(own_place) = place(own) else {
        return vec![(1, format!("the module {own} is not in MODULES"))];
    };
    let mut found = Vec::new();
    for (line, other) in named_modules(source) {
        if other == own {
            continue;
        }
        // What is no module is an item of the crate's own file, which is above all.
        let is_above = place(&other).is_none_or(|place| place > own_place);
        if is_above && !is_allowed(modules, own, &other) {
            found.push((line, format!("{own} names {other}, which is above it")));
        }
    }
    found
}

/// The names that this file writes from the root of the crate: their first parts.
fn named_modules(source: &Source) -> impl Iterator<Item = (usize, String)> {
    let rooted = |path: &str| Some(path.strip_prefix("crate::")?.split("::").next()?.to_owned());
    source.names().iter().filter_map(move |name| Some((name.line, rooted(&name.path)?)))
}

/// What a table says that is no longer so: a module without a file, an allowed arrow that no file needs.
pub(crate) fn stale(sources: &[Source], modules: &Modules) -> Vec<String> {
    let files: Vec<_> = sources.iter().filter(|source| is_of(source, modules)).collect();
    let own = |source: &Source| module_of(&source.module()).map(str::to_owned);
    let mut found = Vec::new();
    for (module, _) in modules.order {
        if !files.iter().any(|source| own(source).as_deref() == Some(module)) {
            found.push(format!("{}: there is no module {module}", modules.sources));
        }
    }
    for (from, to, _) in modules.upward {
        let of_it = files.iter().filter(|source| own(source).as_deref() == Some(from));
        if !of_it.flat_map(|source| named_modules(source)).any(|(_, other)| other == *to) {
            found.push(format!("{}: {from} does not name {to} any more", modules.sources));
        }
    }
    found
}

/// Files that name each other in a circle: the path from one of them back to itself.
pub(crate) fn circle(sources: &[Source], modules: &Modules) -> Option<Vec<String>> {
    let files = sources.iter().filter(|source| is_of(source, modules));
    let files: BTreeMap<String, &Source> = files.map(|source| (source.module(), source)).collect();
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, source) in &files {
        let named = source.names().iter().filter_map(|name| file_of(&files, module, &name.path));
        arrows.insert(module, named.filter(|other| other != module).collect());
    }
    // What names nothing that is left is in no circle.
    while let Some(free) = arrows.iter().find(|(_, to)| to.is_empty()).map(|(module, _)| *module) {
        arrows.remove(free);
        for to in arrows.values_mut() {
            to.remove(free);
        }
    }
    let mut path = vec![*arrows.first_key_value()?.0];
    loop {
        let next = *arrows.get(path.last()?)?.first()?;
        if let Some(start) = path.iter().position(|module| *module == next) {
            return Some(path[start..].iter().chain([&next]).map(|&it| it.to_owned()).collect());
        }
        path.push(next);
    }
}

/// The file that holds what `name` says in `module`: the longest beginning of the name that is a file.
fn file_of<'a>(files: &'a BTreeMap<String, &Source>, module: &str, name: &str) -> Option<&'a str> {
    let inside = format!("{module}::{name}");
    let mut path = if name.starts_with("crate::") {
        name
    } else {
        // A child of this module. The word alone may be anything.
        let (child, _) = name.split_once("::")?;
        files.contains_key(&format!("{module}::{child}")).then_some(&*inside)?
    };
    loop {
        if let Some((file, _)) = files.get_key_value(path) {
            return Some(file);
        }
        path = path.rsplit_once("::")?.0;
    }
}

fn is_of(source: &Source, modules: &Modules) -> bool {
    source.path.starts_with(modules.sources) && source.path.ends_with(".rs")
}

/// The module of the crate that a file belongs to; `None` for the file of the crate itself.
fn module_of(path: &str) -> Option<&str> {
    path.strip_prefix("crate::")?.split("::").next()
}

fn is_allowed(modules: &Modules, from: &str, to: &str) -> bool {
    modules.upward.iter().any(|(own, other, _)| (*own, *other) == (from, to))
}
