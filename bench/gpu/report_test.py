"""What the page shows and what it must never show, on results that were made up: nothing here was measured.

    python3 report_test.py

Called by `ci/gpu rehearse`; a line `ci: passed|failed report NAME` each, the exit status is 0 if all passed.
"""

import io
import json
import shutil
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import report
from results import Results

MADE_UP = {"where": "card", "gpu": "MADE UP", "driver": "0.0", "cuda": "0.0", "commit": "none"}


def made_up(directory, name, head=None):
    """Results as a run would write them."""
    with redirect_stderr(io.StringIO()):
        results = Results(Path(directory) / name, head or MADE_UP, True, 60)
        results.begin("memory", 0.5)
        results.judge("edge: cuMemAlloc", True, "2, 0, 2, 0", {"over": 2})
        results.judge("edge: cuMemCreate", False, "2, 0, 2, 0", {"over": 0})
        results.begin("compute", 0.5)
        results.judge("async 200 us at 30", True, "within 0.5 points", {"goal": 30, "share": 30.25, "list": [1]})
        results.judge("launch under 99 %", False, "at most 20 ns more", {"more_ns": 21})
        results.begin("truth", 1)
        results.judge("routes: dlsym: caught (card)", True, "as on the stub")
        results.differ("conformance: cuInit: the stub answers as the card", "the card: 0\nthe stub: 1 | 2")
        results.skip("limits: something", "a card does not obey", allowed=True)
    return results


def page_of(directory):
    """The page that is made of it."""
    page = Path(directory) / "CARD.md"
    with redirect_stdout(io.StringIO()):
        report.main(directory, page)
    return page.read_text(encoding="utf-8")


def without_results_nothing_is_claimed(directory):
    page = page_of(directory)
    assert "No card has run this yet" in page
    assert page.count("| not asked |") == len(report.PROMISES) and "](#" not in page


def the_page_that_is_kept_is_that_of_the_kept_results(directory):
    for path in (report.PAGE.parent / "results").glob("card-*.jsonl"):
        shutil.copy(path, directory)
    assert page_of(directory) == report.PAGE.read_text(encoding="utf-8")


def what_the_stub_was_asked_is_not_shown(directory):
    made_up(directory, "stub-20000101-000000.jsonl", MADE_UP | {"where": "stub"})
    assert "No card has run this yet" in page_of(directory)


def a_file_by_a_card_s_name_that_none_made_is_refused(directory):
    made_up(directory, "card-20000101-000000.jsonl", MADE_UP | {"where": "stub"})
    try:
        page_of(directory)
    except SystemExit:
        return
    raise AssertionError("it was shown")


def each_promise_is_told_with_its_results(directory):
    made_up(directory, "card-20000101-000000.jsonl")
    page = page_of(directory)
    assert "## MADE UP, driver 0.0, CUDA 0.0, commit none\n\n3 passed, 2 failed, 1 differs, 1 skipped." in page
    assert "| no API gets a byte over the limit, nor do many processes | **1 of 2** | [memory](#1-memory) |" in page
    assert "| a share alone is what was asked for | 1 of 1 | [compute](#1-compute) |" in page
    assert "| a launch under a limit of time costs at most 20 ns | **0 of 1** | [compute](#1-compute) |" in page
    assert "| at 99 % and more nothing is lost | not asked |" in page
    assert all(f'<a id="1-{stage}"></a>' in page for stage in ("memory", "compute", "truth"))


def what_asks_for_a_look_is_shown_and_the_rest_counted(directory):
    made_up(directory, "card-20000101-000000.jsonl")
    page = page_of(directory)
    assert "1 passed, 1 skipped, as on the stub." in page and "routes: dlsym" not in page
    assert "| **differs** | the card: 0 the stub: 1 \\| 2 |" in page
    assert "| edge: cuMemCreate | **failed** | over 0 |" in page
    assert "<title>async 200 us at 30: 30.2" in (Path(directory) / "card-1.svg").read_text(encoding="utf-8")


def of_a_result_had_twice_the_later_counts(directory):
    made_up(directory, "card-20000101-000000.jsonl")
    later = made_up(directory, "card-20000102-000000.jsonl")
    with redirect_stderr(io.StringIO()):
        later.begin("memory", 1)
        later.judge("edge: cuMemCreate", True, "2, 0, 2, 0", {"over": 2})
    page = page_of(directory)
    assert page.count("## MADE UP") == 1 and "| 2 of 2 | [memory](#1-memory) |" in page


def what_was_not_begun_replaces_nothing(directory):
    made_up(directory, "card-20000101-000000.jsonl")
    later = Results(Path(directory) / "card-20000102-000000.jsonl", MADE_UP, True, 0)
    with redirect_stderr(io.StringIO()):
        later.begin("memory", 1)
        later.attempt("edge: cuMemAlloc", lambda: None)
        later.attempt("edge: cuMemAllocAsync", lambda: None)
    page = page_of(directory)
    assert "| **1 of 3** | [memory](#1-memory) |" in page and page.count("not begun") == 1


def a_run_that_was_cut_short_keeps_what_it_had(directory):
    results = made_up(directory, "card-20000101-000000.jsonl")
    with open(results.path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": "row"})[:-4])
    assert "3 passed" in page_of(directory)


def a_stage_leaves_the_others_their_time(directory):
    results = made_up(directory, "card-20000101-000000.jsonl")
    results.begin("memory", 0.25)
    assert 14 < results.left() <= 15
    results.stage_end = 0
    with redirect_stderr(io.StringIO()):
        assert not results.attempt("late", lambda: None) and results.count("failed") == 3
    results.begin("compute", 1)
    assert results.left() > 59


TESTS = (
    without_results_nothing_is_claimed,
    the_page_that_is_kept_is_that_of_the_kept_results,
    what_the_stub_was_asked_is_not_shown,
    a_file_by_a_card_s_name_that_none_made_is_refused,
    each_promise_is_told_with_its_results,
    what_asks_for_a_look_is_shown_and_the_rest_counted,
    of_a_result_had_twice_the_later_counts,
    what_was_not_begun_replaces_nothing,
    a_run_that_was_cut_short_keeps_what_it_had,
    a_stage_leaves_the_others_their_time,
)


def main():
    """Each test in a directory of its own."""
    failed = 0
    for test in TESTS:
        status = "passed"
        with TemporaryDirectory() as directory:
            try:
                test(directory)
            except (Exception, SystemExit):
                status, failed = "failed", failed + 1
                traceback.print_exc()
        print(f"ci: {status} report {test.__name__.replace('_', ' ')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
