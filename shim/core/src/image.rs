//! How much memory of a device a code image can take at most, according to its headers.
//!
//! No argument shows how much a driver takes for code: it is measured, as the decrease of the device's free memory.
//! Other processes change the same number, so a measurement only counts up to a bound, and this file computes the
//! bound. Only headers are read: of a cubin (an ELF file) its length and the variables that take no room in it; of a
//! fat binary its length. Of anything else nothing is known.

/// What the driver may take besides: it hands out code memory in large pieces, and the first module that prints or
/// allocates on the device brings its buffers with it.
const SLACK: u64 = 32 << 20;

/// The bound for an image of which nothing is known: PTX, a file, a compressed or foreign form.
pub const UNKNOWN: u64 = 64 << 20;

/// `\x7fELF`
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");
/// Begins a fat binary.
const FAT_BINARY: u32 = 0xba55_ed50;
/// Begins the structure by which compilers point to one.
const WRAPPER: u32 = 0x4662_43b1;

/// The most bytes that are believed of the image at `address`. `word` reads four bytes of the image.
pub fn most_bytes(address: u64, word: &dyn Fn(u64) -> u32) -> u64 {
    let long = |at: u64| u64::from(word(at)) | u64::from(word(at.saturating_add(4))) << 32;
    match word(address) {
        ELF => elf_bytes(address, word, &long),
        FAT_BINARY => {
            // magic, version and header size, bytes behind the header
            let header = u64::from(word(address.saturating_add(4)) >> 16);
            believed(header.saturating_add(long(address.saturating_add(8))), 0)
        }
        WRAPPER => {
            // magic, version, pointer
            let inside = long(address.saturating_add(8));
            if inside == 0 || word(inside) == WRAPPER { UNKNOWN } else { most_bytes(inside, word) }
        }
        _ => UNKNOWN,
    }
}

/// A cubin ends with its table of sections, which also names the variables without contents (ELF-64, gABI).
fn elf_bytes(address: u64, word: &dyn Fn(u64) -> u32, long: &dyn Fn(u64) -> u64) -> u64 {
    const NO_CONTENTS: u32 = 8; // SHT_NOBITS
    const ALLOCATED: u64 = 2; // SHF_ALLOC
    const CLASS_64: u32 = 2;
    if word(address.saturating_add(4)) & 0xff != CLASS_64 {
        return UNKNOWN;
    }
    let table = long(address.saturating_add(40)); // e_shoff
    let entry = u64::from(word(address.saturating_add(56)) >> 16); // e_shentsize
    let count = u64::from(word(address.saturating_add(60)) & 0xffff); // e_shnum
    if entry < 64 {
        return UNKNOWN;
    }
    let mut variables = 0u64;
    for index in 0..count {
        let section = address.saturating_add(table).saturating_add(index.saturating_mul(entry));
        let kind = word(section.saturating_add(4));
        let flags = long(section.saturating_add(8));
        if kind == NO_CONTENTS && flags & ALLOCATED != 0 {
            variables = variables.saturating_add(long(section.saturating_add(32)));
        }
    }
    believed(table.saturating_add(count.saturating_mul(entry)), variables)
}

/// Code on the card is about as long as its image; twice that is a bound with room for alignment.
fn believed(image: u64, variables: u64) -> u64 {
    image.saturating_mul(2).saturating_add(variables).saturating_add(SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// The address of the images.
    const HERE: u64 = 0x10_0000;

    /// The bound of an image, of which no byte beyond its end may be read.
    fn bound(image: &[u8]) -> u64 {
        most_bytes(HERE, &|address| {
            let start = usize::try_from(address - HERE).expect("small");
            u32::from_le_bytes(image[start..start + 4].try_into().expect("four bytes"))
        })
    }

    fn put(image: &mut [u8], at: usize, value: u64, bytes: usize) {
        image[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// A cubin of `code` bytes before its table of sections, which are of these kinds, flags and sizes.
    fn cubin(code: usize, sections: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut image = vec![0; code + sections.len() * 64];
        image[..5].copy_from_slice(b"\x7fELF\x02");
        put(&mut image, 40, code as u64, 8);
        put(&mut image, 58, 64, 2);
        put(&mut image, 60, sections.len() as u64, 2);
        for (index, (kind, flags, size)) in sections.iter().enumerate() {
            let section = code + index * 64;
            put(&mut image, section + 4, *kind, 4);
            put(&mut image, section + 8, *flags, 8);
            put(&mut image, section + 32, *size, 8);
        }
        image
    }

    #[test]
    fn a_cubin_is_bounded_by_its_length() {
        let image = cubin(1000, &[(0, 0, 0), (1, 6, 900)]);
        assert_eq!(bound(&image), 2 * (1000 + 128) + SLACK);
    }

    #[test]
    fn variables_without_contents_come_on_top_and_debug_sections_do_not() {
        let image = cubin(64, &[(0, 0, 0), (8, 3, 5 << 30), (8, 0, 7 << 30), (8, 2, 1)]);
        assert_eq!(bound(&image), 2 * (64 + 256) + (5 << 30) + 1 + SLACK);
    }

    #[test]
    fn a_fat_binary_is_bounded_by_what_its_header_says() {
        let mut image = vec![0; 16];
        put(&mut image, 0, 0xba55_ed50, 4);
        put(&mut image, 4, 1 | 16 << 16, 4);
        put(&mut image, 8, 3 * MIB, 8);
        assert_eq!(bound(&image), 2 * (3 * MIB + 16) + SLACK);
    }

    #[test]
    fn a_wrapper_is_followed_once() {
        let mut image = vec![0; 40];
        put(&mut image, 0, 0x4662_43b1, 4);
        put(&mut image, 8, HERE + 24, 8);
        put(&mut image, 24, 0xba55_ed50, 4);
        put(&mut image, 28, 1 | 16 << 16, 4);
        put(&mut image, 32, 1000, 8);
        assert_eq!(bound(&image), 2 * 1016 + SLACK);
        put(&mut image, 24, 0x4662_43b1, 4);
        assert_eq!(bound(&image), UNKNOWN);
        put(&mut image, 8, 0, 8);
        assert_eq!(bound(&image), UNKNOWN);
    }

    #[test]
    fn of_anything_else_nothing_is_known_and_nothing_more_is_read() {
        assert_eq!(bound(b".ver"), UNKNOWN);
        assert_eq!(bound(b"\x7fELF\x01\x01\x01\x00"), UNKNOWN);
    }

    #[test]
    fn sizes_that_no_image_has_are_no_overflow() {
        let image = cubin(64, &[(8, 2, u64::MAX), (8, 2, u64::MAX)]);
        assert_eq!(bound(&image), u64::MAX);
        let mut image = vec![0xff; 64];
        image[..5].copy_from_slice(b"\x7fELF\x02");
        put(&mut image, 60, 0, 2);
        assert_eq!(bound(&image), u64::MAX);
    }
}
