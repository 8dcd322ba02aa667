//! Comments behind values that this program wrote. They keep the previous text, so that `--undo` can restore it to
//! the byte.
//!
//! A value without a mark was written by a version that set none, or stands in a table that is ours alone.

use toml_edit::{Array, Item, TableLike, Value};

/// The key was not there.
pub(super) const NEW: &str = " # gpucap: new";
/// The value was another; it follows.
const WAS: &str = " # gpucap: was ";
/// A list was shorter; how many entries it had follows.
const HAD: &str = " # gpucap: had ";

/// That the value was an empty text, in this writing of it.
pub(super) fn was(held: &str) -> String {
    format!("{WAS}{}", if held.contains('\'') { "''" } else { "\"\"" })
}

/// That the list had these entries.
pub(super) fn had(list: &Array) -> String {
    format!("{HAD}{}", list.len())
}

/// What stands behind the value, on its line.
pub(super) fn behind(table: &dyn TableLike, key: &str) -> String {
    let decor = table.get(key).and_then(Item::as_value).map(Value::decor);
    let suffix = decor.and_then(|decor| decor.suffix()?.as_str());
    suffix.unwrap_or_default().to_owned()
}

/// Gives a key this value with this behind it. The key keeps its place and what stands before it.
pub(super) fn set(table: &mut dyn TableLike, key: &str, mut item: Item, behind: &str) {
    let held = table.get(key).and_then(Item::as_value).map(Value::decor);
    let prefix = held.and_then(|decor| decor.prefix()?.as_str()).unwrap_or(" ").to_owned();
    if let Some(value) = item.as_value_mut() {
        value.decor_mut().set_suffix(behind);
        value.decor_mut().set_prefix(prefix);
    }
    match table.get_mut(key) {
        Some(held) => *held = item,
        None => drop(table.insert(key, item)),
    }
}

/// Removes a value that this program wrote: the previous text comes back, or the key is removed.
pub(super) fn restore_text(table: &mut dyn TableLike, key: &str) {
    let held = behind(table, key);
    let old = held.strip_prefix(WAS).and_then(|rest| rest.split_at_checked(2));
    match old.and_then(|(old, rest)| Some((old.parse::<Value>().ok()?, rest))) {
        Some((old, rest)) => set(table, key, Item::Value(old), rest),
        None => drop(table.remove(key)),
    }
}

/// Removes this program's entries from a list: entries that were there before stay, equal ones included.
pub(super) fn restore_list(table: &mut dyn TableLike, key: &str, is_ours: impl Fn(&str) -> bool) {
    let held = behind(table, key);
    let Some(mut list) = table.get(key).and_then(Item::as_array).cloned() else { return };
    let marked = held.strip_prefix(HAD).map(|rest| {
        let digits = rest.len() - rest.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
        rest.split_at(digits)
    });
    let had = marked.and_then(|(had, _)| had.parse().ok()).unwrap_or(0);
    let mut index = 0;
    list.retain(|entry| {
        index += 1;
        index <= had || !entry.as_str().is_some_and(&is_ours)
    });
    match marked {
        Some((_, rest)) => set(table, key, Item::Value(list.into()), rest),
        None if list.is_empty() => drop(table.remove(key)),
        None => set(table, key, Item::Value(list.into()), &held),
    }
}

/// Takes a key out that was not there before.
pub(super) fn remove_new(table: &mut dyn TableLike, key: &str) {
    if behind(table, key).starts_with(NEW) {
        table.remove(key);
    }
}
