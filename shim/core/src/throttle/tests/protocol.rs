//! The protocol of a launch: which steps are taken, and in which order.

use super::desk::{Bench, KERNEL};
use crate::{
    sync::Word,
    throttle::{
        Launch, Permit, Verdict,
        protocol::{self, Asked, Place},
    },
};

/// A place that writes down its calls, and answers what a test has set.
struct Script {
    verdict: Option<Verdict>,
    records: [bool; 2],
    wants_more: bool,
    steps: Vec<&'static str>,
}

impl Script {
    fn new(verdict: Option<Verdict>) -> Self {
        Self { verdict, records: [true; 2], wants_more: true, steps: Vec::new() }
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.steps).join(", ")
    }
}

impl Place for Script {
    type Event = u8;
    type First = u8;

    fn before_launch(&mut self, _: Launch) -> Option<Verdict> {
        self.steps.push("ask");
        self.verdict.take()
    }

    fn held_back(&mut self) {
        self.steps.push("held back");
    }

    fn mark(&mut self) {
        self.steps.push("mark");
    }

    fn record_first(&mut self) -> Option<u8> {
        self.steps.push("first");
        self.records[0].then_some(1)
    }

    fn record_second(&mut self, first: u8) -> Option<[u8; 2]> {
        self.steps.push("second");
        self.records[1].then_some([first, 2])
    }

    fn launched(&mut self, _: Permit, pair: Option<[u8; 2]>) -> bool {
        self.steps.push(if pair == Some([1, 2]) { "launched, measured" } else { "launched" });
        self.wants_more
    }

    fn space(&mut self) {
        self.steps.push("space");
    }

    fn fence(&mut self) -> bool {
        self.steps.push("fence");
        self.wants_more
    }
}

fn permit(events: bool) -> Permit {
    let word = Word::default();
    let permit = Bench::new(&word, 50).ask(Launch::kernel(KERNEL)).unwrap();
    Permit { events, ..permit }
}

#[test]
fn a_launch_that_is_held_back_marks_the_end_of_its_stream_first() {
    for (wants_mark, steps) in [(true, "ask, mark, held back"), (false, "ask, held back")] {
        let mut script = Script::new(Some(Verdict::Wait { until: 7, wants_mark }));
        let asked = protocol::ask(&mut script, Launch::kernel(KERNEL));
        assert!(matches!(asked, Some(Asked::HeldBack { until: 7 })));
        assert_eq!(script.take(), steps);
    }
    let mut script = Script::new(None);
    assert!(protocol::ask(&mut script, Launch::kernel(KERNEL)).is_none());
    assert_eq!(script.take(), "ask", "it may not ask: nothing else is done");
}

#[test]
fn an_admitted_launch_is_between_two_events() {
    let launch = |events, records, wants_more| {
        let mut script = Script::new(Some(Verdict::Admit(permit(events))));
        (script.records, script.wants_more) = (records, wants_more);
        let Some(Asked::Admitted(permit)) = protocol::ask(&mut script, Launch::kernel(KERNEL))
        else {
            panic!("not admitted")
        };
        let begun = protocol::begin(&mut script, permit);
        script.steps.push("LAUNCH");
        let ended = protocol::end(&mut script, begun);
        protocol::returned(&mut script, ended);
        script.take()
    };
    let all = "ask, first, LAUNCH, second, launched, measured, space";
    assert_eq!(launch(true, [true; 2], true), all);
    let rarely = "ask, first, LAUNCH, second, launched, measured";
    assert_eq!(launch(true, [true; 2], false), rarely);
    assert_eq!(launch(false, [true; 2], false), "ask, LAUNCH, launched", "none is wanted");
    let none = "ask, first, LAUNCH, launched";
    assert_eq!(launch(true, [false, true], false), none, "there is none to be had");
    let refused = "ask, first, LAUNCH, second, launched";
    assert_eq!(launch(true, [true, false], false), refused, "the driver refuses the second");
}

#[test]
fn what_is_no_launch_comes_behind_a_mark_if_the_meter_wants_one() {
    for (wants_more, steps) in [(true, "fence, mark"), (false, "fence")] {
        let mut script = Script::new(None);
        script.wants_more = wants_more;
        protocol::fence(&mut script);
        assert_eq!(script.take(), steps);
    }
}
