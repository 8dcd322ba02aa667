//! Kubernetes' quantities: `10Gi`, `5G`, `1e9`, `100`, `1500m`.
//!
//! Read exactly and rounded down to whole units: a limit is never more than what the scheduler counted. Written in the
//! form that the API server itself would choose. Nothing is guessed: a text of another form is an error.

/// The suffixes of powers of two, the largest first.
const BINARY: [(&str, u32); 6] =
    [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
/// The suffixes of powers of ten.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// More digits than this are in no quantity that fits into 64 bits.
const MOST_DIGITS: usize = 30;

/// Returns the whole units of a quantity; `None` if it is none, is negative, or has more than 64 bits.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > MOST_DIGITS || fraction.contains('.') {
        return None;
    }
    let digits: u128 = digits.parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let binary = BINARY.iter().find(|(name, _)| *name == suffix);
    let (times, by) = match binary {
        Some((_, power)) => (1_u128.checked_shl(*power)?, 10_u128.checked_pow(places)?),
        None => {
            let power = decimal(suffix)?.checked_sub(i32::try_from(places).ok()?)?;
            let ten = 10_u128.checked_pow(power.unsigned_abs())?;
            if power < 0 { (1, ten) } else { (ten, 1) }
        }
    };
    u64::try_from(digits.checked_mul(times)?.checked_div(by)?).ok()
}

/// The power of ten that a suffix or an exponent stands for.
fn decimal(suffix: &str) -> Option<i32> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(*power);
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse().ok().filter(|power: &i32| power.unsigned_abs() <= 18)
}

/// Writes bytes with the largest suffix that leaves a whole number.
pub(crate) fn bytes(bytes: u64) -> String {
    for (suffix, power) in BINARY {
        if bytes.trailing_zeros() >= power && bytes > 0 {
            return format!("{}{suffix}", bytes >> power);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_read_exactly_and_rounded_down() {
        for (text, expected) in [
            ("10Gi", 10 << 30),
            ("1.5Gi", 3 << 29),
            ("10737418240", 10 << 30),
            ("5G", 5_000_000_000),
            ("30", 30),
            ("30000m", 30),
            ("30999m", 30),
            ("1e9", 1_000_000_000),
            ("12E6", 12_000_000),
            ("0.1", 0),
            ("+7k", 7000),
            ("1Ei", 1 << 60),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_an_error() {
        for text in ["", "Gi", "-1", "1.2.3", "10GB", "1e", "1e99", "99Ei", "0x10", "ten", " 1"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"9".repeat(31)), None);
    }

    #[test]
    fn bytes_are_written_as_the_api_server_would() {
        for (number, text) in
            [(80 << 30, "80Gi"), (81_559 << 20, "81559Mi"), (1 << 40, "1Ti"), (7, "7")]
        {
            assert_eq!(bytes(number), text);
            assert_eq!(parse(text), Some(number));
        }
    }
}
