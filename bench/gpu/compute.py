"""Stage compute: the share of the card's time that known work gets, and what a launch costs.

Ground truth is completed work: units done, times the time of one unit without the shim, over the time that passed.
Never the shim's own counters. Runs without the shim stand between the others, so that a drifting clock shows.
"""

from results import NOT_BEGUN
from world import Started

# Shape, length of one kernel in us, and percentages after `FIRST`; None: behind the shim, without a limit of time.
WORK = {
    "async 200 us": ("async", 200, (10, 50, 90, 99, 100)),
    "async 3 us": ("async", 3, (10, 50, 99)),
    "sync 200 us": ("sync", 200, ()),
    "graph of 20 x 100 us": ("graph", 100, (50, 99)),
    "kernels of 20 ms": ("async", 20000, (10, 50)),
    "copies of 256 MiB": ("copy", 400, ()),
}
# What a short visit asks of all the work, before the other percentages.
FIRST = (30, None)
QUICK = ("async 200 us", "graph of 20 x 100 us")
# Points of the card that the mean and the worst second may be off; design promises the first.
BOUNDS = {"": (0.5, 2.0), "async 3 us": (2.0, 4.0), "kernels of 20 ms": (1.0, 4.0)}
POINTS = 2.0  # beside others, and for whole models
# This much of the throughput must remain at 99 % and more.
LAUNCH_BOUND = 0.97
BUSY = 0.99


def run(place, results):
    """Launch costs first, then every piece of work at two percentages, then at the others."""
    results.attempt("launch", lambda: launches(place, results))
    scale = place.worker("calibrate")["turns_per_us"]
    for name in WORK:
        some(place, results, scale, name, FIRST)
    for name, (_, _, percents) in WORK.items():
        if percents and not place.stub:
            some(place, results, scale, name, percents)


def some(place, results, scale, name, percents):
    """One piece of work at some percentages."""
    shape, us, _ = WORK[name]
    clocks_name = f"clocks before {name} at {percents[0]}"
    results.attempt(clocks_name, lambda: clocks(place, results, clocks_name))
    if place.stub and name not in QUICK:
        return
    work, ruler = (Work(place, kind, us, scale) for kind in (shape, "async" if shape == "sync" else shape))
    results.attempt(name, lambda: shares(results, name, work, ruler, percents))


class Work:
    """One shape of the worker."""

    def __init__(self, place, shape, us, scale):
        self.place, self.words = place, [place.programs / "worker", "run", shape, us]
        self.scale, self.seconds = scale, 1.2 if place.stub else 4.5

    def start(self, limits, seconds=None, ledger=None):
        """A worker that waits for `go`."""
        started = Started(self.place, [*self.words, seconds or self.seconds, self.scale], limits, ledger)
        if started.line() != "ready":
            started.__exit__()
            raise RuntimeError("the worker did not get ready")
        return started

    def rate(self, limits, seconds=None):
        """Units per second alone on the card: mean, least and greatest of a window."""
        with self.start(limits, seconds) as worker:
            worker.say("go")
            return rates(worker.rest(60)["marks"])


def rates(marks, window_ns=1e9):
    """Units per second; the first quarter, in which a limit learns and saved time is used up, does not count."""
    marks = [mark for mark in marks if mark[0] >= marks[-1][0] / 4]
    if len(marks) < 2:
        raise RuntimeError("too few units were done to tell a rate")
    spread, begin = [], 0
    for end in range(1, len(marks)):
        while marks[end][0] - marks[begin + 1][0] >= window_ns and begin + 1 < end:
            begin += 1
        if marks[end][0] - marks[begin][0] >= window_ns:
            spread.append(between(marks[begin], marks[end]))
    mean = between(marks[0], marks[-1])
    return mean, min(spread, default=mean), max(spread, default=mean)


def between(first, last):
    """Units per second from one mark to another."""
    return (last[1] - first[1]) / ((last[0] - first[0]) / 1e9)


def limits_of(percent):
    """What is set for a percentage: the memory limit is there in any case."""
    return {"GPU_MEM_LIMIT": "4Gi"} | ({"GPU_CORE_PCT": str(percent)} if percent else {})


def shares(results, name, work, ruler, percents):
    """Each percentage between two short runs without the shim; the faster of them is what the card can do. The ruler
    leaves the card no gaps: a client that waits for each kernel cannot use all of the card, and is not asked to.
    """
    short = work.seconds / 3
    alone = ruler.rate(None, short)[0]
    for percent in percents:
        what = f"{name} at {percent or 'no limit'}"
        if results.left() < 3 * work.seconds:
            results.fail(what, f"{NOT_BEGUN}: the stage's time is used up")
            continue
        mean, least, greatest = work.rate(limits_of(percent))
        after = ruler.rate(None, short)[0]
        whole, alone = max(alone, after), after
        bare = whole if ruler.words == work.words else work.rate(None, short)[0]
        goal = min(percent or 100, 100 * bare / whole)
        figures = {
            "goal": goal,
            "share": 100 * mean / whole,
            "worst_second": max(abs(100 * rate / whole - goal) for rate in (least, greatest)),
            "per_second": mean,
            "bare_per_second": bare,
        }
        if percent and percent < 99 and goal == percent:
            points, second = BOUNDS.get(name, BOUNDS[""])
            holds = abs(figures["share"] - goal) <= points and figures["worst_second"] <= second
            bound = f"within {points:g} points of {goal}, each second within {second:g}"
        else:
            part = LAUNCH_BOUND if name == "async 3 us" else BUSY
            holds, bound = mean >= part * bare, f"at least {part:g} of the throughput"
        results.judge(what, holds, bound, figures, timed=True)


def clocks(place, results, what):
    """How fast and how warm the card is: nothing is changed, and a card that slows down explains a share."""
    if place.stub:
        return
    asked = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
    words = ["nvidia-smi", f"--query-gpu={','.join(asked)}", "--format=csv,noheader,nounits"]
    said = place.must(words).stdout.splitlines()[0].split(", ")
    results.judge(what, len(said) == len(asked), "is told", dict(zip(asked, said)))


def launches(place, results):
    """Host time of a launch in four states, in turns; the least of each, as noise only adds."""
    states = {"bare": None, "no limit of time": limits_of(None), "under 100 %": limits_of(100), "under 99 %": limits_of(99)}
    found = {state: [] for state in states}
    for _ in range(1 if place.stub else 5):
        for state, limits in states.items():
            found[state].append(place.worker("launches", limits=limits))
    least = {state: min(one["launch"]["p50"] for one in all_of) for state, all_of in found.items()}
    event = {state: min(one["event"]["p50"] for one in all_of) for state, all_of in found.items()}
    for state, most in (("no limit of time", 5), ("under 100 %", 20), ("under 99 %", 20)):
        more = least[state] - least["bare"]
        figures = {"bare_ns": least["bare"], "ns": least[state], "more_ns": more}
        figures |= {"bare_event_ns": event["bare"], "event_ns": event[state]}
        results.judge(f"launch {state}", more <= most, f"at most {most} ns more", figures, timed=True)
