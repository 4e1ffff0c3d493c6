"""Colours of filled cells, from ``jb.plots.ALGORITHMS``. Variants that share a colour there are lighter or darker here."""

from jaxbandit.plots import ALGORITHMS

COLOURS = {
    "Thompson": ALGORITHMS["thompson"].colour,
    "UCB1": ALGORITHMS["ucb1"].colour,
    "Tsallis-INF": ALGORITHMS["tsallis-inf"].colour,
    "Tsallis-INF, RV": "#EBC9DC",
    "Delayed Exp3": ALGORITHMS["delayed-exp3"].colour,
    "ZS20": "#80CFB9",
    "MZS22": ALGORITHMS["bobw"].colour,
    "MZS22, constants (1, 1)": ALGORITHMS["bobw-1-1"].colour,
    "MZS24": "#00395A",
}


def text_on(colour: str) -> str:
    """Black or white, whichever has the higher contrast on ``colour`` (relative luminance as in WCAG 2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white"
