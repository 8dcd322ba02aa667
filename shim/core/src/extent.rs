//! How many bytes an array takes.
//!
//! Width x height x depth x channels x bytes per channel, with heights and depths of 0 counting as 1 (CUDA driver API,
//! `cuArray3DCreate`). What the driver pads beyond that is not known here. Nothing wraps: a product that does not fit
//! is as large as a number can be, and so over every cap.

/// What a caller asks for, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Width.
    pub width: u64,
    /// Height; 0 for a one-dimensional array.
    pub height: u64,
    /// Depth, or the number of layers or faces; 0 for a one- or two-dimensional array.
    pub depth: u64,
    /// `CUarray_format`.
    pub format: u32,
    /// Channels per element.
    pub channels: u32,
}

impl Extent {
    /// The bytes it takes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        [self.height.max(1), self.depth.max(1), self.channels.into(), channel_bytes(self.format)]
            .into_iter()
            .fold(self.width, u64::saturating_mul)
    }

    /// The bytes of all levels of a mipmapped array, of which each halves the one before down to one element. The
    /// layers of a layered array and the faces of a cube map stay as they are.
    #[must_use]
    pub fn mipmapped_bytes(self, levels: u32, layered: bool) -> u64 {
        // A shift by 64 or more would not be defined; by 63 every dimension has long been one element.
        (0..levels.min(64)).fold(0, |sum: u64, level| {
            let half = |length: u64| if length == 0 { 0 } else { (length >> level).max(1) };
            let depth = if layered { self.depth } else { half(self.depth) };
            let (width, height) = (half(self.width), half(self.height));
            sum.saturating_add(Self { width, height, depth, ..self }.bytes())
        })
    }
}

/// Bytes of one channel of a `CUarray_format`. A format that is not listed counts as the widest, so that the cap holds.
const fn channel_bytes(format: u32) -> u64 {
    match format {
        // UNSIGNED_INT8, SIGNED_INT8, UNORM_INT8X1 to X4, SNORM_INT8X1 to X4
        0x01 | 0x08 | 0xc0..=0xc2 | 0xc6..=0xc8 => 1,
        // UNSIGNED_INT16, SIGNED_INT16, HALF, UNORM_INT16X1 to X4, SNORM_INT16X1 to X4
        0x02 | 0x09 | 0x10 | 0xc3..=0xc5 | 0xc9..=0xcb => 2,
        // UNSIGNED_INT32, SIGNED_INT32, FLOAT, and what is not listed
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOAT: u32 = 0x20;

    #[test]
    fn missing_dimensions_count_as_one() {
        let line = Extent { width: 10, height: 0, depth: 0, format: FLOAT, channels: 1 };
        assert_eq!(line.bytes(), 40);
        assert_eq!(Extent { height: 3, ..line }.bytes(), 120);
        assert_eq!(Extent { height: 3, depth: 2, channels: 4, ..line }.bytes(), 960);
    }

    #[test]
    fn nothing_wraps() {
        let huge = Extent { width: u64::MAX, height: 2, depth: 2, format: FLOAT, channels: 4 };
        assert_eq!(huge.bytes(), u64::MAX);
    }

    #[test]
    fn levels_halve_and_layers_stay() {
        let cube = Extent { width: 8, height: 4, depth: 6, format: FLOAT, channels: 1 };
        assert_eq!(cube.mipmapped_bytes(1, true), cube.bytes());
        assert_eq!(cube.mipmapped_bytes(4, true), 4 * 6 * (8 * 4 + 4 * 2 + 2 + 1));
        assert_eq!(cube.mipmapped_bytes(3, false), 4 * (8 * 4 * 6 + 4 * 2 * 3 + 2));
        assert_eq!(cube.mipmapped_bytes(0, false), 0);
    }

    #[test]
    fn levels_beyond_the_last_element_cost_one_each_and_none_wraps() {
        let line = Extent { width: 2, height: 0, depth: 0, format: FLOAT, channels: 1 };
        assert_eq!(line.mipmapped_bytes(4, false), 4 * (2 + 1 + 1 + 1));
        assert_eq!(Extent { width: u64::MAX, ..line }.mipmapped_bytes(u32::MAX, false), u64::MAX);
    }

    #[test]
    fn an_array_without_width_takes_nothing() {
        let none = Extent { width: 0, height: 5, depth: 5, format: FLOAT, channels: 4 };
        assert_eq!(none.bytes(), 0);
    }
}
