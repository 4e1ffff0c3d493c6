"""A durable agent behind HTTP: which of three advertisements to show, and what came of it.

    make live-service            # http://127.0.0.1:8000, state in campaign.db

    curl -X POST localhost:8000/act -H 'content-type: application/json' -d '{"key": "request-17"}'
    curl -X POST localhost:8000/feedback -H 'content-type: application/json' -d '{"ticket": 1, "reward": 1}'
    curl localhost:8000/health

An example to copy: put authentication and your own arms where they belong. One process only (no `--workers`): one agent at a time
can have the file open. Everything on the page is read from the file, so that it survives a restart.
"""

import contextlib
import math
import os
import sqlite3
import time
from pathlib import Path

import jax
from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

import jaxbandit as jb

ARMS = ["red", "green", "blue"]
FILE = Path(os.environ.get("CAMPAIGN", "campaign.db"))
POINTS = 120  # of the chart
agent = jb.Agent.open(FILE, jb.TsallisINF("rv"), ARMS, jax.random.key(0))
app = FastAPI(title="live bandit")


class Request(BaseModel):
    key: str | None = None  # the caller's name for the decision: the same key returns the same ticket


class Feedback(BaseModel):
    ticket: int
    reward: float | None = None  # between 0 and 1
    expired: bool = False  # nothing will come any more


@app.post("/act")
def act(request: Request | None = None) -> dict:
    try:
        ticket = agent.act(key=request.key if request else None)
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return {"ticket": ticket.id, "arm": ticket.arm, "probability": ticket.probability, "round": ticket.round}


@app.post("/feedback")
def feedback(given: Feedback) -> dict:
    try:
        agent.expire(given.ticket) if given.expired else agent.observe(given.ticket, reward=given.reward)
    except jb.TicketError as error:  # unknown, or answered before: doing it again does not help
        raise HTTPException(409, str(error)) from error
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return {"ticket": given.ticket}


@app.get("/status")
def status() -> dict:
    waiting = agent.outstanding()
    drawn = agent.probabilities.tolist() if agent.rounds else [1 / len(ARMS)] * len(ARMS)
    shown = dict(read("SELECT arm, count(*) FROM decision GROUP BY arm"))
    rewards = {
        arm: (count, total)
        for arm, count, total in read(
            "SELECT d.arm, count(f.loss), sum(1 - f.loss) FROM decision d JOIN feedback f ON f.ticket = d.id "
            "WHERE f.loss IS NOT NULL GROUP BY d.arm"
        )
    }
    return {
        "rounds": agent.rounds,
        "outstanding": len(waiting),
        "answered": agent.rounds - len(waiting),
        "oldest": time.time() - waiting[0].time if waiting else None,  # seconds
        "probabilities": dict(zip(ARMS, drawn, strict=True)),
        "arms": [
            {"arm": name, "shown": shown.get(arm, 0)} | observed(*rewards.get(arm, (0, 0.0))) for arm, name in enumerate(ARMS)
        ],
    }


def observed(count: int, total: float) -> dict:
    """The mean of ``count`` rewards in [0, 1] with a 95% Wilson interval, which is conservative for rewards other than 0 and 1.

    Means of a learner's own log are slightly too low: an arm with bad luck is played less. ``agent.estimate()`` corrects that.
    """
    if not count:
        return {"observed": 0, "reward": None, "low": 0.0, "high": 1.0}
    mean, z = total / count, 1.96
    centre, scale = mean + z * z / (2 * count), 1 + z * z / count
    half = z * math.sqrt(mean * (1 - mean) / count + (z / (2 * count)) ** 2)
    low, high = max((centre - half) / scale, 0.0), min((centre + half) / scale, 1.0)
    return {"observed": count, "reward": mean, "low": low, "high": high}


@app.get("/history")
def history() -> dict:
    """Decisions and outstanding tickets since the first decision, at ``POINTS`` times (seconds since 1970)."""
    ((first,),) = read("SELECT min(at) FROM decision")
    if first is None:
        return {"time": [], "decisions": [], "outstanding": []}
    step = max(time.time() - first, 1.0) / POINTS
    counts = []
    for table in ("decision", "feedback"):
        by_bin = dict(read(f"SELECT min(CAST((at - ?) / ? AS INTEGER), ?) AS bin, count(*) FROM {table} GROUP BY bin",
                           first, step, POINTS - 1))  # fmt: skip
        counts.append([by_bin.get(number, 0) for number in range(POINTS)])
    decisions, outstanding, now = [], [], [0, 0]
    for decided, answered in zip(*counts, strict=True):
        now = [now[0] + decided, now[1] + answered]
        decisions.append(now[0])
        outstanding.append(now[0] - now[1])
    return {"time": [first + step * (number + 1) for number in range(POINTS)], "decisions": decisions, "outstanding": outstanding}


@app.get("/health")
def health() -> dict:
    """503 unless the file can be read and has every decision of the agent."""
    try:
        ((newest,),) = read("SELECT coalesce(max(id), 0) FROM decision")
        good = newest >= agent.rounds - 1  # a decision may be committed between the two
    except sqlite3.Error as error:
        raise HTTPException(503, f"the file cannot be read: {error}") from error
    if not good:
        raise HTTPException(503, f"the file has {newest} of {agent.rounds} decisions")
    return {"healthy": True, "rounds": newest}


def read(question: str, *values: object) -> list:
    """Rows of the agent's file, by a reader of its own: it does not wait for decisions, nor do they wait for it."""
    with contextlib.closing(sqlite3.connect(f"{FILE.resolve().as_uri()}?mode=ro", uri=True)) as reader:
        return reader.execute(question, values).fetchall()


@app.get("/", response_class=HTMLResponse)
def page() -> str:
    return Path(__file__).with_name("page.html").read_text(encoding="utf-8")
