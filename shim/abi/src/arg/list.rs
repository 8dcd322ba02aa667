//! Arrays of the caller's that the driver only reads; how many entries one has, another parameter says.
//!
//! A handler that looks at the entries has them [copied](Entries::read), and from then on the driver is given that
//! copy: another thread can change the caller's array between the two looks. Where no handler looks, the driver gets
//! the caller's pointer.

use super::raw::Raw;
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::ops::Deref;

/// `T *` in the driver's headers.
#[repr(transparent)]
#[derive(Debug)]
pub struct List<T>(*const T);

/// `const T *` in the driver's headers.
#[repr(transparent)]
#[derive(Debug)]
pub struct ConstList<T>(*const T);

/// An array during a call: the caller's, and the copy once the handler has looked.
#[derive(Debug)]
pub struct HeldList<T> {
    there: *const T,
    copy: OnceCell<Vec<T>>,
}

/// An array as its handler sees it.
#[derive(Debug)]
pub struct Entries<T>(*const HeldList<T>);

impl<T> Clone for Entries<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entries<T> {}

/// The copy of an array. A handler keeps nothing of it: it ends with the call.
#[derive(Debug)]
pub struct Copies<T>(*const HeldList<T>);

impl<T> Deref for Copies<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the hook holds what it has lent until the handler has returned.
        let held = unsafe { &*self.0 };
        held.copy.get().map_or(&[], Vec::as_slice)
    }
}

impl<T: Copy> Entries<T> {
    /// Copies the array, for the driver too, and returns its entries, of which the caller has said that there are
    /// `count`; none if it passed null. `None`: there is no memory for that many.
    #[must_use]
    pub fn read(self, count: usize) -> Option<Copies<T>> {
        // SAFETY: the hook holds what it has lent until the handler has returned.
        let held = unsafe { &*self.0 };
        if held.there.is_null() {
            return Some(Copies(self.0));
        }
        let mut entries = Vec::new();
        entries.try_reserve_exact(count).ok()?;
        let entry = |at| {
            // SAFETY: the caller of the driver's function has stated that there are that many entries to be read.
            unsafe { held.there.wrapping_add(at).read_unaligned() }
        };
        entries.extend((0..count).map(entry));
        // A list that was read before stays as it was.
        held.copy.get_or_init(|| entries);
        Some(Copies(self.0))
    }
}

macro_rules! lists {
    ($($list:ident),*) => {$(
        impl<T> Raw for $list<T> {
            type Held = HeldList<T>;
            type Lent = Entries<T>;
            type Arg = Entries<T>;

            unsafe fn hold(self) -> HeldList<T> {
                HeldList { there: self.0, copy: OnceCell::new() }
            }

            fn lend(held: &mut HeldList<T>) -> Entries<T> {
                Entries(held)
            }

            unsafe fn given(lent: Entries<T>) -> Self {
                // SAFETY: it is still held, as the caller promises.
                let held = unsafe { &*lent.0 };
                Self(held.copy.get().map_or(held.there, |copy| copy.as_ptr()))
            }

            unsafe fn wrap(lent: Entries<T>) -> Entries<T> {
                lent
            }

            unsafe fn give_back(_: HeldList<T>) {}
        }
    )*};
}
lists!(List, ConstList);
