//! containerd's switch for NRI: off by default in 1.7, on in 2.x. A comment behind it says what it was.

use super::mark;
use crate::command::configure::toml;
use std::result::Result;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

const PLUGIN: &str = "io.containerd.nri.v1.nri";
const KEY: &str = "disable";
/// What stands behind the switch if it is ours: it was not there, and neither was its table; it was not there; it was on.
const TABLE: &str = " # gpucap: new table";
const NEW: &str = mark::NEW;
const TRUE: &str = " # gpucap: was true";

/// The configuration with NRI switched on.
pub(super) fn enabled(text: &str) -> Result<String, String> {
    let mut document = toml::parse(text)?;
    let mark = match table(&mut document) {
        None => TABLE,
        Some(table) => match table.get(KEY).map(Item::as_bool) {
            None => NEW,
            Some(Some(false)) => return Ok(text.to_owned()),
            Some(Some(true)) => TRUE,
            Some(None) => return Err(format!("plugins.{PLUGIN}.{KEY} is neither true nor false")),
        },
    };
    let plugins = document.entry("plugins").or_insert_with(implicit);
    let plugins = plugins.as_table_like_mut().ok_or("plugins is no table")?;
    let table = plugins.entry(PLUGIN).or_insert_with(|| Item::Table(Table::new()));
    let table = table.as_table_like_mut().ok_or_else(|| format!("plugins.{PLUGIN} is no table"))?;
    let held = mark::behind(table, KEY);
    mark::set(table, KEY, value(false), &format!("{mark}{held}"));
    Ok(document.to_string())
}

/// The configuration with the switch as it was before us.
pub(super) fn restored(text: &str) -> Result<String, String> {
    let mut document = toml::parse(text)?;
    let Some(table) = table(&mut document) else { return Ok(text.to_owned()) };
    let held = mark::behind(table, KEY);
    // The longer marks first: one begins with the other.
    if let Some(rest) = held.strip_prefix(TRUE) {
        mark::set(table, KEY, value(true), rest);
    } else if held.starts_with(NEW) {
        table.remove(KEY);
        if held.starts_with(TABLE) && table.is_empty() {
            document["plugins"].as_table_like_mut().map(|plugins| plugins.remove(PLUGIN));
            let plugins = document["plugins"].as_table();
            if plugins.is_some_and(|it| it.is_implicit() && it.is_empty()) {
                document.remove("plugins");
            }
        }
    }
    Ok(document.to_string())
}

fn table(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    document.get_mut("plugins")?.as_table_like_mut()?.get_mut(PLUGIN)?.as_table_like_mut()
}

fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disabled(text: &str) -> Option<bool> {
        let document: DocumentMut = text.parse().expect("TOML");
        document["plugins"][PLUGIN][KEY].as_bool()
    }

    #[test]
    fn it_is_on_afterwards_and_as_before_when_taken_out() {
        for text in [
            "version = 2\n",
            "version = 2\n[plugins.\"other\"]\nx = 1\n",
            "[plugins.\"io.containerd.nri.v1.nri\"]\n  socket_path = \"/s\"\n",
            "[plugins.\"io.containerd.nri.v1.nri\"]\n",
            "[plugins]\n  [plugins.'io.containerd.nri.v1.nri']\n    disable = true # for now\n    x = 1\n",
            "[plugins.'io.containerd.nri.v1.nri']\n  # before\n  disable = true\n  # behind\n",
        ] {
            let on = enabled(text).expect("a configuration");
            assert_eq!(disabled(&on), Some(false), "{on}");
            assert_eq!(enabled(&on).expect("a configuration"), on, "a second time changes nothing");
            assert_eq!(restored(&on).expect("a configuration"), text);
        }
    }

    #[test]
    fn where_it_is_on_nothing_is_touched_now_or_later() {
        let text = "[plugins.'io.containerd.nri.v1.nri']\ndisable = false # by hand\n";
        assert_eq!(enabled(text).expect("a configuration"), text);
        assert_eq!(restored(text).expect("a configuration"), text);
        assert_eq!(restored("version = 2\n").expect("a configuration"), "version = 2\n");
    }

    #[test]
    fn what_is_no_switch_is_refused() {
        for text in [
            "plugins = 1\n",
            "[plugins]\n'io.containerd.nri.v1.nri' = 1\n",
            "[plugins.'io.containerd.nri.v1.nri']\ndisable = 'no'\n",
        ] {
            assert!(enabled(text).is_err(), "{text}");
        }
    }
}
