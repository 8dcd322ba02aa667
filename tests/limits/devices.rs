//! Which card is meant: an index is nvidia-smi's, whatever `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` make of the
//! order in which CUDA counts. NVML obeys neither, so it says which card was charged.

use crate::{CARD, GIB, OUT_OF_MEMORY, SUCCESS, answers, without_limit};
use gpucap_tests::{Actor, Driver, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

/// What `CUDA_VISIBLE_DEVICES` holds. `{1}` stands for the UUID of card 1, `{1:12}` for its first 12 characters.
/// Then `CUDA_DEVICE_ORDER`, and the cards that CUDA shows on a machine that counts by speed in reverse.
const VISIBLE: [(Option<&str>, &str, &[u64]); 18] = [
    (None, "", &[2, 1, 0]),
    (None, "FASTEST_FIRST", &[2, 1, 0]),
    (None, "PCI_BUS_ID", &[0, 1, 2]),
    (Some("0"), "", &[2]),
    (Some("0"), "PCI_BUS_ID", &[0]),
    (Some("1,0"), "PCI_BUS_ID", &[1, 0]),
    (Some("1,0"), "", &[1, 2]),
    (Some("2,0,1"), "PCI_BUS_ID", &[2, 0, 1]),
    (Some("{1}"), "", &[1]),
    (Some("{2},{0}"), "", &[2, 0]),
    (Some("{0:12}"), "", &[0]),
    (Some("{1:9},{2:10}"), "PCI_BUS_ID", &[1, 2]),
    (Some("1,-1,0"), "PCI_BUS_ID", &[1]),
    (Some("2,7,0"), "PCI_BUS_ID", &[2]),
    (Some("0,nonsense,1"), "PCI_BUS_ID", &[0]),
    (Some("0,0"), "PCI_BUS_ID", &[]),
    (Some(""), "", &[]),
    (Some("-1"), "", &[]),
];

/// The limits of the three cards, in three spellings. `{1}` as above.
const SPELLINGS: [&str; 3] =
    ["0=1Gi,1=2Gi,2=3Gi", "{0}=1Gi,{1}=2Gi,{2}=3Gi", "2=3Gi,{0}=1Gi,1=2147483648"];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("cards of different sizes each give their percentage", percentages),
        trial("a card that the variable does not list is not limited", unlisted),
        trial("the lowest of several entries for one card holds", lowest),
        trial("an index beyond the last card limits nothing", beyond),
        trial("a MIG instance is limited under its own name", mig_by_name),
        trial("a MIG instance has what its card is allowed", mig_by_card),
        trial("a MIG instance has what its card is allowed, its time limited or not", mig_and_time),
        trial("profiles can differ per card", profiles),
        trial("one process fills each of two cards to its own limit", both_filled),
        trial("what is freed comes back to its own card, whichever is current", freed_elsewhere),
        trial("the end of one card's context leaves the other's alone", one_ends),
        trial("what names its card is charged to that one, whichever is current", named),
        trial(
            "memory in the order of a stream is the stream's card's, whichever is current",
            in_order,
        ),
        trial("code is charged to the card that it was loaded on", code),
        trial("what cards open to one another and copy costs nothing", peers),
        trial("two instances of one card have a book each", two_instances),
    ];
    for (visible, order, cards) in VISIBLE {
        for limit in SPELLINGS {
            let name = match visible {
                Some(visible) => format!("{limit} with {visible} visible, order `{order}`"),
                None => format!("{limit} with all visible, order `{order}`"),
            };
            trials.push(trial(format!("{name}: the right card is charged"), move || {
                right_card(visible, order, limit, cards)
            }));
        }
    }
    trials
}

/// A machine of three cards.
fn three(run: Run) -> Run {
    run.env("STUB_GPU_COUNT", "3")
        .env("STUB_GPU_MEM", "10GiB,20GiB,40GiB")
        .env("STUB_GPU_ORDER", "reverse")
}

/// The UUID of a card, or of one of its MIG instances, counted from 1; without `GPU-` or `MIG-`.
fn uuid(looking: &mut Actor, card: u64, instance: u64) -> Result<String> {
    let answer = looking.call(&format!("uuid a {card} {instance}"))?;
    if answer.code != SUCCESS {
        return Err(Stop::fail(format!("uuid: {answer:?}")));
    }
    let hex = format!("{:016x}{:016x}", answer.value, answer.extra);
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// Puts UUIDs of cards into a text.
fn with_uuids(text: &str) -> Result<String> {
    let mut looking = three(World::bare(Driver::Stub).actor()?).start()?;
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (place, after) = behind.split_once('}').ok_or_else(|| Stop::fail(text))?;
        let (card, length) = place.split_once(':').unwrap_or((place, "99"));
        let number = |text: &str| text.parse::<u64>().map_err(Stop::fail);
        let name = format!("GPU-{}", uuid(&mut looking, number(card)?, 0)?);
        let length = name.len().min(length.parse().map_err(Stop::fail)?);
        done = done + before + &name[..length];
        rest = after;
    }
    Ok(done + rest)
}

fn right_card(visible: Option<&str>, order: &str, limit: &str, cards: &[u64]) -> Result {
    let mut run = three(without_limit()?).env("GPU_MEM_LIMIT", with_uuids(limit)?);
    if let Some(visible) = visible {
        run = run.env("CUDA_VISIBLE_DEVICES", with_uuids(visible)?);
    }
    if !order.is_empty() {
        run = run.env("CUDA_DEVICE_ORDER", order);
    }
    let mut actor = run.start()?;
    if cards.is_empty() {
        // CUDA_ERROR_NO_DEVICE, as without the shim.
        return actor.expect(&[("init", 100)]);
    }
    actor.expect(&[("init", SUCCESS)])?;
    answers(&mut actor, "count z", cards.len() as u64, 0)?;
    for (ordinal, card) in cards.iter().enumerate() {
        let total = GIB * (card + 1);
        answers(&mut actor, &format!("total z {ordinal}"), total, 0)?;
        actor.expect(&[
            (&format!("context {ordinal}"), SUCCESS),
            (&format!("alloc a {}", total + 1), OUT_OF_MEMORY),
            (&format!("alloc a {total}"), SUCCESS),
            ("alloc b 1", OUT_OF_MEMORY),
        ])?;
        answers(&mut actor, "info z", total, 0)?;
        for other in 0..3 {
            let used = if other == *card { total } else { 0 };
            answers(&mut actor, &format!("nvml z {other}"), GIB * (other + 1), used)?;
        }
        actor.expect(&[("free a", SUCCESS)])?;
    }
    Ok(())
}

/// What CUDA and NVML say is the size of each of the three cards, CUDA counting as NVML does.
fn sizes(limit: (&str, &str), totals: [u64; 3]) -> Result {
    sizes_of("Stub GPU", limit, totals)
}

/// The same of cards of this model.
fn sizes_of(model: &str, limit: (&str, &str), totals: [u64; 3]) -> Result {
    let run = three(without_limit()?).env(limit.0, with_uuids(limit.1)?);
    let run = run.env("STUB_GPU_NAME", model).env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    for (card, total) in totals.into_iter().enumerate() {
        answers(&mut actor, &format!("total z {card}"), total, 0)?;
        answers(&mut actor, &format!("nvml z {card}"), total, 0)?;
    }
    Ok(())
}

fn percentages() -> Result {
    sizes(("GPU_MEM_LIMIT", "25%"), [10 * GIB / 4, 5 * GIB, 10 * GIB])?;
    sizes(("GPU_MEM_LIMIT", "1=50%,{2}=10%"), [10 * GIB, 10 * GIB, 4 * GIB])
}

fn unlisted() -> Result {
    sizes(("GPU_MEM_LIMIT", "1=1Gi"), [10 * GIB, GIB, 40 * GIB])?;
    sizes(("GPU_MEM_LIMIT", "{2}=1Gi"), [10 * GIB, 20 * GIB, GIB])
}

fn lowest() -> Result {
    sizes(("GPU_MEM_LIMIT", "0=3Gi,{0}=2Gi,{2}=4Gi,2=5Gi"), [2 * GIB, 20 * GIB, 4 * GIB])
}

fn beyond() -> Result {
    sizes(("GPU_MEM_LIMIT", "7=1Gi"), [10 * GIB, 20 * GIB, 40 * GIB])
}

fn profiles() -> Result {
    sizes(("GPU_PROFILE", "1g.5gb"), [5 * GIB; 3])?;
    sizes(("GPU_PROFILE", "0=1g.5gb,{1}=2g,2=7g.80gb"), [5 * GIB, 5 * GIB, 40 * GIB])?;
    // Of a model that MIG divides into four, or into two.
    sizes_of("NVIDIA A30", ("GPU_PROFILE", "1g+me"), [10 * GIB / 4, 5 * GIB, 10 * GIB])?;
    let halves = [5 * GIB, 10 * GIB, 20 * GIB];
    sizes_of("NVIDIA RTX PRO 4500 Blackwell", ("GPU_PROFILE", "1g"), halves)
}

/// Two cards, the second with two MIG instances.
fn with_mig(run: Run) -> Run {
    run.env("STUB_GPU_COUNT", "2").env("STUB_GPU_MIG", "1=5GiB+10GiB")
}

fn on_instance(limit: &str, instance: u64, size: u64) -> Result {
    on_instance_beside(None, limit, instance, size)
}

/// What a limit comes to on an instance, beside perhaps a share of time.
fn on_instance_beside(time: Option<&str>, limit: &str, instance: u64, size: u64) -> Result {
    let mut looking = with_mig(World::bare(Driver::Stub).actor()?).start()?;
    let card = format!("GPU-{}", uuid(&mut looking, 1, 0)?);
    let name = format!("MIG-{}", uuid(&mut looking, 1, instance)?);
    let limit = limit.replace("{card}", &card).replace("{instance}", &name);
    let mut run = with_mig(without_limit()?).env("GPU_MEM_LIMIT", &limit);
    if let Some(time) = time {
        run = run.env("GPU_CORE_PCT", time);
    }
    let mut actor = run.env("CUDA_VISIBLE_DEVICES", &name).start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    answers(&mut actor, "count z", 1, 0)?;
    answers(&mut actor, "total z 0", size, 0)?;
    actor.expect(&[
        (&format!("alloc a {}", size + 1), OUT_OF_MEMORY),
        (&format!("alloc a {size}"), SUCCESS),
    ])?;
    answers(&mut actor, &format!("nvml z 1 {instance}"), size, size)?;
    // The other instance belongs to another container.
    let other = actor.call(&format!("nvml z 1 {}", 3 - instance))?;
    match other.extra {
        0 => Ok(()),
        used => Err(Stop::fail(format!("{used} bytes are shown on the other instance"))),
    }
}

fn mig_by_name() -> Result {
    on_instance("{instance}=2Gi", 1, 2 * GIB)?;
    on_instance("{instance}=2Gi", 2, 2 * GIB)?;
    on_instance("0=1Gi,{instance}=50%", 2, 5 * GIB)
}

fn mig_by_card() -> Result {
    on_instance("{card}=3Gi", 1, 3 * GIB)?;
    on_instance("1=3Gi", 2, 3 * GIB)?;
    on_instance("1=50%", 2, 5 * GIB)?;
    on_instance("1=3Gi,{instance}=2Gi", 2, 2 * GIB)?;
    on_instance(&CARD.to_string(), 1, 5 * GIB)
}

/// Two cards under 1 and 2 GiB, with the primary contexts of both; the second one's is current.
fn two() -> Result<(Run, Actor)> {
    let run = without_limit()?.env("STUB_GPU_COUNT", "2").env("GPU_MEM_LIMIT", "0=1Gi,1=2Gi");
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS), ("context 1", SUCCESS)])?;
    Ok((run, actor))
}

/// Fails unless the two cards are said to hold this much.
fn hold(actor: &mut Actor, bytes: [u64; 2]) -> Result {
    for (card, bytes) in bytes.into_iter().enumerate() {
        answers(actor, &format!("nvml z {card}"), GIB * (card as u64 + 1), bytes)?;
    }
    Ok(())
}

fn both_filled() -> Result {
    let (_run, mut actor) = two()?;
    actor.expect(&[
        (&format!("alloc a {}", 2 * GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", 2 * GIB), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
        ("context 0", SUCCESS),
        (&format!("alloc b {}", GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc b {GIB}"), SUCCESS),
    ])?;
    answers(&mut actor, "info z", GIB, 0)?;
    hold(&mut actor, [GIB, 2 * GIB])
}

fn freed_elsewhere() -> Result {
    for (take, give) in [
        ("cuMemAlloc_v2 a", "cuMemFree_v2 a"),
        ("cuMemAllocManaged a", "cuMemFree_v2 a"),
        ("cuMemAllocAsync a", "cuMemFreeAsync a"),
        ("cuArrayCreate_v2 a", "cuArrayDestroy a"),
        ("cuMipmappedArrayCreate a", "cuMipmappedArrayDestroy a"),
    ] {
        let (_run, mut actor) = two()?;
        actor.expect(&[
            (&format!("{take} {}", 2 * GIB), SUCCESS),
            ("context 0", SUCCESS),
            (&format!("alloc b {GIB}"), SUCCESS),
        ])?;
        hold(&mut actor, [GIB, 2 * GIB])?;
        actor.expect(&[(give, SUCCESS), ("alloc c 1", OUT_OF_MEMORY)])?;
        hold(&mut actor, [GIB, 0])?;
        actor.expect(&[("context 1", SUCCESS), (&format!("alloc a {}", 2 * GIB), SUCCESS)])?;
    }
    Ok(())
}

fn one_ends() -> Result {
    for (first, second) in [("reset 0", "release 1"), ("release 0", "reset 1")] {
        let (_run, mut actor) = two()?;
        actor.expect(&[
            ("alloc a 2000", SUCCESS),
            ("context 0", SUCCESS),
            ("release 0", SUCCESS),
        ])?;
        actor.expect(&[("alloc b 1000", SUCCESS), (first, SUCCESS)])?;
        hold(&mut actor, [0, 2000])?;
        actor.expect(&[(second, SUCCESS)])?;
        hold(&mut actor, [0, 0])?;
    }
    Ok(())
}

fn named() -> Result {
    let (_run, mut actor) = two()?;
    actor.expect(&[
        (&format!("create a {GIB} 0"), SUCCESS),
        ("create b 2097152 0", OUT_OF_MEMORY),
        ("context 0", SUCCESS),
        (&format!("create b {} 1", 2 * GIB), SUCCESS),
        ("create c 2097152 1", OUT_OF_MEMORY),
    ])?;
    hold(&mut actor, [GIB, 2 * GIB])?;
    actor.expect(&[("drop b", SUCCESS)])?;
    hold(&mut actor, [GIB, 0])
}

fn in_order() -> Result {
    // Drivers before 12.8 report a stream's context, and not its device.
    for refused in ["", "cuStreamGetDevice:801"] {
        let run = without_limit()?.env("STUB_GPU_COUNT", "2").env("GPU_MEM_LIMIT", "0=1Gi,1=2Gi");
        let mut actor = run.env("STUB_GPU_FAIL", refused).start()?;
        actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS), ("context 1", SUCCESS)])?;
        actor.expect(&[
            ("stream s", SUCCESS),
            ("context 0", SUCCESS),
            (&format!("async-in a s {}", 2 * GIB), SUCCESS),
        ])?;
        hold(&mut actor, [0, 2 * GIB])?;
        actor.expect(&[
            ("async-in b s 1", OUT_OF_MEMORY),
            ("async b 1000", SUCCESS),
            ("end-stream s", SUCCESS),
            ("stream t", SUCCESS),
        ])?;
        // The handle of a stream that has ended is another one's, of another card.
        let [old, new] = ["s", "t"].map(|slot| actor.call(&format!("nothing {slot}")));
        if old?.value != new?.value {
            return Err(Stop::fail("the handle is another one"));
        }
        actor.expect(&[("async-in c t 1000", SUCCESS)])?;
        hold(&mut actor, [2000, 2 * GIB])?;
    }
    Ok(())
}

fn code() -> Result {
    let run = without_limit()?.env("STUB_GPU_COUNT", "2").env("GPU_MEM_LIMIT", "0=1Gi,1=2Gi");
    let mut actor = run.env("STUB_GPU_MODULE_MEM", "3000017").start()?;
    actor.expect(&[
        ("init", SUCCESS),
        ("context 1", SUCCESS),
        ("cuModuleLoadData a 1000", SUCCESS),
        ("cuLibraryLoadData b 1000", SUCCESS),
        ("cuLibraryGetModule b", SUCCESS),
        ("context 0", SUCCESS),
    ])?;
    hold(&mut actor, [0, 2 * 3_000_017])?;
    actor.expect(&[("cuLibraryGetModule b", SUCCESS)])?;
    hold(&mut actor, [3_000_017, 2 * 3_000_017])?;
    actor.expect(&[("cuLibraryUnload b", SUCCESS), ("cuModuleUnload a", SUCCESS)])?;
    hold(&mut actor, [0, 0])
}

fn peers() -> Result {
    let (_run, mut actor) = two()?;
    actor.expect(&[
        ("alloc a 1000000", SUCCESS),
        ("context 0", SUCCESS),
        ("alloc b 1000000", SUCCESS),
        ("copy-between-cards b a 1000000", SUCCESS),
    ])?;
    hold(&mut actor, [1_000_000; 2])?;
    actor.expect(&[("free a", SUCCESS)])?;
    hold(&mut actor, [1_000_000, 0])
}

fn two_instances() -> Result {
    let mut looking = with_mig(World::bare(Driver::Stub).actor()?).start()?;
    let run = with_mig(without_limit()?).env("GPU_MEM_LIMIT", "1=3Gi");
    let mut actors = Vec::new();
    for instance in [1, 2] {
        let name = format!("MIG-{}", uuid(&mut looking, 1, instance)?);
        let mut actor = run.clone().env("CUDA_VISIBLE_DEVICES", name).start()?;
        actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
        actor
            .expect(&[(&format!("alloc a {}", 3 * GIB), SUCCESS), ("alloc b 1", OUT_OF_MEMORY)])?;
        actors.push(actor);
    }
    for actor in &mut actors {
        for instance in [1, 2] {
            answers(actor, &format!("nvml z 1 {instance}"), 3 * GIB, 3 * GIB)?;
        }
    }
    Ok(())
}

fn mig_and_time() -> Result {
    on_instance_beside(Some("50"), "{card}=3Gi", 1, 3 * GIB)?;
    on_instance_beside(Some("50"), "1=3Gi", 2, 3 * GIB)?;
    on_instance_beside(Some("50"), "1=3Gi,{instance}=2Gi", 2, 2 * GIB)
}
