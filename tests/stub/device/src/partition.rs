//! Limits of memory for a cgroup, as the driver keeps them from 615 on where the kernel has no controller for device
//! memory (the backend "misc" of NVIDIA's pages on memory partitioning).
//!
//! A limit belongs to one cgroup and one unit. A process is under the nearest one on the way from its own cgroup to
//! the root; limits do not nest. Everything that the processes of that cgroup and of those below it hold counts, and
//! what would go beyond the hard limit is refused. The soft limit is kept and does nothing here: no process is evicted.
//!
//! A cgroup goes by its path below the hierarchy's root. A real driver forgets a limit with its cgroup; here it stays,
//! so a test gives no name twice.

use crate::catalog::Unit;
use std::path::Path;
use std::sync::OnceLock;

/// How many limits the driver keeps.
pub(crate) const MOST: usize = 64;
/// How far up a limit is looked for.
const DEPTH: usize = 8;

/// What holds for a cgroup on a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Kept for it.
    pub soft: u64,
    /// The most it gets.
    pub hard: u64,
    /// What it holds.
    pub used: u64,
}

/// Why a limit is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSet {
    /// It is lower than what is held.
    InUse,
    /// There are too many.
    Full,
}

/// A limit in the card file. All zero: a free place.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limit {
    cgroup: u64,
    unit: u64,
    soft: u64,
    hard: u64,
}

/// A cgroup and those above it, without the root: by numbers, the nearest first, 0 at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage([u64; DEPTH]);

impl Lineage {
    /// That of this process.
    #[must_use]
    pub fn own() -> &'static Self {
        static OWN: OnceLock<Lineage> = OnceLock::new();
        OWN.get_or_init(|| {
            let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            Self::of(text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default())
        })
    }

    /// That of the cgroup whose directory this is. `None`: it is none of the unified hierarchy.
    #[must_use]
    pub fn of_directory(path: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let unified = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
        let points = unified.filter_map(|line| line.split(' ').nth(4));
        let below = points.filter_map(|point| Path::new(path).strip_prefix(point).ok());
        let below = below.min_by_key(|below| below.as_os_str().len())?;
        Path::new(path).join("cgroup.procs").exists().then(|| Self::of(&below.to_string_lossy()))
    }

    /// Whether it is the root, which cannot be limited.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.0[0] == 0
    }

    fn of(path: &str) -> Self {
        let mut numbers = [0; DEPTH];
        let ancestors = Path::new(path.trim_matches('/')).ancestors();
        let named = ancestors.filter(|path| !path.as_os_str().is_empty());
        for (place, path) in numbers.iter_mut().zip(named) {
            *place = number(&path.to_string_lossy());
        }
        Self(numbers)
    }
}

/// What holds for a lineage on a unit, of which each process holds this much.
pub(crate) fn of(
    limits: &[Limit],
    lineage: &Lineage,
    unit: Unit,
    processes: impl Iterator<Item = (Lineage, u64)>,
) -> Option<Partition> {
    let (cgroup, soft, hard) = nearest(limits, lineage, unit)?;
    let within = processes.filter(|(lineage, _)| lineage.0.contains(&cgroup));
    Some(Partition { soft, hard, used: within.map(|(_, bytes)| bytes).sum() })
}

/// The limit that holds for a lineage on a unit, with its cgroup.
fn nearest(limits: &[Limit], lineage: &Lineage, unit: Unit) -> Option<(u64, u64, u64)> {
    let numbers = lineage.0.into_iter().filter(|number| *number != 0);
    let found = |number: u64| {
        limits.iter().find(|limit| limit.cgroup == number && limit.unit == unit.index() as u64)
    };
    numbers.filter_map(found).map(|limit| (limit.cgroup, limit.soft, limit.hard)).next()
}

/// Whether the nearest limit is that of the cgroup itself.
pub(crate) fn has_own(limits: &[Limit], lineage: &Lineage, unit: Unit) -> bool {
    nearest(limits, lineage, unit).is_some_and(|(cgroup, ..)| cgroup == lineage.0[0])
}

/// Sets one, in place of the one that was there; no limit at all takes that away.
pub(crate) fn set(
    limits: &mut [Limit],
    lineage: &Lineage,
    unit: Unit,
    (soft, hard): (u64, u64),
) -> Result<(), NotSet> {
    let key = (lineage.0[0], unit.index() as u64);
    let place = limits.iter().position(|limit| (limit.cgroup, limit.unit) == key);
    let place = place.or_else(|| limits.iter().position(|limit| limit.cgroup == 0));
    let none = (soft, hard) == (0, u64::MAX);
    limits[place.ok_or(NotSet::Full)?] =
        if none { Limit::default() } else { Limit { cgroup: key.0, unit: key.1, soft, hard } };
    Ok(())
}

/// FNV-1a, never 0.
fn number(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_limit_holds_and_only_on_its_unit() {
        let mut limits = [Limit::default(); 4];
        let (slice, leaf) = (Lineage::of("/a.slice"), Lineage::of("/a.slice/b/c"));
        let unit = Unit::whole(0);
        set(&mut limits, &slice, unit, (0, 10)).expect("room");
        let hard = |limits: &[Limit], lineage: &Lineage, unit| {
            nearest(limits, lineage, unit).map(|(_, _, hard)| hard)
        };
        assert_eq!(hard(&limits, &leaf, unit), Some(10));
        assert_eq!(hard(&limits, &leaf, Unit::whole(1)), None);
        assert_eq!(hard(&limits, &Lineage::of("/a"), unit), None);
        set(&mut limits, &leaf, unit, (0, 99)).expect("room");
        assert_eq!(hard(&limits, &leaf, unit), Some(99));
        set(&mut limits, &leaf, unit, (0, u64::MAX)).expect("cleared");
        assert_eq!(hard(&limits, &leaf, unit), Some(10));
        assert!(Lineage::of("/").is_root() && !slice.is_root());
    }
}
