"""A durable agent at work, to be killed: `python campaign.py FILE ANSWERS ROUNDS`. Appends to ANSWERS what was answered.

Losses and delays are tables, so that the campaign goes on as it would have after any kill.
"""

import os
import sys

import jax
import numpy as np

import jaxbandit as jb

ARMS, KEY = ["a", "b", "c"], jax.random.key(3)
LEARNER = jb.TsallisINF("rv")


def tables(rounds):
    random = np.random.default_rng(8)
    losses = random.uniform(size=(rounds + 1, 3)) < [0.3, 0.5, 0.6]
    delays = random.integers(0, 12, rounds + 1)
    lost = random.uniform(size=rounds + 1) < 0.1
    return losses.astype(float), delays, lost


def go_on(agent, rounds, answered=lambda *answer: None):
    """Play to round ``rounds`` from wherever the agent is."""
    losses, delays, lost = tables(rounds)
    while True:
        for ticket in agent.outstanding():
            s = ticket.round
            if lost[s]:
                agent.expire(ticket.id)
                answered("expired", ticket.id)
            elif s + delays[s] <= agent.rounds:
                agent.observe(ticket.id, losses[s, ARMS.index(ticket.arm)])
                answered("observed", ticket.id)
        if agent.rounds == rounds:
            return
        ticket = agent.act()
        answered("decided", ticket.id, ticket.arm, float(ticket.probability).hex())


if __name__ == "__main__":
    path, answers, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    file = os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    agent = jb.Agent.open(path, LEARNER, ARMS, KEY, flush=False)
    os.write(file, b"opened\n")
    go_on(agent, rounds, lambda *answer: os.write(file, (" ".join(map(str, answer)) + "\n").encode()))
    os.write(file, b"done\n")
