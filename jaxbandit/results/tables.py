"""Tables of texts: plain, Markdown, LaTeX, HTML."""

from collections.abc import Sequence
from html import escape

# Characters that LaTeX reads as commands, and those that its default fonts lack.
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": "$<$", ">": "$>$",
    "−": "$-$", "×": r"$\times$", "†": r"$\dagger$", "–": "--", "…": r"\ldots{}", "±": r"$\pm$",
}  # fmt: skip


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned by spaces.

    >>> print(text_table(["name", "n"], [["a", "10"], ["long name", "2"]]))
    name       n
    a          10
    long name  2
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table.

    >>> print(markdown_table(["a|b"], [["1"]]))
    | a\\|b |
    |---|
    | 1 |
    """

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    return "\n".join([line(head), f"|{'---|' * len(head)}", *map(line, rows)])


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A ``tabular`` with the rules of booktabs; ``note`` is a comment above it.

    >>> print(latex_table(["a_b"], [["5%"]]))
    \\begin{tabular}{l}
    \\toprule
    a\\_b \\\\
    \\midrule
    5\\% \\\\
    \\bottomrule
    \\end{tabular}
    """

    def line(cells: Sequence[str]) -> str:
        # A row that begins with a bracket would be an argument of the line break before it.
        texts = ["".join(_LATEX.get(character, character) for character in cell) for cell in cells]
        return f"{' & '.join(f'{{}}{text}' if text.startswith('[') else text for text in texts)} \\\\"

    body = ["\\toprule", line(head), "\\midrule", *map(line, rows), "\\bottomrule"]
    return "\n".join([*([f"% {note}"] if note else []), f"\\begin{{tabular}}{{{'l' * len(head)}}}", *body, "\\end{tabular}"])


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A table for notebooks."""

    def line(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag} style=text-align:left>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<div><table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table><small>{escape(note)}</small></div>"
