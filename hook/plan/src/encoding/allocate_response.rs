//! The variables in a device plugin's answer: protobuf's `ContainerAllocateResponse`, in base64.
//!
//! Only field 1 is read, a map of strings, which is a sequence of messages with a key (1) and a value (2). A dozen lines
//! of the format instead of a crate for it; what cannot be read ends the reading.

/// The variables, as `NAME=value`; those that could be read.
pub(crate) fn variables(answer: &str) -> Vec<String> {
    let bytes = base64(answer).unwrap_or_default();
    let entries = fields(&bytes).filter(|(field, _)| *field == 1).filter_map(|(_, entry)| {
        let text = |wanted: u64| {
            let found = fields(entry).find(|(field, _)| *field == wanted)?;
            core::str::from_utf8(found.1).ok()
        };
        Some(format!("{}={}", text(1)?, text(2).unwrap_or_default()))
    });
    entries.collect()
}

/// The fields of a message that hold bytes, with their numbers.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    core::iter::from_fn(move || {
        loop {
            let tag = varint(&mut rest)?;
            match tag & 7 {
                0 => _ = varint(&mut rest)?,
                1 => rest = rest.get(8..)?,
                2 => {
                    let length = usize::try_from(varint(&mut rest)?).ok()?;
                    let (held, behind) = rest.split_at_checked(length)?;
                    rest = behind;
                    return Some((tag >> 3, held));
                }
                5 => rest = rest.get(4..)?,
                _ => return None,
            }
        }
    })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for place in 0..10_u32 {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f).checked_shl(place.saturating_mul(7))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The standard alphabet; padding ends the text.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut held, mut bits) = (0_u32, 0_u32);
    for sign in text.trim_end_matches('=').bytes() {
        let six = match sign {
            b'A'..=b'Z' => sign.wrapping_sub(b'A'),
            b'a'..=b'z' => sign.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => sign.wrapping_sub(b'0').wrapping_add(52),
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6) | u32::from(six);
        bits = bits.wrapping_add(6);
        if bits >= 8 {
            bits = bits.wrapping_sub(8);
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}
