"""Stage sharing: several containers on one card, each a process with a ledger and limits of its own, all of them busy.

Beside each pair stands the card's own way: plain turns, without the shim. Ledgers that lie in one directory have their
usage pages in one too, so that these processes see what the others do; a group of outsiders, each in a directory of its
own, shows what that is worth, and is judged only by the rule that no process gets more than asked for.
"""

from contextlib import ExitStack

from compute import POINTS, Work, rates

US = 200
# Shares that containers ask for; 0 is behind no shim.
SPLITS = ((0, 0), (30, 70), (20, 40), (50, 50), (0, 0, 0), (20, 30, 50), (25, 25, 25))
# Different work: shape, length of a kernel in us, and the share that is asked for.
MIXES = (
    (("async", 10, 30), ("async", 10, 70)),
    (("async", 20000, 30), ("async", 20000, 70)),
    (("async", 20000, 30), ("async", 10, 60)),
    (("graph", 100, 30), ("async", 200, 60)),
    (("async", 1000, 30), ("async", 20000, 30), ("graph", 100, 30)),
)
QUICK = ((0, 0), (30, 70))


def run(place, results):
    """What one alone can do is the measure of every share."""
    scale = place.worker("calibrate")["turns_per_us"]
    group = Group(place, results, scale)
    for split in QUICK if place.stub else SPLITS:
        name = "/".join(str(percent) for percent in split) if any(split) else f"{len(split)} without the shim"
        parts = [("async", US, percent) for percent in split]
        results.attempt(name, lambda: group.together(name, parts))
    for parts in MIXES[:1] if place.stub else MIXES:
        name = " beside ".join(f"{percent} % {shape} {us} us" for shape, us, percent in parts)
        results.attempt(name, lambda: group.together(name, parts))
        results.attempt(f"outsiders: {name}", lambda: group.together(f"outsiders: {name}", parts, outsiders=True))


class Group:
    """Containers side by side."""

    def __init__(self, place, results, scale):
        self.place, self.results, self.scale = place, results, scale
        self.alone = {}

    def together(self, name, parts, outsiders=False):
        """All begin at once and work equally long."""
        works = [Work(self.place, shape, us, self.scale) for shape, us, _ in parts]
        for work in works:
            if tuple(work.words) not in self.alone:
                self.alone[tuple(work.words)] = work.rate(None)[0]
        with ExitStack() as stack:
            workers = []
            for work, (_, _, percent) in zip(works, parts):
                ledger = self.place.ledger_apart() if outsiders and percent else None
                workers.append(stack.enter_context(work.start(limits_of(percent), ledger=ledger)))
            for worker in workers:
                worker.say("go")
            ran = [rates(worker.rest(120)["marks"])[0] for worker in workers]
        found = [100 * rate / self.alone[tuple(work.words)] for rate, work in zip(ran, works)]
        self.judge(name, [percent for _, _, percent in parts], found, outsiders)

    def judge(self, name, split, found, outsiders):
        """Beside each other, or in turns of the card."""
        figures = {f"share_{n + 1}": share for n, share in enumerate(found)} | {"sum": sum(found)}
        if not any(split):
            spread = max(found) - min(found)
            self.results.judge(name, spread <= 10, "turns of equal length: within 10 points", figures, timed=True)
            return
        # What is asked for beyond the card is shared in proportion.
        wanted = [percent * min(1, 100 / sum(split)) for percent in split]
        off = [share - want for share, want in zip(found, wanted)]
        if outsiders:
            self.results.judge(name, max(off) <= POINTS, f"none more than {POINTS:g} points above", figures, timed=True)
        else:
            holds = all(abs(points) <= POINTS for points in off)
            self.results.judge(name, holds, f"each within {POINTS:g} points", figures, timed=True)


def limits_of(percent):
    """A container that asked for this much, or one without the shim."""
    return {"GPU_MEM_LIMIT": "2Gi", "GPU_CORE_PCT": str(percent)} if percent else None
