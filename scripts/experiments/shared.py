"""Shared by the experiments: shares with their intervals, fingerprints, and tables that go into a page."""

import argparse
import datetime
import hashlib
import math
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ROOT / "docs" / "experiments"
Z = 1.96
# Quantiles of Student's t at 97.5 %, by degrees of freedom; between two of them the larger holds.
T = [(1, 12.71), (2, 4.30), (3, 3.18), (4, 2.78), (5, 2.57), (10, 2.23), (15, 2.13), (20, 2.09), (30, 2.04), (60, 2.00)]


def options(description, *arguments):
    """The command line: the program, what else is named, and where the table goes."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0], allow_abbrev=False)
    parser.add_argument("proctor", type=lambda path: Path(path).resolve())
    for name, settings in arguments:
        parser.add_argument(name, **settings)
    parser.add_argument("--write", metavar="PART", help="write the table into this part of the page, instead of printing it")
    return parser.parse_args()


def ran(command, accepted=(0,), **settings):
    """The standard output of a command that ended with one of these codes."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **settings)
    if done.returncode not in accepted:
        raise SystemExit(f"`{command[1]}` ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def wilson(share, n):
    """The 95 % interval of Wilson (1927) for a share of `n` independent items."""
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return max(0.0, round(middle - half, 9)), min(1.0, round(middle + half, 9))


def effective(groups):
    """The number of independent items that `(hits, items)` of groups, such as sessions, amount to (Korn and Graubard, 1998).

    Where all items or none are hits, nothing shows how alike the items of a group are: each group counts once.
    """
    hits, items = map(sum, zip(*groups))
    share, count = hits / items, len(groups)
    if items == count or hits in (0, items):
        return count
    spread = sum((hit - share * item) ** 2 for hit, item in groups) * count / (count - 1) / items**2
    few = (Z / [value for degrees, value in T if degrees < count][-1]) ** 2
    return few * min(items, share * (1 - share) / spread) if spread else few * items


def share(groups):
    """The share of hits with its interval, in percent, from `(hits, items)` of each group; of one group without."""
    groups = [(hit, item) for hit, item in groups if item]
    if not groups:
        return "–"
    hits, items = map(sum, zip(*groups))
    if len(groups) == 1:
        return percent(hits / items)
    low, high = wilson(hits / items, effective(groups))
    return f"{percent(hits / items)} [{percent(low)}, {percent(high)}]"


def percent(value):
    return f"{100 * value:.1f}" if 0 < value < 0.0995 else f"{100 * value:.0f}"


def files(paths):
    """All files below these files and folders."""
    for path in map(Path, paths):
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (found for found in below if found.is_file() and "__pycache__" not in found.parts)


def fingerprint(hashes):
    """One hash of many, in whatever order they come."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()[:16]


def hashes(paths):
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in files(paths)]


def table(head, rows):
    """A table in Markdown; all columns but the first are numbers."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def finish(name, part, proctor, inputs, text):
    """Prints the text, or puts it into the page between the marks of the part, with the day and what it was made from."""
    version = ran([proctor, "--version"]).strip()
    made = f"Written by `scripts/experiments/{name}` on {datetime.date.today()}: {version}, {inputs}."
    text = f"{text.strip()}\n\n{made}"
    if part is None:
        print(text)
        return
    page = PAGES / f"{name}.md"
    begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page.name} has no part `{part}`")
    page.write_text(f"{before}{begin}{text}\n{end}{after}")
