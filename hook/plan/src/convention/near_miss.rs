//! What may have been meant as a limit and is none: names that are nearly those of a source, and halves of a pair.
//!
//! Notes for a person, who may have misspelt a name: nothing is decided by them. A pod's author writes as many names as a
//! request has room for, so how many are compared, how long they are and how many are named is bounded.

use std::collections::BTreeMap;

use gpucap_core::config::OPTIONS;

use super::hears;
use crate::document::env::{self, Env};
use crate::document::node::Node;

/// More are not named.
const MOST: usize = 8;
/// More, and longer ones, are not compared.
const MOST_COMPARED: usize = 256;
const LONGEST: usize = 64;
/// Signs to add, take away, replace or swap until one name is the other.
const NEAR: usize = 3;
/// A name that is no longer than that has too many near ones.
const NEAR_DOMAIN: usize = 2;
/// What a near name begins with as the other does.
const BEGINNING: usize = 3;

/// Variables that limit nothing without another one.
const PAIRS: [(&str, &str); 4] = [
    ("GPU_MEM_PER_DEVICE", "AMP_VGPU_ENABLE"),
    ("GPU_PORTION", "RUNAI_NUM_OF_GPUS"),
    ("GPU_UTIL_PER_DEVICE", "AMP_VGPU_ENABLE"),
    ("NVIDIA_GPU_MEMORY_REQUEST", "NVIDIA_GPU_MEMORY_LIMIT"),
];

/// Variables and annotations whose names are nearly those of a limit.
pub(crate) fn near(env: &Env, node: &Node, annotations: &BTreeMap<String, String>) -> Vec<String> {
    let is_set = |wanted: &str| env.iter().any(|(name, value)| name == wanted && !value.is_empty());
    let alone = PAIRS.iter().filter(|(name, other)| is_set(name) && !is_set(other));
    let alone =
        alone.map(|(name, other)| format!("environment {name} limits nothing without {other}"));

    let variables = variables(env, &env::HEARD);
    let keys = annotations.keys().filter(|key| key.len() <= LONGEST && !hears(node, key));
    let own = node.annotation_domain.as_str();
    let domains = keys.take(MOST_COMPARED).filter_map(|key| {
        let (domain, _) = key.split_once('/')?;
        let key = key.escape_default();
        is_near(domain, own, NEAR_DOMAIN)
            .then(|| format!("annotation {key} is not read: is the domain {own} meant?"))
    });
    alone.chain(variables).chain(domains).take(MOST).collect()
}

/// One line for each variable of a program whose name is nearly that of a variable that the library reads.
#[must_use]
pub fn misspelt(env: &Env) -> Vec<String> {
    let read: Vec<&str> = OPTIONS.iter().map(|row| row.name).collect();
    variables(env, &read).take(MOST).collect()
}

/// Variables whose names are nearly one of these.
fn variables<'a>(env: &'a Env, read: &'a [&'static str]) -> impl Iterator<Item = String> + 'a {
    let may_be =
        |name: &&str| name.len() <= LONGEST && !env::is_heard(name) && !read.contains(name);
    let names = env.iter().map(|(name, _)| name).filter(may_be).take(MOST_COMPARED);
    names.filter_map(|name| {
        let meant = read.iter().find(|meant| is_near(name, meant, NEAR))?;
        Some(format!("environment {} is not read: is {meant} meant?", name.escape_default()))
    })
}

/// Annotations that a source reads and that set no limit, of a container that asks for none.
pub(crate) fn without_limit(node: &Node, annotations: &BTreeMap<String, String>) -> Vec<String> {
    let keys = annotations.keys().filter(|key| hears(node, key)).take(MOST);
    keys.map(|key| format!("annotation {} says no limit that is known here", key.escape_default()))
        .collect()
}

fn is_near(name: &str, meant: &str, near: usize) -> bool {
    let (name, meant) = (name.to_ascii_uppercase(), meant.to_ascii_uppercase());
    let begins_alike = name.as_bytes().get(..BEGINNING) == meant.as_bytes().get(..BEGINNING);
    let is_as_long = name.len().abs_diff(meant.len()) <= near;
    begins_alike && is_as_long && strsim::damerau_levenshtein(&name, &meant) <= near
}
