"""Makes bench/CARD.md and the pictures beside the results from the lines that runs on a card left.

    python3 report.py DIRECTORY [PAGE]

Only files `card-*.jsonl` whose first line says that a card ran them; what the stub was asked is never shown. Of each
card, driver and commit all runs make one table: of a result that was had twice, the later one counts, unless it was not
begun. First comes what is promised, each promise with the results that bear it out or do not; where there are none, the page says so.
"""

import json
import sys
from pathlib import Path

from results import NOT_BEGUN, STATUSES, shortened, show

PAGE = Path(__file__).resolve().parent.parent / "CARD.md"
INTRO = "# On a card\n\nMade by `ci/gpu report` from the lines of `ci/gpu run`; README.md says how to read them.\n\n"
NOTHING = "**No card has run this yet**: there are no results, and none are claimed.\n"
WIDTH, HEIGHT, LEFT, TOP = 480, 320, 48, 24
MOST_SAID = 600  # characters of a figure or a reason
# What the README promises or the design aims at, the stage that tries it, and how the results begin or end.
PROMISES = (
    ("every way to look a function up ends at the shim", "truth", ("routes: ",), ""),
    ("a program sees the same with the shim and without", "truth", ("conformance: ",), "without the shim"),
    ("the limit is exact in every way to get memory", "truth", ("limits: ",), ""),
    ("what a process held is given back however it ends", "truth", ("lifecycle: ",), ""),
    ("no API gets a byte over the limit, nor do many processes", "memory", ("edge: ", "refused: ", "processes: "), ""),
    ("the book agrees with the card", "memory", ("context", "agreement: ", "imports"), ""),
    ("the first calls take at most 1 ms more", "startup", ("first calls: ",), ""),
    ("a launch costs nothing without a limit of time", "compute", ("launch no limit",), ""),
    ("a launch under a limit of time costs at most 20 ns", "compute", ("launch under",), ""),
    ("a share alone is what was asked for", "compute", ("",), (" at 10", " at 30", " at 50")),
    ("at 99 % and more nothing is lost", "compute", ("",), (" at 99", " at 100", " at no limit")),
    ("shares of several are what they asked for", "sharing", tuple("0123456789"), (*"0123456789", " us")),
    ("programs of other people compute the same, in their slice", "frameworks", ("",), ""),
    ("models get the share that was asked for", "models", ("",), ""),
)


def runs(directory):
    """The machines that were asked, with their rows in the order of the stages."""
    found = {}
    for path in sorted(Path(directory).glob("card-*.jsonl")):
        head, *rows = whole_lines(path)
        if head.get("where") != "card":
            raise SystemExit(f"{path}: its first line does not say that a card ran it")
        machine = tuple(head.get(name, "unknown") for name in ("gpu", "driver", "cuda", "commit"))
        known = found.setdefault(machine, {})
        for row in rows:
            key = (row["stage"], row["what"])
            if key not in known or not row.get("reason", "").startswith(NOT_BEGUN):
                known[key] = row
    return found


def whole_lines(path):
    """A run that was cut short may leave half a line at the end."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def promises(number, rows):
    """A line per promise: how many of its results hold, and where they stand."""
    lines = ["| what is promised | holds | where |", "|---|---|---|"]
    for promise, stage, beginnings, endings in PROMISES:
        asked = [row["status"] for row in rows if row["stage"] == stage and row["what"].startswith(beginnings)
                 and row["what"].endswith(endings) and row["status"] in ("passed", "failed")]
        held = asked.count("passed")
        said = f"{held} of {len(asked)}" if asked else "not asked"
        said = said if held == len(asked) else f"**{said}**"
        lines.append(f"| {promise} | {said} | {f'[{stage}](#{number}-{stage})' if rows else stage} |")
    return "\n".join(lines) + "\n"


def tables(number, rows):
    """A table per stage. Of the tests that a card passed as the stub does, only the number is told."""
    text = ""
    for stage in dict.fromkeys(row["stage"] for row in rows):
        of_it = [row for row in rows if row["stage"] == stage]
        shown = [row for row in of_it if stage != "truth" or row["status"] not in ("passed", "skipped")]
        text += f'<a id="{number}-{stage}"></a>\n### {stage}\n\n'
        if len(shown) < len(of_it):
            text += f"{counted(row for row in of_it if row not in shown)}, as on the stub.\n\n"
        if shown:
            text += table(shown) + "\n"
    return text


def counted(rows):
    """How many there are of each status."""
    statuses = [row["status"] for row in rows]
    return ", ".join(f"{statuses.count(status)} {status}" for status in STATUSES if status in statuses)


def table(rows):
    """One line per result."""
    lines = ["| what | result | figures | bound |", "|---|---|---|---|"]
    for row in rows:
        figures = {name: value for name, value in row.get("figures", {}).items() if not isinstance(value, (dict, list))}
        said = row.get("reason") or ", ".join(f"{name} {show(value)}" for name, value in figures.items())
        status = f"**{row['status']}**" if row["status"] in ("failed", "differs") else row["status"]
        cells = (row["what"], status, shortened(said, MOST_SAID), row.get("bound", ""))
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def picture(rows):
    """What was asked for against what was had, a point per result of the stages compute and models; "" if none."""
    points = [
        (row["figures"]["goal"], row["figures"]["share"], row["what"])
        for row in rows
        if row["stage"] in ("compute", "models") and "share" in row.get("figures", {})
    ]
    if not points:
        return ""

    def x(value):
        return LEFT + value / 100 * (WIDTH - LEFT - 24)

    def y(value):
        return HEIGHT - 40 - min(value, 110) / 110 * (HEIGHT - 40 - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"',
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(100)}" y2="{y(100)}" stroke="#999"/>',
        f'<text x="{LEFT}" y="16">share of the card in percent: had (up) against asked for (right)</text>',
    ]
    for tick in (0, 10, 30, 50, 100):
        parts.append(f'<text x="{x(tick):.0f}" y="{HEIGHT - 20}" text-anchor="middle">{tick}</text>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.0f}" text-anchor="end">{tick}</text>')
    for goal, share, what in points:
        title = what.replace("&", "&amp;").replace("<", "&lt;")
        parts.append(
            f'<circle cx="{x(goal):.1f}" cy="{y(share):.1f}" r="3" fill="#247" fill-opacity="0.6"><title>{title}: '
            f"{share:.1f}</title></circle>"
        )
    return "\n".join([*parts, "</svg>\n"])


def main(directory, page=PAGE):
    """Writes the page, and a picture per machine."""
    text, found = INTRO, runs(directory)
    for number, (machine, rows) in enumerate(found.items(), 1):
        gpu, driver, cuda, commit = machine
        rows = list(rows.values())
        text += f"## {gpu}, driver {driver}, CUDA {cuda}, commit {commit}\n\n{counted(rows)}.\n\n"
        text += promises(number, rows) + "\n"
        if drawn := picture(rows):
            name = f"card-{number}.svg"
            (Path(directory) / name).write_text(drawn, encoding="utf-8")
            text += f"![shares](results/{name})\n\n"
        text += tables(number, rows)
    if not found:
        text += NOTHING + "\n" + promises(0, [])
    Path(page).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    print(f"written: {page}")


if __name__ == "__main__":
    main(*sys.argv[1:])
