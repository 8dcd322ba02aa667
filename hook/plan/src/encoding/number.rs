//! Numbers as other conventions write them.
//!
//! Each function names the source in its error. Where a convention's own tools would read more than we do (floats,
//! signs, hexadecimal), we refuse: a limit is never guessed.

use gpucap_core::units::{Bytes, Share};

use crate::reason::Reason;

/// Decimal digits and nothing else.
pub(crate) fn whole(source: &str, held: &str) -> Result<u64, Reason> {
    let digits = !held.is_empty() && held.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { held.parse().ok() } else { None };
    number.ok_or_else(|| Reason::value(source, held, "not a whole number from 0"))
}

/// A number of units of memory; zero is refused.
pub(crate) fn units(source: &str, held: &str, unit: u64) -> Result<Bytes, Reason> {
    match whole(source, held)?.checked_mul(unit) {
        Some(0) => Err(Reason::value(source, held, "a limit must be more than 0")),
        Some(bytes) => Ok(Bytes(bytes)),
        None => Err(Reason::value(source, held, "too large")),
    }
}

/// `3000m`, `4g`, `512K`: powers of 1024 behind one letter of either case, as HAMi and vgpu-manager read it; bytes
/// without one.
pub(crate) fn suffixed(source: &str, held: &str) -> Result<Bytes, Reason> {
    const SUFFIXES: [(char, u64); 4] =
        [('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30), ('t', 1 << 40)];
    let suffix = SUFFIXES.iter().find_map(|&(letter, unit)| {
        Some((held.strip_suffix([letter, letter.to_ascii_uppercase()])?, unit))
    });
    let (number, unit) = suffix.unwrap_or((held, 1));
    // The whole value is shown, not the number alone.
    units(source, number, unit).map_err(|reason| match reason {
        Reason::Value { source, why, .. } => Reason::value(source, held, why),
        other => other,
    })
}

/// A percentage from 1 to 100.
pub(crate) fn percent(source: &str, held: &str) -> Result<Share, Reason> {
    held.parse().map_err(|why| Reason::value(source, held, why))
}

/// A decimal part of one, from 0.01 to 1, rounded down to a hundredth of a percent.
pub(crate) fn portion(source: &str, held: &str) -> Result<Share, Reason> {
    let (whole, part) = held.split_once('.').unwrap_or((held, "0"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits: String = part.chars().chain("0000".chars()).take(4).collect();
    let parts = match whole.trim_start_matches('0') {
        _ if !is_number(whole) || !is_number(part) || part.is_empty() => None,
        "" => digits.parse().ok(),
        "1" if part.trim_end_matches('0').is_empty() => Some(Share::DENOMINATOR),
        _ => None,
    };
    let share = parts.and_then(Share::from_parts);
    share.ok_or_else(|| Reason::value(source, held, "not a decimal part from 0.01 to 1"))
}

/// A percentage, where the convention writes 0 for "not limited".
pub(crate) fn percent_or_free(source: &str, held: &str) -> Result<Option<Share>, Reason> {
    if held == "0" { Ok(None) } else { percent(source, held).map(Some) }
}
