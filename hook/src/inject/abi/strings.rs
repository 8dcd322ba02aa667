//! The strings of a shared library's dynamic section: the libraries that it needs, and every word beside them.
//!
//! The file may be an image's, so anything: headers, strings and names are bounded in number and length, and each byte
//! of the file is looked at a bounded number of times. Pure but for the reads, which the caller's file answers.

use std::io;
use std::os::unix::fs::FileExt;

/// What a dynamic section refers to.
pub(crate) struct Strings {
    table: Vec<u8>,
    /// Where in the table the names of needed libraries begin.
    needed: Vec<u64>,
}

impl Strings {
    /// More of these than any library has is no library.
    const MOST_HEADERS: u16 = 64;
    /// The longest dynamic section, and the longest table, that are read.
    const MOST_BYTES: u64 = 1 << 20;
    /// The number of needed libraries that are reported.
    pub(crate) const MOST_NEEDED: usize = 256;
    /// How long a file's name can be.
    pub(crate) const LONGEST_NAME: usize = 255;

    /// `None`: not a shared library with such a table, for this processor (`e_machine`).
    pub(crate) fn of(file: &impl FileExt, machine: u16) -> io::Result<Option<Self>> {
        const LOAD: u64 = 1;
        const DYNAMIC: u64 = 2;
        let mut head = [0; 64];
        if file.read_at(&mut head, 0)? < head.len() || !is_for(machine, &head) {
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
                1 if needed.len() < Self::MOST_NEEDED => needed.push(value),
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

    /// The names of the needed libraries, as far as they are names of files.
    pub(crate) fn needed(&self) -> impl Iterator<Item = String> {
        self.needed.iter().filter_map(|&at| {
            let rest = self.table.get(usize::try_from(at).ok()?..)?;
            let rest = rest.get(..=Self::LONGEST_NAME).unwrap_or(rest);
            let end = rest.iter().position(|&byte| byte == 0)?;
            Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
        })
    }

    /// Every word of the table.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.table.split(|&byte| byte == 0)
    }
}

/// Magic, 64 bits, little-endian, a shared object, the processor.
fn is_for(machine: u16, head: &[u8; 64]) -> bool {
    head.starts_with(b"\x7fELF\x02\x01")
        && head[16..18] == [3, 0]
        && head[18..20] == machine.to_le_bytes()
}

fn read(file: &impl FileExt, at: u64, length: u64) -> io::Result<Vec<u8>> {
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
    use std::fs::File;

    #[test]
    fn a_library_that_names_one_string_without_end_again_and_again_is_read_in_bounds() {
        let path = std::env::temp_dir().join(format!("gpucap-strings-{}", std::process::id()));
        std::fs::write(&path, library(1 << 16, 1 << 20)).expect("a file");
        let strings = Strings::of(&File::open(&path).expect("a file"), 62);
        std::fs::remove_file(path).expect("removed");
        let strings = strings.expect("readable").expect("a library");
        let named: usize = strings.needed().map(|name| name.len()).sum();
        assert!(named <= Strings::MOST_NEEDED * Strings::LONGEST_NAME, "{named} bytes of names");
    }

    /// One that needs `count` libraries, all named by one string of this length.
    fn library(count: u64, length: u64) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[16..20].copy_from_slice(&[3, 0, 62, 0]);
        head[32] = 64;
        head[56] = 2;
        let (dynamic_at, entries) = (64 + 2 * 56, count + 2);
        let table_at = dynamic_at + entries * 16;
        let header = |kind: u64, at: u64, length: u64| [kind, at, at, at, length, length, 1];
        let headers =
            [header(2, dynamic_at, entries * 16), header(1, 0, table_at + length)].concat();
        let needed = (0..count - 1).flat_map(|_| [1_u64, 0]);
        let dynamic = [5, table_at, 10, length].into_iter().chain(needed).chain([0, 0]);
        head.extend(headers.into_iter().chain(dynamic).flat_map(u64::to_le_bytes));
        head.resize(usize::try_from(table_at).expect("a size"), 0);
        head.resize(usize::try_from(table_at + length).expect("a size"), b'a');
        head
    }
}
