"""Stage models: the share that real models get, by throughput against the same model without the shim; the latency of
an inference loop; and training beside inference.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from compute import BUSY, POINTS, limits_of
from frameworks import HERE, NOT_REAL, has

PERCENTS = (10, 30, 50, 99, 100, None)
# Loops of with_torch_loop.py.
LOOPS = ("matmul", "train", "train-compiled", "infer")
SECONDS = 5


def run(place, results):
    """Every loop at every percentage, then two of them together."""
    if place.stub or not has("torch"):
        reason = NOT_REAL if place.stub else "torch is not installed"
        for name in (*LOOPS, "training beside inference"):
            results.skip(name, reason)
        return
    for name in LOOPS:
        results.attempt(name, lambda: shares(place, results, name))
    results.attempt("training beside inference", lambda: beside(place, results))


def loop(place, name, limits):
    """What a loop says: steps per second, and the latency of a step."""
    words = [sys.executable, HERE / "with_torch_loop.py", name, SECONDS]
    done = place.ask(words, limits, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout.splitlines()[-1])


def shares(place, results, name):
    """A loop that leaves the card idle part of the time cannot use all of it: `demand` says how much it can."""
    bare = loop(place, name, None)
    demand = 100 * bare["busy"]
    for percent in PERCENTS:
        if results.left() < 2 * SECONDS:
            results.fail(f"{name} at {percent or 'no limit'}", "not begun: the budget is used up")
            continue
        found = loop(place, name, limits_of(percent))
        goal = min(percent or 100, demand)
        share = demand * found["per_second"] / bare["per_second"]
        figures = {"goal": goal, "demand": demand, "share": share, **found}
        if goal < min(99, demand):
            holds, bound = abs(share - goal) <= POINTS, f"within {POINTS:g} points of {goal:.3g}"
        else:
            holds, bound = share >= BUSY * goal, f"at least {BUSY:g} of what it can use"
        results.judge(f"{name} at {percent or 'no limit'}", holds, bound, figures, timed=True)


def beside(place, results):
    """Each at half of the card, alone and together: neither may lose more than a tenth to the other."""
    names = ("train", "infer")
    alone = [loop(place, name, limits_of(50)) for name in names]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda name: loop(place, name, limits_of(50)), names))
    kept = [b["per_second"] / a["per_second"] for a, b in zip(alone, both)]
    figures = dict(zip(("train_kept", "infer_kept"), kept))
    figures |= {"p99_alone_ms": alone[1]["p99_ms"], "p99_ms": both[1]["p99_ms"]}
    bound = "each keeps 0.9 of its throughput"
    results.judge("training beside inference", min(kept) >= 0.9, bound, figures, timed=True)
