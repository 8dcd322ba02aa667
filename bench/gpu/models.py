"""Stage models: the share that real models get, by throughput against the same model without the shim; the latency of
an inference loop; and training beside inference, with limits and without.
"""

import json
import sys
from contextlib import ExitStack

from compute import BUSY, POINTS, limits_of
from frameworks import HERE, NOT_REAL, has
from world import Started

# Loops of with_torch_loop.py, and the percentages at which each runs; what costs most to start runs at the fewest.
LOOPS = {
    "matmul": (30, 50, 10, 99, None),
    "train": (30, 50, 99, None),
    "infer": (30, None),
    "graph": (30, None),
    "memory-bound": (30,),
    "train-compiled": (30,),
}
SECONDS = 5
TO_START = 90  # seconds, for a loop that compiles
# What runs beside one another: half of the card each, and the card's own turns.
PAIRS = {"at 50 each": 50, "in the card's own turns": None}


def run(place, results):
    """Every loop at its percentages, then two of them together."""
    if place.stub or not has("torch"):
        reason = NOT_REAL if place.stub else "torch is not installed"
        for name in (*LOOPS, "training beside inference"):
            results.skip(name, reason)
        return
    for way, percent in PAIRS.items():
        name = f"training beside inference {way}"
        results.attempt(name, lambda: beside(place, results, name, percent))
    for name, percents in LOOPS.items():
        results.attempt(name, lambda: shares(place, results, name, percents))


def started(place, stack, name, limits):
    """A loop that waits for `go`."""
    loop = Started(place, [sys.executable, HERE / "with_torch_loop.py", name, SECONDS], limits)
    stack.enter_context(loop)
    return loop


def said(loops):
    """What loops say that begin at once: steps per second, and the latency of a step."""
    for loop in loops:
        while loop.line(TO_START) != "ready":
            pass  # what a library prints at its start
    for loop in loops:
        loop.say("go")
    return [json.loads(loop.text(SECONDS + 30).strip().splitlines()[-1]) for loop in loops]


def alone(place, name, limits):
    """What one loop says."""
    with ExitStack() as stack:
        return said([started(place, stack, name, limits)])[0]


def shares(place, results, name, percents):
    """A loop that leaves the card idle part of the time cannot use all of it: `demand` says how much it can."""
    bare = alone(place, name, None)
    demand = 100 * bare["busy"]
    for percent in percents:
        what = f"{name} at {percent or 'no limit'}"
        results.attempt(what, lambda: share(place, results, what, (name, percent), bare, demand))


def share(place, results, what, cell, bare, demand):
    """One loop at one percentage."""
    name, percent = cell
    found = alone(place, name, limits_of(percent))
    goal = min(percent or 100, demand)
    had = demand * found["per_second"] / bare["per_second"]
    figures = {"goal": goal, "demand": demand, "share": had, "bare_p99_ms": bare["p99_ms"], **found}
    if goal < min(99, demand):
        holds, bound = abs(had - goal) <= POINTS, f"within {POINTS:g} points of {goal:.3g}"
    else:
        holds, bound = had >= BUSY * goal, f"at least {BUSY:g} of what it can use"
    results.judge(what, holds, bound, figures, timed=True)


def beside(place, results, name, percent):
    """Alone and together. With limits neither may lose more than a tenth to the other; without, it is written down."""
    limits = limits_of(percent) if percent else None
    names = ("train", "infer")
    apart = [alone(place, each, limits) for each in names]
    with ExitStack() as stack:
        both = said([started(place, stack, each, limits) for each in names])
    kept = [b["per_second"] / a["per_second"] for a, b in zip(apart, both)]
    figures = dict(zip(("train_kept", "infer_kept"), kept))
    figures |= {"p99_alone_ms": apart[1]["p99_ms"], "p99_ms": both[1]["p99_ms"]}
    holds, bound = (min(kept) >= 0.9, "each keeps 0.9 of its throughput") if percent else (True, "none: to compare with")
    results.judge(name, holds, bound, figures, timed=True)
