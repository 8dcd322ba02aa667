//! What variables say of lending: alone they mean what they say, next to a limits file they take away.

use super::*;
use crate::config::CorePriority;
use crate::limits::live::Most;

/// The limit of the card's time in words.
fn time(limits: &Limits, live: Option<&LiveEntry>) -> String {
    let live = live.map(LiveEntries::one).unwrap_or_default();
    let core = limits.resolve_with(&CARD, live).expect("usable").core;
    core.map_or_else(|| "free".into(), |core| core.to_string())
}

/// A file of 30 %, of which this is the most.
fn lent(most: u16) -> LimitsFile {
    let most = Some(percent(most));
    file(vec![Entry { core_max: most, ..entry(Key::Every, 4, 30) }])
}

fn low(share: u16, most: u16) -> LimitsFile {
    let entry = entry(Key::Every, 4, share);
    file(vec![Entry { core_max: Some(percent(most)), low_priority: true, ..entry }])
}

const BURST: (&str, &str) = ("GPU_CORE_POLICY", "burst");
const FIXED: (&str, &str) = ("GPU_CORE_POLICY", "fixed");
const LOW: (&str, &str) = ("GPU_CORE_PRIORITY", "low");

#[test]
fn without_a_file_the_variables_mean_what_they_say() {
    for (pairs, holds) in [
        (&[("GPU_CORE_PCT", "30"), BURST][..], "30% (to 100%)"),
        (&[("GPU_CORE_PCT", "30"), BURST, ("GPU_CORE_MAX_PCT", "80")], "30% (to 80%)"),
        (&[("GPU_CORE_PCT", "30"), ("GPU_CORE_MAX_PCT", "80")], "30%"),
        (&[("GPU_PROFILE", "1g"), BURST], "14.28% (to 100%)"),
        (&[("GPU_PROFILE", "1g"), ("GPU_CORE_PCT", "10"), BURST], "10% (to 100%)"),
        (&[("GPU_CORE_PCT", "30"), BURST, ("GPU_CORE_MAX_PCT", "1=50")], "30% (to 100%)"),
        (&[LOW], "low (to 100%)"),
        (&[LOW, ("GPU_CORE_PCT", "30")], "low (to 100%)"),
        (&[LOW, ("GPU_CORE_MAX_PCT", "0=60")], "low (to 60%)"),
        (&[LOW, FIXED, ("GPU_CORE_PCT", "30")], "low (to 30%)"),
        (&[("GPU_CORE_MAX_PCT", "60")], "60%"),
        (&[("GPU_CORE_PCT", "1=30"), BURST], "free"),
    ] {
        assert_eq!(time(&set(pairs), None), holds, "{pairs:?}");
    }
}

#[test]
fn a_policy_alone_is_no_limit() {
    for pairs in [&[BURST][..], &[FIXED], &[("GPU_CORE_PRIORITY", "normal")]] {
        assert_eq!(load(&variables(pairs), None), Ok(None), "{pairs:?}");
    }
    assert!(load(&variables(&[("GPU_CORE_POLICY", "brust")]), None).is_err());
    assert!(set(&[LOW]).has_compute() && set(&[("GPU_CORE_MAX_PCT", "60")]).has_compute());
}

#[test]
fn next_to_a_file_that_lends_a_variable_only_lowers() {
    for (pairs, holds) in [
        (&[][..], "30% (to 80%)"),
        (&[BURST], "30% (to 80%)"),
        (&[FIXED], "30%"),
        (&[("GPU_CORE_MAX_PCT", "60")], "30% (to 60%)"),
        (&[("GPU_CORE_MAX_PCT", "100")], "30% (to 80%)"),
        (&[("GPU_CORE_MAX_PCT", "20")], "20%"),
        (&[("GPU_CORE_PCT", "20")], "20%"),
        (&[("GPU_CORE_PCT", "20"), BURST], "20% (to 80%)"),
        (&[("GPU_CORE_PCT", "50"), BURST], "30% (to 80%)"),
        (&[("GPU_CORE_PCT", "50")], "30% (to 50%)"),
        (&[LOW], "low (to 80%)"),
        (&[LOW, FIXED, ("GPU_CORE_PCT", "20")], "low (to 20%)"),
    ] {
        assert_eq!(time(&with(pairs, &lent(80)), None), holds, "{pairs:?}");
    }
}

#[test]
fn next_to_a_file_that_lends_nothing_no_variable_does() {
    let fixed = file(vec![entry(Key::Every, 4, 30)]);
    for (pairs, holds) in [
        (&[BURST][..], "30%"),
        (&[LOW], "30%"),
        (&[LOW, ("GPU_CORE_PCT", "20")], "20%"),
        (&[BURST, ("GPU_CORE_PCT", "20")], "20%"),
        (&[BURST, ("GPU_CORE_MAX_PCT", "100")], "30%"),
    ] {
        assert_eq!(time(&with(pairs, &fixed), None), holds, "{pairs:?}");
    }
    let free = file(vec![Entry::new(Key::Every)]);
    assert_eq!(time(&with(&[BURST, ("GPU_CORE_PCT", "20")], &free), None), "20%");
    assert_eq!(time(&with(&[LOW], &free), None), "free");
}

#[test]
fn of_low_priority_a_process_without_lending_has_the_share_that_is_written() {
    assert_eq!(time(&with(&[], &low(20, 100)), None), "low (to 100%)");
    assert_eq!(time(&with(&[FIXED], &low(20, 100)), None), "low (to 20%)");
    assert_eq!(
        time(&with(&[("GPU_CORE_PRIORITY", "normal")], &low(20, 100)), None),
        "low (to 100%)"
    );
    assert_eq!(time(&with(&[("GPU_CORE_PCT", "10")], &low(20, 100)), None), "low (to 10%)");
}

#[test]
fn what_the_node_knew_of_lends_as_the_node_says() {
    for (asked, lowered) in [
        (&[("GPU_CORE_PCT", "30")][..], "low (to 30%)"),
        (&[("GPU_CORE_PCT", "30"), FIXED], "low (to 50%)"),
        (&[("GPU_CORE_PCT", "30"), ("GPU_CORE_MAX_PCT", "80"), BURST], "low (to 30%)"),
    ] {
        let limits = LimitsFile { asked: set(asked).config().clone(), ..lent(80) };
        assert_eq!(time(&with(asked, &limits), None), "30% (to 80%)", "{asked:?}");
        let live = LiveEntry::named(Key::Every);
        live.set_core(Some(percent(40)));
        assert_eq!(time(&with(asked, &limits), Some(&live)), "40% (to 80%)", "{asked:?}");
        live.set_core_max(Some(Most::Share));
        assert_eq!(time(&with(asked, &limits), Some(&live)), "40%", "{asked:?}");
        live.set_core_max(Some(Most::UpTo(percent(90))));
        live.set_priority(Some(CorePriority::Low));
        assert_eq!(time(&with(asked, &limits), Some(&live)), "low (to 90%)", "{asked:?}");
        let own = [("GPU_CORE_PCT", "30"), FIXED, ("GPU_CORE_MAX_PCT", "50")];
        assert_eq!(time(&with(&own, &limits), Some(&live)), lowered, "{asked:?}");
    }
}
