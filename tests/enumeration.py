"""Every path of a small game: what a gradient estimator gives on average, exactly, with no sampling.

Two arms and losses of two values make 4^T paths of arms and losses. :func:`expected_regret` plays them in plain NumPy
float64, with its own learners (of which :class:`Hedge` may have K arms, with (2K)^T paths); :func:`expected_estimate` plays
them in the library, one run for each path, and weighs what each run would have contributed to the gradient by the probability
of its path.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit._core import randomness
from jaxbandit._core.arms import pick
from jaxbandit._core.fields import canonical, float_dtype, pytree_dataclass
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit.gradients import estimators as gradients
from jaxbandit.gradients import programs

# --- plain NumPy ---


def hybrid(losses, a, b):
    """The regularised leader for two arms ``[2, paths]``: bisection on the logit of x_0, then Newton; b = 0 is fine."""
    low, high = np.full(losses.shape[1], -60.0), np.full(losses.shape[1], 60.0)

    def slope(u):
        x, rest = 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(u))
        return losses[0] - losses[1] - a * (x**-0.5 - rest**-0.5) + b * u

    for _ in range(100):
        middle = (low + high) / 2
        below = slope(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    u = (low + high) / 2
    return np.stack([1 / (1 + np.exp(-u)), 1 / (1 + np.exp(u))])


def softmax(losses, rate):
    weights = np.exp(-rate * (losses - losses.min(0)))
    return weights / weights.sum(0)


class Rule:
    """How one learner plays: probabilities from estimates, and what a play adds to them."""

    def probabilities(self, losses, t, total):
        raise NotImplementedError

    def estimate(self, x, t, arm, loss):
        rows = np.arange(len(x))[:, None] == arm
        # Where a play has probability 0, after rounding, its path counts for nothing.
        return np.where(rows, loss, 0) / np.where(rows & (x > 0), x, 1)


@dataclasses.dataclass
class MZS22(Rule):
    max_delay: float
    linear: float
    factor: float
    tsallis_scale: float = 1.0
    entropy_scale: float = 1.0

    def probabilities(self, losses, t, total):
        log_k, d = np.log(2), self.max_delay
        start = self.linear * d + d**2 / (2 ** (1 / 3) * log_k) ** 2
        gamma = self.factor**2 * d**2 * 2 ** (2 / 3) * log_k
        return hybrid(losses, self.tsallis_scale * np.sqrt(t + start), self.entropy_scale * np.sqrt((total + gamma) / log_k))


@dataclasses.dataclass
class Tapered(Rule):
    horizon: int
    robustness: float
    power: float
    tsallis_scale: float = 1.2

    def probabilities(self, losses, t, total):
        horizon = self.horizon
        while horizon < t:
            horizon *= 2
        taper = self.robustness * ((horizon - t + 1) / horizon) ** self.power
        return hybrid(losses, self.tsallis_scale * taper * np.sqrt(t), taper * np.sqrt(total / np.log(2)))


@dataclasses.dataclass
class Tsallis(Rule):
    scale: float

    def probabilities(self, losses, t, total):
        return hybrid(losses, self.scale * np.sqrt(t), 0.0)


@dataclasses.dataclass
class ReducedVariance(Tsallis):
    scale: float
    threshold: float = 16.0

    def probabilities(self, losses, t, total):
        return hybrid(losses, self.scale * np.sqrt(t) / 2, 0.0)

    def estimate(self, x, t, arm, loss):
        rows = np.arange(2)[:, None] == arm
        baseline = 0.5 * (x >= self.threshold / t)
        return np.where(rows, (loss - baseline) / x, 0) + baseline


@dataclasses.dataclass
class Hedge(Rule):
    scale: float

    def probabilities(self, losses, t, total):
        arms = len(losses)
        return softmax(losses, self.scale * np.sqrt(np.log(arms) / (arms / 2 * t + total)))


@dataclasses.dataclass
class Floored(Rule):
    """Tsallis-INF that divides by max(x, floor)."""

    scale: float
    floor: float

    def probabilities(self, losses, t, total):
        return hybrid(losses, self.scale * np.sqrt(t), 0.0)

    def estimate(self, x, t, arm, loss):
        rows = np.arange(2)[:, None] == arm
        return np.where(rows, loss / np.maximum(x, self.floor), 0)


def expected_regret(rule: Rule, values, chances, rounds: int, delay: int) -> float:
    """E Σ_t <x_t, m - min m>; the loss of arm i is ``values[i][1]`` with probability ``chances[i]``, else ``values[i][0]``."""
    values, chances = np.asarray(values, float), np.asarray(chances, float)
    means = values[:, 1] * chances + values[:, 0] * (1 - chances)
    arms = len(chances)
    path = np.arange((2 * arms) ** rounds)
    weight, losses, regret, waiting, total = np.full(path.size, 1 / path.size), np.zeros((arms, path.size)), 0.0, [], 0
    for t in range(1, rounds + 1):
        total += min(t - 1, delay)
        x = rule.probabilities(losses, t, total)
        regret += float((weight * ((means - means.min()) @ x)).sum())
        arm, high = outcomes(path, t, arms)
        # A path that has come this far stands for one in 2K of the paths that share its past.
        weight = 2 * arms * weight * x[arm, path] * np.where(high == 1, chances[arm], 1 - chances[arm])
        waiting.append(rule.estimate(x, t, arm, values[arm, high]))
        if len(waiting) > delay:
            losses = losses + waiting.pop(0)
    return regret


def outcomes(path, t, arms=2):
    """The arm and which of its two losses, in round t of a path: a digit of its number, base 2K."""
    digit = path // (2 * arms) ** (t - 1) % (2 * arms)
    return digit % arms, digit // arms


def true_gradient(rule: Rule, field: str, *game) -> float:
    """d E[regret] / d field by a five-point difference."""
    centre = getattr(rule, field)
    h = 1e-3 * centre

    def value(steps):
        return expected_regret(dataclasses.replace(rule, **{field: centre + steps * h}), *game)

    return (8 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12 * h)


# --- the library ---


@pytree_dataclass
class TwoValues(jb.extend.DifferentiableLosses):
    """Arm i's loss is ``values[i, 1]`` with probability ``chances[i]``, else ``values[i, 0]``."""

    values: jax.Array  # [2, 2]
    chances: jax.Array  # [2]
    num_arms = 2
    stationary = True

    def expected(self, t):
        return self.values[:, 0] + self.chances * (self.values[:, 1] - self.values[:, 0])

    def second_moment(self, t):
        return self.values[:, 0] ** 2 + self.chances * (self.values[:, 1] ** 2 - self.values[:, 0] ** 2)

    def sample(self, t, arm, noise):
        return pick(jnp.where(noise < 0.5, self.values[:, 1:], self.values[:, :1]), arm)  # the noise is scripted


@pytree_dataclass
class Scripted(Game):
    """Run i plays path i."""

    def words(self, purpose, t, pair=0):
        arm, high = outcomes(self.runs.astype(jnp.int32), t)
        tiny = jnp.asarray(1e-300, float_dtype())
        return jnp.where(arm == 1, 1 - 1e-16, tiny), jnp.where(high == 1, tiny, 1 - 1e-16)


@pytree_dataclass
class Chance:
    """The probability of the path so far."""

    law: TwoValues

    def init(self, num_arms, runs_shape):
        return jnp.ones(runs_shape, float_dtype())

    def update(self, state, info):
        high = info.loss == pick(self.law.values[:, 1], info.arm)
        chance = pick(self.law.chances, info.arm)
        return state * pick(info.probabilities, info.arm) * jnp.where(high, chance, 1 - chance)

    def read(self, state):
        return {"chance": state}


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # programs that run a few times
def _play(player, game, record):
    which = tuple(range(len(jax.tree.leaves(game.learner))))
    return programs.played(player, game, record)[1]["chance"][-1], programs.forward.function(player, game, record, which=which)


def expected_estimate(learner, values, chances, rounds, delays, estimator, monkeypatch):
    """What ``regret_gradient`` gives on average, shaped like the learner, and the expected regret."""
    monkeypatch.setattr(randomness, "uniform", lambda word, grain: word)
    learner, delays = canonical(learner), canonical(delays)
    law = TwoValues(jnp.asarray(values), jnp.asarray(chances))
    measure = (Chance(law), *([programs.Score()] if estimator == "score" else []))
    plain = Game.set_up(learner, law, delays, jax.random.key(0), jnp.arange(4**rounds, dtype=jnp.uint32), measure)
    player = Player(hook=gradients.feedback_of(estimator, rounds))
    game = Scripted(**{f.name: getattr(plain, f.name) for f in dataclasses.fields(plain)})
    chance, per_run = jax.tree.map(np.asarray, _play(player, game, jnp.array([rounds], jnp.int32)))
    np.testing.assert_allclose(chance.sum(), 1, rtol=1e-9)
    gradient = [float(leaf @ chance) for leaf in per_run.gradient]
    return jax.tree.unflatten(jax.tree.structure(learner), gradient), float(per_run.regret @ chance)
