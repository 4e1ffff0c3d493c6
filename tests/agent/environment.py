"""A simulated environment for an agent: the losses and delays that `rollout` would meet, and who hands them in when."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit._core import randomness

NEVER = int(jb.delays.NEVER)


class Environment:
    """Loss and delay of a play (round, arm) of a run, by the words that the docs promise: threefry(key; purpose; round; run)."""

    def __init__(self, losses, delays, key, shared=False):
        grain = 2.0**23

        def uniform(purpose, t, run):
            words = jax.random.key_data(jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, purpose), t), run))
            return ((words >> 9).astype(jnp.float32) + 0.5) / grain

        def draw(t, arm, run):
            loss = losses.sample(t, arm, uniform(randomness.PLAY, t, run)[1]).astype(jnp.float32)
            delay = delays.draw(t, arm, loss, uniform(randomness.DELAY, t, 0 if shared else run)[0])
            return loss, delay

        self._draw = jax.jit(jax.vmap(draw))

    def __call__(self, t, arm, run):
        """``[n]`` losses and delays."""
        t, arm, run = (np.atleast_1d(np.asarray(value, np.int32)) for value in (t, arm, run))
        return tuple(np.asarray(value) for value in self._draw(t, arm, run))


def waiting(agent):
    """The outstanding tickets without their times, which differ between agents; probabilities may differ in the last bits."""
    return [(one.id, one.arm, f"{one.probability:.5g}", one.round, one.run) for one in agent.outstanding()]


def play(agent, environment, rounds, random=None):
    """Feed a single agent from the environment; returns the tickets' probabilities ``[T, K]``.

    Feedback of round s comes after decision s + d_s; what comes together is handed in in any order, and in batches or one by one.
    """
    random = random or np.random.default_rng(0)
    due, path = {}, []
    for t in range(1, rounds + 1):
        ticket = agent.act()
        assert (ticket.id, ticket.round) == (t, t)
        path.append(agent.probabilities)
        # Given the learner's own draws, probabilities may be one-hot; the ticket's are given the history alone.
        assert np.isnan(ticket.probability) or path[-1][ticket.arm] in (1, np.float32(ticket.probability))
        loss, delay = environment(t, ticket.arm, agent.first_run)
        if delay[0] == NEVER:
            agent.expire(ticket.id)
        else:
            due.setdefault(t + int(delay[0]), []).append((ticket.id, float(loss[0])))
        arrived = due.pop(t, [])
        random.shuffle(arrived)
        if arrived and random.uniform() < 0.5:
            agent.observe(*zip(*arrived, strict=True))
        else:
            for number, loss in arrived:
                agent.observe(number, loss)
    return np.array(path)


def play_fleet(agent, environment, rounds, random=None, part=1.0):
    """Feed a fleet until every run has made ``rounds`` decisions; returns probabilities ``[T, K, fleet]``.

    In each call every run decides with probability ``part``; a run's feedback of round s comes after its decision s + d_s.
    """
    random = random or np.random.default_rng(0)
    fleet = agent.fleet
    path = np.full((rounds, agent.num_arms, fleet), np.nan, np.float32)
    due = np.zeros((0, 3), np.int64)  # run, round of arrival, ticket
    losses = {}
    while (agent.rounds < rounds).any():
        runs = np.flatnonzero((random.uniform(size=fleet) < part) & (agent.rounds < rounds))
        random.shuffle(runs)
        ticket = agent.act(None if len(runs) == fleet else runs)
        path[ticket.round - 1, :, ticket.run] = agent.probabilities[:, ticket.run].T
        loss, delay = environment(ticket.round, ticket.arm, agent.first_run + ticket.run)
        lost = delay == NEVER
        agent.expire(ticket.id[lost])
        losses.update(zip(ticket.id.tolist(), loss.tolist(), strict=True))
        due = np.concatenate([due, np.stack([ticket.run, ticket.round + delay.astype(np.int64), ticket.id], -1)[~lost]])
        now = due[:, 1] <= agent.rounds[due[:, 0]]
        arrived = random.permutation(due[now, 2])
        agent.observe(arrived, [losses.pop(number) for number in arrived.tolist()])
        due = due[~now]
    return path
