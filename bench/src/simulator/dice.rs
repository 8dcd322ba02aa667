//! Random numbers that are the same in every run.

/// A generator with a seed: Steele, Lea and Flood's `SplitMix64`.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number from `low` to `high`, uniformly.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.roll() % (high - low + 1)
    }

    /// Returns a number from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Lognormal: half of the values are below `median`, and the logarithm's deviation is `sigma`.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, small")]
    pub fn lognormal(&mut self, median: u64, sigma: f64) -> u64 {
        // Box and Muller's normal.
        let radius = (-2.0 * self.unit().max(1e-12).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        (median as f64 * (sigma * normal).exp()) as u64
    }

    /// Exponential with this mean: times between independent arrivals.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, small")]
    pub fn exponential(&mut self, mean: u64) -> u64 {
        (-self.unit().max(1e-12).ln() * mean as f64) as u64
    }
}
