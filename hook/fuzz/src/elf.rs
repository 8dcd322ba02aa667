//! What the files of an image can reach in the hook: programs and C libraries, whole or not.

#[path = "../../src/node/elf.rs"]
mod head;
#[path = "../../src/inject/abi/strings.rs"]
mod strings;

use std::io;
use std::os::unix::fs::FileExt;
use strings::Strings;

/// `EM_X86_64`: the processor that the seeds are for.
const X86_64: u16 = 62;

/// A file of these bytes.
struct Image<'a>(&'a [u8]);

impl FileExt for Image<'_> {
    fn read_at(&self, place: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let length = rest.len().min(place.len());
        place[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// A file of an image, read as a program and as a library.
pub fn elf(bytes: &[u8]) {
    let loading = head::Loading::of(&bytes[..bytes.len().min(head::HEAD)]);
    if let head::Loading::Foreign(name) | head::Loading::Glibc(name) | head::Loading::Script(name) =
        loading
    {
        assert!(!name.contains(char::is_control), "more than a line: {name:?}");
        assert!(name.len() <= head::LONGEST_NAME * 4, "{} bytes", name.len());
    }
    let Ok(Some(strings)) = Strings::of(&Image(bytes), X86_64) else { return };
    let names: Vec<String> = strings.needed().collect();
    assert!(names.len() <= Strings::MOST_NEEDED, "{} names", names.len());
    assert!(names.iter().all(|name| name.len() <= Strings::LONGEST_NAME * 4), "{names:?}");
    assert!(strings.words().map(<[u8]>::len).sum::<usize>() <= bytes.len(), "more than there is");
}
