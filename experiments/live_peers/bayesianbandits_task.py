"""The task with bayesianbandits, which has no tickets, log or propensities: they are written here. The lines between the marks are counted."""

# begin
import math
import sqlite3
import time

import numpy as np
from bayesianbandits import Agent, Arm, DirichletClassifier, ThompsonSampling


def converted(sampled):
    return sampled[..., 1]


class Campaign:
    def __init__(self, path, arms):
        self.log = sqlite3.connect(path, isolation_level=None)
        self.log.execute("PRAGMA journal_mode = WAL")
        self.log.execute("PRAGMA synchronous = FULL")
        self.log.execute(
            "CREATE TABLE IF NOT EXISTS play (id INTEGER PRIMARY KEY, key TEXT UNIQUE, arm TEXT, at REAL, reward REAL)"
        )
        each = [Arm(name, converted, DirichletClassifier({0: 1.0, 1: 1.0})) for name in arms]
        self.bandit = Agent(each, ThompsonSampling())
        for arm, reward in self.log.execute("SELECT arm, reward FROM play WHERE reward IS NOT NULL").fetchall():
            self.bandit.select_for_update(arm).update(np.array([int(reward)]))

    def decide(self, key):
        row = self.log.execute("SELECT id, arm FROM play WHERE key = ?", (key,)).fetchone()
        if row is None:
            (arm,) = self.bandit.pull()
            done = self.log.execute("INSERT INTO play (key, arm, at) VALUES (?, ?, ?)", (key, arm, time.time()))
            row = done.lastrowid, arm
        return *row, math.nan

    def feedback(self, ticket, reward):
        done = self.log.execute("UPDATE play SET reward = ? WHERE id = ? AND reward IS NULL", (reward, ticket))
        if done.rowcount != 1:
            raise ValueError(f"ticket {ticket}: unknown, or answered before")
        (arm,) = self.log.execute("SELECT arm FROM play WHERE id = ?", (ticket,)).fetchone()
        self.bandit.select_for_update(arm).update(np.array([int(reward)]))

    def close_window(self, seconds):
        old = self.log.execute("SELECT id FROM play WHERE reward IS NULL AND at < ?", (time.time() - seconds,)).fetchall()
        for (ticket,) in old:
            self.feedback(ticket, 0)
        return len(old)


# end
