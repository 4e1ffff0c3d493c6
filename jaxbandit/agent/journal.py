"""What a durable agent keeps on disk: an SQLite file with every decision, all feedback, and now and then a snapshot.

The state of the learner is not written at each decision: it is played again from the last snapshot when the file is opened. The
tables ``decision`` and ``feedback`` are never shortened: they are the campaign's log, for any program that reads SQLite. Each row has a
checksum, because SQLite itself has none. It is compared when the row is played again.
"""

import contextlib
import json
import math
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jaxbandit.pytrees import show

SCHEMA = """
CREATE TABLE about (content TEXT NOT NULL);
CREATE TABLE decision (id INTEGER PRIMARY KEY, run INTEGER, round INTEGER, arm INTEGER, probability REAL, at REAL,
  checksum INTEGER);
CREATE TABLE feedback (ticket INTEGER PRIMARY KEY, loss REAL, after INTEGER, at REAL, checksum INTEGER);
CREATE INDEX feedback_after ON feedback (after);
CREATE TABLE snapshot (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), arrays BLOB);
"""  # at: seconds since 1970; loss: NULL if the ticket expired; after: the newest decision when the feedback came


class Decided(NamedTuple):
    id: int
    run: int
    round: int
    arm: int
    probability: float
    at: float

    def checksum(self) -> int:
        return zlib.crc32(struct.pack("<4q2d", *self))


class Fed(NamedTuple):
    ticket: int
    loss: float | None  # None: expired
    after: int
    at: float

    def checksum(self) -> int:
        return zlib.crc32(struct.pack("<qdqd", self.ticket, math.nan if self.loss is None else self.loss, self.after, self.at))


class Journal:
    """The open file; no other process can open it meanwhile."""

    def __init__(self, path: str | os.PathLike, about: dict[str, Any], flush: bool):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"Agent.open({show(path)}): path is the name of a file, such as 'campaign.db'")
        self.name = f"Agent.open({str(path)!r})"
        if not Path(path).absolute().parent.is_dir():
            raise FileNotFoundError(f"{self.name}: there is no folder {str(Path(path).absolute().parent)!r}")
        try:
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.name}: the file cannot be opened ({error})") from error
        try:
            self._prepare(flush)
            self.about = self._begin(about)
        except BaseException as error:
            self._connection.close()
            if not isinstance(error, sqlite3.Error):
                raise
            if "locked" in str(error):
                raise RuntimeError(f"{self.name}: another agent has this file open; one at a time can decide") from error
            raise ValueError(f"{self.name}: this is not a file written by Agent.open ({error})") from error

    def _prepare(self, flush: bool) -> None:
        # The lock is taken with the first read and kept until the file is closed, or the process dies.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if flush else 'NORMAL'}")

    def _begin(self, about: dict[str, Any]) -> dict[str, Any]:
        """What the file says about itself; a new file says what it is told."""
        with self._transaction():
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                for statement in SCHEMA.split(";")[:-1]:
                    self._connection.execute(statement)
                self._connection.execute("INSERT INTO about VALUES (?)", (json.dumps(about),))
                return about
            if not {"about", "decision", "feedback", "snapshot"} <= tables:
                raise ValueError(f"{self.name}: this database is not one written by Agent.open; give a file of its own")
            (content,) = self._connection.execute("SELECT content FROM about").fetchone()
            return json.loads(content)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it is on disk when the block ends, or nothing."""
        self._connection.execute("BEGIN EXCLUSIVE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
                raise OSError(
                    f"{self.name}: no room on the disk, nothing of this call was kept; make room and call again"
                ) from error
            raise

    def add_decisions(
        self, ids: list[int], runs: list[int], rounds: list[int], arms: list[int], probabilities: list[float]
    ) -> None:
        now = [time.time()] * len(ids)
        with self._transaction():
            rows = map(Decided, ids, runs, rounds, arms, probabilities, now)
            self._connection.executemany(
                "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?)", ((*row, row.checksum()) for row in rows)
            )

    def add_feedback(self, ids: list[int], losses: list[float] | list[None], after: int) -> None:
        now = time.time()
        with self._transaction():
            rows = (Fed(ticket, loss, after, now) for ticket, loss in zip(ids, losses, strict=True))
            self._connection.executemany("INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", ((*row, row.checksum()) for row in rows))

    def write_snapshot(self, arrays: bytes) -> None:
        with self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?)", (arrays,))

    def _read(self, question: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(question, values).fetchall()
        except sqlite3.DatabaseError as error:  # also of a table that has other columns
            raise ValueError(f"{self.name}: the file is damaged, or was not written by Agent.open ({error})") from error

    def snapshot(self) -> bytes | None:
        rows = self._read("SELECT arrays FROM snapshot")
        return rows[0][0] if rows else None

    def decisions(self, after: int) -> list[Decided]:
        """Those made after decision ``after``, in order."""
        found = self._read("SELECT id, run, round, arm, probability, at, checksum FROM decision WHERE id > ? ORDER BY id", after)
        return [self._checked(Decided(*row), checksum, "decision") for *row, checksum in found]

    def feedback(self, after: int) -> list[Fed]:
        """What came after decision ``after``, in order."""
        found = self._read("SELECT ticket, loss, after, at, checksum FROM feedback WHERE after >= ? ORDER BY after", after)
        return [self._checked(Fed(*row), checksum, "feedback of ticket") for *row, checksum in found]

    def _checked(self, row: Any, checksum: Any, what: str) -> Any:
        try:
            good = row.checksum() == checksum
        except struct.error:  # not even numbers
            good = False
        if not good:
            raise ValueError(
                f"{self.name}: the file is damaged: {what} {show(row[0])} is not what was written; restore a copy of it"
            )
        return row

    def close(self) -> None:
        self._connection.close()
