"""Draw docs/architecture.svg: the layers of the import contract (pyproject.toml) and the modules of each part.

python docs/build_architecture.py
"""

import textwrap
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "jaxbandit"
DRAWING = HERE / "architecture.svg"

# The role of each layer, by its first part, and its colour. Lowest layers last, as in the contract.
LAYERS = {
    "__main__": ("command line", "#FBEBDD"),
    "adversary": ("laboratory", "#FBEBDD"),
    "_engine": ("engine", "#E8F3EC"),
    "results": ("results", "#E8F3EC"),
    "theory": ("theory", "#DCEAF5"),
    "_checks": ("checks", "#DCEAF5"),
    "delays": ("model", "#DCEAF5"),
    "_io": ("input, output", "#ECECEC"),
    "_core": ("core", "#ECECEC"),
}
ABOUT = {
    "__main__": "python -m jaxbandit",
    "cli": "one function per command",
    "adversary": "searched worst-case loss tables",
    "advice": "which learner for a log",
    "agent": "live decisions, durable in SQLite",
    "gradients": "derivative of the expected regret; tune",
    "logs": "recorded logs as losses and delays",
    "plots": "figures (matplotlib)",
    "comparisons": "learners side by side, runs until decided",
    "sweeps": "resumable grids of simulations",
    "testing": "checks for users' own classes",
    "_engine": "what is simulated, and how this machine computes it: blocks of runs, feedback queues, devices",
    "results": "Result, confidence intervals, summaries",
    "theory": "regret bounds, quantities of the analysis, games of the lower bounds",
    "_checks": "invalid input, dry run of users' classes, warnings",
    "delays": "delay models",
    "extend": "names for users' own classes",
    "learners": "one file per family",
    "losses": "loss models",
    "measure": "measurements during a run",
    "_io": "atomic file writes, HTML, progress",
    "_provenance": "environment and code of a stored result",
    "_core": "pytree dataclasses, sums over arms, random bits, ring buffer, FTRL projection",
    "_version": "the version number",
}
LABEL, WIDTH, GAP = 130, 1000, 8  # pixels; LABEL is the width of the column of roles
SIZE, LINE = 11, 14  # pixels: font size, distance of lines
CHARACTER = 0.62 * SIZE  # width of a monospace character, with a margin for wider fonts


def layers() -> list[list[str]]:
    """The parts of each layer of the contract, highest first."""
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (one for one in settings["contracts"] if one["type"] == "layers")
    return [[part.strip() for part in layer.split(":")] for layer in contract["layers"]]


def modules(part: str) -> list[str]:
    """The modules of a part, without those that only re-export; empty for a part that is one module."""
    files = sorted((PACKAGE / part).rglob("*.py"))
    return [file.relative_to(PACKAGE / part).with_suffix("").as_posix() for file in files if file.name != "__init__.py"]


def draw() -> str:
    """The text of the drawing."""
    body, top = [], GAP
    for layer in layers():
        role, colour = LAYERS[layer[0]]
        cards, bottom = _cards(layer, top, colour)
        body += [
            _text(
                LABEL - GAP,
                (top + bottom) / 2 + 4,
                role,
                'text-anchor="end" font-weight="bold" font-family="DejaVu Sans, Helvetica, Arial, sans-serif"',
            )
        ]
        body += cards
        top = bottom + GAP
    arrow = f"M14 {GAP} V{top - 22} m-5 -8 l5 8 l5 -8"
    body.append(f'<path d="{arrow}" fill="none" stroke="#666"/>')
    body.append(
        _text(0, 0, "imports point down", f'transform="translate(28 {top / 2}) rotate(-90)" text-anchor="middle" fill="#666"')
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" font-size="{SIZE}"'
    )
    font = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"'
    return "\n".join([f"{head} {font}>", f'<rect width="{WIDTH}" height="{top}" fill="white"/>', *body, "</svg>", ""])


def _cards(layer: list[str], top: float, colour: str) -> tuple[list[str], float]:
    """The boxes of a layer side by side, and where they end. The widths make the tallest box as low as possible."""
    room = WIDTH - LABEL - GAP * len(layer)
    characters = _widths(layer, int(room / CHARACTER) - 3 * len(layer))
    texts = [list(_lines(part, width)) for part, width in zip(layer, characters, strict=True)]
    height = LINE * max(map(len, texts)) + GAP
    drawn, left = [], LABEL
    for lines, width in zip(texts, characters, strict=True):
        across = room * (width + 3) / (sum(characters) + 3 * len(layer))
        drawn.append(
            f'<rect x="{left:.0f}" y="{top}" width="{across:.0f}" height="{height}" rx="4" fill="{colour}" stroke="#888"/>'
        )
        drawn += [_text(left + GAP, top + LINE * (place + 1), line, style) for place, (line, style) in enumerate(lines)]
        left += across + GAP
    return drawn, top + height


def _widths(layer: list[str], total: int) -> list[int]:
    """Characters per line of each part: columns go one by one to the part with the most lines."""
    widths = [max(len(word) for word in (part, *modules(part), *ABOUT[part].split())) for part in layer]
    while sum(widths) < total:
        heights = [len(list(_lines(part, width))) for part, width in zip(layer, widths, strict=True)]
        widths[heights.index(max(heights))] += 1
    return widths


def _lines(part: str, characters: int) -> Iterator[tuple[str, str]]:
    """The lines of a box with their styles: name, purpose, modules."""
    yield part, 'font-weight="bold"'
    for line in textwrap.wrap(ABOUT[part], characters):
        yield line, 'font-style="italic"'
    for line in textwrap.wrap("  ".join(modules(part)), characters, break_on_hyphens=False):
        yield line, 'fill="#444"'


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'


if __name__ == "__main__":
    DRAWING.write_text(draw(), encoding="utf-8")
