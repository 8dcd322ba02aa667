"""Stage truth: the tests that the stub passes, on the card: every way to look a function up ends at the shim, each
intercepted function answers as without it, the limit is exact in every way to get memory and over the lives of processes.

The test binaries are those of ci/run, built for a bare machine. They write down each result when they have it. What
they cannot ask a card they skip by themselves, with the reason. Where the stub does not answer as the card, that is a
result of its own: the shim is judged by the card, and the stub is to be corrected.
"""

import json
import os
import time
from contextlib import ExitStack
from subprocess import DEVNULL, Popen

from world import end, heard

# Most seconds of each. Routes first: without them nothing else means anything.
BINARIES = {"routes": 60, "conformance": 200, "limits": 90, "lifecycle": 90}
OF_THE_STUB = "the stub answers as the card"
THREADS = max(4, min(8, os.cpu_count() or 4))  # a card makes contexts one after the other


def run(place, results):
    """Binary after binary."""
    for name, seconds in BINARIES.items():
        results.attempt(name, lambda: binary(place, results, name, seconds))


def binary(place, results, name, seconds):
    """A row for each test when it is known; then what is missing."""
    program = place.artifacts / "tests" / name
    record, complaints = place.scratch / f"{name}.jsonl", place.scratch / f"{name}.stderr"
    record.touch()
    environment = place.environment() | {
        "GPUCAP_ARTIFACTS": str(place.artifacts),
        "GPUCAP_SOURCES": os.getcwd(),
        "GPUCAP_TEST_DRIVER": "card",
        "GPUCAP_TEST_RECORD": str(record),
    }
    listed = place.must([program, "--list"], more=environment).stdout
    tests = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    until = time.monotonic() + min(seconds, results.left())
    with ExitStack() as stack:
        lines, errors = stack.enter_context(record.open()), stack.enter_context(complaints.open("w"))
        words = [program, "--test-threads", str(THREADS)]
        process = Popen(words, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=errors, start_new_session=True)
        stack.callback(end, process)
        known, over, unread = set(), False, ""
        while not over and time.monotonic() < until:
            time.sleep(0.1)
            over = process.poll() is not None
            *whole, unread = (unread + lines.read()).split("\n")
            for line in whole:
                found = json.loads(line)
                row(results, name, found)
                known.add(found["test"])
    if missing := [test for test in tests if test not in known]:
        why = f"ended with {process.returncode}" if over else "its time was used up"
        named = "; ".join(missing[:5])
        results.fail(name, f"{why}, {len(missing)} tests unknown: {named}{heard(complaints.read_text())}")


def row(results, name, found):
    """One of them."""
    what, status, reason = f"{name}: {found['test']}", found["status"], found["reason"]
    if status == "passed":
        results.judge(what, True, "as on the stub")
    elif status == "skipped":
        results.skip(what, reason, allowed=True)
    elif found["test"].endswith(OF_THE_STUB):
        results.differ(what, reason)
    else:
        results.fail(what, reason)
