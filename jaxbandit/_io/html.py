"""Common parts of HTML pages: style, tables, embedded figures. A page needs no network and no other file.

Every text in a page is escaped by :func:`escape`. The functions here that take texts escape them, as documented.
"""

import io
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["escape", "page", "svg", "table"]

STYLE = """
:root{color-scheme:light}*{box-sizing:border-box}
body{font:16px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1a1a1a;background:#fff;margin:0 auto;padding:1rem;max-width:1240px}
pre{overflow-x:auto}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.8rem 0 .5rem;overflow-wrap:anywhere}p,blockquote{max-width:46rem}
blockquote{border-left:4px solid #ccc;margin-left:0;padding-left:1em}img,svg{max-width:100%;height:auto}
code{background:#f4f4f4;padding:.1em .3em}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .55rem;text-align:left;vertical-align:top;border-bottom:1px solid #e3e3e3}
thead th{color:#555;font-weight:600}tbody th{font-weight:500}
.holds{color:#00664a}.not{color:#8a6d00}.fails{color:#b00020;font-weight:bold}
"""


def page(title: str, body: Sequence[str], style: str = "") -> str:
    """A whole page; ``title`` is escaped, the parts of ``body`` are HTML, ``style`` follows the common style."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts, which are escaped."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def svg(figure: "Figure", name: str, css_class: str = "") -> str:
    """A figure as an ``<svg>`` element whose texts stay texts; ``name`` keeps its ids apart from those of other figures."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]  # without the head of an XML file
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace("<svg ", f'<svg role="img" class="{escape(css_class)}" ', 1)
