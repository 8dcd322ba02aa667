//! What a program is told: the slice as if it were the card.

use crate::{
    CARD, GIB, LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, begin, in_use, with_limit,
    without_limit,
};
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("driver and NVML show the limit and what is held of it", slice_is_shown),
        trial("a limit above the card shows the card", limit_above_card),
        trial("free is never more than the card has", card_is_fuller),
        trial("a context is charged at its price", context_price),
        trial("a context that does not fit is refused", context_refused),
        trial("each card has a limit of its own", two_cards),
        trial("without limits the card is shown", card_is_shown),
        trial("the first refusal says so, and only the first", refusal_is_told),
        trial("every report says the same, step by step", step_by_step),
        trial("a process that only looks sees what the others hold", only_looking),
        trial("a report in 32 bits is cut at its largest number", in_32_bits),
        trial("what pools and graphs say they hold is never beyond the limit", pools_and_graphs),
        trial("a report that the driver refuses is not made up", refused_reports),
    ]
}

fn slice_is_shown() -> Result {
    let mut actor = begin(&with_limit(&LIMIT.to_string())?)?;
    actor.expect(&[(&format!("alloc a {}", 100 * MIB), SUCCESS)])?;
    answers(&mut actor, "info d", LIMIT, LIMIT - 100 * MIB)?;
    answers(&mut actor, "nvml d 0", LIMIT, 100 * MIB)?;
    answers(&mut actor, "total d 0", LIMIT, 0)
}

fn limit_above_card() -> Result {
    let mut actor = begin(&with_limit("1000Gi")?)?;
    answers(&mut actor, "total d 0", CARD, 0)?;
    answers(&mut actor, "info d", CARD, CARD)?;
    answers(&mut actor, "nvml d 0", CARD, 0)
}

fn card_is_fuller() -> Result {
    // A process outside the container has most of the card.
    let run = with_limit(&(10 * GIB).to_string())?;
    let mut outside = run
        .clone()
        .env("GPUCAP_LEDGER", run.directory().join("other"))
        .env("GPU_MEM_LIMIT", "79Gi");
    outside = outside.env("GPUCAP_CONTEXT_MEM", "0");
    let mut outside = begin(&outside)?;
    outside.expect(&[(&format!("alloc a {}", 79 * GIB), SUCCESS)])?;
    let mut actor = begin(&run)?;
    answers(&mut actor, "info d", 10 * GIB, GIB)
}

fn context_price() -> Result {
    let mut actor = begin(&with_limit(&LIMIT.to_string())?.env("GPUCAP_CONTEXT_MEM", "300Mi"))?;
    answers(&mut actor, "nvml d 0", LIMIT, 300 * MIB)?;
    actor.expect(&[
        ("context 0", SUCCESS), // retained again: the same context
        (&format!("alloc a {}", LIMIT - 300 * MIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", LIMIT - 300 * MIB), SUCCESS),
        ("reset 0", SUCCESS),
    ])?;
    answers(&mut actor, "nvml d 0", LIMIT, 0)
}

fn context_refused() -> Result {
    let mut actor = with_limit("200Mi")?.env("GPUCAP_CONTEXT_MEM", "300Mi").start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", OUT_OF_MEMORY)])?;
    answers(&mut actor, "nvml d 0", 200 * MIB, 0)
}

fn two_cards() -> Result {
    // The index is NVML's, also where CUDA counts the other way round.
    for (order, cuda) in [("pci", [0, 1]), ("reverse", [1, 0])] {
        let run =
            with_limit("0=1Gi,1=2Gi")?.env("STUB_GPU_COUNT", "2").env("STUB_GPU_ORDER", order);
        let mut actor = run.start()?;
        actor.expect(&[("init", SUCCESS)])?;
        answers(&mut actor, "nvml d 0", GIB, 0)?;
        answers(&mut actor, "nvml d 1", 2 * GIB, 0)?;
        for (nvml, ordinal) in cuda.into_iter().enumerate() {
            let limit = GIB * (nvml as u64 + 1);
            answers(&mut actor, &format!("total d {ordinal}"), limit, 0)?;
            actor.expect(&[
                (&format!("context {ordinal}"), SUCCESS),
                (&format!("alloc a {}", limit + 1), OUT_OF_MEMORY),
                (&format!("alloc a {limit}"), SUCCESS),
            ])?;
            answers(&mut actor, &format!("nvml d {nvml}"), limit, limit)?;
        }
    }
    Ok(())
}

fn card_is_shown() -> Result {
    let mut actor = begin(&without_limit()?)?;
    answers(&mut actor, "info d", CARD, CARD)?;
    answers(&mut actor, "total d 0", CARD, 0)?;
    answers(&mut actor, "nvml d 0", CARD, 0)
}

fn refusal_is_told() -> Result {
    let mut actor = begin(&with_limit("1Gi")?)?;
    let too_much = format!("alloc a {}", 2 * GIB);
    for _ in 0..100 {
        actor.expect(&[(&too_much, OUT_OF_MEMORY)])?;
    }
    let output = actor.end()?;
    let lines = output.stderr.lines().count();
    if lines == 1 && output.stderr.contains("1GiB") {
        Ok(())
    } else {
        Err(Stop::fail(format!("{lines} lines: {output}")))
    }
}

/// Everything that says how much there is and how much is used.
fn all_reports(run: &Run, actor: &mut Actor, used: u64) -> Result {
    answers(actor, "info z", LIMIT, LIMIT - used)?;
    answers(actor, "info1 z", LIMIT, LIMIT - used)?;
    answers(actor, "total z 0", LIMIT, 0)?;
    answers(actor, "total1 z 0", LIMIT, 0)?;
    answers(actor, "nvml z 0", LIMIT, used)?;
    answers(actor, "nvml2 z 0", LIMIT, used)?;
    in_use(run, used)
}

/// Command, and by how much it changes what is used.
const STEPS: [(&str, i64); 17] = [
    ("alloc a 1", 1),
    ("cuMemAlloc b 1000", 1000),
    ("cuMemAllocPitch_v2 c 513", 1024),
    ("async e 77777", 77_777),
    ("array f 100 100", 40_000),
    ("create g 4194304 0", 4_194_304),
    ("map h g 4194304", 0),
    ("drop g", 0),
    ("free a", -1),
    ("free-async e", 0),
    ("sync", -77_777),
    ("unmap h 4194304", -4_194_304),
    ("alloc a 1000000", 1_000_000),
    ("free c", -1024),
    ("free-array f", -40_000),
    ("cuMemFree b", -1000),
    ("free a", -1_000_000),
];

fn step_by_step() -> Result {
    const PRICE: u64 = 100 * MIB;
    let run = with_limit(&LIMIT.to_string())?.env("GPUCAP_CONTEXT_MEM", PRICE.to_string());
    let mut actor = begin(&run)?;
    let mut other = begin(&run)?;
    let mut used = 2 * PRICE;
    all_reports(&run, &mut actor, used)?;
    for (command, change) in STEPS {
        actor.expect(&[(command, SUCCESS)])?;
        used = used.strict_add_signed(change);
        all_reports(&run, &mut actor, used)?;
        all_reports(&run, &mut other, used)?;
    }
    other.kill()?;
    // NVML's reports reap first; the book itself shows it from then on.
    actor.call("nvml z 0")?;
    all_reports(&run, &mut actor, used - PRICE)
}

fn only_looking() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut looking = run.start()?;
    answers(&mut looking, "nvml z 0", LIMIT, 0)?;
    let mut actor = begin(&run)?;
    actor.expect(&[("alloc a 123456", SUCCESS)])?;
    answers(&mut looking, "nvml z 0", LIMIT, 123_456)?;
    answers(&mut looking, "nvml2 z 0", LIMIT, 123_456)?;
    actor.kill()?;
    answers(&mut looking, "nvml z 0", LIMIT, 0)
}

fn in_32_bits() -> Result {
    let mut actor = begin(&with_limit("6Gi")?)?;
    let largest = u64::from(u32::MAX);
    answers(&mut actor, "total1 z 0", largest, 0)?;
    answers(&mut actor, "info1 z", largest, largest)?;
    actor.expect(&[(&format!("alloc a {}", 5 * GIB), SUCCESS)])?;
    answers(&mut actor, "info1 z", largest, GIB)
}

fn refused_reports() -> Result {
    let fail = "cuMemGetInfo_v2:719@1,cuDeviceTotalMem_v2:719@2,nvmlDeviceGetMemoryInfo:15@1";
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_FAIL", fail);
    let mut actor = begin(&run)?;
    // The shim itself has asked for the size of the card once.
    actor.expect(&[("info z", 719), ("total z 0", 719), ("nvml z 0", 15)])?;
    answers(&mut actor, "info z", LIMIT, LIMIT)
}

/// `CU_MEMPOOL_ATTR_*`, of which the first three are no sizes of memory held.
const THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const USED: u32 = 7;
const LARGEST: u32 = 13;

fn pools_and_graphs() -> Result {
    let says = |actor: &mut Actor, question: &str, expected| answers(actor, question, expected, 0);
    let run = |limit: u64| -> Result<Run> {
        Ok(with_limit(&limit.to_string())?.env("STUB_GPU_POOL_GRANULARITY", "32MiB"))
    };
    let limit = 40 * MIB;
    let mut actor = begin(&run(limit)?)?;
    actor.expect(&[
        ("cuDeviceGetDefaultMemPool p", SUCCESS),
        (&format!("async a {MIB}"), SUCCESS),
        (&format!("cuMemPoolSetAttribute p {CARD}"), SUCCESS),
    ])?;
    for attribute in [RESERVED, RESERVED + 1] {
        says(&mut actor, &format!("pool-attribute d p {attribute}"), 32 * MIB)?;
    }
    for attribute in [USED, USED + 1] {
        says(&mut actor, &format!("pool-attribute d p {attribute}"), MIB)?;
    }
    says(&mut actor, &format!("pool-attribute d p {LARGEST}"), 0)?;
    says(&mut actor, &format!("pool-attribute d p {THRESHOLD}"), CARD)?;
    let limit = 20 * MIB;
    let mut actor = begin(&run(limit)?)?;
    actor.expect(&[
        ("cuGraphCreate g", SUCCESS),
        (&format!("cuGraphAddMemAllocNode g {MIB}"), SUCCESS),
        ("cuGraphInstantiateWithFlags g", SUCCESS),
        ("cuGraphUpload g", SUCCESS),
    ])?;
    for attribute in [2, 3] {
        says(&mut actor, &format!("graph-memory d {attribute}"), limit)?;
    }
    says(&mut actor, "graph-memory d 0", 0)
}
