"""One name and one colour per algorithm in the figures of the documentation (Okabe & Ito 2008)."""

COLOURS = {
    "Thompson": "#0072B2",
    "UCB1": "#56B4E9",
    "Tsallis-INF": "#009E73",
    "Tsallis-INF, RV": "#F0E442",
    "Delayed Exp3": "#D55E00",
    "ZS20": "#E69F00",
    "MZS24": "#CC79A7",
    "MZS22": "#000000",
    "MZS22, constants (1, 1)": "#8A8A8A",
}


def text_on(colour: str) -> str:
    """Black or white, whichever has the higher contrast on ``colour`` (relative luminance as in WCAG 2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white"
