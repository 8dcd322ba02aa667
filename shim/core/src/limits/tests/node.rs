//! What the node says while a container runs, against what was said before: the file, the variables it was made of, and
//! those of a process alone.

use proptest::prelude::*;

use super::*;

/// The page's entry of a node that says this much; nought is nothing.
fn said(gib: u64, core: u16) -> LiveEntry {
    let entry = LiveEntry::default();
    entry.set_memory(Some(gib * GIB).filter(|bytes| *bytes != 0));
    entry.set_core(Share::from_percent(core));
    entry
}

fn share(resolved: Resolved) -> Share {
    resolved.core.and_then(ComputeLimit::guaranteed).expect("shared")
}

/// A container that was started with these variables, under a file that was made of them: 4 GiB and 30 %.
fn started(asked: &[(&str, &str)]) -> LimitsFile {
    let asked = set(asked).config().clone();
    LimitsFile { asked, ..file(vec![entry(Key::Every, 4, 30)]) }
}

/// Memory in GiB and time in percent, of a process with these variables.
fn now(pairs: &[(&str, &str)], file: &LimitsFile, live: &LiveEntry) -> (u64, u16) {
    let resolved = with(pairs, file).resolve_with(&CARD, Some(live)).expect("usable");
    (resolved.memory.expect("limited") / GIB, share(resolved).percent())
}

const INHERITED: [(&str, &str); 2] = [("GPU_MEM_LIMIT", "4Gi"), ("GPU_CORE_PCT", "30")];

#[test]
fn the_node_raises_and_lowers_what_the_container_asked_for() {
    let file = started(&INHERITED);
    for (gib, core) in [(8, 60), (2, 10), (8, 10), (2, 60)] {
        assert_eq!(now(&INHERITED, &file, &said(gib, core)), (gib, core));
        assert_eq!(now(&[], &file, &said(gib, core)), (gib, core), "exec without environment");
    }
}

#[test]
fn what_the_node_says_nothing_of_stays_as_it_was() {
    let file = started(&INHERITED);
    assert_eq!(now(&INHERITED, &file, &said(0, 0)), (4, 30));
    assert_eq!(now(&INHERITED, &file, &said(8, 0)), (8, 30));
    assert_eq!(now(&INHERITED, &file, &said(0, 60)), (4, 60));
}

#[test]
fn a_variable_of_the_process_alone_lowers_what_the_node_says() {
    let file = started(&INHERITED);
    let own = [("GPU_MEM_LIMIT", "1Gi"), ("GPU_CORE_PCT", "30")];
    assert_eq!(now(&own, &file, &said(8, 60)), (1, 60));
    let added = [("GPU_MEM_LIMIT", "4Gi"), ("GPU_CORE_PCT", "30"), ("GPU_PROFILE", "1g")];
    assert_eq!(now(&added, &file, &said(8, 60)), (2, 14));
    let higher = [("GPU_MEM_LIMIT", "64Gi"), ("GPU_CORE_PCT", "100")];
    assert_eq!(now(&higher, &file, &said(8, 60)), (8, 60));
}

#[test]
fn a_profile_gives_way_only_in_what_the_node_speaks_of() {
    let asked = [("GPU_PROFILE", "1g.3gb")];
    let limits = started(&asked);
    assert_eq!(now(&asked, &limits, &said(8, 0)), (8, 14));
    assert_eq!(now(&asked, &limits, &said(0, 60)), (3, 60));
}

#[test]
fn the_same_value_in_another_spelling_is_the_same() {
    let spelt = [("GPU_MEM_LIMIT", " 4096MiB "), ("GPU_CORE_PCT", "30%")];
    assert_eq!(now(&spelt, &started(&INHERITED), &said(8, 60)), (8, 60));
}

#[test]
fn a_file_of_an_older_hook_does_not_say_what_was_asked_so_variables_lower() {
    let older = file(vec![entry(Key::Every, 4, 30)]);
    assert_eq!(now(&INHERITED, &older, &said(8, 60)), (4, 30));
    assert_eq!(now(&[], &older, &said(8, 60)), (8, 60));
}

#[test]
fn a_quantity_that_the_file_does_not_limit_is_not_freed_by_the_node() {
    let bare = LimitsFile { entries: vec![Entry::new(Key::Every)], ..started(&INHERITED) };
    assert_eq!(now(&INHERITED, &bare, &said(8, 60)), (4, 30));
}

proptest! {
    #[test]
    fn nothing_is_above_what_the_node_says(
        gib in 1_u64..16, core in 1_u16..=100, own in 1_u64..64, share in 1_u16..=100,
    ) {
        let memory = format!("{own}Gi");
        let share_text = share.to_string();
        let pairs = [("GPU_MEM_LIMIT", memory.as_str()), ("GPU_CORE_PCT", &share_text)];
        let (memory, time) = now(&pairs, &started(&INHERITED), &said(gib, core));
        let own = if own == 4 { gib } else { own.min(gib) };
        let share = if share == 30 { core } else { share.min(core) };
        prop_assert_eq!((memory, time), (own, share));
    }
}
