//! Whether a process has executed another program since it claimed its slot, by what it has mapped.
//!
//! `execve` keeps the pid and the start time, and what the process held on the GPU is gone. The start of its stack is another
//! one then, but a process can also say that it is (`prctl(2)`, `PR_SET_MM_MAP`, which needs no privilege). So where it is,
//! the mappings decide (`proc_pid_maps(5)`): `execve` removes them all, and the library never removes the ledger's. A process
//! that removes it itself dies as soon as the library looks at the ledger, which with a compute limit its thread does at once.

use crate::sys;
use std::ffi::CString;

/// A process has 65,530 mappings at most (`vm.max_map_count`), unless the node allows more. What is longer is not read.
const LONGEST: usize = 64 << 20;

/// Returns whether this process, which has a file mapped at `address`, has it mapped nowhere else. In doubt, no.
pub(super) fn maps_once(address: usize) -> bool {
    read("self").is_some_and(|own| {
        let file = file_at(&own, address);
        file.is_some() && mappings(&own).filter(|it| Some(it.file) == file).count() == 1
    })
}

/// Returns whether the process with this number has no mapping of the file that this process has at `address`. In doubt,
/// no.
pub(super) fn maps_no_more(pid: u32, address: usize) -> bool {
    // One that is about to end has none at all.
    let other = read(&pid.to_string()).filter(|maps| !maps.is_empty());
    let (Some(own), Some(other)) = (read("self"), other) else { return false };
    let file = file_at(&own, address);
    file.is_some() && mappings(&other).all(|it| Some(it.file) != file)
}

fn read(process: &str) -> Option<Vec<u8>> {
    sys::read_file(&CString::new(format!("/proc/{process}/maps")).ok()?, LONGEST).ok()
}

/// A line of such a file.
struct Mapping<'a> {
    /// Where it begins and ends.
    range: &'a [u8],
    /// The device and the inode, which are written in the same way for processes of all mount namespaces.
    file: [&'a [u8]; 2],
}

fn mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let range = fields.next()?;
        let mut fields = fields.skip(2);
        Some(Mapping { range, file: [fields.next()?, fields.next()?] })
    })
}

fn file_at(maps: &[u8], address: usize) -> Option<[&[u8]; 2]> {
    let begins = format!("{address:08x}-").into_bytes();
    mappings(maps).find(|it| it.range.starts_with(&begins)).map(|it| it.file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/a (deleted)\n\
        7f10000000-7f11000000 rw-s 00000000 00:1b 21  /dev/shm/b\n\
        7ffff000-80000000 rw-p 00000000 00:00 0 [stack]\n";

    #[test]
    fn a_mapping_is_found_by_where_it_begins() {
        assert_eq!(file_at(MAPS, 0x40_0000), Some([b"08:02".as_slice(), b"173521"]));
        assert_eq!(file_at(MAPS, 0x7f_1000_0000), Some([b"00:1b".as_slice(), b"21"]));
        assert_eq!(file_at(MAPS, 0x7f_1000_1000), None, "within it");
        assert_eq!(mappings(MAPS).count(), 3);
        assert_eq!(mappings(b"").count() + mappings(b"a b c\n\n7f- r").count(), 0);
    }

    #[test]
    fn this_process_maps_what_it_maps() -> std::io::Result<()> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let first = maps.split_once('-').and_then(|(at, _)| usize::from_str_radix(at, 16).ok());
        let address = first.ok_or(std::io::ErrorKind::InvalidData)?;
        assert!(!maps_no_more(sys::pid(), address), "it is there");
        assert!(!maps_once(address), "a program has several segments");
        assert!(!maps_no_more(sys::pid(), 1) && !maps_once(1), "in doubt");
        let mut other = std::process::Command::new("sleep").arg("60").spawn()?;
        let is_another = maps_no_more(other.id(), address);
        other.kill()?;
        other.wait()?;
        assert!(is_another, "another program");
        assert!(!maps_no_more(other.id(), address), "in doubt");
        Ok(())
    }
}
