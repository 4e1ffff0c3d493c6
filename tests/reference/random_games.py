"""Random games, played by ``jb.simulate`` and by the NumPy event queue of this folder, on the same random numbers.

A game has a structure (classes, number of arms, everything that is compiled) and numbers (everything that is not), so that many
games share one program. The library plays in float64: in float32 an arm that is drawn on the edge of its cell would make two right
programs play on differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit.extend import ShowsSignals
from tests.reference import environments, streams
from tests.reference.interface import Reference, draw, play
from tests.reference.random_environments import BOUND, DELAYS, LOSSES, ROUNDS, Kit
from tests.reference.random_learners import LEARNERS, Draws

RUNS = 3


class Game(NamedTuple):
    learner: Any
    losses: Any
    delays: Any
    reference: Callable[[Draws], Reference]  # a new reference learner for one run
    seed: int
    first_run: int


READS_STATES = {"state-exp3", "estimated-state-exp3"}
WATCHES = {"zimmert-seldin", "robust-bobw", "limited-tracking"}


def random_game(learner: str, losses: str, delays: str, structure: int, number: int) -> Game:
    """Game ``number`` of a structure: those of one structure differ in numbers alone."""
    choose = np.random.default_rng([structure, 0])
    # Learners that ask which plays are outstanding require room for all rounds where delays depend on the arm or the loss.
    bound = ROUNDS if learner in WATCHES and "dependent" in delays else BOUND
    kit = Kit(choose, np.random.default_rng([structure, 1, number]), (2, 3, 5)[choose.integers(3)], bound)
    environment = LOSSES[losses](kit), DELAYS[delays](kit)
    mine, theirs = LEARNERS[learner](kit, environment[0])
    seed, first_run = kit.whole(0, 2**31), kit.whole(0, 1000)
    return Game(mine, *environment, lambda draws: theirs(kit.arms, draws), seed, first_run)


def structures(count: int) -> list[tuple[str, str, str, int]]:
    """``count`` combinations of learner, losses and delays, and a few more with the delay models that do not go with all learners.

    Each list of names is gone through in turn, in a new order each time.
    """
    rng = np.random.default_rng(26)

    def endless(names):
        while True:
            yield from rng.permutation(names)

    learners, losses = endless([*LEARNERS]), endless([*LOSSES])
    delays = endless([name for name in DELAYS if name not in ("pieces", "mixture, dependent")])
    chosen = []
    for structure in range(count):
        learner, loss = str(next(learners)), str(next(losses))
        loss = "intermediate-states" if learner in READS_STATES else loss
        chosen.append((learner, loss, str(next(delays)), structure))
    more = [("colo", loss, "pieces") for loss in ("table", "beta", "intermediate-states")]
    more += [(learner, "bernoulli", "mixture, dependent") for learner in ("bobw", "ucb1", "bold")]
    return chosen + [(*names, count + number) for number, names in enumerate(more)]


# -------------------------------------------------------------------------------------------------------------------- plays


def simulate(game: Game) -> jb.Result:
    """The library's result, in float64, with the probabilities of every round."""
    with jax.enable_x64(True):
        return jb.simulate(
            *game[:3], rounds=ROUNDS, runs=RUNS, seed=game.seed, first_run=game.first_run,
            record=np.arange(1, ROUNDS + 1), probabilities=True,
        )  # fmt: skip


def play_run(game: Game, run: int) -> dict[str, np.ndarray]:
    """One run of the game by the event queue; the names are those of :class:`jaxbandit.Result`."""
    t, key = np.arange(1, ROUNDS + 1), streams.key(game.seed)
    which_arm, which_loss = map(streams.uniform, streams.numbers(key, streams.PLAY, t, run))
    keys = np.stack(streams.numbers(key, streams.LOSS, t, run), 1)
    shared = bool(game.delays.shared)
    which_delay = streams.uniform(streams.numbers(key, streams.DELAY, t, 0 if shared else run)[0])
    noise = keys if game.losses.needs_key else which_loss
    played = play(
        game.reference(Draws(game.seed, run)),
        lambda t, x: draw(x, which_arm[t - 1]),
        lambda t, arm: environments.loss(game.losses, t, arm, noise[t - 1]),
        lambda t, arm, loss: environments.delay(game.delays, t, arm, loss, which_delay[t - 1]),
        signals=_signals(game.losses, which_loss),
        pieces=np.asarray(game.delays.shares) if isinstance(game.delays, jb.delays.CompositeFeedback) else None,
        rounds=ROUNDS,
    )
    means = np.array([environments.means(game.losses, s) for s in t])
    suffered = np.cumsum((played["probabilities"] * means).sum(1))
    return {
        "probabilities": played["probabilities"],
        "regret": suffered - np.cumsum(means, 0).min(1),
        "outstanding_max": played["sigma"].max(),
        "total_delay": np.minimum(played["delays"], ROUNDS - t).sum(),
        "lost": np.isinf(played["delays"]).sum(),
    }


def _signals(losses, noise):
    if not isinstance(losses, ShowsSignals):
        return None
    return lambda t, arm: environments.state_and_place(losses, arm, noise[t - 1])[0]


class Difference(AssertionError):
    """The two programs differ; the message says where first."""


def check(game: Game, result: jb.Result | None = None, tolerance: float = 1e-8) -> None:
    """Raise :class:`Difference` unless library and event queue agree in every round of every run."""
    result = simulate(game) if result is None else result
    for column in range(RUNS):
        run = game.first_run + column
        expected = play_run(game, run)
        got = {
            "probabilities": result.probabilities[..., column],
            "regret": result.regret[:, column],
            **{name: getattr(result, name)[column] for name in ("outstanding_max", "total_delay", "lost")},
        }
        for name, value in expected.items():
            exact = name in ("outstanding_max", "total_delay", "lost")
            same = np.isclose(got[name], value, rtol=0 if exact else tolerance, atol=0 if exact else tolerance)
            if not np.all(same):
                first = np.argwhere(~np.atleast_1d(same))[0]
                raise Difference(
                    f"{name}, run {run}, first at {first}: {np.atleast_1d(got[name])[first[0]]} "
                    f"in place of {np.atleast_1d(value)[first[0]]}\n{game.learner}\n{game.losses}\n{game.delays}"
                )
