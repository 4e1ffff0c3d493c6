"""A durable agent behind HTTP: which of three advertisements to show, and what came of it.

    make live-service            # http://127.0.0.1:8000, state in campaign.db

    curl -X POST localhost:8000/act
    curl -X POST localhost:8000/feedback -H 'content-type: application/json' -d '{"ticket": 1, "reward": 1}'

An example to copy: put authentication and your own arms where they belong. One process only (no `--workers`): one agent at a time
can have the file open.
"""

import os
from pathlib import Path

import jax
from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

import jaxbandit as jb

ARMS = ["red", "green", "blue"]
agent = jb.Agent.open(os.environ.get("CAMPAIGN", "campaign.db"), jb.TsallisINF("rv"), ARMS, jax.random.key(0))
app = FastAPI(title="live bandit")


class Feedback(BaseModel):
    ticket: int
    reward: float | None = None  # between 0 and 1
    expired: bool = False  # nothing will come any more


@app.post("/act")
def act() -> dict:
    ticket = agent.act()
    return {"ticket": ticket.id, "arm": ticket.arm, "probability": ticket.probability, "round": ticket.round}


@app.post("/feedback")
def feedback(told: Feedback) -> dict:
    try:
        agent.expire(told.ticket) if told.expired else agent.observe(told.ticket, reward=told.reward)
    except jb.TicketError as error:  # unknown, or answered before: doing it again does not help
        raise HTTPException(409, str(error)) from error
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return {"ticket": told.ticket}


@app.get("/status")
def status() -> dict:
    waiting = agent.outstanding()
    drawn = agent.probabilities.tolist() if agent.rounds else [1 / len(ARMS)] * len(ARMS)
    return {
        "rounds": agent.rounds,
        "outstanding": len(waiting),
        "answered": agent.rounds - len(waiting),
        "probabilities": dict(zip(ARMS, drawn, strict=True)),
    }


@app.get("/", response_class=HTMLResponse)
def page() -> str:
    return Path(__file__).with_name("page.html").read_text(encoding="utf-8")
