//! A member put into an object of a JSON text, and taken out again, with all else left as it is written.
//!
//! The text is never printed anew: numbers keep their digits, lines their ends and lists their form. A new member is
//! written as its object is, over several lines or on one. [`without`] inverts [`with`].

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// The error in a text, or in an object in it.
pub(super) type Result<T> = std::result::Result<T, String>;

/// The members of an object by name, and where their values are.
type Members = BTreeMap<String, Range<usize>>;

/// The members of the object at this place.
pub(super) fn members(text: &str, object: &Range<usize>) -> Result<Members> {
    let raw: BTreeMap<String, &RawValue> =
        serde_json::from_str(&text[object.clone()]).map_err(|why| why.to_string())?;
    let place = |value: &RawValue| {
        let start = value.get().as_ptr().addr() - text.as_ptr().addr();
        start..start + value.get().len()
    };
    Ok(raw.into_iter().map(|(name, value)| (name, place(value))).collect())
}

/// The object that is the whole text.
pub(super) fn whole(text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start().len();
    start..text.trim_end().len()
}

/// The text with one more member at the end of the object.
pub(super) fn with(text: &str, object: &Range<usize>, name: &str, value: &Value) -> Result<String> {
    let last = members(text, object)?.values().map(|place| place.end).max();
    let (at, comma) = last.map_or((object.start + 1, ""), |last| (last, ","));
    let name = Value::from(name);
    let member = match Lines::of(text, object) {
        Some(lines) => {
            format!("{}{}{name}: {}", lines.end, lines.inner, lines.indented(value))
        }
        None if last.is_some() => format!(" {name}: {value}"),
        None => format!("{name}: {value}"),
    };
    Ok(format!("{}{comma}{member}{}", &text[..at], &text[at..]))
}

/// The text with another value for a member of the object, which has it.
pub(super) fn replaced(
    text: &str,
    object: &Range<usize>,
    name: &str,
    value: &Value,
) -> Result<String> {
    let place = members(text, object)?.remove(name).ok_or_else(|| format!("{name} is missing"))?;
    let value = match Lines::of(text, object) {
        Some(lines) => lines.indented(value),
        None => value.to_string(),
    };
    Ok(format!("{}{value}{}", &text[..place.start], &text[place.end..]))
}

/// The text without a member of the object, which has it.
pub(super) fn without(text: &str, object: &Range<usize>, name: &str) -> Result<String> {
    let members = members(text, object)?;
    let place = members.get(name).ok_or_else(|| format!("{name} is missing"))?;
    let before = members.values().map(|it| it.end).filter(|end| *end < place.start).max();
    let cut = match before {
        Some(before) => before..place.end,
        None if members.len() == 1 => object.start + 1..place.end,
        None => {
            let comma = text[place.end..].find(',').unwrap_or_default();
            object.start + 1..place.end + comma + 1
        }
    };
    Ok(format!("{}{}", &text[..cut.start], &text[cut.end..]))
}

/// How an object over several lines is written.
struct Lines<'a> {
    /// What stands before each of its members.
    inner: String,
    /// How much deeper the next level is.
    unit: &'a str,
    end: &'static str,
}

impl<'a> Lines<'a> {
    /// `None`: it is on one line.
    fn of(text: &'a str, object: &Range<usize>) -> Option<Self> {
        let body = &text[object.start + 1..object.end - 1];
        let blank = &body[..body.len() - body.trim_start().len()];
        let (_, inner) = blank.rsplit_once('\n')?;
        let line = text[..object.start].rfind('\n').map_or(0, |at| at + 1);
        let outer = indent(&text[line..]);
        let usual = || text.lines().map(indent).find(|it| !it.is_empty()).unwrap_or("    ");
        let deeper = inner.strip_prefix(outer).filter(|unit| !unit.is_empty());
        let unit = deeper.unwrap_or_else(usual);
        let is_empty = blank.len() == body.len();
        let inner = if is_empty { format!("{outer}{unit}") } else { inner.to_owned() };
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Some(Self { inner, unit, end })
    }

    /// A value as one of its members has it. No text of JSON has a line break in it, so each line is a line.
    fn indented(&self, value: &Value) -> String {
        let text = format!("{value:#}");
        let line = |line: &str| {
            let words = line.trim_start();
            // Two blanks for each level is how it was written.
            let depth = (line.len() - words.len()) / 2;
            format!("{}{}{words}", self.inner, self.unit.repeat(depth))
        };
        let lines: Vec<String> = text.lines().map(line).collect();
        lines.join(self.end).trim_start().to_owned()
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_goes_in_and_out_of_any_form_of_object() {
        let value = json!({"path": "/x", "runtimeArgs": ["runtime"]});
        for text in [
            "{}",
            "{\n}\n",
            "{\r\n}",
            "{\"a\":1}",
            " {\"a\": {\"b\": [1,\n2]} }",
            "{\n  \"a\": 1e400\n}\n",
            "{\n\t\"a\": \"}{,\",\n\n\t\"b\": 2 }",
        ] {
            let with = with(text, &whole(text), "gpucap", &value).expect("a text");
            let read: Value = serde_json::from_str(&with.replace("1e400", "1")).expect("JSON");
            assert_eq!(read["gpucap"], value, "{with}");
            let without = without(&with, &whole(&with), "gpucap").expect("a text");
            assert_eq!(without, text, "by way of {with}");
        }
    }

    #[test]
    fn a_member_before_others_goes_with_its_comma() {
        for (text, after) in [
            ("{\"g\": 1, \"a\": 2}", "{ \"a\": 2}"),
            ("{\n  \"g\": {\"x\": 1},\n  \"a\": 2\n}", "{\n  \"a\": 2\n}"),
            ("{\"a\": 2 , \"g\": [1], \"b\": 3}", "{\"a\": 2, \"b\": 3}"),
        ] {
            assert_eq!(without(text, &whole(text), "g").as_deref(), Ok(after));
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "[]", "{", "{\"a\": 1,}", "1"] {
            assert!(members(text, &whole(text)).is_err(), "{text}");
        }
    }
}
