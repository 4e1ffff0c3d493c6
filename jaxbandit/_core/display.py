"""The display of objects: one line at the prompt, a small table in a notebook.

Learners and models show the fields that differ from their defaults. Long arrays are shown by dtype and shape. Results, gradients
and sweeps use the functions here, which need no other library.
"""

import dataclasses
import math
from collections.abc import Sequence
from html import escape
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

LONGEST = 8  # numbers of a list that are shown one by one
NESTED = 60  # characters of an object inside another


def number(value: float) -> str:
    """Four digits, or all digits before the point.

    >>> number(0.123456), number(12345.6), number(1.5e9), number(float("nan"))
    ('0.1235', '12,346', '1.5e+09', '–')
    """
    value = float(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"


def _decimals(half: float) -> int:
    """The number of meaningful decimals of a number with uncertainty ``half``."""
    return min(max(-math.floor(math.log10(half)), 0), 12) if math.isfinite(half) and half > 0 else 3


def interval(mean: float, low: float, high: float) -> str:
    """A mean with its interval, with as many decimals as it is worth.

    >>> interval(689.21, 683.1, 695.3), interval(0.1234, 0.1214, 0.1254), interval(-0.2, -5.0, 5.0)
    ('689 [683, 695]', '0.123 [0.121, 0.125]', '0 [-5, 5]')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return number(mean)
    if low == high:
        return f"{number(mean)} exactly"
    digits = _decimals((high - low) / 2)
    return f"{mean:z,.{digits}f} [{low:z,.{digits}f}, {high:z,.{digits}f}]"


def plus_minus(mean: float, error: float) -> str:
    """A mean with its standard error, with as many decimals as it is worth.

    >>> plus_minus(170.4, 3.2), plus_minus(0.12345, 0.0021)
    ('170 ± 3', '0.123 ± 0.002')
    """
    if not math.isfinite(error) or error == 0:
        return number(mean)
    digits = _decimals(error)
    return f"{mean:z,.{digits}f} ± {error:,.{digits}f}"


def share(part: float, whole: float) -> str:
    """``part`` of ``whole`` as a count and in per cent.

    >>> share(0, 100), share(1234, 100_000)
    ('0', '1,234 (1.2 %)')
    """
    return "0" if part == 0 else f"{part:,.0f} ({100 * part / whole:.2g} %)"


def short(value: Any) -> str:
    """A value as a user would have typed it; dtype and shape of a long array.

    >>> short(24.0), short(np.arange(3) / 4), short(np.zeros((50, 8))), short("iw"), short(True)
    ('24', '[0, 0.25, 0.5]', 'float64[50, 8]', "'iw'", 'True')
    """
    if isinstance(value, Tracer):
        return str(value.aval)
    if isinstance(value, bool | np.bool_):
        return repr(bool(value))
    if isinstance(value, int | np.integer):
        return repr(int(value))
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, np.ndarray | jax.Array):
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return f"key[{', '.join(map(str, value.shape))}]"
        if value.size <= LONGEST and value.dtype.kind in "biuf":
            return _listed(np.asarray(value).tolist())
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, list | tuple) and len(value) <= LONGEST:
        return _listed(value)
    if isinstance(value, list | tuple | dict):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    if len(text) <= NESTED:
        return text
    return f"{type(value).__name__}(…)" if dataclasses.is_dataclass(value) else text[: NESTED - 3] + "..."


def _listed(value: Any) -> str:
    return f"[{', '.join(map(_listed, value))}]" if isinstance(value, list | tuple) else short(value)


def fields_to_show(owner: Any) -> dict[str, Any]:
    """The fields of a dataclass whose values differ from what they would be if they had not been given."""
    values = {field.name: vars(owner)[field.name] for field in dataclasses.fields(owner)}
    return {
        field.name: values[field.name]
        for field in dataclasses.fields(owner)
        if field.repr and not _is_default(owner, field, values)
    }


def _is_default(owner: Any, field: dataclasses.Field, values: dict[str, Any]) -> bool:
    value, default = values[field.name], field.default
    if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING or value is None:
        return value is default
    if default is None:  # filled in by the constructor, such as the bound of a delay model
        try:
            default = vars(type(owner)(**{name: one for name, one in values.items() if name != field.name}))[field.name]
        except Exception:  # a user's constructor may raise anything, and the display of an object must not
            return False
    try:
        # Leaves are rounded to float32 by the simulator: the default would have been too. Whole numbers are not: 0 is not 0.5.
        array = np.asarray(value)
        return (
            array.dtype.kind in "biufU"
            and bool(np.all(array == np.asarray(default, array.dtype if array.dtype.kind == "f" else None)))
            and array.ndim == np.ndim(default)
        )
    except Exception:  # tracers, and other objects that JAX substitutes for numbers
        return value is default


def one_line(self: Any) -> str:
    """``BestOfBothWorlds(max_delay=10)``: a dataclass with the fields that differ from their defaults."""
    return f"{type(self).__name__}({', '.join(f'{name}={short(value)}' for name, value in fields_to_show(self).items())})"


def fields_table(owner: Any) -> str:
    """Every field of a dataclass as an HTML table, for notebooks; those that differ from their defaults in bold."""
    described = fields_to_show(owner)
    rows = [(field.name, short(vars(owner)[field.name])) for field in dataclasses.fields(owner) if field.repr]
    return table(type(owner).__name__, rows, bold=set(described))


def table(title: str, rows: Sequence[tuple[str, str]], below: str = "", bold: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    """A small HTML table of names and values, which are escaped; ``below`` is HTML."""
    cell = 'style="text-align:left;padding:1px 10px 1px 0"'
    lines = "".join(
        f"<tr><td {cell}>{escape(name)}</td><td {cell}>{f'<b>{escape(value)}</b>' if name in bold else escape(value)}</td></tr>"
        for name, value in rows
    )
    return f'<div><b>{escape(title)}</b><table style="margin:2px 0">{lines}</table>{below}</div>'


def sparkline(x: Any, y: Any, low: Any = None, high: Any = None) -> str:
    """A curve and its band as a small inline SVG without axes: from 0 to the largest value."""
    width, height = 240, 48
    x, y = np.asarray(x, float), np.asarray(y, float)
    low, high = (y if edge is None or not np.all(np.isfinite(edge)) else np.asarray(edge, float) for edge in (low, high))
    bottom, top = min(0.0, float(np.min(low))), float(np.max(high))
    across = (x - x[0]) / max(float(x[-1] - x[0]), 1e-12) * (width - 4) + 2

    def points(across: np.ndarray, values: np.ndarray) -> str:
        down = height - 3 - (values - bottom) / max(top - bottom, 1e-12) * (height - 6)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))

    band = points(np.append(across, across[::-1]), np.append(low, high[::-1]))
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f'<polygon points="{band}" fill="#0072B2" fill-opacity="0.25"/>'
        f'<polyline points="{points(across, y)}" fill="none" stroke="#0072B2" stroke-width="1.6"/></svg>'
    )
