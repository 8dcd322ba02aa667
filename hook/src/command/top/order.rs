//! In which order rows stand, and which of them: by a column, and by a text that is searched for.
//!
//! Rows come in the order of `status`, by name, and keep it where a column has the same value for them: so no row changes
//! its place without a reason. What is not measured counts as the least. The values of [`Order`] are those of `--sort`;
//! the key goes through them in their order. Pure.

use super::row::Row;
use clap::ValueEnum;
use std::cmp::Reverse;

/// The column by which rows are sorted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum Order {
    /// By index, and by name where that is not known
    Gpu,
    /// As `gpucap status` sorts
    Name,
    /// Most memory first
    Memory,
    /// Most of the GPU's time first
    #[default]
    Time,
    /// Most launches that wait first
    Wait,
    /// Most refused allocations first
    Refused,
    /// Most processes first
    Procs,
}

impl Order {
    /// Returns the next one, after the last the first.
    pub(super) fn next(self) -> Self {
        let all = Self::value_variants();
        let place = all.iter().position(|order| *order == self).unwrap_or(0);
        all.get(place + 1).or_else(|| all.first()).copied().unwrap_or_default()
    }

    /// Sorts rows that are in the order of `status`, which those keep that are the same by this column.
    pub(super) fn sort(self, rows: &mut [Row], reversed: bool) {
        match self {
            Self::Gpu => {
                rows.sort_by_cached_key(|row| (row.index.is_none(), row.index, row.gpu.clone()));
            }
            Self::Name => {}
            Self::Memory => rows.sort_by_key(|row| Reverse(row.used)),
            Self::Time => rows.sort_by_key(|row| Reverse(row.permille())),
            Self::Wait => rows.sort_by_key(|row| Reverse(row.waiting())),
            Self::Refused => rows.sort_by_key(|row| Reverse(row.refusals)),
            Self::Procs => rows.sort_by_key(|row| Reverse(row.processes)),
        }
        if reversed {
            rows.reverse();
        }
    }

    /// The heading of the column.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Name => "CONTAINER",
            Self::Memory => "MEMORY",
            Self::Time => "TIME",
            Self::Wait => "WAIT",
            Self::Refused => "REFUSED",
            Self::Procs => "PROCS",
        }
    }
}

/// Whether a row has this text in the name of its container or GPU, in capitals or not.
pub(super) fn matches(row: &Row, text: &str) -> bool {
    let text = text.to_lowercase();
    let has = |word: &str| word.to_lowercase().contains(&text);
    has(&row.name) || row.gpu.as_deref().is_some_and(has)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sampled;
    use super::*;

    /// The names of the rows in this order.
    fn names(order: Order, reversed: bool) -> Vec<String> {
        let mut rows = sampled();
        order.sort(&mut rows, reversed);
        rows.into_iter().map(|row| row.name).collect()
    }

    const TRAIN: &str = "default/train/main";
    const RUN: &str = "user-0/run-4242";

    #[test]
    fn rows_are_sorted_by_each_column() {
        let mut rows = sampled();
        (rows[0].used, rows[1].used) = (1, 2);
        (rows[0].refusals, rows[1].refusals) = (9, 8);
        for (order, first) in [
            (Order::Name, TRAIN),
            (Order::Memory, RUN),
            (Order::Time, TRAIN),
            (Order::Wait, TRAIN),
            (Order::Refused, TRAIN),
            (Order::Procs, TRAIN),
            (Order::Gpu, TRAIN),
        ] {
            let mut sorted = rows.clone();
            order.sort(&mut sorted, false);
            assert_eq!(sorted[0].name, first, "{order:?}");
        }
        assert_eq!(names(Order::Time, true), [RUN, TRAIN], "what is not measured is the least");
        assert_eq!(names(Order::Procs, false), [TRAIN, RUN], "the same: as status sorts");
    }

    #[test]
    fn the_key_goes_through_all_columns() {
        let mut order = Order::default();
        let mut seen = Vec::new();
        while !seen.contains(&order) {
            seen.push(order);
            order = order.next();
        }
        assert_eq!((seen.len(), order), (7, Order::default()));
    }

    #[test]
    fn a_text_is_searched_for_in_names() {
        let rows = sampled();
        let found = |text: &str| rows.iter().filter(|row| matches(row, text)).count();
        assert_eq!((found(""), found("TRAIN"), found("run-42"), found("gpu-0101")), (2, 1, 1, 2));
        assert_eq!(found("nosuch"), 0);
    }
}
