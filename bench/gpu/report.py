"""Makes bench/CARD.md and the picture beside the results from the lines that runs on a card left.

    python3 report.py DIRECTORY [PAGE]

Only files `card-*.jsonl` whose first line says that a card ran them; what the stub was asked is never shown. Of each
card, driver and commit all runs make one table: of a result that was had twice, the later one counts.
"""

import json
import sys
from pathlib import Path

from results import show

PAGE = Path(__file__).resolve().parent.parent / "CARD.md"
INTRO = "# On a card\n\nMade by `ci/gpu report` from the lines of `ci/gpu run`; README.md says how to read them.\n\n"
NOTHING = "**No card has run this yet**: there are no results, and none are claimed.\n"
WIDTH, HEIGHT, LEFT, TOP = 480, 320, 48, 24


def runs(directory):
    """The machines that were asked, with their rows in the order of the stages."""
    found = {}
    for path in sorted(Path(directory).glob("card-*.jsonl")):
        head, *rows = whole_lines(path)
        if head.get("where") != "card":
            raise SystemExit(f"{path}: its first line does not say that a card ran it")
        machine = tuple(head.get(name, "unknown") for name in ("gpu", "driver", "cuda", "commit"))
        found.setdefault(machine, {}).update({(row["stage"], row["what"]): row for row in rows})
    return found


def whole_lines(path):
    """A run that was cut short may leave half a line at the end."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def table(rows):
    """One line per result."""
    lines = ["| stage | what | result | figures | bound |", "|---|---|---|---|---|"]
    for row in rows:
        figures = {name: value for name, value in row.get("figures", {}).items() if not isinstance(value, (dict, list))}
        said = row.get("reason") or ", ".join(f"{name} {show(value)}" for name, value in figures.items())
        status = f"**{row['status']}**" if row["status"] == "failed" else row["status"]
        cells = (row["stage"], row["what"], status, said, row.get("bound", ""))
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
        counts = ", ".join(f"{sum(row['status'] == s for row in rows)} {s}" for s in ("passed", "failed", "skipped"))
        text += f"## {gpu}, driver {driver}, CUDA {cuda}, commit {commit}\n\n{counts}.\n\n"
        if drawn := picture(rows):
            name = f"card-{number}.svg"
            (Path(directory) / name).write_text(drawn, encoding="utf-8")
            text += f"![shares](results/{name})\n\n"
        text += table(rows) + "\n"
    Path(page).write_text((text if found else text + NOTHING).rstrip("\n") + "\n", encoding="utf-8")
    print(f"written: {page}")


if __name__ == "__main__":
    main(*sys.argv[1:])
