//! Whether the library can be loaded in a container, determined before anything runs there.
//!
//! The loader ignores a preload that it cannot open, and the container runs without a limit; but one that asks for a symbol
//! version or a library that is not there ends every process of the container. So what the library asks for is read
//! from its own file, and compared with the C library of the image. glibc names each version that it has, up to its
//! own, in the strings of its dynamic section; no symbol is looked at. Libraries
//! for ELF files need the whole file: this, and `node::elf`, read only bounded parts of files that are a container's.

mod strings;

use crate::container::root::Root;
use crate::machine::{ELF_MACHINE, LOADER, MULTIARCH, NAME};
use std::fs::File;
use std::io;
use strings::Strings;

/// Where images keep the C library and its like; Debian's have a directory for each processor in the first two.
const DIRECTORIES: [&str; 4] = ["lib", "usr/lib", "lib64", "usr/lib64"];

/// What `libgpucap.so` exports, and no other library all of.
const EXPORTS: [&[u8]; 6] =
    [b"dlsym", b"dlvsym", b"dlopen", b"dlmopen", b"sched_get_priority_max", b"__gmon_start__"];

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
    /// The image has no glibc for this processor: nothing there loads it, and nothing is hurt.
    NoGlibc,
    /// Every program of the image would end at once.
    TooNew {
        /// What the library asks for.
        needs: Version,
        /// What the image has.
        has: Version,
    },
    /// Likewise, because this library is missing.
    Lacks(String),
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Library {
    /// Reads the dynamic section of the library that limits: another one would be preloaded, and limit nothing.
    pub(super) fn read_own(file: &File) -> io::Result<Self> {
        let strings = strings(file)?;
        // A linker may write one name as the end of another.
        let has = |name: &&[u8]| strings.words().any(|word| word.ends_with(name));
        if EXPORTS.iter().all(has) {
            Ok(Self::of(&strings))
        } else {
            Err(io::Error::other("another library than libgpucap.so"))
        }
    }

    /// Reads the dynamic section of a file.
    fn read(file: &File) -> io::Result<Self> {
        strings(file).map(|strings| Self::of(&strings))
    }

    fn of(strings: &Strings) -> Self {
        let newest = strings.words().filter_map(version).max().unwrap_or_default();
        Self { needed: strings.needed().collect(), newest }
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
        // Since glibc 2.34 libpthread.so.0 and its like are parts of libc.so.6, and images leave their files out.
        for name in self.needed.iter().filter(|name| !LOADER.ends_with(name.as_str())) {
            if find(image, name)?.is_none() {
                return Ok(Fit::Lacks(name.clone()));
            }
        }
        Ok(Fit::Loads)
    }
}

fn strings(file: &File) -> io::Result<Strings> {
    let strings = Strings::of(file, ELF_MACHINE)?;
    strings.ok_or_else(|| io::Error::other(format!("not a shared library for {NAME}")))
}

fn find(image: &Root, name: &str) -> io::Result<Option<File>> {
    let multiarch = DIRECTORIES[..2].iter().map(|directory| format!("{directory}/{MULTIARCH}"));
    for directory in multiarch.chain(DIRECTORIES.map(str::to_owned)) {
        if let Some(file) = image.open(&format!("{directory}/{name}"))? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// `GLIBC_2.17`; names such as `GLIBC_PRIVATE` are no versions.
fn version(word: &[u8]) -> Option<Version> {
    let numbers = std::str::from_utf8(word.strip_prefix(b"GLIBC_")?).ok()?;
    let mut numbers = numbers.split('.').map(str::parse);
    Some(Version { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
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
        let own = Library::read_own(&file).map_err(|why| why.to_string());
        assert_eq!(
            own,
            Err("another library than libgpucap.so".into()),
            "no library limits but ours"
        );
    }

    #[test]
    fn each_library_that_it_needs_has_to_be_a_file_of_the_image() {
        let path = std::env::temp_dir().join(format!("gpucap-abi-{}", std::process::id()));
        let of_image = |name: &str| path.join(name);
        std::fs::create_dir_all(of_image("lib64")).expect("a directory");
        std::fs::copy("/proc/self/exe", of_image("lib64/libc.so.6")).expect("a C library");
        std::fs::write(of_image(LOADER), "").expect("a loader");
        let image = Root::new(crate::container::root::open_directory(&path).expect("an image"));
        let loader = LOADER.rsplit('/').next().expect("a name");
        let needed = ["libpthread.so.0", "libdl.so.2", "libc.so.6", loader].map(str::to_owned);
        let library = Library { needed: needed.to_vec(), newest: Version::default() };
        for lacks in ["libpthread.so.0", "libdl.so.2"] {
            let fit = library.fit(&image).expect("an image");
            assert_eq!(fit, Fit::Lacks(lacks.into()));
            std::fs::write(of_image("lib64").join(lacks), "").expect("a library");
        }
        assert_eq!(library.fit(&image).expect("an image"), Fit::Loads);
        std::fs::remove_dir_all(path).expect("removed");
    }

    #[test]
    fn what_is_no_library_is_said_to_be_none() {
        let file = File::open("/proc/self/status").expect("a text");
        assert!(Library::read(&file).is_err() && Library::read_own(&file).is_err());
    }
}
