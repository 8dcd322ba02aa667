"""Stage memory: no API gets a byte more than the limit, our book agrees with the card, and a killed process gives back.

The card's own figure is NVML's without the shim: of the process if NVML lists it, else of the whole card, so that no other process
else may use the card during a run. The book is what the program is shown. A row per API says how far they are apart
after each step; the design aims at 32 MiB or 2 %.
"""

import os
import signal
import time
from contextlib import ExitStack

from world import MIB, OUT_OF_MEMORY, Actor

LIMIT = 2048 * MIB
LIMITS = {"GPU_MEM_LIMIT": str(LIMIT)}
UNIT = 2 * MIB  # by which a card hands memory out
APART, APART_PART = 32 * MIB, 0.02
SIZE = 256 * MIB
POOL = ("cuMemPoolCreate p 1",)
KEEPING = ("cuDeviceGetDefaultMemPool p", f"cuMemPoolSetAttribute p {2**63}")
# Per API: what comes before, how to take `{}` bytes, and how to give back; commands of the actor.
SIZED = {
    "cuMemAlloc": ((), ("alloc a {}",), ("free a",)),
    "cuMemAllocManaged": ((), ("managed a {}",), ("free a",)),
    "cuMemAllocAsync": ((), ("async a {}",), ("free-async a", "sync")),
    "cuMemAllocFromPoolAsync": (POOL, ("from-pool a p {}",), ("free-async a", "sync")),
    "cuMemCreate": ((), ("create a {} 0",), ("drop a",)),
    "cuMemCreate and cuMemMap": ((), ("create a {0} 0", "map b a {0}"), ("unmap b {0}", "drop a")),
}
# What takes 256 MiB but is not asked for in bytes, or not to the byte.
SHAPED = {
    "cuMemAllocPitch": ((), ("pitch a 65536 4096",), ("free a",)),
    "cuArrayCreate": ((), ("array a 8192 8192",), ("free-array a",)),
    "cuMipmappedArrayCreate": ((), ("mipmap a 8192 8192",), ("cuMipmappedArrayDestroy a",)),
    "graph node": (
        ("cuGraphCreate g", f"cuGraphAddMemAllocNode g {SIZE}"),
        ("cuGraphInstantiateWithFlags g", "cuGraphLaunch g", "sync"),
        (),  # memory that no node frees outlives its graph
    ),
    "a pool's reserve": (KEEPING, (f"async a {SIZE}", "free-async a", "sync"), ("cuMemPoolTrimTo p 0",)),
    "a module's variable": ((), (f"text a {SIZE}",), ("cuModuleUnload a",)),
    # A KiB for each thread that the card can hold at once; contexts keep it.
    "a kernel's local memory": ((), ("local a 1024",), ()),
    "cuCtxSetLimit of the heap": ((), (f"limit z 2 {SIZE}",), ("limit z 2 8388608",)),
    "cuCtxSetLimit of printf": ((), (f"limit z 1 {SIZE}",), ("limit z 1 1048576",)),
}
# Only what is touched, or needed by code, lies on the card.
MAY_TAKE_LESS = ("cuMemAllocManaged", "cuCtxSetLimit of the heap", "cuCtxSetLimit of printf")
# The stub makes no difference by what code is; on a card it must be seen to take some.
NOT_OF_THE_STUB = ("a module's variable", "a kernel's local memory")


def run(place, results):
    """Single processes, then a crowd."""
    results.attempt("context", lambda: context(place, results))
    for name, ways in SIZED.items():
        results.attempt(f"edge: {name}", lambda: edge(place, results, name, *ways))
        ways = [[step.format(SIZE) for step in steps] for steps in ways]
        results.attempt(f"agreement: {name}", lambda: agreement(place, results, name, *ways))
    for name, ways in SHAPED.items():
        results.attempt(f"refused: {name}", lambda: refused(place, results, name, *ways))
        results.attempt(f"agreement: {name}", lambda: agreement(place, results, name, *ways))
    results.attempt("imports", lambda: imports(place, results))
    results.attempt("processes: one limit", lambda: crowd(place, results))
    results.attempt("SIGKILL gives back", lambda: killed(place, results))


def ready(place, stack, limits=LIMITS, ledger=None):
    """An actor with a context. It must see its slice: else every edge here would be the card's own, and pass."""
    actor = stack.enter_context(Actor(place, limits, ledger))
    actor.must("init")
    actor.must("context 0")
    total, _ = actor.must("total y 0")
    if total != int(limits["GPU_MEM_LIMIT"]):
        raise RuntimeError(f"the program is not behind the shim: it sees {total} bytes")
    return actor


def on_card(witness, actor=None):
    """Bytes in use on the card, by the actor if it is listed, once two readings agree: a card gives back late."""
    last = -1
    for _ in range(50):
        code, used, _ = witness.tell(f"process z {actor.process.pid}") if actor else (1, 0, 0)
        if code:
            _, used = witness.must("nvml z 0 0")
        if used == last:
            break
        last = used
        time.sleep(0.02)
    return used


def booked(actor):
    """Used bytes and the rest of the slice, as the program sees it."""
    total, used = actor.must("nvml z 0 0")
    return used, total - used


def tell_all(actor, steps):
    """The first code that is not 0, or 0."""
    return next((code for step in steps if (code := actor.tell(step)[0])), 0)


def must_all(actor, steps):
    """Each of them has to succeed."""
    for step in steps:
        actor.must(step)


def context(place, results):
    """A context is charged at a known price; what it takes beyond it is memory that is not charged."""
    with ExitStack() as stack:
        witness = stack.enter_context(Actor(place))
        before = on_card(witness)
        actor = ready(place, stack)
        used, _ = booked(actor)
        taken = on_card(witness) - before
        listed, own, _ = witness.tell(f"process z {actor.process.pid}")
        figures = {"charged_mib": used / MIB, "taken_mib": taken / MIB, "by_nvml_mib": None if listed else own / MIB}
        holds = used > 0 and taken <= used + 64 * MIB
        results.judge("context", holds, "takes at most 64 MiB more than charged", figures)


def edge(place, results, name, before, take, give):
    """The last unit that fits is had, one more is refused, and after giving back it is had again."""
    with ExitStack() as stack:
        actor = ready(place, stack)
        must_all(actor, before)
        if "Async" in name:  # the pool is made with its first allocation
            must_all(actor, [step.format(UNIT) for step in (*take, *give)])
        _, left = booked(actor)
        fits = left // UNIT * UNIT
        over = tell_all(actor, [step.format(fits + UNIT) for step in take])
        first = tell_all(actor, [step.format(fits) for step in take])
        last = actor.tell(f"alloc c {left - fits + 1}")[0]
        must_all(actor, [step.format(fits) for step in give])
        again = tell_all(actor, [step.format(fits) for step in take])
        figures = {"over": over, "fits": first, "one_byte_more": last, "again": again, "bytes": fits}
        holds = (over, first, last, again) == (OUT_OF_MEMORY, 0, OUT_OF_MEMORY, 0)
        results.judge(f"edge: {name}", holds, "2, 0, 2, 0", figures)


def refused(place, results, name, before, take, _):
    """With less than half of what it takes left, it is refused, and what it could not have is still there."""
    if place.stub and name in NOT_OF_THE_STUB:
        return
    with ExitStack() as stack:
        actor = ready(place, stack)
        must_all(actor, before)
        _, left = booked(actor)
        actor.must(f"alloc f {left - SIZE // 2}")
        code = tell_all(actor, take)
        had = actor.tell(f"alloc h {SIZE // 4}")[0]
        figures = {"code": code, "a_quarter_then": had}
        results.judge(f"refused: {name}", (code, had) == (OUT_OF_MEMORY, 0), "2, then 0", figures)


def agreement(place, results, name, before, take, give):
    """Our book against the card, after taking and after giving back."""
    with ExitStack() as stack:
        witness, actor = stack.enter_context(Actor(place)), ready(place, stack)
        must_all(actor, before)
        book, card = booked(actor)[0], on_card(witness, actor)
        must_all(actor, take)
        charged, taken = booked(actor)[0] - book, on_card(witness, actor) - card
        must_all(actor, give)
        kept, kept_by_card = booked(actor)[0] - book, on_card(witness, actor) - card
        figures = {"charged": charged, "taken": taken, "book_kept": kept, "card_kept": kept_by_card}
        figures = {f"{key}_mib": value / MIB for key, value in figures.items()}
        if name in MAY_TAKE_LESS:
            holds, bound = charged >= taken and kept <= APART, "charged in full, and all of it given back"
        else:
            holds, bound = near(charged, taken) and near(kept, kept_by_card), "within 32 MiB or 2 % of the card"
        seen = taken > 0 if name in NOT_OF_THE_STUB and not place.stub else charged >= 0
        results.judge(f"agreement: {name}", holds and seen, bound, figures)


def near(book, card):
    """What the design promises."""
    return abs(book - card) <= max(APART, APART_PART * card)


def imports(place, results):
    """Memory that a second process opens is charged once, and stays charged until both have let go of it."""
    ledger = next(place.ledgers)
    with ExitStack() as stack:
        owner, other = ready(place, stack, LIMITS, ledger), ready(place, stack, LIMITS, ledger)
        before, _ = booked(owner)
        must_all(owner, (f"alloc a {SIZE}", "ipc a"))
        other.must("cuIpcOpenMemHandle_v2 a")
        opened, _ = booked(owner)
        other.must("cuIpcCloseMemHandle a")
        owner.must("free a")
        closed, _ = booked(owner)
        figures = {"charged_mib": (opened - before) / MIB, "kept_mib": (closed - before) / MIB}
        results.judge("imports", (opened - before, closed) == (SIZE, before), "256 MiB once, and back", figures)


def crowd(place, results, count=4, step=64 * MIB):
    """Processes with one budget take turns until each is refused: together they hold all of it and no byte more."""
    ledger = next(place.ledgers)
    with ExitStack() as stack:
        witness = stack.enter_context(Actor(place))
        before = on_card(witness)
        actors = [ready(place, stack, {"GPU_MEM_LIMIT": str(4 * LIMIT)}, ledger) for _ in range(count)]
        held = sum(fill(actor, step) for actor in actors)
        used, left = booked(actors[0])
        taken = on_card(witness) - before
        figures = {"held": held, "used": used, "left": left, "taken": taken}
        figures = {f"{key}_mib": value / MIB for key, value in figures.items()}
        holds = 0 <= left < step and held <= used and near(used, taken)
        results.judge("processes: one limit", holds, "less than one step is left, and the card agrees", figures)


def fill(actor, step):
    """Allocates until it is refused; the bytes that were had."""
    held = 0
    for letter in "abcdefghijklmnopqrstuvwxy" * 8:
        code, _, _ = actor.tell(f"alloc {letter} {step}")
        if code:
            return held
        held += step
    raise RuntimeError("never refused")


def killed(place, results):
    """What a killed process held is there for the others."""
    ledger = next(place.ledgers)
    with ExitStack() as stack:
        victim, other = ready(place, stack, LIMITS, ledger), ready(place, stack, LIMITS, ledger)
        _, left = booked(other)
        victim.must(f"alloc a {left}")
        before = other.tell(f"alloc b {UNIT}")[0]
        os.kill(victim.process.pid, signal.SIGKILL)
        victim.process.wait()
        after = other.tell(f"alloc b {left}")[0]
        figures = {"before": before, "after": after}
        results.judge("SIGKILL gives back", (before, after) == (OUT_OF_MEMORY, 0), "2 before, 0 after", figures)
