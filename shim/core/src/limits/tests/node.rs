//! What the node says while a container runs, against what was said before: the file, the variables it was made of, and
//! those of a process alone.

use proptest::prelude::*;

use super::*;

/// The page's entry of a node that says this much; nought is nothing.
fn said(gib: u64, core: u16) -> LiveEntry {
    let entry = LiveEntry::named(Key::Every);
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
    let resolved = with(pairs, file).resolve_with(&CARD, LiveEntries::one(live)).expect("usable");
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

/// A MIG instance has the limits of its card, too: of both the lowest, each as the node says it now.
#[test]
fn of_several_entries_for_a_device_each_holds_as_it_is_now() {
    let instance = DeviceFacts { uuid: TWO, parent: Some(ONE), index: None, ..CARD };
    let [card, own] = [Key::Name(ONE.gpu()), Key::Name(TWO.mig())];
    let limits = with(&[], &file(vec![entry(card, 4, 30), entry(own, 2, 20)]));
    for (of_card, of_own, expected) in [
        ((0, 0), (0, 0), (2, 20)),
        ((1, 10), (0, 0), (1, 10)),
        ((8, 60), (0, 0), (2, 20)),
        ((0, 0), (8, 60), (4, 30)),
        ((0, 0), (1, 10), (1, 10)),
        ((8, 0), (6, 25), (6, 25)),
        ((0, 60), (0, 40), (2, 40)),
    ] {
        let [of_card, of_own] = [(card, of_card), (own, of_own)].map(|(key, (gib, core))| {
            let entry = LiveEntry::named(key);
            entry.set_memory(Some(gib * GIB).filter(|bytes| *bytes != 0));
            entry.set_core(Share::from_percent(core));
            entry
        });
        let live = LiveEntries::both(&of_own, &of_card);
        let resolved = limits.resolve_with(&instance, live).expect("usable");
        let found = (resolved.memory.expect("limited") / GIB, share(resolved).percent());
        assert_eq!(found, expected);
    }
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
