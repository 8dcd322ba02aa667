//! What the variables may say, and what happens when it cannot be used: no GPU work, and one line that says why.

use crate::{CARD, GIB, MIB, NOT_READY, SUCCESS, begin, told, uncapped};
use gpucap_tests::{Driver, Program, Result, Stop, World, trial};
use libtest_mimic::Trial;

/// Variable, value, and the cap that it makes on a card of 80 GiB.
const USABLE: [(&str, &str, u64); 12] = [
    ("GPU_MEM_LIMIT", "4Gi", 4 * GIB),
    ("GPU_MEM_LIMIT", "4GiB", 4 * GIB),
    ("GPU_MEM_LIMIT", "4096Mi", 4 * GIB),
    ("GPU_MEM_LIMIT", "4G", 4_000_000_000),
    ("GPU_MEM_LIMIT", "4gb", 4_000_000_000),
    ("GPU_MEM_LIMIT", "123456789", 123_456_789),
    ("GPU_MEM_LIMIT", "1.5Gi", 1536 * MIB),
    ("GPU_MEM_LIMIT", "25%", CARD / 4),
    ("GPU_MEM_LIMIT", "0=2Gi", 2 * GIB),
    ("GPU_MEM_LIMIT", "1=2Gi", CARD),
    ("GPU_PROFILE", "1g.5gb", 5 * GIB),
    ("GPU_PROFILE", "3g", CARD / 2),
];

const UNUSABLE: [(&str, &str); 12] = [
    ("GPU_MEM_LIMIT", "0"),
    ("GPU_MEM_LIMIT", "-1"),
    ("GPU_MEM_LIMIT", "abc"),
    ("GPU_MEM_LIMIT", "200%"),
    ("GPU_MEM_LIMIT", "4096m"),
    ("GPU_MEM_LIMIT", "4Gi,"),
    ("GPU_MEM_LIMIT", "99999999999999999999"),
    ("GPU_PROFILE", "5gg"),
    ("GPU_PROFILE", "8g.80gb"),
    ("GPU_CORE_PCT", "101"),
    ("GPU_CORE_PCT", "0"),
    ("GPUCAP_LEDGER", "relative"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("the smaller of two limits holds", smaller_holds),
        trial("a process that uses no GPU does not notice an unusable limit", unnoticed),
    ];
    for (variable, value, cap) in USABLE {
        trials.push(trial(format!("{variable}={value} is a cap of {cap}"), move || {
            let mut actor = begin(&uncapped()?.env(variable, value))?;
            told(&mut actor, "total d 0", cap, 0)
        }));
    }
    for (variable, value) in UNUSABLE {
        let name = format!("{variable}={value} cannot be used: no GPU work, one line that says so");
        trials.push(trial(name, move || unusable(variable, value)));
    }
    trials
}

fn unusable(variable: &str, value: &str) -> Result {
    let run = uncapped()?.env("GPU_MEM_LIMIT", "4Gi").env(variable, value);
    let mut actor = run.start()?;
    actor.expect(&[("init", NOT_READY), ("init", NOT_READY)])?;
    // Whoever administers the machine can still look.
    told(&mut actor, "nvml d 0", CARD, 0)?;
    for command in ["context 0", "alloc a 1", "create a 1 0"] {
        if actor.tell(command)?.code == SUCCESS {
            return Err(Stop::fail(format!("{command} was let through")));
        }
    }
    let output = actor.end()?;
    let complaint = output.stderr.trim_end();
    if complaint.lines().count() == 1 && complaint.contains(variable) && complaint.contains(value) {
        Ok(())
    } else {
        Err(Stop::fail(output))
    }
}

fn smaller_holds() -> Result {
    for (limit, profile, cap) in [("4Gi", "1g.5gb", 4 * GIB), ("6Gi", "1g.5gb", 5 * GIB)] {
        let run = uncapped()?.env("GPU_MEM_LIMIT", limit).env("GPU_PROFILE", profile);
        told(&mut begin(&run)?, "total d 0", cap, 0)?;
    }
    Ok(())
}

fn unnoticed() -> Result {
    let program = Program::new("absent").build()?;
    let run = World::capped(Driver::Absent)?.run(&program)?.env("GPU_MEM_LIMIT", "abc");
    let output = run.output()?.success()?;
    if output.stderr.is_empty() { Ok(()) } else { Err(Stop::fail(output)) }
}
