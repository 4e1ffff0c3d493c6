"""The file of a durable agent: an SQLite database with every decision, all feedback, and now and then a snapshot.

The state of the learner is not written at each decision: it is replayed from the last snapshot when the file is opened. Tables are never
shortened: they are the campaign's log, for any program that reads SQLite, also while the agent is at work (docs/live.md has the
schema). Each row has a checksum, because SQLite itself has none. It is compared when the row is replayed.
"""

import contextlib
import json
import os
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxbandit._core.fields import show
from jaxbandit._io.files import draft_of, sync_folder
from jaxbandit.agent.checks import check_database
from jaxbandit.agent.tables import DECISION, FEEDBACK, FORMATS, SCHEMA_1, SCHEMA_2, Decided, Fed, Late

DAMAGED = (sqlite3.Error, UnicodeDecodeError)  # the latter when SQLite quotes damaged text in its own message


class Journal:
    """The open file. Other processes can read it meanwhile; only one can decide."""

    def __init__(self, path: Any, about: dict[str, Any], flush: bool):
        file = Path(os.path.realpath(check_database(path)))
        self.name = f"Agent.open({str(path)!r})"
        if not os.path.isdir(file.parent):
            raise FileNotFoundError(f"{self.name}: there is no folder {str(file.parent)!r}")
        beginning = file.stat().st_size if file.is_file() else 0
        if 0 < beginning < 512:  # SQLite would take it for a new file
            raise ValueError(f"{self.name}: the file is damaged: {beginning} bytes are left of it; restore a copy of it")
        self._grouped = False
        self._lock: Any = None
        self._connection: Any = None
        self._format = FORMATS[-1]
        try:
            try:
                self._lock = _locked(f"{file}-lock")
                self._connection = sqlite3.connect(file, timeout=5, isolation_level=None, check_same_thread=False)
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    raise RuntimeError(f"{self.name}: another agent has this file open; one at a time can decide") from error
                raise OSError(f"{self.name}: the file cannot be opened ({error})") from error
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if flush else 'NORMAL'}")
                self.about = self._begin(about)
            except DAMAGED as error:
                raise ValueError(f"{self.name}: this is not a file written by Agent.open ({error})") from error
            names = (str(file), f"{file}-wal", f"{file}-shm", f"{file}-lock")
            self._files = {Path(name): _identity(name) for name in names}
        except BaseException:
            self.close()
            raise

    def _begin(self, about: dict[str, Any]) -> dict[str, Any]:
        """The description of the agent in the file; a new file gets ``about``."""
        self._connection.execute("BEGIN EXCLUSIVE")
        try:
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                self._create(SCHEMA_1)
                self._connection.execute("INSERT INTO about VALUES (?)", (json.dumps(about),))
                self._migrate()
            elif not {"about", "decision", "feedback", "snapshot"} <= tables:
                raise ValueError(f"{self.name}: this database is not one written by Agent.open; give a file of its own")
            else:
                about = self._read_about()
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise self._failed(error) if "full" in str(error) else error from error
        return about

    def _create(self, schema: str) -> None:
        for statement in schema.split(";")[:-1]:
            self._connection.execute(statement)

    def migrate(self) -> None:
        """Bring a file of format 1 to format 2, as a whole or not at all."""
        if self._format == 1:
            with self._transaction():
                self._migrate()

    def _migrate(self) -> None:
        self._create(SCHEMA_2)
        (content,) = self._connection.execute("SELECT content FROM about").fetchone()
        self._connection.execute("UPDATE about SET content = ?", (json.dumps(json.loads(content) | {"format": FORMATS[-1]}),))

    def _read_about(self) -> dict[str, Any]:
        row = self._connection.execute("SELECT content FROM about").fetchone()
        try:
            about = json.loads(row[0])
        except (TypeError, ValueError):
            about = None
        if not isinstance(about, dict):
            raise ValueError(
                f"{self.name}: the file is damaged: its table about does not describe an agent; restore a copy of it"
            )
        self._format = about.get("format")
        # The format of the tables is dealt with here; the agent compares its own.
        return about | {"format": FORMATS[0]} if self._format in FORMATS else about

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it is on disk when the block ends, or nothing; within a group, when the group ends."""
        if self._grouped:
            if not self._connection.in_transaction:
                raise OSError(f"{self.name}: an earlier call of this group failed; leave the group, nothing of it was kept")
            try:
                yield
            except sqlite3.Error as error:
                raise self._failed(error) from error
            return
        self._check_files()
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self.roll_back()
            if isinstance(error, sqlite3.Error):
                raise self._failed(error) from error
            raise

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Commit everything in the block together."""
        with self._transaction():
            self._grouped = True
            try:
                yield
            finally:
                self._grouped = False

    def _failed(self, error: sqlite3.Error) -> OSError:
        if "full" in str(error):
            return OSError(f"{self.name}: no room on the disk, nothing of this call was kept; make room and call again")
        return OSError(
            f"{self.name}: the file cannot be written, nothing of this call was kept ({error}); repair the disk and call again"
        )

    def _check_files(self) -> None:
        """Raise OSError if the file is no longer under its name. A missing write-ahead log is written again."""
        moved = [name for name, identity in self._files.items() if _identity(name) != identity]
        file, log, shared, lock = self._files
        if file in moved:
            raise OSError(
                f"{self.name}: the file was removed or replaced while this agent had it open, nothing of this call was kept; put it "
                "back, or write what is in memory to another file with agent.save(path)"
            )
        if lock in moved:
            raise OSError(
                f"{self.name}: its lock file {lock.name} was removed, nothing of this call was kept; another agent could open the file: "
                "close this one and open it again"
            )
        if moved:
            try:  # The deleted log is still readable through the open connection: its content moves into the file itself.
                for mode in ("DELETE", "WAL"):
                    self._connection.execute(f"PRAGMA journal_mode = {mode}")
                self._connection.execute("BEGIN EXCLUSIVE")
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._failed(error) from error
            self._files |= {name: _identity(name) for name in (log, shared)}

    def roll_back(self) -> None:
        """Discard a transaction that was interrupted."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def has_decision(self, id: int) -> bool:
        return bool(self._read("SELECT 1 FROM decision WHERE id = ?", id))

    def has_feedback(self, ticket: int) -> bool:
        """Whether a ticket has feedback, including late feedback."""
        return bool(self._read("SELECT 1 FROM feedback WHERE ticket = ? AND closed IS NULL", ticket) or self.has_late(ticket))

    def has_closed(self, ticket: int) -> bool:
        return bool(self._read("SELECT 1 FROM feedback WHERE ticket = ? AND closed = 1", ticket))

    def has_late(self, ticket: int) -> bool:
        return bool(self._read("SELECT 1 FROM late WHERE ticket = ?", ticket))

    def has_withdrawn(self, arm: int) -> bool:
        return bool(self._read("SELECT 1 FROM withdrawn WHERE arm = ?", arm))

    def newest(self) -> int:
        """The id of the newest decision. Rows that cannot be reached are noticed: tables and indices must agree."""
        ((count, newest),) = self._read("SELECT count(*), coalesce(max(id), 0) FROM decision NOT INDEXED")
        ((in_table,),) = self._read("SELECT count(ticket) FROM feedback NOT INDEXED")
        ((in_index,),) = self._read("SELECT count(after) FROM feedback INDEXED BY feedback_after")
        if count != newest or in_table != in_index:
            raise ValueError(f"{self.name}: the file is damaged: some of its rows cannot be read; restore a copy of it")
        return newest

    def with_key(self, key: str) -> Decided | None:
        """The decision that was made under this key."""
        found = self._read(f"SELECT {DECISION} FROM decision WHERE key = ?", key)
        return self._checked(Decided(*found[0][:-1]), found[0][-1], "decision") if found else None

    def add_decisions(self, rows: Sequence[Decided]) -> None:
        with self._transaction():
            self._connection.executemany(
                f"INSERT INTO decision ({DECISION}) VALUES ({', '.join('?' * 10)})", ((*row, row.checksum()) for row in rows)
            )

    def add_feedback(self, rows: Sequence[Fed], late: Sequence[Late] = ()) -> None:
        with self._transaction():
            self._connection.executemany(
                f"INSERT INTO feedback ({FEEDBACK}) VALUES ({', '.join('?' * 6)})", ((*row, row.checksum()) for row in rows)
            )
            if late:
                self._connection.executemany("INSERT INTO late VALUES (?, ?, ?, ?)", ((*row, row.checksum()) for row in late))

    def add_withdrawal(self, arm: int, after: int, at: float) -> None:
        with self._transaction():
            self._connection.execute("INSERT INTO withdrawn VALUES (?, ?, ?)", (arm, after, at))

    def write_snapshot(self, arrays: bytes) -> None:
        with self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?)", (arrays,))

    def backup(self, file: Path) -> None:
        """A consistent copy, whole or not at all."""
        draft = draft_of(file)
        try:
            copy = sqlite3.connect(draft, isolation_level=None)
            try:
                self._connection.backup(copy)
            finally:
                copy.close()
            with open(draft, "rb") as written:
                os.fsync(written.fileno())
            os.link(draft, file)  # unlike a rename, this never replaces a file
        except sqlite3.Error as error:
            raise OSError(f"agent.backup({str(file)!r}): the copy cannot be written ({error}); the agent is unchanged") from error
        except FileExistsError:
            raise FileExistsError(f"agent.backup({str(file)!r}): the file exists; give another name") from None
        finally:
            for name in (draft, f"{draft}-journal"):
                with contextlib.suppress(OSError):
                    os.unlink(name)
        sync_folder(file.parent)

    def log(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Every decision with its feedback: names of columns, and rows."""
        rows = self._read(
            "SELECT d.id, d.run, d.round, d.arm, d.propensity, d.key, coalesce(d.forced, 0), d.at, f.loss, f.at, f.after, f.closed, "
            "f.ticket, l.loss, l.at FROM decision d LEFT JOIN feedback f ON f.ticket = d.id LEFT JOIN late l ON l.ticket = d.id "
            "ORDER BY d.id"
        )
        return [
            "id",
            "run",
            "round",
            "arm",
            "probability",
            "key",
            "forced",
            "time",
            "loss",
            "loss_time",
            "after",
            "closed",
            "ticket",
            "late_loss",
            "late_time",
        ], rows

    def _read(self, question: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(question, values).fetchall()
        except DAMAGED as error:  # also of a table that has other columns
            raise ValueError(f"{self.name}: the file is damaged, or was not written by Agent.open ({error})") from error

    def snapshot(self) -> bytes | None:
        rows = self._read("SELECT arrays FROM snapshot")
        return rows[0][0] if rows else None

    def decisions(self, after: int) -> list[Decided]:
        """Those made after decision ``after``, in order."""
        found = self._read(f"SELECT {DECISION} FROM decision WHERE id > ? ORDER BY id", after)
        for expected, (id, *_) in enumerate(found, after + 1):
            if id != expected:
                raise ValueError(f"{self.name}: the file is damaged: decision {expected} is missing; restore a copy of it")
        return [self._checked(Decided(*row), checksum, "decision") for *row, checksum in found]

    def feedback(self, after: int) -> list[Fed]:
        """The feedback that arrived after decision ``after``, in order."""
        found = self._read(f"SELECT {FEEDBACK} FROM feedback WHERE after >= ? ORDER BY after", after)
        return [self._checked(Fed(*row), checksum, "feedback of ticket") for *row, checksum in found]

    def withdrawn(self) -> list[tuple[int, int]]:
        """The arms that were withdrawn, and the newest decision at that time, in order."""
        return self._read("SELECT arm, after FROM withdrawn ORDER BY after")

    def _checked(self, row: Any, checksum: Any, what: str) -> Any:
        try:
            good = row.checksum() == checksum
        except (struct.error, AttributeError):  # not even numbers, or text
            good = False
        if not good:
            raise ValueError(
                f"{self.name}: the file is damaged: {what} {show(row[0])} is not what was written; restore a copy of it"
            )
        return row

    def close(self) -> None:
        for connection in (self._connection, self._lock):
            if connection is not None:
                connection.close()


def _locked(name: str) -> sqlite3.Connection:
    """A lock on a file of this name, until the connection is closed or the process dies.

    SQLite's own lock, which every system has. The file stays empty.
    """
    lock = sqlite3.connect(name, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("PRAGMA journal_mode = MEMORY")
        lock.execute("BEGIN EXCLUSIVE")
    except BaseException:
        lock.close()
        raise
    return lock


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
