//! Frames on terminals of several sizes, and the manual's page about them.

use super::super::tests::{SECOND, state, status};
use super::*;
use crate::command::status::text::tests::section;
use crate::command::status::view::Status;
use crate::terminal::keys::Key;
use gpucap_core::config::Slices;
use gpucap_core::uuid::Uuid;
use gpucap_plan::Card;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

const SIZES: [(u16, u16); 3] = [(60, 20), (80, 24), (200, 50)];

fn drawn(state: &mut State, (width, height): (u16, u16), colored: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let interval = Duration::from_secs(1);
    terminal.draw(|it| frame(it, state, interval, colored)).expect("drawn");
    terminal.backend().buffer().clone()
}

/// The lines of a frame, without blanks at their ends.
fn lines(state: &mut State, size: (u16, u16)) -> Vec<String> {
    let buffer = drawn(state, size, true);
    let row = |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect();
    let rows = buffer.content().chunks(size.0.into()).map(row);
    rows.map(|line: String| line.trim_end().to_owned()).collect()
}

/// The same after some refreshes, on a machine that lists its GPUs.
fn refreshed() -> State {
    let cards = || {
        vec![Card {
            name: Uuid([1; 16]).gpu(),
            minor: None,
            slices: Slices::default(),
            model: String::new(),
        }]
    };
    let (mut state, mut busy) = (state(), 76 * SECOND);
    for (at, more) in (3..).zip([10, 80, 160, 250, 310, 420, 560, 600, 300]) {
        busy += more * SECOND / 1000;
        let mut status = status();
        status.ledgers[0].devices[0].time.busy_ns = busy;
        status.ledgers[0].devices[0].waited_ns += at * SECOND;
        state.take(status, cards(), at * SECOND);
    }
    state
}

#[test]
fn each_size_shows_what_matters() {
    for size in SIZES {
        let lines = lines(&mut refreshed(), size);
        let heading = lines.get(1).expect("a heading");
        for column in ["GPU", "CONTAINER", "MEMORY", "TIME", "REFUSED", "PROCS"] {
            assert!(heading.contains(column), "{size:?}: {lines:#?}");
        }
        assert!(lines[2].contains("1.5 / 2 GiB") && lines[2].contains("30.0% / 60%"), "{lines:#?}");
        assert!(lines[2].contains("/main") && lines[3].contains("run-4242"), "{lines:#?}");
        assert_eq!(heading.contains("HISTORY"), size.0 >= 80, "{lines:#?}");
        assert!(!lines[2].contains('…'), "{lines:#?}");
        assert_eq!(heading.contains("WAIT"), size.0 >= 80, "{lines:#?}");
        let keys = lines.last().expect("the keys");
        for key in ["q quit", "Enter detail", "s sort", "r reverse", "/ search"] {
            assert!(keys.contains(key), "{size:?}: {keys}");
        }
    }
}

#[test]
fn the_manual_and_the_readme_show_a_frame_of_80_columns() {
    let frame = lines(&mut refreshed(), (80, 5)).join("\n");
    let frame = format!("```text\n{frame}\n```\n");
    assert_eq!(section("top"), frame);
    assert!(include_str!("../../../../README.md").contains(&frame), "{frame}");
}

#[test]
fn a_container_is_shown_in_detail_at_each_size() {
    for size in SIZES {
        let mut state = refreshed();
        state.press(Key::Enter);
        let mut text = lines(&mut state, size);
        // A small terminal scrolls to the end.
        for _ in 0..3 {
            state.press(Key::PageDown);
            text.extend(lines(&mut state, size));
        }
        for part in [
            "default/train",
            "limits from: annotation",
            "memory 2GiB",
            "at start: memory 1GiB",
            "1.5 GiB of 2 GiB",
            "30.0% of its time (limit 60%)",
            "4242",
            "python train.py",
            "alloc 1 GiB   context 256 MiB",
            "Esc back",
        ] {
            assert!(text.iter().any(|line| line.contains(part)), "{size:?} {part}: {text:#?}");
        }
        state.press(Key::Home);
        assert!(lines(&mut state, size)[1].starts_with("Container 4f6c1e2d3a4b"));
    }
}

#[test]
fn a_container_that_ends_while_it_is_shown_is_said_to_have_ended() {
    let mut state = state();
    state.press(Key::Enter);
    state.take(Status::default(), vec![], 9 * SECOND);
    assert_eq!(lines(&mut state, (80, 24))[1], "It has ended.");
}

#[test]
fn nothing_to_show_is_said() {
    let mut state = state();
    state.take(Status::default(), vec![], 9 * SECOND);
    assert!(lines(&mut state, (80, 24))[1].starts_with("No process with limits found"));
    let mut state = super::super::tests::state();
    assert!("/nosuch".chars().all(|sign| state.press(Key::Char(sign))));
    let lines = lines(&mut state, (80, 24));
    assert_eq!(lines[0], "gpucap top  search: nosuch_");
    assert!(lines[1].starts_with("No container or GPU has this text"), "{lines:#?}");
}

#[test]
fn what_is_not_in_the_rows_has_a_line() {
    let mut unread = status();
    unread.unreadable.push(("/dev/shm/gpucap-1-2".into(), "permission denied".into()));
    unread.unused.push("/dev/shm/gpucap-0-run-1-2-3".into());
    let mut state = state();
    state.take(unread, vec![], 3 * SECOND);
    let line = &lines(&mut state, (60, 20))[1];
    assert_eq!(line, "not readable: 1 (see gpucap status); runs without a GPU: 1");
}

#[test]
fn a_name_cannot_send_sequences_to_the_terminal() {
    let mut hostile = status();
    let names = hostile.ledgers[0].container.as_mut().and_then(|it| it.record.names.as_mut());
    let names = names.expect("names");
    names.pod = "a\u{1b}[2Jb\u{9b}31mc\rd".into();
    let mut state = state();
    state.take(hostile, vec![], 3 * SECOND);
    for size in SIZES {
        let text = lines(&mut state, size).join("\n");
        assert!(text.chars().all(|sign| sign == '\n' || !sign.is_control()), "{text:?}");
    }
    assert!(lines(&mut state, (200, 50))[2].contains("default/a?[2Jb?31mc?d/main"));
    state.press(Key::Enter);
    assert!(lines(&mut state, (200, 50))[1].contains("default/a?[2Jb?31mc?d"));
}

#[test]
fn without_colours_there_are_none() {
    for place in [None, Some(Key::Enter)] {
        let mut state = state();
        assert!(place.into_iter().all(|key| state.press(key)));
        for (colored, expected) in [(true, true), (false, false)] {
            let buffer = drawn(&mut state, (80, 24), colored);
            let is_painted = |cell: &ratatui::buffer::Cell| {
                let reset = ratatui::style::Color::Reset;
                (cell.fg, cell.bg) != (reset, reset)
            };
            assert_eq!(buffer.content().iter().any(is_painted), expected);
        }
    }
}

#[test]
fn the_selected_row_is_on_the_screen_and_reversed() {
    let mut many = status();
    for number in 0..100_u32 {
        let mut ledger = status().ledgers.remove(1);
        ledger.path = format!("/dev/shm/gpucap-0-run-1-{number}-3").into();
        many.ledgers.push(ledger);
    }
    let mut state = state();
    state.take(many, vec![], 3 * SECOND);
    for key in [Key::Home, Key::PageDown, Key::End] {
        state.press(key);
        let buffer = drawn(&mut state, (80, 24), false);
        let reversed = |row: &[ratatui::buffer::Cell]| {
            row.iter().all(|cell| cell.modifier.contains(Modifier::REVERSED))
        };
        let rows = buffer.content().chunks(80).filter(|row| reversed(row));
        assert_eq!(rows.count(), 1, "{key:?}");
    }
    assert!(lines(&mut state, (80, 24))[22].contains("run-99"));
}

#[test]
fn a_tiny_terminal_is_no_reason_to_fail() {
    for size in [(1, 1), (5, 2), (20, 3), (40, 4)] {
        let mut state = refreshed();
        lines(&mut state, size);
        state.press(Key::Enter);
        lines(&mut state, size);
    }
}
