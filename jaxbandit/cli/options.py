"""Readers and checks for options that several commands have."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from jaxbandit._io.files import check_writable
from jaxbandit.cli.errors import CommandError


def _whole_number(_: Any, tokens: Sequence[Token]) -> int:
    text = tokens[0].value.strip()
    if not re.fullmatch(r"[+-]?\d+(_\d+)*([eE]\+?\d{1,2})?", text):
        raise ValueError(f"{text!r} is not a whole number, such as 10000, 10_000 or 1e4")
    digits, _, zeros = text.replace("_", "").lower().partition("e")
    return int(digits) * 10 ** int(zeros or 0)


# An option that takes a whole number; 1.5 is an error, where cyclopts by itself would round it.
Whole = Annotated[int, Parameter(converter=_whole_number)]
# A switch that is off unless given: the help shows neither a negative form nor a default.
Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def check_new(files: Iterable[Path], force: bool) -> None:
    """Raise before any computation if an output file exists and --force is not given."""
    there = next((file for file in files if not force and (file.exists() or file.is_symlink())), None)
    if there is not None:
        raise CommandError(f"{there}: this file is already there; choose another --out, or replace it with --force")


def check_folder(out: Path, option: str = "--out") -> None:
    """Raise before any computation if files cannot be written into the folder ``out``, which need not exist."""
    _check_writable(out.absolute(), f"{option} {out}", "a folder")


def output_files(out: Path, *suffixes: str, force: bool) -> list[Path]:
    """OUT.npz and the like, checked before anything is computed: the suffix is added, dots in the name stay."""
    if out.is_dir() or out.name in ("", ".."):
        raise CommandError(f"--out {out}: this is a folder; give the beginning of a file name, such as {out / 'run'}")
    for suffix in suffixes:
        if out.suffix == suffix:
            out = out.with_suffix("")
    files = [out.with_name(out.name + suffix) for suffix in suffixes]
    for file in files:
        if file.is_dir():
            raise CommandError(f"--out {out}: {file} is a folder; choose another name")
    _check_writable(out.absolute().parent, f"--out {out}", "the folder of a file")
    check_new(files, force)
    return files


def _check_writable(folder: Path, given: str, what: str) -> None:
    try:
        check_writable(folder, given, what)
    except ValueError as error:
        raise CommandError(str(error)) from None


def importable() -> None:
    """Let modules in the current folder be imported, here and in processes that are started from here."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
