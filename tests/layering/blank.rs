//! Blanks what a rule must not see: comments, the insides of literals, items that exist only in tests.
//!
//! Everything keeps its place, so that lines stay what they are. This is no Rust parser: it knows comments,
//! literals and brackets, which is all that the rules ask.

/// The code with comments and the insides of literals blanked.
pub(crate) fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let length = comment(&text[at..])
            .or_else(|| raw_string(text, at))
            .or_else(|| string(&text[at..]))
            .or_else(|| character(&text[at..]));
        if let Some(length) = length {
            code.push_str(&blank(&text[at..at + length]));
            at += length;
        } else {
            let sign = text[at..].chars().next().unwrap_or(' ');
            code.push(sign);
            at += sign.len_utf8();
        }
    }
    code
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.starts_with("/*").then(|| {
        let mut depth = 0_usize;
        let mut at = 0;
        while at < text.len() {
            match &text.as_bytes()[at..(at + 2).min(text.len())] {
                b"/*" => (depth, at) = (depth + 1, at + 2),
                b"*/" => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                return at;
            }
        }
        text.len()
    })
}

fn raw_string(text: &str, at: usize) -> Option<usize> {
    let before = text.as_bytes()[..at].last().copied().unwrap_or(b' ');
    if is_word(before) && before != b'b' && before != b'c' {
        return None;
    }
    let rest = text[at..].strip_prefix('r')?;
    let fences = rest.len() - rest.trim_start_matches('#').len();
    let inside = rest[fences..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(fences));
    Some(2 + fences + inside.find(&end).map_or(inside.len(), |length| length + end.len()))
}

fn string(text: &str) -> Option<usize> {
    text.starts_with('"').then(|| closing(text, b'"'))
}

fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    // What closes after one sign is a character; anything else is a lifetime.
    (first == '\\' || inside[first.len_utf8()..].starts_with('\'')).then(|| closing(text, b'\''))
}

/// The length of a literal that starts here and ends with `quote`.
fn closing(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The code without the items that only tests and models have, and the modules so declared that are other files.
pub(crate) fn without_tests(code: &str) -> (String, Vec<String>) {
    let mut shipped = code.to_owned();
    let mut modules = Vec::new();
    let mut from = 0;
    while let Some(found) = shipped[from..].find("cfg(") {
        let start = from + found;
        let end = shipped[start..].find(']').map_or(shipped.len(), |length| start + length);
        from = end;
        let before = shipped[..start].trim_end();
        if !before.ends_with('[')
            || holds(shipped[start + 4..end].trim_end_matches(')')) != Some(false)
        {
            continue;
        }
        let whole_file = before.trim_end_matches('[').trim_end().ends_with("#!");
        let item_end = if whole_file { shipped.len() } else { item_end(&shipped, end) };
        let item = &shipped[end..item_end];
        if let Some(module) = item.strip_suffix(';').and_then(|item| item.split("mod ").nth(1)) {
            modules.push(module.trim().to_owned());
        }
        shipped.replace_range(start..item_end, &blank(&shipped[start..item_end]));
        from = item_end;
    }
    (shipped, modules)
}

/// Whether a condition holds in what we ship; `None` if that depends on more than `test` and `loom`. Closing brackets
/// at its end may be missing.
fn holds(condition: &str) -> Option<bool> {
    let condition = condition.trim();
    let Some((word, inside)) = condition.split_once('(') else {
        return if matches!(condition, "test" | "loom") { Some(false) } else { None };
    };
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for sign in inside.chars() {
        match sign {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            _ => {}
        }
        if sign == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(sign);
        }
    }
    let mut parts = parts.iter().filter(|part| !part.trim().is_empty()).map(|part| holds(part));
    match word.trim() {
        "not" => parts.next()?.map(|held| !held),
        "all" if parts.any(|part| part == Some(false)) => Some(false),
        "any" if parts.all(|part| part == Some(false)) => Some(false),
        _ => None,
    }
}

/// Where the item that starts after `from` ends: at its semicolon, or at the bracket that closes its body.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in code[from + 1..].char_indices() {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return from + 1 + at + 1;
                }
            }
            ';' if depth == 0 => return from + 1 + at + 1,
            _ => {}
        }
    }
    code.len()
}

pub(crate) fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// The words of a text: identifiers, keywords and numbers.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !(sign.is_alphanumeric() || sign == '_'))
        .filter(|word| !word.is_empty())
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}
