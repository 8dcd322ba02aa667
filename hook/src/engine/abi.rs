//! Whether the library can be loaded in a container, told before anything runs there.
//!
//! The loader ignores a preload that it cannot open, and the container runs uncapped; but one that asks for a symbol
//! version or a library that is not there ends every process of the container. So what the library asks for is read
//! from its own file, and compared with the C library of the image. glibc names each version that it has, up to its
//! own, in the strings of its dynamic section; no symbol is looked at.

use super::root::Root;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The loader of programs that the library can be preloaded into.
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
/// Where images keep the C library and its like.
const DIRECTORIES: [&str; 6] =
    ["lib/x86_64-linux-gnu", "lib64", "usr/lib/x86_64-linux-gnu", "usr/lib64", "lib", "usr/lib"];
/// What comes with every glibc, if only as part of another file.
const WITH_GLIBC: [&str; 5] =
    ["libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "libm.so.6"];

/// A version of glibc.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
}

/// What a shared library says of itself.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Library {
    /// The libraries that it needs.
    needed: Vec<String>,
    /// The newest version of glibc that it names.
    newest: Version,
}

/// What becomes of the library in an image.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Fit {
    /// Programs of the image load it.
    Loads,
    /// The image has no glibc for x86-64: nothing there loads it, and nothing is hurt.
    NoGlibc,
    /// Every program of the image would end at once.
    TooNew {
        /// What the library asks for.
        needs: Version,
        /// What the image has.
        has: Version,
    },
    /// Likewise, for want of this library.
    Lacks(String),
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Library {
    /// Reads the dynamic section of a file.
    pub(super) fn read(file: &File) -> io::Result<Self> {
        let strings = Strings::of(file)?;
        let strings = strings.ok_or_else(|| io::Error::other("not a shared library for x86-64"))?;
        let needed = strings.needed.iter().filter_map(|&at| strings.text(at)).collect();
        let words = strings.table.split(|&byte| byte == 0);
        let newest = words.filter_map(version).max().unwrap_or_default();
        Ok(Self { needed, newest })
    }

    /// What becomes of it in an image.
    pub(super) fn fit(&self, image: &Root) -> io::Result<Fit> {
        if image.open(LOADER)?.is_none() {
            return Ok(Fit::NoGlibc);
        }
        let Some(glibc) = find(image, "libc.so.6")? else { return Ok(Fit::NoGlibc) };
        let has = Self::read(&glibc)?.newest;
        if has < self.newest {
            return Ok(Fit::TooNew { needs: self.newest, has });
        }
        for name in &self.needed {
            if !WITH_GLIBC.contains(&name.as_str()) && find(image, name)?.is_none() {
                return Ok(Fit::Lacks(name.clone()));
            }
        }
        Ok(Fit::Loads)
    }
}

fn find(image: &Root, name: &str) -> io::Result<Option<File>> {
    for directory in DIRECTORIES {
        if let Some(file) = image.open(&format!("{directory}/{name}"))? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// `GLIBC_2.17`; `GLIBC_PRIVATE` and the like are no versions.
fn version(word: &[u8]) -> Option<Version> {
    let numbers = std::str::from_utf8(word.strip_prefix(b"GLIBC_")?).ok()?;
    let mut numbers = numbers.split('.').map(str::parse);
    Some(Version { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
}

/// The strings of a dynamic section.
struct Strings {
    table: Vec<u8>,
    needed: Vec<u64>,
}

impl Strings {
    /// More of these than any library has is no library.
    const MOST_HEADERS: u16 = 64;
    const MOST_BYTES: u64 = 1 << 20;

    /// `None`: not a shared library of ours or of the image's.
    fn of(file: &File) -> io::Result<Option<Self>> {
        const LOAD: u64 = 1;
        const DYNAMIC: u64 = 2;
        let mut head = [0; 64];
        if file.read_at(&mut head, 0)? < head.len() || !is_x86_64(&head) {
            return Ok(None);
        }
        let count = u16::from_le_bytes([head[56], head[57]]).min(Self::MOST_HEADERS);
        let mut headers = vec![[0_u64; 7]; usize::from(count)];
        let mut at = word(&head, 32);
        for header in &mut headers {
            let mut bytes = [0; 56];
            file.read_exact_at(&mut bytes, at)?;
            *header = std::array::from_fn(|index| word(&bytes, index * 8));
            at = at.saturating_add(bytes.len() as u64);
        }
        // The kind is the lower half of the first word; offset, address and length in the file follow.
        let of_kind = |kind: u64| headers.iter().filter(move |it| it[0] & 0xffff_ffff == kind);
        let Some(dynamic) = of_kind(DYNAMIC).next() else { return Ok(None) };
        let entries = read(file, dynamic[1], dynamic[4])?;
        let entries = entries.as_chunks::<16>().0.iter();
        let entries = entries.map(|entry| (word(entry, 0), word(entry, 8)));
        let (mut needed, mut address, mut length) = (Vec::new(), 0, 0);
        for (tag, value) in entries.take_while(|(tag, _)| *tag != 0) {
            match tag {
                1 => needed.push(value),
                5 => address = value,
                10 => length = value,
                _ => {}
            }
        }
        let within = |it: &&[u64; 7]| address.checked_sub(it[2]).is_some_and(|at| at < it[4]);
        let Some(load) = of_kind(LOAD).find(within) else { return Ok(None) };
        let table = read(file, load[1].saturating_add(address - load[2]), length)?;
        Ok(Some(Self { table, needed }))
    }

    fn text(&self, at: u64) -> Option<String> {
        let rest = self.table.get(usize::try_from(at).ok()?..)?;
        let text = rest.split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// Magic, 64 bits, little-endian, a shared object, the machine.
fn is_x86_64(head: &[u8; 64]) -> bool {
    head.starts_with(b"\x7fELF\x02\x01") && head[16..20] == [3, 0, 62, 0]
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = length.min(Strings::MOST_BYTES);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        let version = |text: &str| version(text.as_bytes());
        assert!(version("GLIBC_2.17") > version("GLIBC_2.4"));
        assert!(version("GLIBC_2.2.5") < version("GLIBC_2.3"));
        for text in ["GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "GLIBCXX_3.4", "GLIBC_2", "glibc_2.3"] {
            assert_eq!(version(text), None, "{text}");
        }
    }

    #[test]
    fn this_program_says_what_it_needs() {
        // Built for tests, it is linked dynamically; a position-independent program is a shared object.
        let file = File::open("/proc/self/exe").expect("this program");
        let library = Library::read(&file).expect("a dynamic section");
        assert!(library.needed.contains(&"libc.so.6".to_owned()), "{library:?}");
        assert!(library.newest >= Version { major: 2, minor: 2 }, "{library:?}");
    }

    #[test]
    fn what_is_no_library_is_said_to_be_none() {
        let file = File::open("/proc/self/status").expect("a text");
        assert!(Library::read(&file).is_err());
    }
}
