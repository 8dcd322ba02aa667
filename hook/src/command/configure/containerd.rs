//! containerd: a runtime handler with a base specification that names the hook.
//!
//! A handler that is not there yet becomes a copy of the one that containers have today, so that its options (the
//! cgroup driver, the NVIDIA runtime below it) hold for it too. The sandbox of a pod has the hook as well, which leaves
//! it alone. The file is edited in place: what `imports` names would replace whole tables in containerd 1.x. Where such
//! a file has handlers, that one is to be edited.

mod imports;
mod mark;
mod nri;
#[cfg(test)]
mod tests;

use super::change::{Change, read};
use super::options::{HANDLER, Options};
use super::{lines, toml};
use crate::error::{Error, Result};
use crate::inject::hooks::{Hooks, STAGES};
use crate::node::inputs;
use gpucap_plan::Node;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use toml_edit::{Array, DocumentMut, Item, Table, value};

const FILE: &str = "/etc/containerd/config.toml";
const ADVICE: &str = "restart containerd";
/// Where the handlers are, by the version of the file, which is that of containerd 1.x or 2.x.
const PLUGINS: [(i64, &str); 2] =
    [(2, "io.containerd.grpc.v1.cri"), (3, "io.containerd.cri.v1.runtime")];
const VERSION: &str = "version";
/// The keys of a handler that are changed.
const BASE: &str = "base_runtime_spec";
const LIST: &str = "pod_annotations";
const TYPE: &str = "runtime_type";
/// Only the listed annotations of a pod reach the hook: the sources of limits, and CDI, which names GPUs.
fn annotations(node: &Node) -> impl Iterator<Item = String> {
    gpucap_plan::annotation_patterns(node).chain(["cdi.k8s.io/*".to_owned()])
}

/// NVIDIA's handler, as its toolkit and most clouds call it.
const NVIDIA: &str = "nvidia";
/// The handler that every containerd has.
const PLAIN: &str = "runc";
const RUNTIME_TYPE: &str = "io.containerd.runc.v2";

/// The handler that is to be there, or to go.
#[derive(Clone, Copy)]
struct Handler<'a> {
    name: &'a str,
    specification: &'a Path,
    node: &'a Node,
}

/// The resulting configuration and base specification, and the remaining steps.
pub(super) fn changes(options: &Options, hooks: Hooks<'_>) -> Result<(Vec<Change>, String)> {
    let path = options.file.as_deref().unwrap_or_else(|| Path::new(FILE));
    let before = read(path)?;
    let text = before.as_deref().unwrap_or_default();
    let specification = options.specification.as_path();
    let wrong = |why: String| Error::Configure(format!("{}: {why}", path.display()));
    // The file may be still to come. Where it cannot be used, the annotations that it hears are not known.
    let node = match inputs::node(&options.config) {
        Err(why) if !options.undo => return Err(Error::Configure(why.to_string())),
        node => node.unwrap_or_default(),
    };
    let own = Handler { name: &options.handler, specification, node: &node };
    let file = |after: Option<String>| Change {
        path: path.to_owned(),
        after: after.map(|after| lines::ended_like(text, &after)),
        before: before.clone(),
    };
    if options.undo {
        let after = remove(text, own);
        let after = after.and_then(|text| nri::restored(&text)).map(|text| unversioned(&text));
        let after = after.map_err(wrong)?;
        let is_named = is_named(specification, &after, path);
        // Before the specification: a handler that names a missing one would start no container.
        let mut changes = vec![file(Some(after).filter(|after| !after.trim().is_empty()))];
        if is_named {
            let stays = specification.display();
            return Ok((changes, format!("{ADVICE}; {stays} stays: another handler names it")));
        }
        changes.push(Change::without_ours(specification)?);
        return Ok((changes, ADVICE.into()));
    }
    let mut after = add(text, own).map_err(wrong)?;
    let mut document = toml::parse(&after).map_err(wrong)?;
    let plugin = plugin(&mut document).map_err(wrong)?;
    if let Some(file) = imports::having(&after, path, plugin) {
        let file = file.display();
        return Err(wrong(format!(
            "it imports {file}, whose handlers stand in for those here: give it as --file"
        )));
    }
    if options.nri {
        after = nri::enabled(&after).map_err(wrong)?;
    }
    let base = Change::to_ours(specification, base(hooks)?)?;
    Ok((vec![base, file(Some(after))], ADVICE.into()))
}

/// Whether a handler names the specification: in this file as it is to be, in containerd's own, or in what these import.
/// A file that cannot be read may do so.
fn is_named(specification: &Path, text: &str, path: &Path) -> bool {
    let main = Path::new(FILE);
    let others = (path != main).then(|| read(main).ok().flatten().unwrap_or_default());
    let of_main = others.iter().flat_map(|text| imports::all(text, main));
    let mut imported = imports::all(text, path).chain(of_main).filter(|file| file != path);
    names(text, specification)
        || others.iter().any(|text| names(text, specification))
        || imported.any(|file| match read(&file) {
            Ok(text) => text.is_some_and(|text| names(&text, specification)),
            Err(_) => true,
        })
}

/// Whether a handler of a file names it.
fn names(text: &str, specification: &Path) -> bool {
    let Ok(document) = toml::parse(text) else { return true };
    let own = specification.to_string_lossy();
    PLUGINS.iter().any(|(_, plugin)| {
        let place = ["plugins", plugin, "containerd", "runtimes"];
        let found = place.iter().try_fold(document.as_item(), |item, key| item.get(key));
        let handlers = found.and_then(Item::as_table_like);
        handlers.is_some_and(|handlers| {
            handlers
                .iter()
                .any(|(_, handler)| handler.get(BASE).and_then(Item::as_str) == Some(own.as_ref()))
        })
    })
}

/// containerd's own default, with the hook: nothing else may differ from a container without it.
fn base(hooks: Hooks<'_>) -> Result<String> {
    let wrong = |why: &str| Error::Configure(format!("ctr oci spec: {why}"));
    let output = Command::new("ctr").args(["oci", "spec"]).output();
    let output = output.map_err(|why| wrong(&crate::error::reason(&why)))?;
    let specification: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let mut specification = specification
        .filter(|it| output.status.success() && it.is_object())
        .ok_or_else(|| wrong("gives no specification"))?;
    for stage in STAGES {
        specification["hooks"][stage] = json!([hooks.at(stage)]);
    }
    // It takes its own bound of 1024 open files back from a container, but not from one that has a base.
    if let Some(process) = specification["process"].as_object_mut() {
        process.remove("rlimits");
    }
    Ok(format!("{specification:#}\n"))
}

/// The configuration with the handler.
fn add(text: &str, own: Handler<'_>) -> std::result::Result<String, String> {
    let Handler { name, specification, node } = own;
    let mut document = toml::parse(text)?;
    let plugin = plugin(&mut document)?;
    let usual = default_handler(&document, plugin);
    let handlers =
        handlers(&mut document, plugin).ok_or("plugins: not tables as containerd has them")?;
    if !handlers.contains_key(name) {
        let mut new = model(handlers, &usual).unwrap_or_else(|| Item::Table(Table::new()));
        place_last(&mut new);
        handlers.insert(name, new);
    }
    let handler = handlers.get_mut(name).and_then(Item::as_table_mut);
    let handler = handler.ok_or_else(|| format!("runtimes.{name} is no table"))?;
    let own = specification.to_string_lossy();
    let held = handler.get(BASE).and_then(Item::as_str);
    let is_new = held != Some(own.as_ref());
    match held {
        Some(_) if !is_new => {}
        Some("") => {
            let held = handler.get(BASE).map(ToString::to_string).unwrap_or_default();
            let behind = mark::was(&held) + &mark::behind(handler, BASE);
            mark::set(handler, BASE, value(own.as_ref()), &behind);
        }
        Some(other) => return Err(format!("runtimes.{name} has a {BASE} already: {other}")),
        None => handler[BASE] = value(own.as_ref()),
    }
    if !handler.contains_key(TYPE) {
        mark::set(handler, TYPE, value(RUNTIME_TYPE), mark::NEW);
    }
    let Some(list) = handler.get(LIST) else {
        handler[LIST] = value(annotations(node).collect::<Array>());
        return Ok(document.to_string());
    };
    let mut list = list.as_array().ok_or("pod_annotations is no list")?.clone();
    let behind = mark::behind(handler, LIST);
    let behind = if is_new { mark::had(&list) + &behind } else { behind };
    for annotation in annotations(node) {
        if !list.iter().any(|held| held.as_str() == Some(annotation.as_str())) {
            list.push(annotation);
        }
    }
    mark::set(handler, LIST, Item::Value(list.into()), &behind);
    Ok(document.to_string())
}

/// What a new handler is made after. Where none is called as NVIDIA's is, the one of pods that name none is it: AKS has
/// it by another name.
fn model(handlers: &Table, usual: &str) -> Option<Item> {
    let found = [NVIDIA, usual, PLAIN].into_iter().filter_map(|name| handlers.get(name));
    let calls_hooks = |handler: &&Item| {
        let kind = handler.get("runtime_type").and_then(Item::as_str);
        kind.is_none_or(|kind| kind.is_empty() || kind == RUNTIME_TYPE)
    };
    found.into_iter().find(calls_hooks).cloned()
}

/// The name of the handler of pods that name none.
fn default_handler(document: &DocumentMut, plugin: &str) -> String {
    let name = ["plugins", plugin, "containerd", "default_runtime_name"];
    let found = name.iter().try_fold(document.as_item(), |item, key| item.get(key));
    found.and_then(Item::as_str).unwrap_or(PLAIN).to_owned()
}

/// The configuration without it.
fn remove(text: &str, own: Handler<'_>) -> std::result::Result<String, String> {
    let Handler { name, specification, node } = own;
    let mut document = toml::parse(text)?;
    let plugin = plugin(&mut document)?;
    let Some(handlers) = handlers(&mut document, plugin) else { return Ok(text.to_owned()) };
    let Some(handler) = handlers.get_mut(name).and_then(Item::as_table_mut) else {
        return Ok(text.to_owned());
    };
    let own = specification.to_string_lossy();
    if handler.get(BASE).and_then(Item::as_str) != Some(own.as_ref()) {
        return Ok(text.to_owned());
    }
    if name == HANDLER {
        handlers.remove(name);
        return Ok(document.to_string());
    }
    mark::restore_text(handler, BASE);
    mark::restore_list(handler, LIST, |held| annotations(node).any(|own| own == held));
    mark::remove_new(handler, TYPE);
    Ok(document.to_string())
}

/// The configuration without the version key that this program added, if nothing else is left in it.
fn unversioned(text: &str) -> String {
    match toml::parse(text) {
        Ok(mut document) if document.len() == 1 => {
            mark::remove_new(document.as_table_mut(), VERSION);
            document.to_string()
        }
        _ => text.to_owned(),
    }
}

/// The plugin that has the handlers. A new file is of the version that 1.x and 2.x both understand.
fn plugin(document: &mut DocumentMut) -> std::result::Result<&'static str, String> {
    if document.is_empty() {
        mark::set(document.as_table_mut(), VERSION, value(2), mark::NEW);
    }
    let version = document.get(VERSION).and_then(Item::as_integer);
    let found = PLUGINS.iter().find(|(number, _)| Some(*number) == version);
    let wrong = "not of version 2 or 3; `containerd config migrate` makes it so";
    found.map(|(_, plugin)| *plugin).ok_or_else(|| wrong.into())
}

fn handlers<'a>(document: &'a mut DocumentMut, plugin: &str) -> Option<&'a mut Table> {
    let mut table = document.as_table_mut();
    for name in ["plugins", plugin, "containerd", "runtimes"] {
        let inner = table.entry(name).or_insert_with(|| {
            let mut inner = Table::new();
            inner.set_implicit(true);
            Item::Table(inner)
        });
        table = inner.as_table_mut()?;
    }
    Some(table)
}

/// A copy stands where its model does; behind all others it is easier to find.
fn place_last(item: &mut Item) {
    if let Some(table) = item.as_table_mut() {
        table.set_position(None);
        table.decor_mut().clear();
        table.iter_mut().for_each(|(_, inner)| place_last(inner));
    }
}
