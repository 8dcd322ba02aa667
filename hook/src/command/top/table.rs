//! The table: as lines of a screen, which has room for more or fewer columns, and as the text that `--once` prints.
//!
//! Columns are left out in the order of [`DROPPED`] where the terminal is narrow; one container in detail has what is
//! left out. The name of a container is cut first, numbers never: a column goes as a whole. A value that was not measured is
//! `-`, never zero. Pure.

use super::rates::History;
use super::row::Row;
use crate::command::status::table::{BEYOND, NONE};
use crate::terminal::quantity::{exact, size};
use crate::terminal::style;
use crate::terminal::table::{Cell, Column, Table};

/// A column of a screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Gpu,
    Name,
    Bar,
    Memory,
    Time,
    Wait,
    Refused,
    Procs,
    History,
}

const PARTS: [(Part, Column); 9] = [
    (Part::Gpu, Column::left("GPU").at_least(5)),
    (Part::Name, Column::left("CONTAINER").ends_at_least(14)),
    (Part::Bar, Column::left("")),
    (Part::Memory, Column::right("MEMORY")),
    (Part::Time, Column::right("TIME")),
    (Part::Wait, Column::right("WAIT")),
    (Part::Refused, Column::right("REFUSED")),
    (Part::Procs, Column::right("PROCS")),
    (Part::History, Column::left("HISTORY")),
];
/// What a narrow terminal does not show, the first of it first.
const DROPPED: [Part; 5] = [Part::History, Part::Bar, Part::Wait, Part::Procs, Part::Refused];

/// As many places as the bar of memory takes.
const BAR: usize = 6;
/// As many as the history takes at least, and at most.
const HISTORY: [usize; 2] = [7, 60];

const ONCE: &[Column] = &[
    Column::left("GPU").at_least(10),
    Column::left("CONTAINER").ends_at_least(12),
    Column::right("MEMORY"),
    Column::right("TIME"),
    Column::right("WAIT"),
    Column::right("REFUSED"),
    Column::right("PROCS"),
];

/// The lines of a screen of this width: the heading, and one for each row.
pub(super) fn lines(rows: &[Row], history: &History, width: usize) -> String {
    let mut parts = PARTS.to_vec();
    let mut dropped = DROPPED.iter();
    loop {
        let columns: Vec<Column> = parts.iter().map(|(_, column)| *column).collect();
        let table = |places| {
            let mut table = Table::new(0, 1, &columns);
            for row in rows {
                table.row(parts.iter().map(|(part, _)| cell(*part, row, history, places)));
            }
            table
        };
        let least = table(HISTORY[0]);
        if least.least_width() > width
            && let Some(part) = dropped.next()
        {
            parts.retain(|(other, _)| other != part);
            continue;
        }
        let more = HISTORY[0] + width.saturating_sub(least.width());
        return table(more.min(HISTORY[1])).render(Some(width));
    }
}

fn cell(part: Part, row: &Row, history: &History, places: usize) -> Cell {
    match part {
        Part::Gpu => match (row.index, &row.gpu) {
            (Some(index), _) => index.to_string().into(),
            (None, gpu) => gpu.as_deref().unwrap_or(NONE).to_owned().into(),
        },
        Part::Name => row.name.clone().into(),
        Part::Bar => bar(row),
        Part::Memory => memory(row, &short(row)),
        Part::Time => time(row).into(),
        Part::Wait => waiting(row).into(),
        Part::Refused => exact(row.refusals).into(),
        Part::Procs => exact(row.processes as u64).into(),
        Part::History => curve(row, history, places).into(),
    }
}

/// The text of `--once`: rows are whole in a pipe.
pub(super) fn once(rows: &[Row], columns: Option<usize>) -> String {
    let mut table = Table::new(0, 2, ONCE);
    for row in rows {
        let gpu = row.gpu.as_deref().unwrap_or(NONE);
        let gpu = row.index.map_or_else(|| gpu.to_owned(), |index| format!("{index} {gpu}"));
        table.row([
            gpu.into(),
            row.name.clone().into(),
            memory(row, &whole(row)),
            time(row).into(),
            waiting(row).into(),
            exact(row.refusals).into(),
            exact(row.processes as u64).into(),
        ]);
    }
    table.render(columns)
}

fn memory(row: &Row, words: &str) -> Cell {
    match row.is_beyond() {
        true => Cell::bad(format!("{BEYOND}{words}")),
        false => words.to_owned().into(),
    }
}

/// `1.5 GiB / 2 GiB`
fn whole(row: &Row) -> String {
    match row.gpu {
        None => NONE.to_owned(),
        Some(_) if !row.counted => format!("{NONE} / {}", row.limit_text),
        Some(_) => format!("{} / {}", size(row.used), row.limit_text),
    }
}

/// `1.5 / 2 GiB`: one unit, if it is that of both.
fn short(row: &Row) -> String {
    let used = size(row.used);
    let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
    match used.rsplit_once(' ') {
        Some((number, own)) if row.limit.is_some() && unit(&row.limit_text) == Some(own.into()) => {
            format!("{number} / {}", row.limit_text)
        }
        _ => whole(row),
    }
}

/// `31.2% / 60%`: of the limit, if the host knows one.
fn time(row: &Row) -> String {
    let used = row.permille().map(|it| format!("{}.{}%", it / 10, it % 10));
    let used = used.unwrap_or_else(|| NONE.to_owned());
    match row.share.filter(|_| row.timed) {
        Some(share) => format!("{used} / {share}"),
        None => used,
    }
}

/// `1.5`: the mean number of launches that waited.
fn waiting(row: &Row) -> String {
    row.waiting().map_or_else(|| NONE.to_owned(), |it| format!("{}.{}", it / 100, it / 10 % 10))
}

/// Memory used, of the limit: full only if it is reached, empty only if nothing is held.
fn bar(row: &Row) -> Cell {
    let limit = row.limit.unwrap_or(u64::MAX);
    let paint = match row.used {
        used if used > limit => style::bad,
        used if used == limit => style::warn,
        _ => style::good,
    };
    Cell::painted(places(row), paint)
}

fn places(row: &Row) -> String {
    let Some(limit) = row.limit else { return String::new() };
    let part = u128::from(row.used) * BAR as u128 / u128::from(limit.max(1));
    let part = usize::try_from(part).unwrap_or(BAR).clamp(usize::from(row.used > 0), BAR);
    "█".repeat(part) + &"░".repeat(BAR.saturating_sub(part))
}

/// The time used at the last refreshes, the latest at the end. Its height is the limit, or the whole GPU without one.
fn curve(row: &Row, history: &History, places: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if !row.timed {
        return String::new();
    }
    // Ten thousandths.
    let height = row.share.map_or(10_000, |share| u64::from(share.most().parts())).max(1);
    let level = |permille: u32| {
        let level = u64::from(permille) * 10 * LEVELS.len() as u64 / height;
        let level = usize::try_from(level).unwrap_or(usize::MAX).min(LEVELS.len() - 1);
        LEVELS.get(level).copied().unwrap_or(' ')
    };
    let mut signs: Vec<char> = history.of(&row.key).rev().take(places).map(level).collect();
    signs.reverse();
    let blanks = places.saturating_sub(signs.len());
    " ".repeat(blanks) + &signs.into_iter().collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::tests::sampled;
    use super::*;

    #[test]
    fn memory_has_one_unit_where_both_have_it() {
        let row = |used, limit: u64| {
            let row = sampled().remove(0);
            Row { used, limit: Some(limit), limit_text: size(limit), ..row }
        };
        for (used, limit, shown) in [
            (3 << 29, 2 << 30, "1.5 / 2 GiB"),
            (256 << 20, 2 << 30, "256 MiB / 2 GiB"),
            (0, 2 << 30, "0 / 2 GiB"),
        ] {
            assert_eq!(short(&row(used, limit)), shown);
        }
        let unlimited = Row { limit: None, limit_text: NONE.to_owned(), ..row(1 << 30, 1) };
        assert_eq!((short(&unlimited), places(&unlimited)), ("1 GiB / -".into(), String::new()));
        assert_eq!(short(&Row { counted: false, used: 0, ..unlimited }), "- / -");
    }

    #[test]
    fn a_bar_is_full_only_at_the_limit() {
        let bar = |used| places(&Row { used, limit: Some(600), ..sampled().remove(0) });
        for (used, shown) in
            [(0, "░░░░░░"), (1, "█░░░░░"), (300, "███░░░"), (599, "█████░"), (600, "██████")]
        {
            assert_eq!(bar(used), shown);
        }
        assert_eq!(bar(u64::MAX), "██████");
    }

    #[test]
    fn what_is_not_measured_is_a_dash() {
        let mut row = sampled().remove(0);
        assert_eq!((time(&row), waiting(&row)), ("25.0% / 60%".into(), "1.5".into()));
        row.rate = None;
        assert_eq!((time(&row), waiting(&row)), ("- / 60%".into(), "-".into()));
        row.timed = false;
        assert_eq!(time(&row), "-");
    }
}
