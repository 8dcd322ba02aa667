//! Painted text as `ratatui` has it.
//!
//! The texts of this command are painted where they are made, by [`style`](super::style); a screen draws the same texts.
//! Only what `style` writes is understood; no other control sequence reaches the screen. Pure.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

const START: &str = "\x1b[";

/// The lines of a text, with its colours if they are to be shown.
pub(crate) fn lines(text: &str, colored: bool) -> Vec<Line<'static>> {
    text.lines().map(|text| line(text, colored)).collect()
}

/// One line.
pub(crate) fn line(text: &str, colored: bool) -> Line<'static> {
    let mut parts = text.split(START);
    let mut spans = vec![Span::raw(parts.next().unwrap_or_default().to_owned())];
    let mut style = Style::new();
    for part in parts {
        let (codes, words) = part.split_once('m').unwrap_or_default();
        for code in codes.split(';') {
            style = changed(style, code, colored);
        }
        spans.push(Span::styled(words.to_owned(), style));
    }
    spans.retain(|span| !span.content.is_empty());
    Line::from(spans)
}

fn changed(style: Style, code: &str, colored: bool) -> Style {
    let color = |color| if colored { style.fg(color) } else { style };
    match code {
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "31" => color(Color::Red),
        "32" => color(Color::Green),
        "33" => color(Color::Yellow),
        "0" | "" => Style::new(),
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;
    use ratatui::style::Stylize;

    #[test]
    fn each_style_is_understood() {
        let text = format!("a {}{}{}", style::bold("b"), style::bad("c"), style::good("d"));
        let styles = |colored| -> Vec<Style> {
            line(&text, colored).spans.iter().map(|span| span.style).collect()
        };
        let bold = Style::new().bold();
        assert_eq!(styles(true), [Style::new(), bold, Style::new().red(), Style::new().green()]);
        assert_eq!(styles(false), [Style::new(), bold, Style::new(), Style::new()]);
        assert_eq!(line(&style::warn("x"), true).spans, [Span::from("x").yellow()]);
        assert_eq!(line(&style::dim("x"), true).spans, [Span::from("x").dim()]);
        assert_eq!(line(&text, true).to_string(), "a bcd");
    }

    #[test]
    fn another_sequence_leaves_no_escape_behind() {
        for text in ["\x1b[2Jx", "\x1b[", "a\x1b[38;5;1mb"] {
            let line = line(text, true).to_string();
            assert!(!line.contains('\x1b'), "{line:?}");
        }
    }
}
