"""Parts of the API pages that are made while the site is built: the table of learners, and the options of the commands."""

import inspect
import re
from pathlib import Path

from jaxbandit.cli.app import GROUPS

DOCS = Path(__file__).parent


def learners() -> str:
    """The tables of docs/algorithms.md, with links from the class names to their documentation."""
    text = (DOCS / "algorithms.md").read_text()
    text = text[text.index("## General-purpose algorithms") : text.index("The field `estimator`")]
    text = re.sub(r"^\| `(\w+)`", r"| {py:class}`~jaxbandit.\1`", text, flags=re.MULTILINE)
    return (
        text.replace("](notes/", "](../notes/")
        .replace("](frontier.md)", "](../frontier.md)")
        .replace("](shapes.md)", "](../shapes.md)")
    )


def commands() -> str:
    """Each command with its summary, its example and a table of its options, from the docstrings that ``--help`` prints."""
    parts = []
    for group, members in GROUPS.items():
        parts.append(f"## {group}\n")
        for command in members:
            text = inspect.getdoc(command) or ""
            about, _, options = text.partition("Parameters\n----------\n")
            summary, example = (part.strip() for part in about.split("Example:"))
            parts.append(f"### `jaxbandit {command.__name__}`\n\n{summary}\n\n```\n{example}\n```\n")
            parts.append(_options(command, options))
    return "\n".join(parts)


def _options(command, text: str) -> str:
    rows = ["| option | default | meaning |", "|---|---|---|"]
    parameters = inspect.signature(command).parameters
    for name, meaning in re.findall(r"^(\w+)\n((?:    .+\n?)+)", text, re.MULTILINE):
        one = parameters[name]
        positional = one.kind is one.POSITIONAL_ONLY or one.kind is one.VAR_POSITIONAL
        shown = name.upper() if positional else f"--{name.replace('_', '-')}"
        required = one.default is one.empty and one.kind is not one.VAR_POSITIONAL
        empty = one.default is None or one.default is False or one.default is one.empty
        default = "required" if required else "" if empty else f"`{one.default}`"
        rows.append(f"| `{shown}` | {default} | {' '.join(meaning.split()).replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"
