"""Curves over the rounds as SVG, written directly.

A report has two charts for each game and there may be hundreds of games: matplotlib takes some tenths of a second for one, this
about a millisecond.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from jaxbandit._io.html import escape

WIDTH, HEIGHT = 560, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 24, 8, 46  # margins for the numbers along the axes
MOST_TICKS = 6


@dataclasses.dataclass(frozen=True)
class Line:
    """A curve; its band where ``low`` and ``high`` are given."""

    x: np.ndarray
    y: np.ndarray
    colour: str
    dashes: str = ""  # lengths of strokes and gaps, as in SVG; none is a whole line
    width: float = 2.0
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def chart(lines: Sequence[Line], limits: tuple[float, float], *, log: bool, title: str, css_class: str = "") -> str:
    """An ``<svg>`` of regret over rounds with these limits of the regret; what lies outside is cut off. Texts are escaped."""
    rounds = np.concatenate([line.x for line in lines])
    across = _Axis((float(rounds.min()) if log else 0.0, float(rounds.max())), LEFT, WIDTH - RIGHT, log)
    down = _Axis(limits, HEIGHT - BOTTOM, TOP, log)
    parts = [f"<title>{escape(title)}</title>"]
    for tick in across.ticks():
        at = f"{across.place(tick):.1f}"
        parts.append(f'<path class="grid" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_short(tick)}</text>')
    for tick in down.ticks():
        at = f"{down.place(tick):.1f}"
        parts.append(f'<path class="grid" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{at}" dy=".35em" text-anchor="end">{_short(tick)}</text>')
    parts.append(f'<path class="axes" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    middle, half = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">round</text>')
    parts.append(f'<text transform="translate(13 {half})rotate(-90)" text-anchor="middle">mean pseudo-regret</text>')
    inner = f'x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"'
    view = f'viewBox="{LEFT} {TOP} {WIDTH - LEFT - RIGHT} {HEIGHT - TOP - BOTTOM}"'
    drawn = "".join(_band(line, across, down) for line in lines) + "".join(_curve(line, across, down) for line in lines)
    parts.append(f"<svg {inner} {view}>{drawn}</svg>")  # an svg inside another cuts off what leaves it
    return f'<svg role="img" class="chart {escape(css_class)}" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'


def _curve(line: Line, across: "_Axis", down: "_Axis") -> str:
    dashes = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
    look = f'fill="none" stroke="{line.colour}" stroke-width="{line.width}"{dashes}'
    return f'<polyline points="{_points(line.x, line.y, across, down)}" {look}/>'


def _band(line: Line, across: "_Axis", down: "_Axis") -> str:
    if line.low is None or line.high is None or not (np.isfinite(line.low).all() and np.isfinite(line.high).all()):
        return ""
    points = _points(np.append(line.x, line.x[::-1]), np.append(line.low, line.high[::-1]), across, down)
    return f'<polygon points="{points}" fill="{line.colour}" fill-opacity=".18"/>'


def _points(x: np.ndarray, y: np.ndarray, across: "_Axis", down: "_Axis") -> str:
    finite = np.isfinite(y)
    return " ".join(f"{one:.1f},{two:.1f}" for one, two in zip(across.places(x[finite]), down.places(y[finite]), strict=True))


class _Axis:
    """The positions of numbers between the two ends of a chart."""

    def __init__(self, limits: tuple[float, float], begin: float, end: float, log: bool):
        self.low, self.high = limits
        self.begin, self.end, self.log = begin, end, log

    def places(self, values: np.ndarray) -> np.ndarray:
        if self.log:
            # Values without a logarithm lie below the chart.
            shares = np.log(np.maximum(values, 1e-3 * self.low) / self.low) / max(math.log(self.high / self.low), 1e-9)
        else:
            shares = (values - self.low) / max(self.high - self.low, 1e-300)
        return self.begin + np.clip(shares, -3.0, 4.0) * (self.end - self.begin)

    def place(self, value: float) -> float:
        return float(self.places(np.array([value]))[0])

    def ticks(self) -> list[float]:
        """Round numbers; on a logarithmic axis powers of ten, or also their doubles and fives where these are few."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            apart = -(-(last - first) // MOST_TICKS)
            for digits, step in (((1.0,), apart), ((1.0, 2.0, 5.0), 1)):
                powers = (10.0**power for power in range(first, last + 1, step))
                found = [digit * power for power in powers for digit in digits if self.low <= digit * power <= self.high]
                if len(found) > 2:
                    return found
        span = self.high - self.low
        rough = 10.0 ** math.floor(math.log10(span / MOST_TICKS))
        step = next(rough * digit for digit in (1.0, 2.0, 5.0, 10.0) if span / (rough * digit) <= MOST_TICKS)
        return [step * count for count in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]


def _short(value: float) -> str:
    """A tick in a few characters.

    >>> [_short(value) for value in (0.0, 0.25, 1500.0, 20_000.0, 2.5e6)]
    ['0', '0.25', '1,500', '20,000', '2.5M']
    """
    return f"{value / 1e6:g}M" if abs(value) >= 1e6 else f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:g}"
