//! A loaded object as the loader sees it: segments, dynamic section, symbols, relocations.
//!
//! Everything is read from memory that the loader has mapped and relocated, never from the file, and without a call
//! into libc: look-ups that reach us may come before libc works. All byte comparisons are loops over volatile reads,
//! so that the compiler cannot turn them into calls of `strlen` or `memcmp`.
//!
//! Sources: the System V gABI (dynamic section, hash table), the GNU hash section as glibc's loader reads it.

use crate::machine::FUNCTION_RELOCATIONS;
use crate::sys;
use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Sym, c_char};

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Dyn {
    tag: i64,
    value: u64,
}

/// A relocation with addend; 64-bit processors know no other form.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Rela {
    /// Where, relative to the load address.
    pub(super) offset: u64,
    info: u64,
    addend: i64,
}

impl Rela {
    /// The relocation type.
    fn kind(self) -> u32 {
        (self.info & 0xffff_ffff) as u32
    }

    /// Index of the symbol it names; 0 is none.
    pub(super) fn symbol(self) -> u64 {
        self.info >> 32
    }
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_INIT: i64 = 12;
const DT_SONAME: i64 = 14;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;

/// An object that the loader has mapped. Its memory stays mapped for as long as the value is used: the caller holds
/// the loader's lock, or the object is one that never goes away.
#[derive(Clone, Copy)]
pub(super) struct Object {
    /// What the loader adds to every address in the file.
    pub(super) base: u64,
    /// The loader's name for it: a path; empty for the program itself.
    pub(super) name: *const c_char,
    /// It is in a namespace that is not the program's.
    pub(super) is_foreign: bool,
    headers: *const Elf64_Phdr,
    header_count: usize,
}

impl Object {
    /// An object as `dl_iterate_phdr` describes it.
    pub(super) fn from_phdr_info(info: &libc::dl_phdr_info) -> Self {
        Self {
            base: info.dlpi_addr,
            name: info.dlpi_name,
            is_foreign: false,
            headers: info.dlpi_phdr,
            header_count: info.dlpi_phnum.into(),
        }
    }

    /// A shared object of another namespace, found through its link map: its ELF header is at the load address.
    ///
    /// # Safety
    /// `base` must be the load address of an object that the loader has mapped.
    pub(super) unsafe fn from_load_address(base: u64, name: *const c_char) -> Option<Self> {
        let header = base as *const Elf64_Ehdr;
        // A position-dependent program, or a library that does not begin at address 0 of its file: never the driver.
        if header.is_null() || !sys::is_mapped(base) {
            return None;
        }
        // SAFETY: the caller promises a mapped object; its first page holds the ELF header.
        let header = unsafe { header.read() };
        if header.e_ident.first_chunk() != Some(b"\x7fELF") {
            return None;
        }
        Some(Self {
            base,
            name,
            is_foreign: true,
            headers: base.wrapping_add(header.e_phoff) as *const Elf64_Phdr,
            header_count: header.e_phnum.into(),
        })
    }

    /// The program headers.
    fn headers(&self) -> impl Iterator<Item = Elf64_Phdr> + use<> {
        let headers = self.headers;
        // SAFETY: the loader keeps the program headers of a loaded object mapped; `header_count` is their number.
        (0..self.header_count).map(move |index| unsafe { headers.wrapping_add(index).read() })
    }

    /// Where its first page is.
    pub(super) fn start(&self) -> u64 {
        let first = self.headers().find(|header| header.p_type == PT_LOAD);
        self.base.wrapping_add(first.map_or(0, |header| page_of(header.p_vaddr)))
    }

    /// Whether a loaded segment covers the address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.segment(address).is_some()
    }

    /// The protection that the loader gave the page at `address` once it was done: that of the segment, without
    /// write permission in the part that is read-only after relocation.
    pub(super) fn protection(&self, address: u64) -> Option<Protection> {
        let segment = self.segment(address)?;
        let relro = self.headers().any(|header| {
            let start = self.base.wrapping_add(header.p_vaddr);
            let end = start.wrapping_add(header.p_memsz);
            // As the loader rounds them: a last page that is shared with other data stays writable.
            header.p_type == PT_GNU_RELRO && (page_of(start)..page_of(end)).contains(&address)
        });
        Some(Protection {
            write: segment.p_flags & 2 != 0 && !relro,
            execute: segment.p_flags & 1 != 0,
        })
    }

    fn segment(&self, address: u64) -> Option<Elf64_Phdr> {
        self.headers().find(|header| {
            let start = self.base.wrapping_add(header.p_vaddr);
            header.p_type == PT_LOAD && address.wrapping_sub(start) < header.p_memsz
        })
    }

    /// Reads the dynamic section; `None` if there is none or it names no symbols.
    pub(super) fn dynamic(&self) -> Option<Dynamic> {
        let header = self.headers().find(|header| header.p_type == PT_DYNAMIC)?;
        // SAFETY: PT_DYNAMIC of a loaded object gives the place of its dynamic section.
        unsafe { Dynamic::read(self.base, self.base.wrapping_add(header.p_vaddr) as *const Dyn) }
    }
}

/// The start of the page that holds this address: of 4, 16 or 64 KiB, as the system has them.
pub(super) fn page_of(address: u64) -> u64 {
    address & !(sys::page_size() - 1)
}

/// How a page may be used; reading is always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Protection {
    pub(super) write: bool,
    pub(super) execute: bool,
}

#[derive(Default, Clone, Copy)]
struct Tables {
    symbols: u64,
    strings: u64,
    hash: u64,
    gnu_hash: u64,
    relocations: u64,
    relocation_bytes: u64,
    plt: u64,
    plt_bytes: u64,
    init: u64,
    soname: u64,
    versions: u64,
}

impl Tables {
    fn note(&mut self, tag: i64, value: u64, base: u64) {
        // glibc adds the load address to these entries in place, other loaders do not.
        let address = if value < base { value.wrapping_add(base) } else { value };
        match tag {
            DT_SYMTAB => self.symbols = address,
            DT_STRTAB => self.strings = address,
            DT_HASH => self.hash = address,
            DT_GNU_HASH => self.gnu_hash = address,
            DT_RELA => self.relocations = address,
            DT_RELASZ => self.relocation_bytes = value,
            DT_JMPREL => self.plt = address,
            DT_PLTRELSZ => self.plt_bytes = value,
            DT_INIT => self.init = address,
            DT_SONAME => self.soname = value,
            DT_VERSYM => self.versions = address,
            _ => {}
        }
    }
}

/// The dynamic section of an object, decoded.
#[derive(Clone, Copy)]
pub(super) struct Dynamic {
    base: u64,
    tables: Tables,
}

impl Dynamic {
    /// Decodes the dynamic section at `entry` of the object loaded at `base`; `None` if it names no symbols.
    ///
    /// # Safety
    /// `entry` must be the dynamic section of an object that the loader has mapped.
    pub(super) unsafe fn read(base: u64, mut entry: *const Dyn) -> Option<Self> {
        let mut tables = Tables::default();
        loop {
            // SAFETY: the section ends with a DT_NULL entry, where the loop stops.
            let Dyn { tag, value } = unsafe { entry.read() };
            if tag == 0 {
                break;
            }
            tables.note(tag, value, base);
            entry = entry.wrapping_add(1);
        }
        (tables.symbols != 0 && tables.strings != 0).then_some(Self { base, tables })
    }

    /// The definition of `name`, if this object has one.
    ///
    /// Of several versions the default one, as `dlsym` chooses; an old one only if there is no other.
    pub(super) fn lookup(&self, name: &[u8]) -> Option<*mut Elf64_Sym> {
        self.lookup_version(name, false).or_else(|| self.lookup_version(name, true))
    }

    fn lookup_version(&self, name: &[u8], hidden: bool) -> Option<*mut Elf64_Sym> {
        let defined = |index| {
            if self.hidden(index) != hidden {
                return None;
            }
            let symbol = self.symbol(index);
            // SAFETY: `index` comes from the object's own hash table.
            let Elf64_Sym { st_name, st_shndx, st_value, .. } = unsafe { symbol.read() };
            let text = self.tables.strings.wrapping_add(st_name.into()) as *const u8;
            (st_shndx != 0 && st_value != 0 && equals(text, name)).then_some(symbol)
        };
        if self.tables.gnu_hash != 0 {
            self.gnu_chain(name, defined)
        } else {
            self.sysv_chain(name, defined)
        }
    }

    /// Whether the symbol is an old version, kept for programs linked long ago.
    fn hidden(&self, index: u64) -> bool {
        let entry = (self.tables.versions as *const u16).wrapping_add(index as usize);
        // SAFETY: DT_VERSYM has one entry per dynamic symbol.
        self.tables.versions != 0 && unsafe { entry.read() } & 0x8000 != 0
    }

    /// The symbol with this index.
    pub(super) fn symbol(&self, index: u64) -> *mut Elf64_Sym {
        (self.tables.symbols as *mut Elf64_Sym).wrapping_add(index as usize)
    }

    /// The run-time address that a definition stands for.
    pub(super) fn address(&self, symbol: *const Elf64_Sym) -> u64 {
        // SAFETY: `symbol` was handed out by this object's `lookup` or `symbol`.
        self.base.wrapping_add(unsafe { symbol.read() }.st_value)
    }

    /// The name that the object gives itself, by which others need it; `None` if it gives none.
    pub(super) fn soname(&self) -> Option<*const u8> {
        let name = self.tables.strings.wrapping_add(self.tables.soname);
        (self.tables.soname != 0).then_some(name as *const u8)
    }

    /// All relocations that may hold the address of a function: data, GOT, PLT.
    pub(super) fn relocations(&self) -> impl Iterator<Item = Rela> + use<> {
        let table = |start: u64, bytes: u64| {
            let count = bytes as usize / size_of::<Rela>();
            // SAFETY: DT_RELA/DT_JMPREL and their sizes delimit the tables, which stay mapped with the object.
            (0..count)
                .map(move |index| unsafe { (start as *const Rela).wrapping_add(index).read() })
        };
        table(self.tables.relocations, self.tables.relocation_bytes)
            .chain(table(self.tables.plt, self.tables.plt_bytes))
            .filter(|entry| FUNCTION_RELOCATIONS.contains(&entry.kind()))
    }

    /// The start of the object's code, as far as the dynamic section shows it: the `.init` section precedes all text.
    pub(super) fn init(&self) -> Option<u64> {
        (self.tables.init != 0).then_some(self.tables.init)
    }

    fn word(&self, address: u64) -> u32 {
        // SAFETY: callers pass addresses inside the object's own hash sections.
        unsafe { (address as *const u32).read() }
    }

    fn sysv_chain<T>(&self, name: &[u8], take: impl Fn(u64) -> Option<T>) -> Option<T> {
        if self.tables.hash == 0 {
            return None;
        }
        let at = |index: u64| self.word(self.tables.hash.wrapping_add(index.wrapping_mul(4)));
        let buckets = u64::from(at(0)).max(1);
        let mut index = u64::from(at(2 + u64::from(sysv_hash(name)) % buckets));
        while index != 0 {
            if let Some(found) = take(index) {
                return Some(found);
            }
            index = u64::from(at(2 + buckets + index));
        }
        None
    }

    fn gnu_chain<T>(&self, name: &[u8], take: impl Fn(u64) -> Option<T>) -> Option<T> {
        let at = |index: u64| self.word(self.tables.gnu_hash.wrapping_add(index.wrapping_mul(4)));
        let (buckets, first, bloom_words) =
            (u64::from(at(0)).max(1), u64::from(at(1)), u64::from(at(2)));
        let hash = gnu_hash(name);
        let (bucket_table, chains) = (4 + bloom_words * 2, 4 + bloom_words * 2 + buckets);
        let mut index = u64::from(at(bucket_table + u64::from(hash) % buckets));
        if index < first {
            return None; // empty bucket
        }
        loop {
            let chained = at(chains + index - first);
            if (chained ^ hash) >> 1 == 0
                && let Some(found) = take(index)
            {
                return Some(found);
            }
            if chained & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }
}

/// Whether the C string at `text` is exactly `name`.
pub(super) fn equals(text: *const u8, name: &[u8]) -> bool {
    starts_with(text, name) && byte(text, name.len()) == 0
}

/// Whether the C string at `text` begins with `prefix`.
pub(super) fn starts_with(text: *const u8, prefix: &[u8]) -> bool {
    // A string that ends early differs from the prefix at its terminator: nothing behind it is read.
    prefix.iter().enumerate().all(|(index, expected)| byte(text, index) == *expected)
}

/// `cuXxx` or `nvmlXxx`. Not `cu` alone: `curl_easy_init` is not the driver's.
pub(super) fn names_driver(name: *const u8) -> bool {
    let upper = |at: usize| {
        // SAFETY: only called behind a prefix of that length, so the terminator has not been passed.
        unsafe { name.wrapping_add(at).read_volatile() }.is_ascii_uppercase()
    };
    !name.is_null()
        && ((starts_with(name, b"cu") && upper(2)) || (starts_with(name, b"nvml") && upper(4)))
}

/// The part of a path behind its last slash.
pub(super) fn base_name(path: *const u8) -> *const u8 {
    let (mut start, mut index) = (0, 0);
    loop {
        match byte(path, index) {
            0 => return path.wrapping_add(start),
            b'/' => start = index + 1,
            _ => {}
        }
        index += 1;
    }
}

/// One byte, read so that the compiler cannot recognise a string function in a loop of these.
pub(super) fn byte(text: *const u8, index: usize) -> u8 {
    // SAFETY: callers walk a C string from its start and stop at its terminator.
    unsafe { text.wrapping_add(index).read_volatile() }
}

/// The hash function of DT_HASH (System V gABI, "Hash Table").
fn sysv_hash(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// The hash function of DT_GNU_HASH (Bernstein's, times 33 from 5381).
fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}
