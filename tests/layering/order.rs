//! The order of modules: each names only what is below it.
//!
//! The orders are in `modules`. [`upward`] looks at one file, as the other rules do; [`stale`] looks at all files of a
//! crate, since an entry of a table may have none. Circles, which a crate has between its files, are in `circles`.

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

/// Whether a file is one of this crate's sources.
pub(crate) fn is_of(source: &Source, modules: &Modules) -> bool {
    source.path.starts_with(modules.sources) && source.path.ends_with(".rs")
}

/// The module of the crate that a file belongs to; `None` for the file of the crate itself.
fn module_of(path: &str) -> Option<&str> {
    path.strip_prefix("crate::")?.split("::").next()
}

fn is_allowed(modules: &Modules, from: &str, to: &str) -> bool {
    modules.upward.iter().any(|(own, other, _)| (*own, *other) == (from, to))
}
