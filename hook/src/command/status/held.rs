//! Whether the memory that a device's processes hold is known: it is counted where it is limited, and nowhere else.

use super::view::Device;
use gpucap_core::limits::file::MemoryLimit;

impl Device {
    /// Whether it is counted. Without a limit the zeros say nothing.
    pub(crate) fn is_counted(&self) -> bool {
        let is_limited = self.effective.is_some_and(|it| it.now.memory != MemoryLimit::NONE);
        is_limited || self.used > 0 || self.peak > 0 || self.process_limits().is_some()
    }

    /// The bytes of living processes, if they are counted.
    pub(crate) fn held(&self) -> Option<u64> {
        Some(self.used).filter(|_| self.is_counted())
    }

    /// The most that was ever held, if it is counted.
    pub(crate) fn most_held(&self) -> Option<u64> {
        Some(self.peak).filter(|_| self.is_counted())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::text::tests::raised;
    use super::super::view::Status;
    use super::super::{json, metrics, table, text};
    use super::*;
    use crate::terminal::style;

    /// A container with a compute limit alone, one process of which uses a GPU.
    pub(in super::super) fn of_time_alone() -> Status {
        let mut status = raised();
        let device = &mut status.ledgers[0].devices[0];
        (device.used, device.peak, device.kinds) = (0, 0, [0; _]);
        device.processes.truncate(1);
        let row = &mut device.processes[0];
        (row.limit, row.used, row.peak, row.kinds) = (0, 0, 0, [0; _]);
        device.effective.as_mut().expect("a limit").now.memory = MemoryLimit::NONE;
        status
    }

    #[test]
    fn what_is_not_counted_is_not_shown_as_nothing() {
        let status = of_time_alone();
        let metrics = metrics::render(&status);
        for name in ["memory_used_bytes", "memory_peak_bytes", "memory_held_bytes"] {
            assert!(!metrics.contains(&format!("gpucap_{name}{{")), "{metrics}");
        }
        assert!(metrics.contains("gpucap_processes{"), "{metrics}");
        let json: serde_json::Value = serde_json::from_str(&json::render(&status)).expect("JSON");
        let device = &json["ledgers"][0]["devices"][0];
        let process = &device["processes"][0];
        for null in [
            &device["used_bytes"],
            &device["peak_bytes"],
            &process["used_bytes"],
            &process["by_kind"]["alloc"],
        ] {
            assert!(null.is_null(), "{device}");
        }
        let table = style::plain(&table::render(&status, &[], None));
        assert!(table.contains("  - / -  31.2% / 60%  "), "{table}");
        let text = style::plain(&text::render(&status, 80));
        assert!(text.contains("so what is held is not counted"), "{text}");
        assert!(!text.contains("peak"), "{text}");
    }

    #[test]
    fn under_a_limit_nothing_held_is_nothing() {
        let mut status = of_time_alone();
        status.ledgers[0].devices[0].processes[0].limit = 1 << 30;
        assert!(metrics::render(&status).contains("gpucap_memory_used_bytes{"));
        let mut ended = of_time_alone();
        ended.ledgers[0].devices[0].processes.clear();
        ended.ledgers[0].devices[0].peak = 1;
        assert_eq!(ended.ledgers[0].devices[0].held(), Some(0), "something was held under one");
    }
}
