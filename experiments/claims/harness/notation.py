"""Formulas that are written in letters, ``d_max·K^{1/3}``, as pages and figures show them."""

import re
from collections.abc import Callable

# A letter, or Reg, with an index, and exponents: d_max, K^{1/3}, Σ_{i≠i*}. Names of Python such as max_delay have longer words before the bar.
_INDEX = re.compile(r"(?<![\w`.])(Reg|[^\W\d_])_(\{[^{}]*\}|\([A-Za-z0-9]+\)|[A-Za-z0-9]+\*?)")
_POWER = re.compile(r"\^(\{[^{}]*\}|[-−]?[0-9]+(?:\.[0-9]+)?|[A-Za-z]+)")
_CODE = re.compile("(`[^`]*`)")


def typeset(text: str) -> str:
    """As HTML, which Markdown takes as well; code is left alone.

    >>> typeset("24·d_max·K^{1/3}, not `d_max`; (1/Δ)^0.66")
    '24·d<sub>max</sub>·K<sup>1/3</sup>, not `d_max`; (1/Δ)<sup>0.66</sup>'
    """

    def prose(part: str) -> str:
        part = _INDEX.sub(lambda found: f"{found[1]}<sub>{found[2].strip('{}')}</sub>", part)
        return _POWER.sub(lambda found: f"<sup>{found[1].strip('{}')}</sup>", part)

    return _outside_code(text, prose)


def mathtext(text: str) -> str:
    """As matplotlib writes it.

    >>> mathtext("d_max moves"), mathtext("Δ^−0.99"), mathtext("x_t^2")
    ('$d_{\\\\mathrm{max}}$ moves', 'Δ$^{−0.99}$', '$x_{t}^{2}$')
    """

    def small(found: str) -> str:
        word = found.strip("{}")
        return f"\\mathrm{{{word}}}" if word.isalpha() and len(word) > 1 else word

    def prose(part: str) -> str:
        part = _INDEX.sub(lambda found: f"${found[1]}_{{{small(found[2])}}}$", part)
        part = _POWER.sub(lambda found: f"$^{{{small(found[1])}}}$", part)
        return part.replace("$$", "")  # an exponent after an index: one formula

    return text if "$" in text else _outside_code(text, prose)


def _outside_code(text: str, prose: Callable[[str], str]) -> str:
    return "".join(part if part.startswith("`") else prose(part) for part in _CODE.split(text))
