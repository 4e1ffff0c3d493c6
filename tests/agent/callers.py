"""A durable agent with callers, to be killed: `python -m tests.agent.callers FILE ANSWERS CALLS`.

Each caller has a key, repeats its call until it has a ticket, and then notes it in ANSWERS.
"""

import contextlib
import os
import sys
from pathlib import Path

import jax

import jaxbandit as jb

LEARNER, ARMS, KEY = jb.DelayedThompson(), ["a", "b", "c"], jax.random.key(3)

if __name__ == "__main__":
    path, answers, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
    answered = {line.split()[0] for line in Path(answers).read_text().splitlines(keepends=True) if line.endswith("\n")}
    file = os.open(answers, os.O_WRONLY | os.O_APPEND)
    agent = jb.Agent.open(path, LEARNER, ARMS, KEY, flush=False)
    for number in range(calls):
        key = f"caller-{number}"
        if key not in answered:
            ticket = agent.act(key=key)
            os.write(file, f"{key} {ticket.id} {ticket.arm}\n".encode())
            if ticket.id % 3:
                with contextlib.suppress(jb.TicketError):  # committed just before the last kill
                    agent.observe(ticket.id, (ticket.id % 4) / 4)
    os.write(file, b"done\n")
