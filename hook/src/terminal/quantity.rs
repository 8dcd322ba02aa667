//! Sizes and times as people read them.
//!
//! Rounded down, so that the printed value never exceeds the real one: one byte less than 2 GiB is 1.99 GiB.

/// `0`, `1 byte`, `256 MiB`, `1.25 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((unit, scale)) = UNITS.into_iter().find(|&(_, scale)| bytes >= scale) else {
        return match bytes {
            0 => "0".into(),
            1 => "1 byte".into(),
            _ => format!("{bytes} bytes"),
        };
    };
    let (whole, rest) = (bytes / scale, bytes % scale);
    // `rest` is below 2^40, so a hundred of it fit.
    match rest * 100 / scale {
        0 => format!("{whole} {unit}"),
        hundredths if hundredths % 10 == 0 => format!("{whole}.{} {unit}", hundredths / 10),
        hundredths => format!("{whole}.{hundredths:02} {unit}"),
    }
}

/// `1,342,177,280`.
pub(crate) fn exact(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at != 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_never_shown_as_more_than_it_is() {
        for (bytes, shown) in [
            (0, "0"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (256 << 20, "256 MiB"),
            (5 << 28, "1.25 GiB"),
            (3 << 29, "1.5 GiB"),
            ((2 << 30) - 1, "1.99 GiB"),
            ((2 << 30) + 11 * (1 << 20), "2.01 GiB"),
            (u64::MAX, "16777215.99 TiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn exact_numbers_are_grouped() {
        for (bytes, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (1 << 31, "2,147,483,648")]
        {
            assert_eq!(exact(bytes), shown);
        }
    }

    #[test]
    fn a_time_has_two_digits_or_so() {
        for (seconds, shown) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d")]
        {
            assert_eq!(duration(seconds), shown);
        }
    }
}
