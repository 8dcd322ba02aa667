//! Writing: symbol table entries, slots that were bound before, the driver's own slots.
//!
//! Pages are made writable for the moment of the store and then get back what the loader had given them, less the
//! right to execute: a page that holds a symbol table is read as data by the loader, never run. A range that could
//! hold code is not touched at all. Everything here runs under the loader's lock.

use super::elf::{self, Dynamic, Object, page_of};
use crate::driver::copies::{cuda, nvml};
use crate::driver::{DriverCopy, MAX_ROWS};
use crate::sys;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use libc::Elf64_Sym;

/// A driver library whose symbol table is redirected.
pub(crate) struct Library {
    /// The beginning of its file name, and of the name that it gives itself.
    pub(crate) name: &'static [u8],
    /// The functions we intercept.
    pub(crate) rows: &'static [Row],
    /// The functions that handlers call.
    pub(crate) extras: &'static [&'static [u8]],
    /// One for each copy of the library that a process may load (`dlmopen` loads further ones).
    pub(crate) copies: &'static [DriverCopy],
    /// Our functions, by copy and row.
    pub(crate) hooks: &'static [&'static [HookAddress]],
}

/// All driver libraries.
pub(crate) struct Libraries(pub(crate) [&'static Library; 2]);

impl Libraries {
    /// The driver library that an object is: by its file name, or, as any file may be opened under any name, by the
    /// name that it gives itself. `None` for the program itself, which has no name.
    pub(super) fn of(&self, object: &Object) -> Option<&'static Library> {
        if object.name.is_null() {
            return None;
        }
        let name = elf::base_name(object.name.cast());
        self.named(name).or_else(|| self.named(object.dynamic()?.soname()?))
    }

    fn named(&self, name: *const u8) -> Option<&'static Library> {
        self.0.into_iter().find(|library| elf::starts_with(name, library.name))
    }
}

/// An intercepted function.
pub(crate) struct Row {
    /// Its exported symbol.
    pub(crate) symbol: &'static [u8],
    /// Whether look-ups of it are to lead to our function; where not, the driver's own stays everywhere. Asked when a
    /// driver is first seen, which is after the limits are known.
    pub(crate) is_wanted: fn() -> bool,
}

/// The address of a hook.
#[derive(Clone, Copy)]
pub(crate) struct HookAddress(pub(crate) *const ());

// SAFETY: an address of code, never written through.
unsafe impl Sync for HookAddress {}

impl HookAddress {
    fn get(self) -> u64 {
        self.0 as u64
    }

    /// As a look-up returns it.
    pub(crate) fn pointer(self) -> *mut c_void {
        self.0.cast_mut().cast()
    }
}

/// What became of one driver library.
pub(super) enum Outcome {
    /// It was ours before.
    Already,
    /// Its look-ups now lead to our hooks.
    Redirected(&'static DriverCopy),
    /// A second copy of the shim, loaded from another file, has redirected it: this one stays dormant.
    AnotherShim,
    /// Its symbol table cannot be written, or there are more copies of it than we can serve.
    Unwritable,
}

impl Library {
    /// Points the symbol table of a loaded driver library at our hooks.
    pub(super) fn redirect(&self, object: &Object) -> Outcome {
        let Some(dynamic) = object.dynamic() else { return Outcome::Already };
        let symbols = Symbols::of(&dynamic, self.rows);
        let Some((first, symbol)) = symbols.present().next() else {
            return Outcome::Already; // a file of this name that has none of the driver's functions
        };
        let address = dynamic.address(symbol);
        let known = self.pairs().find(|(copy, _)| copy.span.base() == object.base);
        if let Some((_, hooks)) = known
            && hooks.get(first).is_some_and(|hook| hook.get() == address)
        {
            return Outcome::Already;
        }
        if !object.contains(address) {
            return Outcome::AnotherShim;
        }
        let free = || self.pairs().find(|(copy, _)| copy.span.base() == 0);
        let Some((copy, hooks)) = known.or_else(free) else { return Outcome::Unwritable };
        copy.remember(object, &dynamic, self, &symbols);
        let Some(writable) = Writable::symbols(object, &dynamic, &symbols) else {
            return Outcome::Unwritable;
        };
        for (index, symbol) in symbols.present() {
            if let Some(hook) = hooks.get(index) {
                point(symbol, hook.get().wrapping_sub(object.base));
            }
        }
        drop(writable);
        if !(cfg!(gpucap_test_triggers) && sys::env_lists(b"GPUCAP_TEST_OMIT", b"pin")) {
            copy.pin(object, &dynamic, &symbols);
        }
        Outcome::Redirected(copy)
    }

    /// The hook of a row by its name, if a driver with that function has been seen.
    pub(crate) fn hook_by_name(&self, name: *const u8) -> Option<*const c_void> {
        let index = self.rows.iter().position(|row| elf::equals(name, row.symbol))?;
        let (copy, hooks) = self.pairs().find(|(copy, _)| copy.span.base() != 0)?;
        let original = copy.originals.get(index)?.load(Ordering::Acquire);
        hooks.get(index).filter(|_| original != 0).map(|hook| hook.0.cast())
    }

    /// The hook of the original at this address; should a driver give two names one function, of the newer form.
    pub(crate) fn hook_of(&self, address: u64) -> Option<HookAddress> {
        self.pairs().find_map(|(copy, hooks)| hooks.get(copy.row_of(address)?).copied())
    }

    fn pairs(&self) -> impl Iterator<Item = (&'static DriverCopy, &'static [HookAddress])> {
        self.copies.iter().zip(self.hooks.iter().copied())
    }
}

impl DriverCopy {
    /// Saves the originals: hooks are complete and callable from here on.
    fn remember(&self, object: &Object, dynamic: &Dynamic, library: &Library, symbols: &Symbols) {
        for (index, symbol) in symbols.present() {
            if let Some(original) = self.originals.get(index) {
                original.store(dynamic.address(symbol) as usize, Ordering::Release);
            }
        }
        self.by_address.fill(self.originals);
        let addresses =
            || self.originals.iter().map(|original| original.load(Ordering::Relaxed) as u64);
        let range = [addresses().filter(|at| *at != 0).min(), addresses().max()];
        for (name, extra) in library.extras.iter().zip(self.extras) {
            let address = dynamic.lookup(name).map_or(0, |symbol| dynamic.address(symbol) as usize);
            extra.store(address, Ordering::Release);
        }
        self.start.store(object.start(), Ordering::Relaxed);
        self.may_go.store(object.is_foreign, Ordering::Relaxed);
        self.filled.fetch_add(1, Ordering::Release);
        self.span.publish(object.base, range.map(Option::unwrap_or_default));
    }

    /// Writes the originals into the library's own slots, so that its calls to itself never meet a hook.
    fn pin(&self, object: &Object, dynamic: &Dynamic, symbols: &Symbols) {
        for relocation in dynamic.relocations().filter(|relocation| relocation.symbol() != 0) {
            let named = dynamic.symbol(relocation.symbol());
            let row = symbols.present().find(|(_, symbol)| ptr::eq(*symbol, named));
            if let Some(original) = row.and_then(|(index, _)| self.originals.get(index)) {
                let slot = object.base.wrapping_add(relocation.offset);
                write_slot(object, slot, original.load(Ordering::Relaxed) as u64);
            }
        }
    }

    /// The row whose original is at this address; of two, the later one.
    fn row_of(&self, address: u64) -> Option<usize> {
        self.span.holds(address).filter(|holds| *holds)?;
        self.by_address.find(self.originals, usize::try_from(address).ok()?)
    }
}

/// The symbol table entries of a library's wanted rows, found once.
struct Symbols([*mut Elf64_Sym; MAX_ROWS]);

impl Symbols {
    fn of(dynamic: &Dynamic, rows: &[Row]) -> Self {
        let mut symbols = [ptr::null_mut(); MAX_ROWS];
        for (place, row) in symbols.iter_mut().zip(rows).filter(|(_, row)| (row.is_wanted)()) {
            *place = dynamic.lookup(row.symbol).unwrap_or(ptr::null_mut());
        }
        Self(symbols)
    }

    /// Row and entry of each wanted function that this driver has.
    fn present(&self) -> impl Iterator<Item = (usize, *mut Elf64_Sym)> {
        self.0.iter().copied().enumerate().filter(|(_, symbol)| !symbol.is_null())
    }
}

// A longer table does not compile.
const _: () = assert!(cuda::COUNT <= MAX_ROWS && nvml::COUNT <= MAX_ROWS);

/// Replaces originals by hooks in the slots of an object that was bound before the redirect: a program linked with
/// `-z now`, a library opened with `RTLD_DEEPBIND`, a function pointer in static data.
pub(super) fn sweep(object: &Object, libraries: &Libraries) {
    let Some(dynamic) = object.dynamic() else { return };
    for relocation in dynamic.relocations() {
        let slot = object.base.wrapping_add(relocation.offset);
        // SAFETY: a relocation of a loaded object names a word inside it.
        let value = unsafe { (slot as *const u64).read_volatile() };
        if value == 0 {
            continue;
        }
        if let Some(hook) = libraries.0.iter().find_map(|library| library.hook_of(value)) {
            write_slot(object, slot, hook.get());
        }
    }
}

/// Stores a new value in a symbol table entry. The loader may be reading it: one aligned store.
fn point(symbol: *mut Elf64_Sym, value: u64) {
    let place = symbol.cast::<u64>().wrapping_byte_add(core::mem::offset_of!(Elf64_Sym, st_value));
    // SAFETY: `symbol` is in a symbol table that `Writable` has just made writable; the field is 8-byte aligned.
    let place = unsafe { AtomicU64::from_ptr(place) };
    place.store(value, Ordering::Release);
}

/// Stores an address in a slot, making its page writable if it is not. Code is never touched.
fn write_slot(object: &Object, slot: u64, value: u64) {
    let Some(protection) = object.protection(slot) else { return };
    if protection.execute || !slot.is_multiple_of(8) {
        return;
    }
    let store = || {
        // SAFETY: the slot is an aligned word of a relocation target, and its page is writable at this moment.
        let place = unsafe { AtomicU64::from_ptr(slot as *mut u64) };
        place.store(value, Ordering::Release);
    };
    if protection.write {
        store();
    } else if sys::protect(page_of(slot), sys::page_size(), true) {
        store();
        sys::protect(page_of(slot), sys::page_size(), false);
    }
}

/// The pages of a symbol table while they are writable; dropping it makes them read-only again.
struct Writable {
    start: u64,
    bytes: u64,
    /// It was writable before.
    stays: bool,
}

impl Writable {
    fn symbols(object: &Object, dynamic: &Dynamic, symbols: &Symbols) -> Option<Self> {
        let (mut low, mut high) = (u64::MAX, 0);
        for (_, symbol) in symbols.present() {
            low = low.min(symbol as u64);
            high = high.max(symbol as u64 + size_of::<Elf64_Sym>() as u64);
        }
        let (start, end) = (page_of(low), page_of(high + sys::page_size() - 1));
        let protection = object.protection(low)?;
        // An old linker puts the table into the segment of the code. Its pages are well before the first instruction;
        // where they are not, removing the right to execute would break the library.
        if protection.execute && dynamic.init().is_none_or(|code| code < end) {
            return None;
        }
        let stays = protection.write; // a tool has moved the table beside writable data
        let writable = stays || sys::protect(start, end - start, true);
        writable.then(|| Self { start, bytes: end - start, stays })
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        if !self.stays {
            sys::protect(self.start, self.bytes, false);
        }
    }
}
