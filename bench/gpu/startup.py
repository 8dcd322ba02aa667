"""Stage startup: what the shim adds to a program's first calls, and whether many programs can begin at once."""

from statistics import median
from subprocess import DEVNULL, PIPE, Popen
from time import monotonic

LIMITS = {"GPU_MEM_LIMIT": "2Gi", "GPU_CORE_PCT": "50"}
PARTS = ("init", "context", "allocation")


def run(place, results):
    """One by one in turns, then a crowd."""
    results.attempt("first calls", lambda: first_calls(place, results))
    results.attempt("50 at once", lambda: at_once(place, results))


def first_calls(place, results):
    """Medians of runs in turns, so that what drifts drifts for both."""
    times = {"bare": [], "capped": []}
    for _ in range(3 if place.stub else 9):
        times["bare"].append(place.worker("first"))
        times["capped"].append(place.worker("first", limits=LIMITS))
    for part in PARTS:
        bare, capped = (median(sample[part] for sample in times[world]) / 1e6 for world in ("bare", "capped"))
        figures = {"bare_ms": bare, "capped_ms": capped, "more_ms": capped - bare}
        results.judge(f"first calls: {part}", capped - bare <= 1, "at most 1 ms more", figures, timed=True)


def at_once(place, results, count=50):
    """No contexts: fifty of them would fill a card. All share one ledger, and none may fail."""
    ledger, began = next(place.ledgers), monotonic()
    words = [str(place.programs / "worker"), "init"]
    started = [Popen(words, env=place.environment(LIMITS, ledger), stdout=PIPE, stderr=DEVNULL) for _ in range(count)]
    for process in started:
        process.communicate(timeout=120)
    failed = sum(process.returncode != 0 for process in started)
    figures = {"failed": failed, "seconds": monotonic() - began}
    results.judge("50 at once", failed == 0, "all of them get through cuInit", figures)
