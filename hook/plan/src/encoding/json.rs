//! Lenient reading of JSON from other programs: a value that is missing or of another type is absent.
//!
//! Engines add fields and change types of fields that we do not need; only what we need may disturb us.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::reason::Reason;

/// The document, whatever encoding errors its strings have: what Go's parser lets through, this does.
pub(crate) fn parse(what: &'static str, bytes: &[u8]) -> Result<Value, Reason> {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&text).map_err(|why| Reason::document(what, why))
}

/// The text at this path of keys.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// The value at this path of keys.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The elements of the list at this path.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> {
    at(value, path).and_then(Value::as_array).into_iter().flatten()
}

/// The texts of the object at this path.
pub(crate) fn texts(value: &Value, path: &[&str]) -> BTreeMap<String, String> {
    let object = at(value, path).and_then(Value::as_object).into_iter().flatten();
    object.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
