//! Code that this process has on its devices: what each module and library was measured to take there.
//!
//! A module belongs to a context and ends with it. A library belongs to none: the driver loads it into each context
//! where it is used, so it has a piece in each, which ends with the context or with the library. The lock is held for a
//! look-up, never across a driver call.

use crate::budget::record::Record;
use crate::holdings::allocations::ByAddress;
use gpucap_core::image;
use parking_lot::Mutex;

/// The code of a process, by the handle of its module or library.
#[derive(Default)]
pub(crate) struct Code(Mutex<ByAddress<Owner>>);

/// A module or library.
pub(crate) struct Owner {
    /// The most that is believed of it in one context.
    most: u64,
    /// What is charged for it, by context.
    pieces: Vec<Record>,
}

/// Code whose context is unknown. It ends with its context.
pub(crate) const NO_OWNER: u64 = 0;

impl Code {
    /// A module or library has been loaded. Returns what is charged for an earlier one of the same handle, whose end
    /// we missed.
    pub(crate) fn loaded(&self, owner: u64, most: u64) -> Vec<Record> {
        let new = Owner { most, pieces: Vec::new() };
        self.0.lock().insert(owner, new).map_or_else(Vec::new, |old| old.pieces)
    }

    /// How much more is believed of an owner in a context.
    pub(crate) fn room(&self, owner: u64, context: u64) -> u64 {
        self.0.lock().get(&owner).map_or(image::UNKNOWN, |owner| {
            let here = owner.pieces.iter().find(|piece| piece.home == context);
            owner.most.saturating_sub(here.map_or(0, |piece| piece.bytes))
        })
    }

    /// Adds to what an owner has in the context that the record names.
    pub(crate) fn add(&self, owner: u64, record: Record) {
        let mut owners = self.0.lock();
        let unknown = || Owner { most: image::UNKNOWN, pieces: Vec::new() };
        let pieces = &mut owners.entry(owner).or_insert_with(unknown).pieces;
        match pieces.iter_mut().find(|piece| piece.home == record.home) {
            Some(piece) => piece.bytes = piece.bytes.saturating_add(record.bytes),
            None => pieces.push(record),
        }
    }

    /// Takes an owner out, before the driver unloads it: another may be loaded under its handle at once.
    pub(crate) fn take(&self, owner: u64) -> Option<Owner> {
        self.0.lock().remove(&owner)
    }

    /// Puts back what was taken out for an end that did not come.
    pub(crate) fn put_back(&self, handle: u64, owner: Owner) {
        self.0.lock().insert(handle, owner);
    }

    /// Takes out all pieces that end with a context.
    pub(crate) fn take_context(&self, context: u64) -> Vec<(u64, Record)> {
        let mut taken = Vec::new();
        for (handle, owner) in self.0.lock().iter_mut() {
            let ended = owner.pieces.extract_if(.., |piece| piece.home == context);
            taken.extend(ended.map(|piece| (*handle, piece)));
        }
        taken
    }
}

impl Owner {
    /// What is charged for it.
    pub(crate) fn pieces(self) -> Vec<Record> {
        self.pieces
    }
}
