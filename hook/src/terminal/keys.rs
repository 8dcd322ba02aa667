//! The keys that a person presses, of the bytes that a terminal sends.
//!
//! A key may arrive in several parts over a network. What may still become a longer sequence is kept until more bytes
//! come, or until [`Keys::flush`] says that none do: so the key Esc is not taken for a sequence that begins with its
//! byte. Bytes that make no key are left out. Pure.

/// A key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
}

/// The beginning of a key that has not arrived in full.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<u8>);

const ESC: u8 = 0x1b;
/// A longer sequence is none of a key.
const LONGEST: usize = 16;

/// What the first bytes are.
enum First {
    /// A key, or bytes that mean none, and how many bytes it takes.
    Key(Option<Key>, usize),
    /// Perhaps the beginning of one.
    Part,
}

impl Keys {
    /// Takes bytes, and returns the keys that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.0.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut done = 0;
        while let Some(rest) = self.0.get(done..).filter(|rest| !rest.is_empty()) {
            match first(rest) {
                First::Key(key, length) => {
                    keys.extend(key);
                    done += length;
                }
                First::Part if rest.len() > LONGEST => done += rest.len(),
                First::Part => break,
            }
        }
        self.0.drain(..done);
        keys
    }

    /// Whether a part of a key is kept.
    pub(crate) const fn has_part(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the key that the kept part is if no more bytes come; `None` if it is none.
    pub(crate) fn flush(&mut self) -> Option<Key> {
        let part = std::mem::take(&mut self.0);
        (part == [ESC]).then_some(Key::Esc)
    }
}

fn first(bytes: &[u8]) -> First {
    match bytes {
        [ESC] => First::Part,
        [ESC, b'[', rest @ ..] => sequence(rest, 2),
        [ESC, b'O', rest @ ..] => sequence(rest, 2),
        // With Alt: another key, which has no meaning here.
        [ESC, ESC, ..] => First::Key(Some(Key::Esc), 1),
        [ESC, rest @ ..] => match first(rest) {
            First::Key(_, length) => First::Key(None, length + 1),
            First::Part => First::Part,
        },
        [b'\r' | b'\n', ..] => First::Key(Some(Key::Enter), 1),
        [0x7f | 0x08, ..] => First::Key(Some(Key::Backspace), 1),
        [0x03, ..] => First::Key(Some(Key::Interrupt), 1),
        [0..0x20, ..] => First::Key(None, 1),
        _ => character(bytes),
    }
}

/// A control sequence behind its `skipped` first bytes: parameters, and a last byte that is a letter or `~`.
fn sequence(bytes: &[u8], skipped: usize) -> First {
    let Some(end) = bytes.iter().position(|byte| (0x40..0x7f).contains(byte)) else {
        return First::Part;
    };
    let (parameters, last) = bytes.split_at(end);
    let key = match (last.first(), parameters) {
        (Some(b'A'), _) => Some(Key::Up),
        (Some(b'B'), _) => Some(Key::Down),
        (Some(b'H'), _) | (Some(b'~'), b"1" | b"7") => Some(Key::Home),
        (Some(b'F'), _) | (Some(b'~'), b"4" | b"8") => Some(Key::End),
        (Some(b'M'), b"") if skipped == 2 => Some(Key::Enter),
        (Some(b'~'), b"5") => Some(Key::PageUp),
        (Some(b'~'), b"6") => Some(Key::PageDown),
        _ => None,
    };
    First::Key(key, skipped + end + 1)
}

/// A character of UTF-8.
fn character(bytes: &[u8]) -> First {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(why) if why.valid_up_to() == 0 => {
            return why.error_len().map_or(First::Part, |length| First::Key(None, length));
        }
        Err(why) => {
            let valid = bytes.get(..why.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
    };
    match valid.chars().next() {
        Some(sign) => First::Key((!sign.is_control()).then_some(Key::Char(sign)), sign.len_utf8()),
        None => First::Part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_known_by_its_bytes() {
        for (bytes, key) in [
            (&b"q"[..], Key::Char('q')),
            ("é".as_bytes(), Key::Char('é')),
            (b"\r", Key::Enter),
            (b"\x7f", Key::Backspace),
            (b"\x03", Key::Interrupt),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5A", Key::Up),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6~", Key::PageDown),
            (b"\x1b[H", Key::Home),
            (b"\x1b[4~", Key::End),
        ] {
            assert_eq!(Keys::default().take(bytes), [key], "{bytes:?}");
            // The same, a byte at a time.
            let mut keys = Keys::default();
            let slowly: Vec<Key> = bytes.iter().flat_map(|byte| keys.take(&[*byte])).collect();
            assert_eq!(slowly, [key], "{bytes:?}");
            assert!(!keys.has_part());
        }
    }

    #[test]
    fn esc_is_a_key_once_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert!(keys.has_part());
        assert_eq!(keys.flush(), Some(Key::Esc));
        assert!(!keys.has_part());
        assert_eq!(keys.take(b"\x1b\x1b[A"), [Key::Esc, Key::Up]);
    }

    #[test]
    fn bytes_that_are_no_key_are_left_out() {
        for bytes in [
            &b"\x1b[200~"[..],
            b"\x1b[99;99R",
            b"\x1bx",
            b"\xff\xfe",
            b"\x00\x1a\x04",
            "\u{9b}".as_bytes(),
        ] {
            let mut keys = Keys::default();
            assert_eq!(keys.take(bytes), [], "{bytes:?}");
            assert_eq!(keys.take(b"q"), [Key::Char('q')], "{bytes:?}");
        }
        let mut keys = Keys::default();
        assert_eq!(keys.take(format!("\x1b[{}", "1".repeat(40)).as_bytes()), []);
        assert_eq!(keys.take(b"q"), [Key::Char('q')], "a sequence without an end");
        assert_eq!(keys.take("é".as_bytes().get(..1).unwrap_or_default()), []);
        assert_eq!(keys.flush(), None, "a part of a character");
    }
}
