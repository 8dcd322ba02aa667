"""Stage probe: all questions of `ci/gpu probe`, and of those the ones on which the design of the meter waits: each has
to be answered, whatever the answer is. README.md says what it decides.
"""

import json

# What is to be known, in which stage of the probe, and how the answers to it begin.
MUST_KNOW = {
    "cost of a timing event": ("launch", "host_record_timing_event"),
    "cost of an event on the card": ("launch", "card_per_kernel_"),
    "depth of a queue": ("queue", "launches"),
    "whether a start event fires before its kernel arrives": ("pairs", "lone_event_is_over_after"),
    "what a pair of events says behind work": ("pairs", "pair_"),
    "constant of a null memset, and its spread": ("pairs", "pair_memset_4_bytes_"),
    "whether an event waits for a turn of its process": ("beside", "events_are_reached"),
    "length of a turn beside another process": ("slices", "2_processes_"),
    "lateness of a sleeper, with a timer slack of 1 us": ("wake", "futex_of_1000us_slack_1000ns"),
    "order of events on the legacy and per-thread streams": ("streams", "event_on_"),
    "events while another thread captures": ("streams", "capture_"),
    "questions without a context": ("streams", "query_event_without_context"),
    "length of the driver's samples": ("sampled", "card_samples_every"),
    "samples of a process that has ended": ("sampled", "samples_of_who_has_ended"),
}


def run(place, results):
    """Each of the probe's stages is one result, and each question."""
    if place.stub:
        results.skip("probe", "the probe is rehearsed by itself (ci/run probe)")
        return
    document = place.scratch / "probe.json"
    limit = max(10, min(200, results.left() - 5))
    done = place.ask([place.programs / "probe", "--out", document, "--budget", int(limit)], timeout=limit + 20)
    answers = {}
    lines = document.with_suffix(".jsonl")
    for line in lines.read_text(encoding="utf-8").splitlines() if lines.exists() else ():
        stage = json.loads(line)
        answers[stage["stage"]] = stage["answers"]
        said = {"status": stage["status"], "reason": stage.get("reason", ""), "answers": stage["answers"]}
        results.judge(stage["stage"], stage["status"] == "ok", "runs to its end", said)
    if done.returncode and not answers:
        results.fail("probe", f"ended with {done.returncode}: {done.stderr[-400:]}")
    for question, (stage, beginning) in MUST_KNOW.items():
        found = {name: value for name, value in answers.get(stage, {}).items() if name.startswith(beginning)}
        known = [value for value in found.values() if not (isinstance(value, dict) and "skipped" in value)]
        results.judge(question, bool(known), "is answered", {"answers": len(known), "in": f"{stage}.{beginning}*"} | found)
