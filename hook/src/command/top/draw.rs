//! One frame of the live view: a line about what is shown, the rows or one container, and the keys.
//!
//! Everything is text that [`table`] and [`detail`] make for the width of the terminal, painted
//! as for the other commands; here it gets its place. Of a state only the place of scrolled text is changed, which
//! depends on the height. What ratatui is given has no control characters, and no colours where none are shown.

use super::detail;
use super::state::{Focus, State};
use super::table;
use crate::terminal::paint;
use crate::terminal::style;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use std::time::Duration;

/// Draws a frame, and keeps the scrolled text within its end.
pub(super) fn frame(frame: &mut Frame<'_>, state: &mut State, interval: Duration, colored: bool) {
    let title = title(state, interval);
    let remark = remark(state);
    let heights = [1, u16::from(remark.is_some())].map(Constraint::Length);
    let [top, below, body, bottom] =
        Layout::vertical([heights[0], heights[1], Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(paint::line(&title, colored), top);
    if let Some(remark) = remark {
        frame.render_widget(paint::line(&style::warn(&remark), colored), below);
    }
    let width = usize::from(body.width);
    let lines = match &state.focus {
        Focus::Table | Focus::Search => rows(state, body, colored),
        Focus::Detail(_) => {
            let text = match state.detailed() {
                Some(ledger) => detail::render(ledger, width),
                None => "It has ended.".into(),
            };
            let lines = paint::lines(&text, colored);
            state.scrolled =
                state.scrolled.min(lines.len().saturating_sub(usize::from(body.height)));
            lines.into_iter().skip(state.scrolled).collect()
        }
    };
    frame.render_widget(Paragraph::new(lines), body);
    frame.render_widget(paint::line(&style::dim(keys(&state.focus, width)), colored), bottom);
}

/// As many rows as there is room for, the selected one among them.
fn rows(state: &State, area: Rect, colored: bool) -> Vec<Line<'static>> {
    if state.rows.is_empty() {
        let text = match state.search.is_empty() {
            true => "No process with limits found, as far as this user can see.",
            false => "No container or GPU has this text in its name.",
        };
        return vec![Line::raw(text)];
    }
    // One line is the heading.
    let room = usize::from(area.height).saturating_sub(1).max(1);
    let selected = state.selected();
    let first = selected.saturating_sub(room.saturating_sub(1));
    let shown = state.rows.get(first..).unwrap_or_default();
    let shown = shown.get(..room).unwrap_or(shown);
    let text = table::lines(shown, &state.history, usize::from(area.width));
    let mut lines = paint::lines(&text, colored);
    if let Some(line) = lines.get_mut(1 + selected.saturating_sub(first)) {
        let blanks = usize::from(area.width).saturating_sub(line.width());
        line.push_span(" ".repeat(blanks));
        line.style = line.style.add_modifier(Modifier::REVERSED);
    }
    lines
}

/// What is shown, and how.
fn title(state: &State, interval: Duration) -> String {
    let (name, every) = (style::bold("gpucap top"), format!("every {} s", interval.as_secs_f64()));
    let count = state.rows.len();
    match &state.focus {
        Focus::Search => format!("{name}  search: {}_", state.search),
        Focus::Detail(_) => format!("{name}  {every}"),
        Focus::Table => {
            let rows = if count == 1 { "row" } else { "rows" };
            let reversed = if state.reversed { ", reversed" } else { "" };
            let by = state.order.heading();
            let mut title = format!("{name}  {count} {rows} by {by}{reversed}, {every}");
            if !state.search.is_empty() {
                title.push_str("  /");
                title.push_str(&state.search);
            }
            title
        }
    }
}

/// What is not in the rows.
fn remark(state: &State) -> Option<String> {
    let [unreadable, unused] = [state.status.unreadable.len(), state.status.unused.len()];
    let mut parts = Vec::new();
    if unreadable > 0 {
        parts.push(format!("not readable: {unreadable} (see gpucap status)"));
    }
    if unused > 0 {
        parts.push(format!("runs without a GPU: {unused}"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What the keys do, as much of it as there is room for.
fn keys(focus: &Focus, width: usize) -> &'static str {
    match focus {
        Focus::Table if width < 64 => "q quit  Enter detail  s sort  r reverse  / search",
        Focus::Table => "q quit  arrows select  Enter detail  s sort  r reverse  / search",
        Focus::Search => "Enter keep  Esc clear  Ctrl-C quit",
        Focus::Detail(_) => "q quit  arrows scroll  Esc back",
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
