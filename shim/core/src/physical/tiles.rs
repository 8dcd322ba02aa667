//! Tiles of sparse arrays, and the memory behind them.
//!
//! A program maps memory into a region of an array and may take it away in other regions than it came in. So a region
//! that is mapped again or unmapped is cut out of those that were mapped before; memory is behind an array for as long
//! as any piece is left.

use std::collections::HashMap;

/// One level and layer of an array, or its tail of small levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subresource {
    /// The array, as a number.
    pub array: u64,
    /// The level; `None` for the tail.
    pub level: Option<u32>,
    /// The layer.
    pub layer: u32,
}

/// A box of elements, or of bytes in a tail: its first corner, and the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Where it starts.
    pub start: [u64; 3],
    /// Where it ends.
    pub end: [u64; 3],
}

/// What happens to tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The memory with this handle is put behind them.
    Map(u64),
    /// They are empty from here on.
    Unmap,
}

/// What is mapped, by memory.
#[derive(Debug, Default)]
pub(super) struct Tiles(HashMap<Subresource, Vec<Piece>>);

/// What was behind the tiles of one array.
#[derive(Debug)]
#[must_use = "an array ends, or what is behind it is put back"]
pub struct Behind(Vec<(Subresource, Vec<Piece>)>);

/// A region and the memory behind it.
type Piece = (Region, u64);

impl Behind {
    /// The memory, once for each piece.
    pub(super) fn memories(self) -> impl Iterator<Item = u64> {
        self.0.into_iter().flat_map(|(_, mapped)| mapped).map(|(_, id)| id)
    }
}

impl Region {
    /// The region that starts here and extends so far.
    #[must_use]
    pub fn new(start: [u64; 3], extent: [u64; 3]) -> Self {
        let mut end = start;
        for (end, extent) in end.iter_mut().zip(extent) {
            *end = end.saturating_add(extent);
        }
        Self { start, end }
    }

    fn is_empty(self) -> bool {
        self.start.iter().zip(self.end).any(|(start, end)| *start >= end)
    }

    /// What is left of it without `hole`: at most two slices in each direction.
    fn without(self, hole: Self) -> Vec<Self> {
        let (mut rest, mut left) = (self, Vec::new());
        for axis in 0..3 {
            let (Some(start), Some(end)) = (hole.start.get(axis), hole.end.get(axis)) else {
                break;
            };
            let (mut before, mut behind) = (rest, rest);
            clip(&mut before.end, axis, |at| at.min(*start));
            clip(&mut behind.start, axis, |at| at.max(*end));
            left.extend([before, behind]);
            clip(&mut rest.start, axis, |at| at.max(*start));
            clip(&mut rest.end, axis, |at| at.min(*end));
            if rest.is_empty() {
                // They do not meet: slices of what is left would overlap those before.
                return vec![self];
            }
        }
        left.retain(|slice| !slice.is_empty());
        left
    }
}

fn clip(corner: &mut [u64; 3], axis: usize, by: impl Fn(u64) -> u64) {
    if let Some(at) = corner.get_mut(axis) {
        *at = by(*at);
    }
}

impl Tiles {
    /// Empties a region and puts this memory behind it, if any. Returns what was behind it before.
    pub(super) fn put(&mut self, at: Subresource, region: Region, memory: Option<u64>) -> Vec<u64> {
        let mapped = self.0.entry(at).or_default();
        let mut replaced = Vec::new();
        let mut left = Vec::new();
        for (known, id) in mapped.drain(..) {
            let rest = known.without(region);
            if rest != [known] {
                replaced.push(id);
            }
            left.extend(rest.into_iter().map(|rest| (rest, id)));
        }
        left.extend(memory.filter(|_| !region.is_empty()).map(|id| (region, id)));
        if left.is_empty() {
            self.0.remove(&at);
        } else {
            *mapped = left;
        }
        replaced
    }

    /// Adds memory that may be behind a region, beside what was mapped before and may still be.
    pub(super) fn add(&mut self, at: Subresource, region: Region, memory: u64) {
        if !region.is_empty() {
            self.0.entry(at).or_default().push((region, memory));
        }
    }

    /// Empties an array. Returns what was behind it.
    pub(super) fn take(&mut self, array: u64) -> Behind {
        Behind(self.0.extract_if(|at, _| at.array == array).collect())
    }

    /// Undoes [`take`](Self::take).
    pub(super) fn put_back(&mut self, Behind(taken): Behind) {
        self.0.extend(taken);
    }

    /// Whether this memory is behind any tile.
    pub(super) fn hold(&self, memory: u64) -> bool {
        self.0.values().flatten().any(|(_, id)| *id == memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    const AT: Subresource = Subresource { array: 1, level: Some(0), layer: 0 };
    const SIDE: u64 = 6;

    fn region() -> impl Strategy<Value = Region> {
        let corner = || prop::array::uniform3(0..SIDE);
        (corner(), prop::array::uniform3(0..SIDE))
            .prop_map(|(start, extent)| Region::new(start, extent))
    }

    /// What is behind one element.
    fn at(tiles: &Tiles, element: [u64; 3]) -> Vec<u64> {
        let inside = |region: &Region| {
            (0..3).all(|axis| (region.start[axis]..region.end[axis]).contains(&element[axis]))
        };
        let mapped = tiles.0.values().flatten();
        mapped.filter(|(region, _)| inside(region)).map(|(_, id)| *id).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_element_holds_what_was_put_there_last(
            acts in vec((region(), prop::option::of(0..3u64)), 1..12),
        ) {
            let mut tiles = Tiles::default();
            let mut model = HashMap::new();
            let elements = || {
                (0..2 * SIDE).flat_map(|x| {
                    (0..2 * SIDE).flat_map(move |y| (0..2 * SIDE).map(move |z| [x, y, z]))
                })
            };
            for (region, memory) in acts {
                tiles.put(AT, region, memory);
                for element in elements() {
                    if (0..3).all(|i| (region.start[i]..region.end[i]).contains(&element[i])) {
                        model.insert(element, memory);
                    }
                }
            }
            for element in elements() {
                let expected: Vec<u64> = model.get(&element).copied().flatten().into_iter().collect();
                prop_assert_eq!(at(&tiles, element), expected);
            }
            for memory in 0..3 {
                prop_assert_eq!(tiles.hold(memory), model.values().any(|id| *id == Some(memory)));
            }
        }
    }

    #[test]
    fn a_region_at_the_end_of_all_numbers_does_not_wrap() {
        let far = Region::new([u64::MAX - 1, 0, 0], [u64::MAX, 1, 1]);
        assert_eq!(far.end, [u64::MAX, 1, 1]);
        let mut tiles = Tiles::default();
        tiles.put(AT, far, Some(7));
        assert!(tiles.hold(7));
        assert_eq!(tiles.put(AT, far, None), [7]);
        assert!(!tiles.hold(7));
    }

    #[test]
    fn other_levels_layers_and_arrays_are_left_alone() {
        let region = Region::new([0; 3], [4; 3]);
        let others = [
            Subresource { level: Some(1), ..AT },
            Subresource { level: None, ..AT },
            Subresource { layer: 1, ..AT },
            Subresource { array: 2, ..AT },
        ];
        let mut tiles = Tiles::default();
        for other in others {
            tiles.put(other, region, Some(7));
        }
        assert_eq!(tiles.put(AT, region, None), []);
        let taken = tiles.take(1);
        assert_eq!(tiles.take(2).memories().count(), 1);
        assert!(!tiles.hold(7));
        tiles.put_back(taken);
        assert!(tiles.hold(7));
        assert_eq!(tiles.take(1).memories().collect::<Vec<_>>(), [7, 7, 7]);
    }
}
