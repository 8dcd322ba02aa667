//! Lending, in virtual time: what containers that borrow get beside others, how soon an owner has its share again, and what
//! false reports change.
//!
//! **Simulated: not a measurement of any card.**

mod attacks;
mod false_reports;
mod groups;
mod mixes;
mod requests;
mod scene;
mod siblings;
mod side;

use crate::report::Report;
use crate::run::Effort;

/// A part's name, and what runs it.
type Part<'a> = (&'a str, &'a dyn Fn(&mut Report));

/// Measures all of it, or the parts that are wanted: what is off is a check that does not hold.
pub fn run(effort: Effort, report: &mut Report) {
    let is_quick = effort == Effort::Quick;
    let parts: [Part<'_>; 6] = [
        ("groups", &|report| groups::run(if is_quick { 4 } else { 10 }, report)),
        ("mixes", &|report| mixes::run(if is_quick { 2 } else { 20 }, is_quick, report)),
        ("requests", &|report| requests::run(if is_quick { 6 } else { 60 }, is_quick, report)),
        ("false reports", &|report| false_reports::run(if is_quick { 2 } else { 8 }, report)),
        ("siblings", &|report| siblings::run(if is_quick { 2 } else { 4 }, is_quick, report)),
        ("cured", &|report| attacks::cured(if is_quick { 2 } else { 8 }, report)),
    ];
    for (name, part) in parts {
        if report.wants_of(name) {
            part(report);
        }
    }
}

/// Measures what attackers get.
pub fn attack(effort: Effort, report: &mut Report) {
    attacks::run(if effort == Effort::Quick { 10 } else { 20 }, report);
}

#[cfg(test)]
mod tests {
    use super::side::{KINDS, SHORT, burst, fixed, percent, side, side_by_side};
    use crate::simulator::Setup;
    use crate::simulator::workloads::workload;
    use gpucap_core::units::ComputeLimit;

    #[test]
    fn every_container_runs_what_it_is_said_to_run() {
        for kind in KINDS {
            assert_eq!(workload(kind).name, kind);
        }
    }

    /// Of kernels of 10 us in two containers, one is fixed at 30 %; whenever events are reached.
    #[test]
    fn what_is_not_lent_is_not_used() {
        for events_at_once in [false, true] {
            let setup = Setup { events_at_once, ..Setup::default() };
            let shares = |limits: [ComputeLimit; 2]| {
                let sides = limits.map(|limit| side(SHORT, limit));
                side_by_side(&sides, &[], 2, &setup).iter().map(|cell| cell.share).collect()
            };
            let beside: Vec<f64> = shares([fixed(30), burst(30)]);
            assert!(matches!(beside[..], [29.0..31.0, 68.0..71.0]), "{setup:?}: {beside:?}");
            let bounded = ComputeLimit::burst(percent(30), percent(50));
            let beside: Vec<f64> = shares([fixed(30), bounded]);
            assert!(matches!(beside[..], [29.0..31.0, 48.0..51.0]), "{setup:?}: {beside:?}");
        }
    }

    /// `W1 10 us kernels` would take the turns that `W8 10 us, sync` waits for.
    #[test]
    fn a_program_that_waits_for_each_launch_keeps_its_turns() {
        let beside = |limit: fn(u16) -> ComputeLimit| {
            let sides = [side(SHORT, limit(50)), side("W8 10 us, sync", limit(50))];
            side_by_side(&sides, &[], 2, &Setup::default())[1].share
        };
        let (fixed, lent) = (beside(fixed), beside(burst));
        assert!(lent > fixed - 1.0, "{lent} of {fixed}");
    }
}
