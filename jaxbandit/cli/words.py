"""Learners, loss models and delay models named on the command line, such as ``bobw(max_delay=10)``."""

import contextlib
import dataclasses
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from jaxbandit.sweeps.spec import SpecError, find


def from_words(named: Mapping[str, str | None]) -> dict[str, Any]:
    """The spec that options such as ``--learner "bobw(max_delay=10)"`` stand for. The fields are read as TOML; nothing is evaluated.

    Args:
      named: the text given for each of ``learners``, ``losses`` and ``delays``.
    """
    document, problems = {}, []
    for axis, text in named.items():
        option = f"--{axis.removesuffix('s') if axis == 'learners' else axis}"
        match = re.fullmatch(r"\s*([\w+:.-]+)\s*(?:\((.*)\))?\s*", text or "", re.DOTALL)
        if match is None:
            problems.append(f"{option}: {text!r} is not of the form NAME or NAME(FIELD=VALUE, ...), and no spec is given")
            continue
        try:
            document[axis] = [{**_fields(axis, match[1], match[2] or ""), "name": match[1]}]
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{option}: {text!r}: the fields are not FIELD=VALUE, FIELD=VALUE ({error})")
    if problems:
        raise SpecError("run", problems)
    return document


def _fields(axis: str, name: str, text: str) -> dict[str, Any]:
    """Fields by name (``delay=10``), or by position (``10``) in the order of the class."""
    cls = find(axis, name)
    if text and cls is not None:
        with contextlib.suppress(tomllib.TOMLDecodeError):
            values = tomllib.loads(f"fields = [{text}]")["fields"]
            names = [one.name for one in dataclasses.fields(cls)]
            return dict(zip(names[: len(values)], values, strict=True)) if len(values) <= len(names) else {}
    try:
        return tomllib.loads(f"fields = {{{text}}}")["fields"]
    except tomllib.TOMLDecodeError:
        if cls is None:  # the reader of the spec reports the unknown name, which is the more useful message
            return {}
        raise
