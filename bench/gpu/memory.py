"""Stage memory: no API gets a byte more than the cap, our book agrees with the card, and a killed process gives back.

The card's own figure is that of NVML without the shim (the whole device: nobody else may use the card during a run).
"""

import os
import signal
import time
from contextlib import ExitStack

from world import MIB, OUT_OF_MEMORY, Actor

CAP = 2048 * MIB
LIMITS = {"GPU_MEM_LIMIT": str(CAP)}
UNIT = 2 * MIB  # by which a card hands memory out
# How to take and to give back, per API: commands of the actor, `{}` is the size.
FAMILIES = {
    "cuMemAlloc": ("alloc a {}", "free a"),
    "cuMemAllocManaged": ("managed a {}", "free a"),
    "cuMemAllocAsync": ("async a {}", "free-async a"),
    "cuMemCreate": ("create a {} 0", "drop a"),
}
# Shapes instead of sizes: 256 MiB each, rows of a power of two so that no padding is asked for.
SHAPED = {
    "cuMemAllocPitch": ("pitch a 65536 4096", "free a"),
    "cuArrayCreate": ("array a 8192 8192", "free-array a"),
}
# Only what is touched of it lies on the card.
NOT_ON_THE_CARD = "cuMemAllocManaged"


def run(place, results):
    """Single processes, then a crowd."""
    results.attempt("context", lambda: context(place, results))
    for name, (take, give) in FAMILIES.items():
        results.attempt(name, lambda: edge(place, results, name, take, give))
        results.attempt(name, lambda: agreement(place, results, name, take.format(256 * MIB), give))
    for name, (take, give) in SHAPED.items():
        results.attempt(name, lambda: agreement(place, results, name, take, give))
    results.attempt("processes", lambda: crowd(place, results))
    results.attempt("killed", lambda: killed(place, results))


def ready(place, stack, limits=LIMITS, ledger=None):
    """An actor with a context. It must see its slice: else every edge here would be the card's own, and pass."""
    actor = stack.enter_context(Actor(place, limits, ledger))
    actor.must("init")
    actor.must("context 0")
    total, _ = actor.must("total y 0")
    if total != int(limits["GPU_MEM_LIMIT"]):
        raise RuntimeError(f"the program is not behind the shim: it sees {total} bytes")
    return actor


def on_card(witness):
    """Bytes in use on the whole card, once two readings agree: a card gives back late."""
    last = -1
    for _ in range(50):
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


def context(place, results):
    """A context is charged at a known price; what it takes beyond it is memory that nobody paid for."""
    with ExitStack() as stack:
        witness = stack.enter_context(Actor(place))
        before = on_card(witness)
        actor = ready(place, stack)
        used, _ = booked(actor)
        taken = on_card(witness) - before
        figures = {"charged_mib": used / MIB, "taken_mib": taken / MIB}
        holds = used > 0 and taken <= used + 64 * MIB
        results.judge("context", holds, "takes at most 64 MiB more than charged", figures)


def edge(place, results, name, take, give):
    """The last unit that fits is had, one more is refused, and after giving back it is had again."""
    with ExitStack() as stack:
        actor = ready(place, stack)
        if name == "cuMemAllocAsync":
            actor.must(take.format(UNIT))  # the pool is made with the first allocation
            actor.must(give)
            actor.must("sync")
        _, left = booked(actor)
        fits = left // UNIT * UNIT
        over = actor.tell(take.format(fits + UNIT))[0]
        first = actor.tell(take.format(fits))[0]
        last = actor.tell(f"alloc b {left - fits + 1}")[0]
        actor.must(give)
        actor.must("sync")
        again = actor.tell(take.format(fits))[0]
        figures = {"over": over, "fits": first, "one_byte_more": last, "again": again, "bytes": fits}
        holds = (over, first, last, again) == (OUT_OF_MEMORY, 0, OUT_OF_MEMORY, 0)
        results.judge(f"edge: {name}", holds, "2, 0, 2, 0", figures)


def agreement(place, results, name, take, give):
    """Our book against the card, after taking and after giving back."""
    with ExitStack() as stack:
        witness, actor = stack.enter_context(Actor(place)), ready(place, stack)
        book, card = booked(actor)[0], on_card(witness)
        actor.must(take)
        actor.must("sync")
        charged, taken = booked(actor)[0] - book, on_card(witness) - card
        actor.must(give)
        actor.must("sync")
        kept = {"book_kept_mib": (booked(actor)[0] - book) / MIB, "card_kept_mib": (on_card(witness) - card) / MIB}
        figures = {"charged_mib": charged / MIB, "taken_mib": taken / MIB, **kept}
        if name == NOT_ON_THE_CARD:
            holds, bound = charged >= taken, "charged in full"
        else:
            holds, bound = abs(charged - taken) <= UNIT, "within 2 MiB of the card"
        results.judge(f"agreement: {name}", holds and charged >= 256 * MIB, bound, figures)


def crowd(place, results, count=4, step=64 * MIB):
    """Processes with one budget take turns until each is refused: together they hold all of it and no byte more."""
    ledger = next(place.ledgers)
    with ExitStack() as stack:
        actors = [ready(place, stack, {"GPU_MEM_LIMIT": str(2 * CAP)}, ledger) for _ in range(count)]
        held = sum(fill(actor, step) for actor in actors)
        used, left = booked(actors[0])
        figures = {"held_mib": held / MIB, "used_mib": used / MIB, "left_mib": left / MIB}
        results.judge("processes: one cap", 0 <= left < step and held <= used, "less than one step is left", figures)


def fill(actor, step):
    """Allocates until it is refused; the bytes that were had."""
    held = 0
    for letter in "abcdefghijklmnopqrstuvwxy" * 4:
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
        refused = other.tell(f"alloc b {UNIT}")[0]
        os.kill(victim.process.pid, signal.SIGKILL)
        victim.process.wait()
        had = other.tell(f"alloc b {left}")[0]
        figures = {"before": refused, "after": had}
        results.judge("SIGKILL gives back", (refused, had) == (OUT_OF_MEMORY, 0), "2 before, 0 after", figures)
