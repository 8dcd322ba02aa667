//! A table of words, its columns as wide as they must be.
//!
//! The last column has no padding behind it, so that no line ends in blanks. Where the lines do not fit, the columns that
//! may be narrowed give way, the first of them first; a line that is still too wide is cut at its end.

use crate::terminal::lines;
use crate::terminal::style;
use std::iter::once;

/// A table under construction.
pub(crate) struct Table<'a> {
    indent: usize,
    gap: usize,
    columns: &'a [Column],
    rows: Vec<Vec<Cell>>,
}

/// A column: its heading, the side on which its words stand, and how narrow it may become.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    right: bool,
    least: usize,
    cut: fn(usize, &str) -> String,
}

/// A word of a row.
pub(crate) struct Cell {
    word: String,
    paint: Option<fn(&str) -> String>,
}

impl Column {
    /// Of words, which stand left.
    pub(crate) const fn left(name: &'static str) -> Self {
        Self { name, right: false, least: usize::MAX, cut: lines::cut }
    }

    /// Of numbers, which stand right.
    pub(crate) const fn right(name: &'static str) -> Self {
        Self { right: true, ..Self::left(name) }
    }

    /// One whose words may be cut at their end.
    pub(crate) const fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// One whose words may be cut in the middle.
    pub(crate) const fn ends_at_least(self, least: usize) -> Self {
        Self { least, cut: lines::cut_middle, ..self }
    }
}

impl Cell {
    /// A word in a colour of [`style`].
    pub(crate) fn painted(word: String, paint: fn(&str) -> String) -> Self {
        Self { word, paint: Some(paint) }
    }

    /// A word that is not as it should be.
    pub(crate) fn bad(word: String) -> Self {
        Self::painted(word, style::bad)
    }
}

impl From<String> for Cell {
    fn from(word: String) -> Self {
        Self { word, paint: None }
    }
}

impl<'a> Table<'a> {
    /// A table that is indented by `indent` blanks, with `gap` of them between the columns.
    pub(crate) const fn new(indent: usize, gap: usize, columns: &'a [Column]) -> Self {
        Self { indent, gap, columns, rows: Vec::new() }
    }

    /// Adds a row; it has as many words as there are columns.
    pub(crate) fn row<T: Into<Cell>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.rows.push(words.into_iter().map(Into::into).collect());
    }

    /// The lines, each of at most `most` places if that is given.
    pub(crate) fn render(&self, most: Option<usize>) -> String {
        let widths = self.widths(most);
        let names = self.columns.iter().map(|column| Cell::from(column.name.to_owned()));
        let heading = self.line(&names.collect::<Vec<_>>(), &widths, most);
        let mut text = format!("{}\n", style::dim(&heading));
        for row in &self.rows {
            text.push_str(&self.line(row, &widths, most));
            text.push('\n');
        }
        text
    }

    /// Returns how wide a line is with nothing narrowed.
    pub(crate) fn width(&self) -> usize {
        self.width_of(&self.widths(None))
    }

    /// Returns how wide a line is with each column as narrow as it may be.
    pub(crate) fn least_width(&self) -> usize {
        self.width_of(&self.widths(Some(0)))
    }

    fn width_of(&self, widths: &[usize]) -> usize {
        let gaps = self.indent + self.gap * widths.len().saturating_sub(1);
        gaps + widths.iter().sum::<usize>()
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let width = |(at, column): (usize, &Column)| {
            let words = self.rows.iter().filter_map(|row| Some(&*row.get(at)?.word));
            words.chain(once(column.name)).map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(width).collect();
        let whole = self.width_of(&widths);
        let mut beyond = most.map_or(0, |most| whole.saturating_sub(most));
        for (width, column) in widths.iter_mut().zip(self.columns) {
            let less = beyond.min(width.saturating_sub(column.least));
            *width -= less;
            beyond -= less;
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize], most: Option<usize>) -> String {
        let mut line = String::new();
        for (at, (cell, column)) in row.iter().zip(self.columns).enumerate() {
            let blanks = " ".repeat(if at == 0 { self.indent } else { self.gap });
            let width = widths.get(at).copied().unwrap_or(0);
            let word = (column.cut)(width, &cell.word);
            let word = match column.right {
                true => format!("{word:>width$}"),
                false if at + 1 == row.len() => word,
                false => format!("{word:<width$}"),
            };
            line.push_str(&blanks);
            line.push_str(&match cell.paint {
                Some(paint) => paint(&word),
                None => word,
            });
        }
        lines::cut(most.unwrap_or(usize::MAX), line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &'static [Column], rows: &[&[&str]]) -> Table<'static> {
        let mut table = Table::new(2, 3, columns);
        rows.iter().for_each(|row| table.row(row.iter().map(|&word| word.to_owned())));
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_word() {
        const COLUMNS: &[Column] =
            &[Column::right("PID"), Column::left("HOLDS"), Column::left("COMMAND")];
        let table = table(COLUMNS, &[&["7", "1.25 GiB", "python"], &["12345", "0", "sh"]]);
        assert_eq!(
            style::plain(&table.render(None)),
            "    PID   HOLDS      COMMAND\n      7   1.25 GiB   python\n  12345   0          sh\n"
        );
    }

    #[test]
    fn the_first_columns_that_may_give_way_first() {
        const COLUMNS: &[Column] = &[
            Column::left("GPU").at_least(5),
            Column::left("NAME").ends_at_least(7),
            Column::right("USED"),
        ];
        let table = table(COLUMNS, &[&["GPU-0101", "default/train", "1 GiB"]]);
        let render = |most| style::plain(&table.render(Some(most)));
        assert_eq!(
            render(34),
            format!(
                "  GPU        NAME{}USED\n  GPU-0101   default/train   1 GiB\n",
                " ".repeat(13)
            )
        );
        for (most, row) in [
            (32, "  GPU-0…   default/train   1 GiB"),
            (28, "  GPU-…   defa…train   1 GiB"),
            (25, "  GPU-…   def…ain   1 GiB"),
            (24, "  GPU-…   def…ain   1 G…"),
        ] {
            assert_eq!(render(most).lines().last(), Some(row), "{most}");
            assert!(render(most).lines().all(|line| line.chars().count() <= most));
        }
        assert_eq!((table.width(), table.least_width()), (34, 25));
    }
}
