"""One name, colour, marker and dash pattern per algorithm, for figures, reports and the playground."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe & Ito
STYLES = ("-", "--", "-.", ":")
BLUE, VERMILION, GREEN, PINK, ORANGE, SKY = COLOURS[:6]
GREY = "#8A8A8A"  # of the uniform baseline, readable on white and on black


Dash = tuple[float, ...]
SOLID: Dash = ()
DASHED, DASHDOT, DOTTED, LONG, FINE = (4, 2), (5, 2, 1, 2), (2, 2), (7, 2), (1, 1)
TWO_DOTS, LONG_SHORT, WIDE = (4, 1, 1, 1, 1, 1), (8, 2, 3, 2), (3, 4)
MARKERS = "os^DvPX<>"
_LINESTYLES: dict[Dash, str] = {SOLID: "-", DASHED: "--", DASHDOT: "-.", DOTTED: ":"}  # matplotlib has names for these
_PATTERNS = {line: dash for dash, line in _LINESTYLES.items()}


class Style(NamedTuple):
    """How one algorithm is drawn.

    >>> import jaxbandit as jb
    >>> jb.plots.ALGORITHMS["tsallis-inf"].linestyle, jb.plots.ALGORITHMS["ucb1"].linestyle
    (':', (0, (7, 2)))
    """

    name: str
    colour: str
    marker: str
    dash: Dash  # lengths of strokes and gaps in multiples of the line width; () is a solid line

    @property
    def linestyle(self) -> Any:
        """The dash pattern in matplotlib's form."""
        return _LINESTYLES.get(self.dash, (0, self.dash))


# Keys are those of `jb.REGISTRY`, except for "bobw-1-1": MZS22 with both constants lowered to 1. Families share a colour.
ALGORITHMS: dict[str, Style] = {
    "bobw": Style("MZS22 (10, 24)", BLUE, "o", SOLID),
    "robust-bobw": Style("MZS24", BLUE, "s", DASHED),
    "asymmetric-bobw": Style("Asymmetric MZS22", BLUE, "^", DASHDOT),
    "delayed-sapo": Style("Delayed SAPO", BLUE, "D", DOTTED),
    "arm-dependent": Style("Arm-dependent FTRL", BLUE, "v", LONG),
    "tapered-ftrl": Style("Tapered FTRL", BLUE, "P", FINE),
    "bobw-1-1": Style("MZS22 (1, 1)", SKY, "s", DASHED),
    "bold": Style("BOLD", SKY, "o", SOLID),
    "qpm-d": Style("QPM-D", SKY, "^", DASHDOT),
    "colo": Style("CoLo", SKY, "D", DOTTED),
    "limited-tracking": Style("Limited tracking", SKY, "v", LONG),
    "full-information": Style("Full information", SKY, "P", FINE),
    "delayed-hedge": Style("Delayed Hedge", SKY, "X", TWO_DOTS),
    "doubling-skipper": Style("Doubling Skipper", SKY, "<", LONG_SHORT),
    "zimmert-seldin": Style("ZS20", GREEN, "^", DASHDOT),
    "delayed-exp3": Style("Delayed Exp3", GREEN, "v", SOLID),
    "dew": Style("DEW", GREEN, "o", DASHED),
    "skipper": Style("Skipper", GREEN, "s", DOTTED),
    "fixed-delay-exp3": Style("Fixed-delay Exp3", GREEN, "D", LONG),
    "exp3": Style("Exp3", GREEN, "P", FINE),
    "exp3++": Style("Exp3++", GREEN, "X", TWO_DOTS),
    "state-exp3": Style("State Exp3", GREEN, "<", LONG_SHORT),
    "estimated-state-exp3": Style("Estimated-state Exp3", GREEN, ">", WIDE),
    "tsallis-inf": Style("Tsallis-INF", PINK, "D", DOTTED),
    "banker": Style("Banker Tsallis-INF", PINK, "o", SOLID),
    "successive-elimination": Style("Successive elimination", PINK, "s", DASHED),
    "phased-elimination": Style("Phased elimination", PINK, "^", DASHDOT),
    "opse": Style("OPSE", PINK, "v", LONG),
    "ucb1": Style("Delayed UCB1", ORANGE, "P", LONG),
    "kl-ucb": Style("KL-UCB", ORANGE, "o", SOLID),
    "delayed-ucb": Style("DelayedUCB", ORANGE, "s", DASHED),
    "delayed-kl-ucb": Style("DelayedKLUCB", ORANGE, "^", DASHDOT),
    "censored-kl-ucb": Style("Censored KL-UCB", ORANGE, "D", DOTTED),
    "odaaf": Style("ODAAF", ORANGE, "v", FINE),
    "sliding-window-ucb": Style("Sliding-window UCB", ORANGE, "X", TWO_DOTS),
    "discounted-ucb": Style("Discounted UCB", ORANGE, "<", LONG_SHORT),
    "thompson": Style("Thompson sampling", VERMILION, "X", SOLID),
    "censored-thompson": Style("Censored Thompson sampling", VERMILION, "s", DASHED),
    "sliding-window-thompson": Style("Sliding-window Thompson sampling", VERMILION, "^", DASHDOT),
    "discounted-thompson": Style("Discounted Thompson sampling", VERMILION, "D", DOTTED),
    "progressive-thompson": Style("Progressive Thompson sampling", VERMILION, "v", LONG),
    "uniform": Style("Uniform", GREY, "o", FINE),
}


def look(index: int) -> tuple[str, str]:
    """Colour and line style of the curve with this index; no two of the first 28 agree in both.

    >>> import jaxbandit as jb
    >>> jb.plots.look(0), jb.plots.look(1)
    (('#0072B2', '-'), ('#D55E00', '--'))
    """
    return COLOURS[index % len(COLOURS)], STYLES[index % len(STYLES)]


def styles_for(labels: Iterable[str]) -> list[Style]:
    """The style of each curve of a figure: that of the algorithm if the label is its name, else one that no other label has.

    A label matches by its name in :data:`ALGORITHMS` or in ``jb.REGISTRY``, in either case.

    >>> import jaxbandit as jb
    >>> [style.colour for style in jb.plots.styles_for(["Tsallis-INF", "ucb1", "my own"])]
    ['#CC79A7', '#E69F00', '#0072B2']
    """
    labels = list(labels)
    found = [_KNOWN.get(_plain(label)) for label in labels]
    taken = {style.colour for style in found if style}
    others = iter([index for index in range(28) if look(index)[0] not in taken] or range(28))
    styles = []
    for place, (label, style) in enumerate(zip(labels, found, strict=True)):
        colour, line = look(next(others, place)) if style is None else (style.colour, "-")
        styles.append(style or Style(label, colour, MARKERS[place % len(MARKERS)], _PATTERNS[line]))
    return styles


def _plain(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", str(label)).strip().lower()


_KNOWN = {_plain(text): style for key, style in ALGORITHMS.items() for text in (key, style.name)}
_KNOWN |= {"mzs22": ALGORITHMS["bobw"], "zs20": ALGORITHMS["zimmert-seldin"], "zs21": ALGORITHMS["tsallis-inf"]}
_KNOWN |= {f"uniform {word}": ALGORITHMS["uniform"] for word in ("allocation", "baseline")}
