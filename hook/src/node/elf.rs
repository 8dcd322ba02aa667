//! How a program is loaded, according to its file: by which loader, or by none.
//!
//! Only the head of the file is read (ELF, 64-bit, little-endian: what the library runs on). Pure: the caller reads. No
//! library for object files does it: those want the whole file, which an image may make as long as it likes, for the few
//! fields that are compared here.

/// How much of a file [`Loading::of`] wants to see.
pub(crate) const HEAD: usize = 64 * 1024;
/// The most of a loader's or an interpreter's path that is printed.
pub(crate) const LONGEST_NAME: usize = 255;

/// How a program is loaded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Loading {
    /// By this loader, which is glibc's.
    Glibc(String),
    /// By another one: musl's, as a rule. The library is built against glibc.
    Foreign(String),
    /// By the kernel alone: nothing is ever preloaded.
    Static,
    /// A script: what counts is its interpreter.
    Script(String),
    /// Not a program that we know.
    Unknown,
}

impl Loading {
    /// Reads the head of a program's file.
    pub(crate) fn of(head: &[u8]) -> Self {
        if let Some(rest) = head.strip_prefix(b"#!") {
            let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let words = line.split(u8::is_ascii_whitespace);
            let interpreter = words.into_iter().find(|word| !word.is_empty());
            return Self::Script(shown(interpreter.unwrap_or_default()));
        }
        elf(head).unwrap_or(Self::Unknown)
    }
}

fn elf(head: &[u8]) -> Option<Loading> {
    const INTERPRETER: u32 = 3;
    // Magic, 64 bits, little-endian.
    head.strip_prefix(b"\x7fELF\x02\x01")?;
    let table = usize::try_from(u64::from_le_bytes(bytes(head, 32)?)).ok()?;
    let entry = usize::from(u16::from_le_bytes(bytes(head, 54)?));
    let count = usize::from(u16::from_le_bytes(bytes(head, 56)?));
    for index in 0..count {
        let at = index.checked_mul(entry)?.checked_add(table)?;
        if u32::from_le_bytes(bytes(head, at)?) == INTERPRETER {
            let start = usize::try_from(u64::from_le_bytes(bytes(head, at + 8)?)).ok()?;
            let path = head.get(start..)?.split(|&byte| byte == 0).next()?;
            return Some(loader(shown(path)));
        }
    }
    Some(Loading::Static)
}

/// A path out of an untrusted file: fit for one line, without control sequences of a terminal.
fn shown(path: &[u8]) -> String {
    let path = path.get(..LONGEST_NAME).unwrap_or(path);
    let path = String::from_utf8_lossy(path);
    path.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

fn loader(path: String) -> Loading {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.starts_with("ld-linux") || name.starts_with("ld64.so") {
        Loading::Glibc(path)
    } else {
        Loading::Foreign(path)
    }
}

fn bytes<const COUNT: usize>(head: &[u8], at: usize) -> Option<[u8; COUNT]> {
    head.get(at..at.checked_add(COUNT)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one program header: of this type, pointing at `path`.
    fn file(kind: u32, path: &str) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64..68].copy_from_slice(&kind.to_le_bytes());
        file[72] = 120;
        file.extend(path.as_bytes());
        file.push(0);
        file
    }

    #[test]
    fn the_loader_determines_what_can_be_preloaded() {
        let glibc = "/lib64/ld-linux-x86-64.so.2";
        assert_eq!(Loading::of(&file(3, glibc)), Loading::Glibc(glibc.into()));
        let musl = "/lib/ld-musl-x86_64.so.1";
        assert_eq!(Loading::of(&file(3, musl)), Loading::Foreign(musl.into()));
        assert_eq!(Loading::of(&file(1, "")), Loading::Static);
        assert_eq!(
            Loading::of(b"#!/usr/bin/env python3\n"),
            Loading::Script("/usr/bin/env".into())
        );
    }

    #[test]
    fn a_path_of_the_file_s_choice_cannot_reach_the_terminal() {
        let found = Loading::of(&file(3, "/lib/ld-\u{1b}]0;x\u{7}\n.so"));
        assert_eq!(found, Loading::Foreign("/lib/ld-?]0;x??.so".into()));
        assert_eq!(Loading::of(b"#! \t/bin/\x1b[31m x\n"), Loading::Script("/bin/?[31m".into()));
        let Loading::Foreign(name) = Loading::of(&file(3, &"x".repeat(5000))) else {
            panic!("a loader");
        };
        assert_eq!(name.len(), LONGEST_NAME);
    }

    #[test]
    fn a_file_cut_anywhere_is_no_fault() {
        let file = file(3, "/lib64/ld-linux-x86-64.so.2");
        for end in 0..64 {
            assert_eq!(Loading::of(&file[..end]), Loading::Unknown, "{end}");
        }
    }
}
