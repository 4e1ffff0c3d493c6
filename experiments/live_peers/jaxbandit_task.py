"""The task with jaxbandit. The lines between the marks are counted."""

# begin
import jax

import jaxbandit as jb


class Campaign:
    def __init__(self, path, arms):
        self.agent = jb.Agent.open(path, jb.DelayedThompson(), arms, jax.random.key(0))

    def decide(self, key):
        ticket = self.agent.act(key=key)
        return ticket.id, ticket.arm, ticket.probability

    def feedback(self, ticket, reward):
        self.agent.observe(ticket, reward=reward)

    def close_window(self, seconds):
        return self.agent.close_window(seconds)


# end
