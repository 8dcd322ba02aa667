//! How many bytes an array takes.
//!
//! Width x height x depth x bits per element, with heights and depths of 0 counting as 1 (CUDA driver API,
//! `cuArray3DCreate`). What the driver pads beyond that is not known here. Nothing wraps: a product that does not fit
//! is as large as a number can be, and so over every limit.

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
        let Texel { bits, block } = texel(self.format, self.channels);
        let whole = |length: u64| length.div_ceil(block).saturating_mul(block);
        let texels = [whole(self.height.max(1)), self.depth.max(1)]
            .into_iter()
            .fold(whole(self.width), u64::saturating_mul);
        // Divided first where the product would not fit: then it is over every limit anyway.
        texels.checked_mul(bits).map_or(u64::MAX, |bits| bits.div_ceil(8))
    }

    /// The bytes of all levels of a mipmapped array, of which each halves the one before down to one element. The
    /// layers of a layered array and the faces of a cube map stay as they are. There is one level at least, and none
    /// beyond that of one element (CUDA driver API, `cuMipmappedArrayCreate`: the number is clamped).
    #[must_use]
    pub fn mipmapped_bytes(self, levels: u32, layered: bool) -> u64 {
        let longest = self.width.max(self.height).max(self.depth);
        let most = longest.checked_ilog2().unwrap_or(0).saturating_add(1); // at most 64: no shift is too far
        (0..levels.clamp(1, most)).fold(0, |sum: u64, level| {
            let half = |length: u64| if length == 0 { 0 } else { (length >> level).max(1) };
            let depth = if layered { self.depth } else { half(self.depth) };
            let (width, height) = (half(self.width), half(self.height));
            sum.saturating_add(Self { width, height, depth, ..self }.bytes())
        })
    }
}

/// How the elements of an array are stored.
struct Texel {
    /// Bits of one element, all channels together.
    bits: u64,
    /// Elements are stored in squares of this length.
    block: u64,
}

/// The storage of a `CUarray_format` (CUDA driver API; block compression and video formats as Direct3D defines them).
/// A format that is not listed counts as four bytes a channel, the widest plain one.
fn texel(format: u32, channels: u32) -> Texel {
    let plain = |bits: u64| Texel { bits: bits.saturating_mul(channels.into()), block: 1 };
    let packed = |bits| Texel { bits, block: 1 };
    let compressed = |bits| Texel { bits, block: 4 };
    match format {
        // UNSIGNED_INT8, SIGNED_INT8, UNORM_INT8X1 to X4, SNORM_INT8X1 to X4
        0x01 | 0x08 | 0xc0..=0xc2 | 0xc6..=0xc8 => plain(8),
        // UNSIGNED_INT16, SIGNED_INT16, HALF, UNORM_INT16X1 to X4, SNORM_INT16X1 to X4
        0x02 | 0x09 | 0x10 | 0xc3..=0xc5 | 0xc9..=0xcb => plain(16),
        // BC1, BC4
        0x91 | 0x92 | 0x97 | 0x98 => compressed(4),
        // BC2, BC3, BC5, BC6H, BC7
        0x93..=0x96 | 0x99..=0x9e => compressed(8),
        // NV12
        0xb0 => packed(12),
        // NV16, YUY2
        0xa2 | 0xa5 => packed(16),
        // P010, P016, Y444_PLANAR8, YUV444_8bit_SemiPlanar
        0x9f | 0xa1 | 0xb2 | 0xb4 => packed(24),
        // UNORM_INT_101010_2, P210, P216, Y210, Y216, AYUV, Y410
        0x50 | 0xa3 | 0xa4 | 0xa6..=0xa9 => packed(32),
        // Y444_PLANAR10, YUV444_16bit_SemiPlanar
        0xb3 | 0xb5 => packed(48),
        // Y416
        0xb1 => packed(64),
        // UNSIGNED_INT32, SIGNED_INT32, FLOAT, and what is not listed
        _ => plain(32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FLOAT: u32 = 0x20;

    /// Lengths near the ends and the powers of two, where products wrap.
    fn length() -> impl Strategy<Value = u64> {
        let near = (0..64u32, 0..3u64).prop_map(|(bit, off)| (1u64 << bit).wrapping_sub(off));
        prop_oneof![near, Just(u64::MAX), 0..100u64]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_size_is_exact_or_as_large_as_a_number_can_be(
            (width, height, depth) in (length(), length(), length()),
            channels in prop_oneof![0..5u32, Just(u32::MAX)],
        ) {
            let extent = Extent { width, height, depth, format: FLOAT, channels };
            let lengths = [width, height.max(1), depth.max(1), u64::from(channels), 32];
            let bits = lengths.into_iter().try_fold(1u128, |product, length| {
                product.checked_mul(length.into())
            });
            match bits.map(u64::try_from) {
                Some(Ok(bits)) => prop_assert_eq!(extent.bytes(), bits / 8),
                // What does not fit is over every limit; only nothing at all is nothing.
                _ if lengths.contains(&0) => prop_assert_eq!(extent.bytes(), 0),
                _ => prop_assert_eq!(extent.bytes(), u64::MAX),
            }
        }

        #[test]
        fn levels_never_make_an_array_smaller(
            (width, height, depth) in (length(), length(), length()),
            levels in prop_oneof![0..70u32, Just(u32::MAX)],
            layered: bool,
        ) {
            let extent = Extent { width, height, depth, format: FLOAT, channels: 4 };
            let with = |levels| extent.mipmapped_bytes(levels, layered);
            prop_assert_eq!(with(1), extent.bytes());
            prop_assert!(with(levels) >= with(levels.saturating_sub(1)).max(extent.bytes()));
        }

        #[test]
        fn levels_are_clamped_as_the_driver_clamps_them(
            (width, height, depth) in (1..5000u64, 0..5000u64, 0..5000u64),
            levels in prop_oneof![0..20u32, Just(u32::MAX)],
            layered: bool,
        ) {
            let extent = Extent { width, height, depth, format: FLOAT, channels: 2 };
            let most = f64::from(u32::try_from(width.max(height).max(depth)).unwrap()).log2().floor();
            let clamped = (f64::from(levels)).clamp(1.0, 1.0 + most);
            let each = |level: u32| {
                let half = |length: u64| if length == 0 { 0 } else { (length >> level).max(1) };
                let depth = if layered { depth } else { half(depth) };
                Extent { width: half(width), height: half(height), depth, ..extent }.bytes()
            };
            let sum: u64 = (0..).take_while(|level| f64::from(*level) < clamped).map(each).sum();
            prop_assert_eq!(extent.mipmapped_bytes(levels, layered), sum);
        }
    }

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
    fn compressed_formats_are_stored_in_blocks() {
        let bc1 = Extent { width: 5, height: 1, depth: 0, format: 0x91, channels: 4 };
        assert_eq!(bc1.bytes(), 2 * 8, "two blocks of 4 x 4 at half a byte");
        assert_eq!(Extent { format: 0x9d, ..bc1 }.bytes(), 2 * 16);
    }

    #[test]
    fn video_formats_count_all_planes() {
        let nv12 = Extent { width: 16, height: 8, depth: 0, format: 0xb0, channels: 3 };
        assert_eq!(nv12.bytes(), 16 * 8 * 3 / 2);
        assert_eq!(Extent { format: 0x9f, ..nv12 }.bytes(), 16 * 8 * 3);
    }

    #[test]
    fn an_unknown_format_is_not_free() {
        let unknown = Extent { width: 3, height: 0, depth: 0, format: 0x7f, channels: 2 };
        assert_eq!(unknown.bytes(), 3 * 2 * 4);
    }

    #[test]
    fn levels_halve_and_layers_stay() {
        let cube = Extent { width: 8, height: 4, depth: 6, format: FLOAT, channels: 1 };
        assert_eq!(cube.mipmapped_bytes(1, true), cube.bytes());
        assert_eq!(cube.mipmapped_bytes(4, true), 4 * 6 * (8 * 4 + 4 * 2 + 2 + 1));
        assert_eq!(cube.mipmapped_bytes(3, false), 4 * (8 * 4 * 6 + 4 * 2 * 3 + 2));
    }

    #[test]
    fn levels_are_one_at_least_and_end_with_one_element() {
        let line = Extent { width: 2, height: 0, depth: 0, format: FLOAT, channels: 1 };
        assert_eq!(line.mipmapped_bytes(0, false), line.bytes());
        assert_eq!(line.mipmapped_bytes(4, false), 4 * (2 + 1));
        assert_eq!(Extent { width: u64::MAX, ..line }.mipmapped_bytes(u32::MAX, false), u64::MAX);
    }

    #[test]
    fn an_array_without_width_takes_nothing() {
        let none = Extent { width: 0, height: 5, depth: 5, format: FLOAT, channels: 4 };
        assert_eq!(none.bytes(), 0);
    }
}
