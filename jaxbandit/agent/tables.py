"""The tables of a durable agent's file, and their rows with checksums."""

import math
import struct
import zlib
from typing import NamedTuple

FORMATS = 1, 2  # of the tables; earlier versions of the package refuse a file of format 2
SCHEMA_1 = """
CREATE TABLE about (content TEXT NOT NULL);
CREATE TABLE decision (id INTEGER PRIMARY KEY, run INTEGER, round INTEGER, arm INTEGER, probability REAL, at REAL,
  checksum INTEGER);
CREATE TABLE feedback (ticket INTEGER PRIMARY KEY, loss REAL, after INTEGER, at REAL, checksum INTEGER);
CREATE INDEX feedback_after ON feedback (after);
CREATE TABLE snapshot (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), arrays BLOB);
"""
SCHEMA_2 = """
ALTER TABLE decision ADD COLUMN propensity REAL;
ALTER TABLE decision ADD COLUMN key TEXT;
ALTER TABLE decision ADD COLUMN forced INTEGER;
CREATE UNIQUE INDEX decision_key ON decision (key);
ALTER TABLE feedback ADD COLUMN closed INTEGER;
CREATE TABLE late (ticket INTEGER PRIMARY KEY, loss REAL, at REAL, checksum INTEGER);
CREATE TABLE withdrawn (arm INTEGER PRIMARY KEY, after INTEGER, at REAL);
"""
DECISION = "id, run, round, arm, probability, at, propensity, key, forced, checksum"
FEEDBACK = "ticket, loss, after, at, closed, checksum"


class Decided(NamedTuple):
    id: int
    run: int
    round: int
    arm: int
    probability: float  # given the learner's own draws
    at: float  # seconds since 1970
    propensity: float | None  # given the history; None: not known
    key: str | None
    forced: int | None  # whether the caller demanded the arm; None: a row of format 1

    def checksum(self) -> int:
        known = struct.pack("<4q2d", *self[:6])
        if self.forced is not None:
            propensity = math.nan if self.propensity is None else self.propensity
            known += struct.pack("<dq", propensity, self.forced) + (b"" if self.key is None else b"=" + self.key.encode())
        return zlib.crc32(known)


class Fed(NamedTuple):
    ticket: int
    loss: float | None  # None: expired
    after: int  # the newest decision when the feedback arrived
    at: float
    closed: int | None = None  # 1: by close_window

    def checksum(self) -> int:
        loss = math.nan if self.loss is None else self.loss
        return zlib.crc32(struct.pack("<qdqd", self.ticket, loss, self.after, self.at) + (b"closed" if self.closed else b""))


class Late(NamedTuple):
    """Feedback that arrived after the window of its ticket was closed."""

    ticket: int
    loss: float
    at: float

    def checksum(self) -> int:
        return zlib.crc32(struct.pack("<qdd", *self))
