"""The columns of a log, from a CSV or Parquet file or a frame, as lists of texts, numbers or dates."""

import csv
import gzip
import io
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit._core.fields import show


def read_columns(name: str, source: Any, wanted: dict[str, str]) -> tuple[dict[str, list], np.ndarray]:
    """The wanted columns by argument, as lists of texts, numbers or dates; and which rows ``[n]`` repeat an earlier one.

    A row repeats another if all columns of the source are equal, not only the wanted ones.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            raise IsADirectoryError(f"{name}: this is a folder; give the name of a file")
        if not path.exists():
            raise FileNotFoundError(f"{name}: there is no such file")
        header, rows = _frame(name, _parquet(name, path)) if ".parquet" in path.suffixes else _csv(name, path)
    else:
        header, rows = _frame(name, source)
    for argument, column in wanted.items():
        if column not in header:
            found = ", ".join(map(repr, header)) or "none"
            raise ValueError(f"{name}: there is no column {column!r}; name yours with {argument}= (the log has {found})")
        if header.count(column) > 1:
            raise ValueError(f"{name}: there are {header.count(column)} columns {column!r}; rename all but one")
    picked = {argument: rows(header.index(column)) for argument, column in wanted.items()}
    if not picked["action"]:
        raise ValueError(f"{name}: the log has no rows; it needs one action or more")
    return picked, _repeated([rows(index) for index in range(len(header))])


def _repeated(columns: list[list]) -> np.ndarray:
    seen: set[tuple[str, ...]] = set()
    found = []
    for row in zip(*columns, strict=True):
        content = tuple(map(str, row))
        found.append(content in seen)
        seen.add(content)
    return np.array(found, bool)


def _csv(name: str, path: Path) -> tuple[list[str], Any]:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{name}: the file is not whole, its gzip data ends early or is damaged") from error
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{name}: the file is UTF-16; save it as UTF-8")
    if content[:4] == b"PAR1":
        raise ValueError(f"{name}: this is a Parquet file; give it a name that ends in .parquet")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: byte {error.start} is not UTF-8 (is the file Latin-1?); save it as UTF-8") from error
    try:
        header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        what = "the file is empty; its first line names the columns" if not text.strip() else f"the file is not CSV ({error})"
        raise ValueError(f"{name}: {what}") from error
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise ValueError(f"{name}: the columns are not separated by commas ({show(header[0])}); save the file with commas")
    for index, line in enumerate(lines):
        if line and len(line) != len(header):
            raise ValueError(f"{name}: row {index + 1} has {len(line)} fields, but there are {len(header)} columns")
    lines = [line for line in lines if line]
    return [column.strip() for column in header], lambda index: [line[index].strip() for line in lines]


def _parquet(name: str, path: Path) -> Any:
    try:
        import pandas

        return pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(f"{name}: Parquet needs pandas and pyarrow: pip install pandas pyarrow") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: this is not a Parquet file") from error


def _frame(name: str, frame: Any) -> tuple[list[str], Any]:
    """Of a pandas or polars frame, which agree in this much."""
    try:
        header = [str(column) for column in frame.columns]
        frame[frame.columns[0]].to_numpy()
    except (AttributeError, TypeError, IndexError, KeyError) as error:
        raise TypeError(f"{name}: give the name of a CSV or Parquet file, or a pandas or polars frame with columns") from error

    def column(index: int) -> list[Any]:
        values = frame[frame.columns[index]].to_numpy()
        if values.dtype.kind == "M":  # dates without a zone; NaT is the smallest of all
            return [None if np.isnat(one) else str(one) for one in values.astype("datetime64[ns]")]
        return [one.isoformat() if isinstance(one, datetime) else one for one in values.tolist()]

    return header, column
