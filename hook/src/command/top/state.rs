//! What the live view shows, and what each key changes of it.
//!
//! The latest picture with its rates, the rows that are shown of it, and where the user is: in the table, in the text
//! that is searched for, or at one container in detail. The selection stays with a container when rows change their
//! places. Pure: pictures and keys are given.

use super::order::{self, Order};
use super::rates::{self, Budget, Counters, History, Key, Rates};
use super::row::{self, Row};
use crate::command::status::view::{LedgerView, Status};
use crate::terminal::keys::Key as Pressed;
use gpucap_plan::Card;

/// Where the user is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Focus {
    /// In the table.
    #[default]
    Table,
    /// In the text that is searched for.
    Search,
    /// At one container or run.
    Detail(Budget),
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) focus: Focus,
    pub(super) order: Order,
    pub(super) reversed: bool,
    pub(super) search: String,
    /// How many lines of the detail are above the screen.
    pub(super) scrolled: usize,
    pub(super) history: History,
    pub(super) rows: Vec<Row>,
    pub(super) status: Status,
    cards: Vec<Card>,
    counters: Counters,
    rates: Rates,
    selected: Option<Key>,
    /// Where the selected row was when it was last there.
    at: usize,
}

/// As many rows as a page key moves.
const PAGE: isize = 10;
/// A longer text is searched for by nothing.
const LONGEST_SEARCH: usize = 200;

impl State {
    /// Shows nothing yet.
    pub(super) fn new(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    /// Takes a picture of this time, on a machine with these GPUs.
    pub(super) fn take(&mut self, mut status: Status, cards: Vec<Card>, at_ns: u64) {
        let counters = Counters::of(&status, at_ns);
        self.rates = counters.since(&self.counters);
        rates::apply(&self.rates, &mut status);
        self.history.add(&self.rates);
        (self.status, self.counters, self.cards) = (status, counters, cards);
        self.arrange();
    }

    /// Makes the rows anew.
    fn arrange(&mut self) {
        self.rows = row::rows(&self.status, &self.rates, &self.cards);
        self.rows.retain(|row| order::matches(row, &self.search));
        self.order.sort(&mut self.rows, self.reversed);
        let selected = self.selected.as_ref();
        let place = selected.and_then(|key| self.rows.iter().position(|row| row.key == *key));
        self.select(place.unwrap_or(self.at));
    }

    fn select(&mut self, at: usize) {
        self.at = at.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(self.at).map(|row| row.key.clone());
    }

    /// The place of the selected row.
    pub(super) const fn selected(&self) -> usize {
        self.at
    }

    /// The container or run that is shown in detail; `None` if it has ended.
    pub(super) fn detailed(&self) -> Option<&LedgerView> {
        let Focus::Detail(budget) = &self.focus else { return None };
        self.status.ledgers.iter().find(|ledger| Budget::of(ledger) == *budget)
    }

    /// Does what a key means. Returns whether the program goes on.
    pub(super) fn press(&mut self, key: Pressed) -> bool {
        match (&self.focus, key) {
            (_, Pressed::Interrupt) => return false,
            (Focus::Search, _) => self.edit(key),
            (_, Pressed::Char('q')) => return false,
            (Focus::Table, Pressed::Char('s')) => self.order = self.order.next(),
            (Focus::Table, Pressed::Char('r')) => self.reversed = !self.reversed,
            (Focus::Table, Pressed::Char('/')) => self.focus = Focus::Search,
            (Focus::Table, Pressed::Esc) => self.search.clear(),
            (Focus::Table, Pressed::Enter) => {
                if let Some((budget, _)) = &self.selected {
                    (self.focus, self.scrolled) = (Focus::Detail(budget.clone()), 0);
                }
            }
            (Focus::Detail(_), Pressed::Esc | Pressed::Backspace) => self.focus = Focus::Table,
            (_, _) => self.step(key),
        }
        self.arrange();
        true
    }

    fn edit(&mut self, key: Pressed) {
        match key {
            Pressed::Char(sign) if self.search.len() < LONGEST_SEARCH => self.search.push(sign),
            Pressed::Backspace => drop(self.search.pop()),
            Pressed::Enter => self.focus = Focus::Table,
            Pressed::Esc => {
                self.search.clear();
                self.focus = Focus::Table;
            }
            _ => self.step(key),
        }
    }

    /// Moves the selection, or the text of the detail.
    fn step(&mut self, key: Pressed) {
        let by = match key {
            Pressed::Up | Pressed::Char('k') => -1,
            Pressed::Down | Pressed::Char('j') => 1,
            Pressed::PageUp => -PAGE,
            Pressed::PageDown => PAGE,
            Pressed::Home => isize::MIN,
            Pressed::End => isize::MAX,
            _ => return,
        };
        match self.focus {
            Focus::Detail(_) => self.scrolled = self.scrolled.saturating_add_signed(by),
            Focus::Table | Focus::Search => self.select(self.at.saturating_add_signed(by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;

    fn press(state: &mut State, keys: &[Pressed]) -> bool {
        keys.iter().all(|key| state.press(*key))
    }

    fn write(state: &mut State, text: &str) {
        assert!(text.chars().all(|sign| state.press(Pressed::Char(sign))));
    }

    fn names(state: &State) -> Vec<&str> {
        state.rows.iter().map(|row| &*row.name).collect()
    }

    #[test]
    fn a_text_limits_the_rows_until_it_is_taken_back() {
        let mut state = state();
        write(&mut state, "/RUNq");
        assert_eq!((&*state.search, names(&state).len()), ("RUNq", 0), "q is a part of the text");
        press(&mut state, &[Pressed::Backspace, Pressed::Enter]);
        assert_eq!((&state.focus, names(&state)), (&Focus::Table, vec!["user-0/run-4242"]));
        press(&mut state, &[Pressed::Esc]);
        assert_eq!(names(&state).len(), 2);
        write(&mut state, "/none");
        press(&mut state, &[Pressed::Esc]);
        assert_eq!((&state.focus, names(&state).len()), (&Focus::Table, 2));
    }

    #[test]
    fn the_selection_stays_with_its_row() {
        let mut state = state();
        assert_eq!(names(&state), ["default/train/main", "user-0/run-4242"]);
        press(&mut state, &[Pressed::Down]);
        write(&mut state, "r");
        assert_eq!((names(&state)[0], state.selected()), ("user-0/run-4242", 0));
        press(&mut state, &[Pressed::End]);
        assert_eq!(state.selected(), 1);
        press(&mut state, &[Pressed::PageUp, Pressed::Up]);
        assert_eq!(state.selected(), 0);
        // The row that is selected ends: the one in its place is.
        state.take(Status::default(), vec![], 9);
        assert_eq!((state.selected(), state.rows.len()), (0, 0));
        assert!(press(&mut state, &[Pressed::Down, Pressed::Enter]));
        assert_eq!(state.focus, Focus::Table, "there is none to show");
    }

    #[test]
    fn one_container_is_shown_in_detail_until_esc() {
        let mut state = state();
        press(&mut state, &[Pressed::Enter, Pressed::Down]);
        let shown = state.detailed().map(LedgerView::label);
        assert_eq!((shown.as_deref(), state.scrolled), (Some("default/train/main"), 1));
        press(&mut state, &[Pressed::Esc]);
        assert_eq!(state.focus, Focus::Table);
        press(&mut state, &[Pressed::Enter]);
        state.take(Status::default(), vec![], 9);
        assert!(state.detailed().is_none() && state.focus != Focus::Table, "it has ended");
    }

    #[test]
    fn q_ends_it_and_so_does_an_interrupt_anywhere() {
        assert!(!state().press(Pressed::Char('q')));
        let mut searching = state();
        write(&mut searching, "/q");
        assert!(!searching.press(Pressed::Interrupt));
    }

    #[test]
    fn a_key_sorts_by_the_next_column() {
        let mut state = state();
        let first = state.order;
        write(&mut state, "s");
        assert_eq!(state.order, first.next());
    }
}
