"""Stage sharing: several containers on one card, each a process with a ledger and limits of its own, all of them busy.

Beside each pair stands the card's own way: plain turns, without the shim.
"""

from contextlib import ExitStack

from compute import POINTS, Work, rates

US = 200
# Shares that containers ask for; 0 is behind no shim.
SPLITS = ((0, 0), (30, 70), (20, 40), (50, 50), (0, 0, 0), (20, 30, 50), (25, 25, 25))
QUICK = ((0, 0), (30, 70))


def run(place, results):
    """What one alone can do is the measure of every share."""
    scale = place.worker("calibrate")["turns_per_us"]
    work = Work(place, "async", US, scale)
    alone = work.rate(None)[0]
    for split in QUICK if place.stub else SPLITS:
        name = "/".join(str(percent) for percent in split) if any(split) else f"{len(split)} without the shim"
        results.attempt(name, lambda: together(results, name, work, split, alone))


def limits_of(percent):
    """A container that asked for so much, or one without the shim."""
    return {"GPU_MEM_LIMIT": "2Gi", "GPU_CORE_PCT": str(percent)} if percent else None


def together(results, name, work, split, alone):
    """All begin at once and work equally long."""
    with ExitStack() as stack:
        workers = [stack.enter_context(work.start(limits_of(percent))) for percent in split]
        for worker in workers:
            worker.say("go")
        found = [100 * rates(worker.rest(120)["marks"])[0] / alone for worker in workers]
    figures = {f"share_{n + 1}": share for n, share in enumerate(found)} | {"sum": sum(found)}
    if not any(split):
        spread = max(found) - min(found)
        results.judge(name, spread <= 10, "turns of equal length: within 10 points", figures, timed=True)
        return
    # What is asked for beyond the card is shared in proportion.
    wanted = [percent * min(1, 100 / sum(split)) for percent in split]
    holds = all(abs(share - want) <= POINTS for share, want in zip(found, wanted))
    results.judge(name, holds, f"each within {POINTS:g} points", figures, timed=True)
