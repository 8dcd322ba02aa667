"""What a run found: one JSON line per result, written when it is known, and a table at the end.

A result passes only by a judgement that was made: `judge` takes the figures and the bound together. A bound on time
means nothing without a card, so there such a result is `rehearsed`, which is neither passed nor failed. Where the stub
does not answer as the card, the stub is wrong and the shim is not: such a result `differs`. What was not done is a
failure unless it was left out by name (`ALLOWED`), or by a test that says why a card cannot be asked.
"""

import json
import sys
import time

# What may be left out on a card, with the reason.
ALLOWED = {
    "ncu": "a profiler takes the launches over, and needs counters that most machines do not allow",
    "compute-sanitizer": "it puts itself between the program and the driver, as the shim does",
}
NOT_BEGUN = "not begun"
STATUSES = ("passed", "failed", "differs", "skipped", "rehearsed")


class Results:
    """The lines of one run. `timed` says whether times mean something: a card is there."""

    def __init__(self, path, head, timed, budget_s):
        self.path, self.timed, self.rows, self.stage = path, timed, [], ""
        self.end = self.stage_end = time.monotonic() + budget_s
        self._write({"kind": "run", **head})

    def begin(self, stage, part):
        """The next stage, and which part of the time that is left it may take: none eats what another needs."""
        now = time.monotonic()
        self.stage, self.stage_end = stage, now + max(0, self.end - now) * part

    def left(self):
        """Seconds that are left to the stage."""
        return self.stage_end - time.monotonic()

    def judge(self, what, holds, bound, figures=None, timed=False):
        """The figures of one thing, and whether they keep within the bound, which is written down in words."""
        status = "rehearsed" if timed and not self.timed else "passed" if holds else "failed"
        self._add(what, status, bound=bound, figures=figures or {})

    def fail(self, what, reason):
        """Something that could not be done, or not to its end."""
        self._add(what, "failed", reason=str(reason))

    def differ(self, what, reason):
        """The stub is not as the card."""
        self._add(what, "differs", reason=reason)

    def skip(self, what, reason, allowed=False):
        """Something that has no means here: a failure on a card, unless it is allowed."""
        allowed = allowed or what in ALLOWED or not self.timed
        self._add(what, "skipped" if allowed else "failed", reason=reason)

    def attempt(self, what, task):
        """Runs a task that judges by itself; whatever it raises becomes its failure. False if no time is left."""
        if self.left() < 2:
            self.fail(what, f"{NOT_BEGUN}: the stage's time is used up")
            return False
        try:
            task()
        except Exception as error:  # one broken result must not take the others with it
            self.fail(what, f"{type(error).__name__}: {error}")
        return True

    def _add(self, what, status, **more):
        row = {"kind": "row", "stage": self.stage, "what": what, "status": status, **more}
        self.rows.append(row)
        self._write(row)
        if status != "passed" or self.stage != "truth":
            print(f"{status:9} {self.stage}: {what}{': ' + row['reason'] if 'reason' in row else ''}", file=sys.stderr)

    def _write(self, value):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")

    def table(self):
        """The rows for people, those that ask for nothing summed up."""
        lines = []
        for row in self.rows:
            if row["stage"] == "truth" and row["status"] == "passed":
                continue
            said = row.get("reason") or f"{brief(row['figures'])}  [{row['bound']}]"
            lines.append(f"{row['status']:9} {row['stage']:10} {row['what']:52} {shortened(said, 300)}")
        return "\n".join(lines)

    def count(self, status):
        """How many rows have the status."""
        return sum(row["status"] == status for row in self.rows)


def brief(figures):
    """Figures on one line."""
    return " ".join(f"{name}={show(value)}" for name, value in figures.items() if not isinstance(value, (list, dict)))


def shortened(text, most):
    """On one line: how it begins, and how it ends, which is where a program says what was wrong."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most // 3]} ... {text[-2 * most // 3 :]}"


def show(value):
    """A number as short as it can be without losing what matters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
