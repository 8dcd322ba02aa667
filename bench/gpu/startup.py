"""Stage startup: what the shim adds to a program's first calls, and whether many programs can begin at once."""

from contextlib import ExitStack
from statistics import median
from time import monotonic

from world import Started

LIMITS = {"GPU_MEM_LIMIT": "2Gi", "GPU_CORE_PCT": "50"}
PARTS = ("init", "context", "allocation")


def run(place, results):
    """One by one in turns, then a crowd."""
    results.attempt("first calls", lambda: first_calls(place, results))
    results.attempt("50 at once", lambda: at_once(place, results))


def first_calls(place, results):
    """Medians of runs in turns, so that what drifts drifts for both."""
    times = {"bare": [], "limited": []}
    for _ in range(3 if place.stub else 9):
        times["bare"].append(place.worker("first"))
        times["limited"].append(place.worker("first", limits=LIMITS))
    for part in PARTS:
        bare, limited = (median(sample[part] for sample in times[world]) / 1e6 for world in ("bare", "limited"))
        figures = {"bare_ms": bare, "limited_ms": limited, "more_ms": limited - bare}
        results.judge(f"first calls: {part}", limited - bare <= 1, "at most 1 ms more", figures, timed=True)


def at_once(place, results, count=50):
    """No contexts: fifty of them would fill a card. All share one ledger, and none may fail."""
    ledger, began = next(place.ledgers), monotonic()
    words = [place.programs / "worker", "init"]
    with ExitStack() as stack:
        started = [stack.enter_context(Started(place, words, LIMITS, ledger)) for _ in range(count)]
        times = sorted(worker.rest(120)["init"] / 1e6 for worker in started)
    figures = {"least_ms": times[0], "median_ms": median(times), "most_ms": times[-1], "seconds": monotonic() - began}
    results.judge("50 at once", len(times) == count, "all of them get through cuInit", figures)
