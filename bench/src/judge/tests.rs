//! Each switch of the card has its effect, the bounds detect violations, and random cells repeat themselves.

use super::Switches;
use super::job::{End, Job, Names};
use super::named;
use super::scene::{Container, Extra, Found, Member, Scene};
use super::search::Chance;
use crate::simulator::Setup;
use crate::simulator::card::{Card, What};

const MS: u64 = 1_000_000;

fn scene(containers: Vec<Container>) -> Scene {
    let (name, pages, extra) = (String::new(), Vec::new(), Extra::Nothing);
    Scene { name, containers, pages, seconds: 2, is_honest: true, is_sampled: false, extra }
}

/// Advances the card to a time, from one change to the next.
fn until(card: &mut Card, end: u64) {
    while let Some(next) = card.next_change().filter(|next| *next <= end) {
        card.advance(next);
    }
    card.advance(end);
}

/// Returns when an event in an empty stream is reached, recorded after 1 ms of the turn of another process.
fn reached(setup: &Setup) -> Option<u64> {
    let mut card = Card::new(setup);
    let [other, own] = [0, 1].map(|_| card.add_process()).map(|process| card.add_stream(process));
    card.push(other, 0, What::Kernel { ns: 10 * MS, width: 1000 });
    until(&mut card, MS);
    let event = card.event();
    card.push(own, MS, What::Event(event));
    until(&mut card, 20 * MS);
    card.reached(event)
}

#[test]
fn an_event_is_reached_at_once_or_in_a_turn_of_its_process() {
    let in_turn = Setup { events_at_once: false, ..Setup::default() };
    assert_eq!(reached(&Setup { events_at_once: true, ..in_turn }), Some(MS));
    assert_eq!(reached(&in_turn), Some(2 * MS));
    assert_eq!(reached(&Setup { slice_ns: 4 * MS, ..in_turn }), Some(4 * MS));
    assert_eq!(reached(&Setup { switch_ns: MS / 2, ..in_turn }), Some(2 * MS + MS / 2));
}

/// Two kernels of 0.1 ms with an event between them, beside another process: both run in one turn.
#[test]
fn an_event_ends_no_turn() {
    for events_at_once in [false, true] {
        let setup = Setup { events_at_once, ..Setup::default() };
        let mut card = Card::new(&setup);
        let [other, own] =
            [0, 1].map(|_| card.add_process()).map(|process| card.add_stream(process));
        let event = card.event();
        let kernel = What::Kernel { ns: MS / 10, width: 1000 };
        [kernel, What::Event(event), kernel].into_iter().for_each(|what| card.push(own, 0, what));
        card.push(other, 0, What::Kernel { ns: 10 * MS, width: 1000 });
        until(&mut card, MS);
        assert_eq!(card.reached(event), Some(MS / 10));
        assert_eq!(card.work(1), MS / 5, "events at once: {events_at_once}");
    }
}

/// Returns what two processes without a limit do together, each in turns of a millisecond, in percent of the card.
fn together(switch_ns: u64) -> f64 {
    let job = Job::of(MS);
    let free = Container { percent: None, ..Container::one(100, job.clone()) };
    let setup = Setup { switch_ns, slice_ns: MS, oracle: true, ..Setup::default() };
    // One of them has a share that holds nothing back, so that it is evaluated.
    let found = scene(vec![Container::one(100, job), free]).run(&setup);
    2.0 * found[0].got
}

#[test]
fn a_switch_takes_its_time_of_the_card() {
    assert!((together(0) - 100.0).abs() < 1.0, "{}", together(0));
    assert!((together(MS / 2) - 66.7).abs() < 1.0, "{}", together(MS / 2));
}

#[test]
fn the_end_of_a_context_waits_for_its_work_or_drops_it() {
    let job = Job { end: End::Context, ..Job::of(300 * MS) };
    let full = scene(vec![Container::one(100, job)]);
    let got = |end_waits| full.run(&Setup { end_waits, oracle: true, ..Setup::default() })[0].got;
    assert!(got(true) > 99.0, "{}", got(true));
    assert!(got(false) < 1.0, "{}", got(false));
}

#[test]
fn the_oracle_holds_a_share() {
    for job in [Job::of(MS), Job::waited_for(10_000), Job::of(40 * MS)] {
        let own = Member { jobs: vec![job.clone()], percent: Some(10) };
        let both = Container { percent: Some(50), ..Container::of(50, vec![job.clone()]) };
        let members = both.members.iter().cloned().chain([own]).collect();
        let scene = scene(vec![Container { members, ..both }]);
        let found = scene.run(&Setup { oracle: true, ..Setup::default() });
        assert!((found[0].got - 50.0).abs() < 1.5, "{:?}: {}", job.length, found[0].got);
        assert!(found[0].holds(), "{:?}: {:?}", job.length, found[0]);
    }
}

/// A program whose kernels are not held back, under a share.
#[test]
fn a_container_with_more_than_its_share_is_reported() {
    let free = |found: Found| Found { over: found.got - 5.0 - 2.0, ..found };
    let found = scene(vec![Container::one(100, Job::of(MS))]).run(&Setup::default());
    assert!(found.iter().all(Found::holds));
    assert!(found.into_iter().map(free).all(|found| !found.holds() && found.badness() > 90.0));
}

/// If its long launches were taken to be as long as the others, and the rest to be turns of its peer, it would get 39 %
/// under a share of 30 %.
#[test]
fn launches_far_longer_than_the_others_are_charged() {
    let scenes = named::all();
    let scene = scenes.iter().find(|scene| scene.name == named::FAR_LONGER);
    let switches = Switches { at_once: false, slice_ms: 2, switch_us: 0, drops: false };
    let found = scene.map(|scene| scene.run(&switches.setup())).unwrap_or_default();
    assert!(found.first().is_some_and(|found| found.got < 32.0), "{found:?}");
}

/// Returns what the container of a cell got, with free switches and events that are reached at once.
fn got(name: &str) -> f64 {
    let scene = named::all().into_iter().find(|scene| scene.name == name).unwrap();
    let switches = Switches { at_once: true, slice_ms: 2, switch_us: 0, drops: false };
    scene.run(&switches.setup())[0].got
}

/// The first would get 38 % of the GPU if what its short launches cover were not charged, the second one 19 % if short
/// launches made the time account forget what long ones cover.
#[test]
fn long_and_short_launches_of_siblings_are_charged_once() {
    let got = ["1 of around 3 ms", "4 of 1 in 20 100 ms"]
        .map(|kind| got(&format!("T11 {kind} and one with 10 us each 200 us, 30")));
    assert!(got[0] < 32.0 && got[1] > 22.7, "{got:?}");
}

/// Its siblings' launches of unknown length take turns of the container: without them it would get 73.
#[test]
fn siblings_with_unknown_launches_take_turns_of_their_container() {
    let got = got("T2 8 never seen, 20 ms, 50, beside 10 us, 50");
    assert!(got < 52.0, "{got}");
}

/// Others leave it hardly a turn, and then stop. If what flowed in while it waited for its turns counted against its work,
/// its first launches would be free: it would get 50 in its richest ten seconds.
#[test]
fn waiting_for_turns_saves_nothing_up() {
    let own = Job { from_ns: 5_000 * MS, names: Names::Fresh, ..Job::waited_for(750 * MS) };
    let peer = Job { until_ns: 14_000 * MS, ..Job::of(MS) };
    let mut containers = vec![Container::one(90, peer); 25];
    containers[0] = Container::one(10, own);
    let found = Scene { seconds: 30, ..scene(containers) }.run(&Setup::default());
    assert!(found[0].over <= 0.0, "{:?}", found[0]);
}

#[test]
fn a_seed_makes_a_cell_again() {
    let text = |seed| format!("{:?}", Chance::new(seed));
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn a_switch_that_does_not_matter_is_not_tried() {
    let alone = scene(vec![Container::one(30, Job::of(MS))]);
    assert_eq!(Switches::of(&alone, crate::run::Effort::Full).len(), 2, "when events are reached");
    let ends = Job { end: End::Context, ..Job::of(MS) };
    let two = scene(vec![Container::of(30, vec![ends; 2])]);
    assert_eq!(Switches::of(&two, crate::run::Effort::Full).len(), 2 * 9 * 2);
}
