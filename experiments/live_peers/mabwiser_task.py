"""The task with mabwiser, which has no tickets, log or propensities: they are written here. The lines between the marks are counted."""

# begin
import math
import sqlite3
import time

from mabwiser.mab import MAB, LearningPolicy


class Campaign:
    def __init__(self, path, arms):
        self.log = sqlite3.connect(path, isolation_level=None)
        self.log.execute("PRAGMA journal_mode = WAL")
        self.log.execute("PRAGMA synchronous = FULL")
        self.log.execute(
            "CREATE TABLE IF NOT EXISTS play (id INTEGER PRIMARY KEY, key TEXT UNIQUE, arm TEXT, at REAL, reward REAL)"
        )
        self.bandit = MAB(arms, LearningPolicy.ThompsonSampling(), seed=time.time_ns() % 2**31)
        known = self.log.execute("SELECT arm, reward FROM play WHERE reward IS NOT NULL").fetchall()
        self.bandit.fit([arm for arm, _ in known] or [arms[0]], [int(r) for _, r in known] or [0])

    def decide(self, key):
        row = self.log.execute("SELECT id, arm FROM play WHERE key = ?", (key,)).fetchone()
        if row is None:
            arm = self.bandit.predict()
            done = self.log.execute("INSERT INTO play (key, arm, at) VALUES (?, ?, ?)", (key, arm, time.time()))
            row = done.lastrowid, arm
        return *row, math.nan

    def feedback(self, ticket, reward):
        done = self.log.execute("UPDATE play SET reward = ? WHERE id = ? AND reward IS NULL", (reward, ticket))
        if done.rowcount != 1:
            raise ValueError(f"ticket {ticket}: unknown, or answered before")
        (arm,) = self.log.execute("SELECT arm FROM play WHERE id = ?", (ticket,)).fetchone()
        self.bandit.partial_fit([arm], [int(reward)])

    def close_window(self, seconds):
        old = self.log.execute("SELECT id FROM play WHERE reward IS NULL AND at < ?", (time.time() - seconds,)).fetchall()
        for (ticket,) in old:
            self.feedback(ticket, 0)
        return len(old)


# end
