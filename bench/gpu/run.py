"""Runs the stages on a card, or rehearses on the stub driver what needs no more than a driver.

    python3 run.py --programs DIR --artifacts DIR --out DIR [--stub DIR] [--only STAGES] [--budget 8m] [--commit ID]

Called by `ci/gpu run`, which builds the programs. Each stage is a module with `run(place, results)`. The exit status is
0 if something passed and nothing failed.
"""

import argparse
import json
import platform
import sys
import time
from importlib import metadata
from pathlib import Path

import compute
import frameworks
import memory
import models
import probe
import sharing
import startup
import truth
from results import STATUSES, Results
from world import Place

# In the order of what a short visit to a card should learn first, with the parts in which they share its time. What one
# leaves over the later ones have.
STAGES = {
    "truth": (truth, 9),
    "memory": (memory, 5),
    "startup": (startup, 2),
    "probe": (probe, 6),
    "compute": (compute, 7),
    "sharing": (sharing, 3),
    "frameworks": (frameworks, 9),
    "models": (models, 9),
}
# What programs of other people are made with.
PACKAGES = ("torch", "triton", "jax", "jaxlib", "cupy-cuda13x", "cupy-cuda12x", "numba", "numba-cuda", "cuda-bindings")


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--stub")
    parser.add_argument("--only", default=",".join(STAGES))
    parser.add_argument("--budget", default="480")
    parser.add_argument("--commit", default="unknown")
    given = parser.parse_args()
    unknown = [name for name in given.only.split(",") if name not in STAGES]
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}; there are: {', '.join(STAGES)}")
    return given


def seconds(text):
    """`480`, `480s` or `8m`."""
    unit = {"m": 60, "s": 1}.get(text[-1:], None)
    return float(text[:-1]) * unit if unit else float(text)


def head(place, given):
    """Which machine the rows belong to, as the probe's first stage says."""
    document = place.scratch / "card.json"
    words = [place.programs / "probe", "--out", document, "--only", "card", "--commit", given.commit]
    try:
        place.ask(words, timeout=60)
        facts = json.loads(document.read_text(encoding="utf-8")).get("card", {}).get("answers", {})
    except (OSError, RuntimeError, ValueError) as error:
        print(f"which card it is could not be told: {error}", file=sys.stderr)
        facts = {}
    named = {name: facts[name] for name in ("gpu", "driver", "cuda", "kernel", "mig_mode") if name in facts}
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    where = "stub" if place.stub else "card"
    return {"where": where, "commit": given.commit, "when": when, **named, "versions": versions()}


def versions():
    """Of Python and of what is installed for it."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def main():
    """Stage by stage; what was found so far is on disk at any moment."""
    given = arguments()
    place = Place(given.programs, given.artifacts, given.stub)
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    kind = "stub" if given.stub else "card"
    lines = out / time.strftime(f"{kind}-%Y%m%d-%H%M%S.jsonl", time.gmtime())
    results = Results(lines, head(place, given), not given.stub, seconds(given.budget))
    place.left = results.left
    chosen = [name for name in STAGES if name in given.only.split(",")]
    try:
        for at, name in enumerate(chosen):
            stage, weight = STAGES[name]
            results.begin(name, weight / sum(STAGES[later][1] for later in chosen[at:]))
            results.attempt(name, lambda: stage.run(place, results))
    finally:
        place.close()
    print(results.table())
    print(f"written: {lines}")
    counts = {status: results.count(status) for status in STATUSES}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
