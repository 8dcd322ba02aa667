//! A table of words, its columns as wide as they must be.
//!
//! The last column has no padding behind it, so that no line ends in blanks; a line that is too wide is cut there.

use crate::terminal::lines;
use crate::terminal::paint::Paint;

/// A table under construction.
pub(crate) struct Table {
    indent: usize,
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

/// A column: its heading, and the side on which its words stand.
pub(crate) struct Column {
    /// The heading.
    pub(crate) name: &'static str,
    /// Numbers stand right.
    pub(crate) right: bool,
}

impl Table {
    /// A table that is indented by `indent` blanks.
    pub(crate) const fn new(indent: usize, columns: &'static [Column]) -> Self {
        Self { indent, columns, rows: Vec::new() }
    }

    /// Adds a row; it has as many words as there are columns.
    pub(crate) fn row(&mut self, words: Vec<String>) {
        self.rows.push(words);
    }

    /// The lines.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let heading: Vec<String> =
            self.columns.iter().map(|column| column.name.to_owned()).collect();
        let width = |at: usize| {
            let words = self.rows.iter().chain([&heading]).filter_map(|row| row.get(at));
            words.map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = format!("{}\n", paint.dim(&self.line(&heading, &widths, paint)));
        for row in &self.rows {
            text.push_str(&self.line(row, &widths, paint));
            text.push('\n');
        }
        text
    }

    fn line(&self, row: &[String], widths: &[usize], paint: Paint) -> String {
        let mut line = " ".repeat(self.indent);
        for ((word, column), &width) in row.iter().zip(self.columns).zip(widths) {
            line.push_str(&if column.right {
                format!("{word:>width$}   ")
            } else {
                format!("{word:<width$}   ")
            });
        }
        lines::cut(paint.width(), line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_word() {
        const COLUMNS: &[Column] = &[
            Column { name: "PID", right: true },
            Column { name: "HOLDS", right: false },
            Column { name: "COMMAND", right: false },
        ];
        let mut table = Table::new(2, COLUMNS);
        table.row(vec!["7".into(), "1.25 GiB".into(), "python".into()]);
        table.row(vec!["12345".into(), "0".into(), "sh".into()]);
        assert_eq!(
            table.render(Paint::default()),
            "    PID   HOLDS      COMMAND\n      7   1.25 GiB   python\n  12345   0          sh\n"
        );
    }
}
