//! The loader's list of objects, and the next definition of a name behind ours.
//!
//! A trigger must pass its call on to the definition that would have been called without the shim: libc, or another
//! interposer behind the shim. The loader publishes its list for debuggers in `_r_debug` (`<link.h>`); walking it
//! needs no call into libc, so it works in a constructor that runs before libc does. Nothing locks the list: it is walked
//! before the program has threads, or while the loader runs our constructor.

use super::elf::{Dyn, Dynamic};
use libc::{c_char, c_int};

/// `struct link_map` of `<link.h>`: the public head of the loader's record of an object.
#[repr(C)]
pub(super) struct LinkMap {
    /// The load address.
    pub(super) address: u64,
    /// The path.
    pub(super) name: *const c_char,
    dynamic: *const Dyn,
    /// The object behind this one in its namespace.
    pub(super) next: *const Self,
    /// The object before this one in its namespace.
    pub(super) previous: *const Self,
}

/// `struct r_debug` of `<link.h>`, as far as we read it.
#[repr(C)]
struct LoaderDebug {
    version: c_int,
    objects: *const LinkMap,
}

// SAFETY: glibc's loader defines `_r_debug` (`link.h`), the linker `_DYNAMIC` in each object (System V ABI, chapter 5).
unsafe extern "C" {
    static _r_debug: LoaderDebug;
    #[link_name = "_DYNAMIC"]
    static OUR_DYNAMIC: [Dyn; 0];
}

/// The run-time address of the first definition of `name` in an object behind ours; `None` if there is none.
pub(super) fn next_definition(name: &[u8]) -> Option<u64> {
    let mut behind = objects().skip_while(|map| !is_ours(map)).skip(1);
    behind.find_map(|map| definition(&map, name))
}

/// The same of a function of libc, which is in front of a library that was loaded late. `None` in a namespace that is not
/// the program's (`dlmopen`, `LD_AUDIT`), whose objects this list does not show.
pub(super) fn next_of_libc(name: &[u8]) -> Option<u64> {
    objects().find(is_ours)?;
    // The first one: another copy of ours that was loaded late may hand on to this one.
    let mut others = objects().filter(|map| !is_ours(map));
    next_definition(name).or_else(|| others.find_map(|map| definition(&map, name)))
}

fn definition(map: &LinkMap, name: &[u8]) -> Option<u64> {
    // SAFETY: the loader keeps the dynamic section of each object in its list mapped.
    let dynamic = unsafe { Dynamic::read(map.address, map.dynamic) }?;
    dynamic.lookup(name).map(|symbol| dynamic.address(symbol))
}

fn is_ours(map: &LinkMap) -> bool {
    map.dynamic == (&raw const OUR_DYNAMIC).cast::<Dyn>()
}

/// All objects of the program's namespace.
fn objects() -> impl Iterator<Item = LinkMap> {
    // SAFETY: the loader fills `_r_debug` before it runs any code of the program or its libraries.
    let first = unsafe { (&raw const _r_debug.objects).read() };
    walk(first, |map| map.next)
}

/// All objects of the namespace that `member` belongs to; none if that is our own, which `dl_iterate_phdr` shows.
///
/// # Safety
/// `member` must be a handle that `dlopen` or `dlmopen` returned: glibc's handles are link maps.
pub(super) unsafe fn foreign_namespace(member: *const LinkMap) -> impl Iterator<Item = LinkMap> {
    // The first object of the namespace: follow `previous` to the end.
    let mut first = member;
    // SAFETY: the caller promises a live link map; the maps it links to are live too.
    while let Some(map) = unsafe { read(first) }
        && !map.previous.is_null()
    {
        first = map.previous;
    }
    // SAFETY: the loader fills `_r_debug` before it runs any code of the program or its libraries.
    let ours = unsafe { (&raw const _r_debug.objects).read() };
    walk(if first == ours { core::ptr::null() } else { first }, |map| map.next)
}

fn walk(
    first: *const LinkMap,
    step: impl Fn(&LinkMap) -> *const LinkMap,
) -> impl Iterator<Item = LinkMap> {
    let mut at = first;
    core::iter::from_fn(move || {
        // SAFETY: `first` and all that follows are entries of the loader's list.
        let map = unsafe { read(at) }?;
        at = step(&map);
        Some(map)
    })
}

unsafe fn read(map: *const LinkMap) -> Option<LinkMap> {
    // SAFETY: the caller passes null or an entry of the loader's list.
    (!map.is_null()).then(|| unsafe { map.read() })
}
