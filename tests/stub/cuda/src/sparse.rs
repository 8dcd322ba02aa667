//! Sparse arrays: memory behind tiles.
//!
//! All tiles are 128 elements wide and high and one deep, and hold 64 KiB, as those of a
//! two-dimensional array of floats are; the tail of small levels comes in pieces of 64 KiB. Done
//! when it is called, not when the stream gets there.

use crate::arg::In;
use crate::driver::state;
use crate::export::exports;
use crate::state::State;
use gpucap_abi::cuda::{CUstream, CuError, CuResult};
use std::collections::HashMap;

exports! {
    /// Maps memory into tiles, or empties them.
    fn cuMemMapArrayAsync(maps: *const Map, count: u32, stream: CUstream)
        => map_array, context, "cuMemMapArrayAsync" @ 11010;
    /// Maps memory into tiles, or empties them.
    fn cuMemMapArrayAsync_ptsz(maps: *const Map, count: u32, stream: CUstream)
        => map_array, context, "cuMemMapArrayAsync" @ 11010 ptsz;
}

/// `CUarrayMapInfo`
#[repr(C)]
#[derive(Clone, Copy)]
struct Map {
    resource_kind: i32,
    resource: u64,
    subresource_kind: i32,
    _padding: u32,
    /// Level, layer, offsets, extents; of a tail, layer and then offset and size in 64 bits.
    subresource: [u32; 8],
    operation: i32,
    handle_kind: i32,
    handle: u64,
    offset: u64,
    devices: u32,
    flags: u32,
    reserved: [u32; 2],
}
const _: () = assert!(size_of::<Map>() == 96);

/// One tile: array, level (or the tail), layer, and place in units of tiles.
type Tile = (u64, Option<u32>, u32, [u64; 3]);

/// The memory behind each tile, by its number.
#[derive(Default)]
pub(crate) struct Tiles(HashMap<Tile, u64>);

const MAP: i32 = 1;
const UNMAP: i32 = 2;
const TAIL: i32 = 1;
const SIDE: u64 = 128;
const TILE_BYTES: u64 = 64 << 10;

impl Map {
    /// The tiles that it names.
    fn tiles(&self) -> Result<Vec<Tile>, CuError> {
        let [level, layer, x, y, z, width, height, depth] = self.subresource;
        let (level, layer, start, extent, unit) = if self.subresource_kind == TAIL {
            let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            let (offset, size) = (wide(x, y), wide(z, width));
            (None, level, [offset, 0, 0], [size, 1, 1], [TILE_BYTES, 1, 1])
        } else {
            let start = [x, y, z].map(u64::from);
            (Some(level), layer, start, [width, height, depth].map(u64::from), [SIDE, SIDE, 1])
        };
        let aligned = (0..3)
            .all(|at| start[at].is_multiple_of(unit[at]) && extent[at].is_multiple_of(unit[at]));
        if !aligned || extent.contains(&0) {
            return Err(CuError::INVALID_VALUE);
        }
        let along = |at: usize| (start[at] / unit[at])..((start[at] + extent[at]) / unit[at]);
        let rows = along(2).flat_map(|z| along(1).map(move |y| (y, z)));
        let places = rows.flat_map(|(y, z)| along(0).map(move |x| [x, y, z]));
        Ok(places.map(|place| (self.resource, level, layer, place)).collect())
    }
}

impl State {
    /// Empties the tiles of an array that ends.
    pub(crate) fn end_tiles(&mut self, array: u64) {
        let ended: Vec<_> = self.tiles.0.extract_if(|tile, _| tile.0 == array).collect();
        for (_, physical) in ended {
            self.let_go(physical);
        }
        self.end_unused();
    }

    fn let_go(&mut self, physical: u64) {
        if let Some(found) = self.vmm.by_number(physical) {
            found.mappings -= 1;
        }
    }
}

fn map_array(maps: In<Map>, count: u32, stream: CUstream) -> CuResult {
    let mut state = state()?;
    state.check_stream(stream)?;
    for index in 0..count as usize {
        let map = maps.at(index).get()?;
        let known = state.arrays.is_sparse(map.resource, map.resource_kind == 1);
        if !known || map.flags != 0 || map.reserved != [0; 2] || map.devices == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let tiles = map.tiles()?;
        let physical = match map.operation {
            MAP => {
                let (number, found) = state.vmm.named(map.handle)?;
                let bytes = tiles.len() as u64 * TILE_BYTES;
                let fits = map.offset.checked_add(bytes).is_some_and(|end| end <= found.bytes);
                Some(number).filter(|_| fits && map.handle_kind == 0)
            }
            UNMAP => None,
            _ => return Err(CuError::INVALID_VALUE),
        };
        if map.operation == MAP && physical.is_none() {
            return Err(CuError::INVALID_VALUE);
        }
        for tile in tiles {
            let before = match physical {
                Some(physical) => state.tiles.0.insert(tile, physical),
                None => state.tiles.0.remove(&tile),
            };
            if let Some(found) = physical.and_then(|physical| state.vmm.by_number(physical)) {
                found.mappings += 1;
            }
            before.into_iter().for_each(|before| state.let_go(before));
        }
    }
    state.end_unused();
    Ok(())
}
