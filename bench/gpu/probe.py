"""Stage probe: all questions of `ci/gpu probe`, among them what the meter's design waits for: price of an event, depth
of a queue, when a start event fires, length of a turn, lateness of a sleeper, events during a capture.
"""

import json


def run(place, results):
    """Each of the probe's stages is one result."""
    if place.stub:
        results.skip("probe", "the probe is rehearsed by itself (ci/run probe)")
        return
    document = place.scratch / "probe.json"
    limit = max(10, min(200, results.left() - 5))
    words = [place.programs / "probe", "--out", document, "--budget", int(limit)]
    place.ask(words, timeout=limit + 20)
    for line in (place.scratch / "probe.jsonl").read_text(encoding="utf-8").splitlines():
        stage = json.loads(line)
        said = {"status": stage["status"], "reason": stage.get("reason", ""), "answers": stage["answers"]}
        results.judge(stage["stage"], stage["status"] == "ok", "runs to its end", said)
