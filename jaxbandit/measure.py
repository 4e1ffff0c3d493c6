"""Measurements made inside the loop over rounds: requested by ``simulate(..., measure=(...,))``, without cost otherwise.

A measurement is a pytree with three pure methods, like a learner: ``init(num_arms, runs_shape) -> state``,
``update(state, info) -> state`` after every round, and ``read(state) -> {name: array [..., runs]}`` at every recorded
round. Its readings are ``result.measured[name]``, ``[C, ..., runs]``.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

from jaxbandit._core.arms import inner, one_hot, pick
from jaxbandit._core.fields import PyTree, float_dtype, is_numeric, pytree_dataclass, show, static
from jaxbandit._core.sums import Sum
from jaxbandit.learners.base import Round
from jaxbandit.losses.base import AdaptiveLosses


class RoundInfo(NamedTuple):
    """One round, as a measurement sees it at the end of round t.

    ``...`` is the shape of the runs, the ``runs_shape`` of ``init``: ``[runs]`` for a block of runs, ``[]`` where runs are evaluated
    one by one. It is the same for all loss and delay models. K is the number of arms.

    Attributes:
      t: ``[]`` int32, the round, from 1.
      probabilities: ``[K, ...]``, :math:`x_t`.
      arm: ``[...]`` int32, the arm drawn from them.
      loss: ``[...]``, its loss.
      means: ``[K]``, the expected losses of the round; ``[K, ...]`` if the losses are adaptive.
      outstanding: ``[...]`` int32, :math:`\\sigma_t`, the outstanding observations at the start of the round.
      arrivals: ``[...]`` int32, the observations that arrive at the end of the round.
      learner_state: the learner's state after ``act``, before the arrivals.
      informed_state: the learner's state after the arrivals.
      delay: ``[...]`` int32, the delay of this round's feedback; :data:`jaxbandit.delays.NEVER` if it never arrives.
      round: the :class:`jaxbandit.learners.Round` that ``act`` was given. Its counts have the shape ``[]`` where all runs share
        their delays.
    """

    t: Int32[Array, ""]
    probabilities: Float[Array, " K *runs"]
    arm: Int32[Array, "*runs"]
    loss: Float[Array, "*runs"]
    means: Float[Array, " K *#runs"]
    outstanding: Int32[Array, "*runs"]
    arrivals: Int32[Array, "*runs"]
    learner_state: PyTree
    informed_state: PyTree
    delay: Int32[Array, "*runs"]
    round: Round


@runtime_checkable
class Measurement(Protocol):
    """The protocol: any class with these three methods that is a pytree (``@jb.extend.pytree_dataclass``)."""

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any: ...
    def update(self, state: PyTree, info: RoundInfo) -> Any: ...
    def read(self, state: PyTree) -> dict[str, jax.Array]: ...


@pytree_dataclass
class ControlVariates:
    """Quantities whose mean is known to be 0 and that move with the regret: they narrow its interval.

    Reads ``control_variates [C, K, runs]``: :math:`F_i(t) = \\sum_{s \\le t} (1\\{I_s = i\\}\\,\\ell_s / x_{s,i} - m_{s,i})`, the sum of the
    importance-weighted losses less their means. Each term has mean 0 given the past, whatever the delays and the learner,
    so F has mean 0 exactly (arms of probability 0 are left out of a round). :meth:`jaxbandit.Result.estimate` uses its
    increments between recorded rounds: the estimate is the intercept of a least squares fit of the regret on them.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=500,
    ...                      runs=256, seed=0, measure=[jb.ControlVariates()])
    >>> bool(result.estimate().error[-1] < result.estimate(control_variates=False).error[-1])
    True
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def update(self, state: jax.Array, info: RoundInfo) -> jax.Array:
        # Constants to differentiation: the loop of a gradient shall not carry their tangents.
        x, loss, means = jax.lax.stop_gradient((info.probabilities, info.loss, info.means))
        played = one_hot(info.arm, state.shape[0])
        weight = jnp.where(played, loss / pick(x, info.arm), 0)
        means = means.reshape(*means.shape, *[1] * (x.ndim - means.ndim))
        return state + jnp.where(x > 0, weight - means, 0)

    def read(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"control_variates": state}


@pytree_dataclass
class Pulls:
    """How often each arm was chosen so far: reads ``pulls [C, K, runs]``.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=100, runs=4, seed=0,
    ...                      measure=[jb.measure.Pulls()])
    >>> result.measured["pulls"][-1].sum(0)  # of each run
    array([100, 100, 100, 100])
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((num_arms, *runs_shape), jnp.int32)

    def update(self, state: jax.Array, info: RoundInfo) -> jax.Array:
        return state + one_hot(info.arm, state.shape[0])

    def read(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"pulls": state}


@pytree_dataclass
class Probabilities:
    """The probabilities :math:`x_t` of the arms at each recorded round: reads ``probabilities [C, K, runs]``.

    The same numbers as those of ``simulate(..., probabilities=True)``, among the measurements and under their name.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5), rounds=100, runs=4, seed=0,
    ...                      record=[10, 100], measure=[jb.measure.Probabilities()])
    >>> result.measured["probabilities"].shape, float(result.measured["probabilities"][-1, 0, 0])
    ((2, 2, 4), 0.5)
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((num_arms, *runs_shape), float_dtype())

    def update(self, state: jax.Array, info: RoundInfo) -> jax.Array:
        return info.probabilities.astype(state.dtype)

    def read(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"probabilities": state}


@pytree_dataclass
class DynamicRegret:
    """Regret against the best arm of every round, not against the best single arm: reads ``dynamic_regret [C, runs]``.

    :math:`\\sum_{s \\le t} (\\langle x_s, m_s \\rangle - \\min_i m_{s,i})`. Where the same arm is always the best, this is the regret.

    >>> import jaxbandit as jb
    >>> turns = jb.losses.Switching([[0.0, 1.0], [1.0, 0.0]], starts=[1, 51])
    >>> result = jb.simulate(jb.Uniform(), turns, jb.delays.Fixed(0), rounds=100, runs=1, seed=0,
    ...                      measure=[jb.measure.DynamicRegret()])
    >>> float(result.measured["dynamic_regret"][-1, 0]), float(result.regret[-1, 0])
    (50.0, 0.0)
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        return Sum.zero(runs_shape)

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        above = info.means - info.means.min(0)
        suffered = inner(info.probabilities, above)
        return state.add(suffered)

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {"dynamic_regret": state.value + state.error}


@pytree_dataclass
class PolicyRegret:
    """Policy regret against an adaptive adversary: reads ``policy_regret [C, runs]``.

    .. math:: \\sum_{s \\le t} \\langle x_s, m_s \\rangle - \\min_i \\sum_{s \\le t} m_{s,i}(i, \\ldots, i)

    where :math:`m_{s,i}(i, \\ldots, i)` is the mean loss of arm i in round s if arm i was chosen in all rounds before. The adversary
    therefore reacts to the comparator as well, which the regret of ``simulate`` does not do.

    >>> import jaxbandit as jb
    >>> game = jb.losses.RepeatedGame([[1.0, 0.0], [0.0, 1.0]], rate=0.5)  # the opponent learns to match the arm
    >>> result = jb.simulate(jb.TsallisINF(), game, jb.delays.Fixed(5), rounds=500, runs=64, seed=0,
    ...                      measure=[jb.measure.PolicyRegret()])
    >>> bool(result.measured["policy_regret"][-1].mean() < result.regret[-1].mean())
    True

    Reference: Arora, Dekel & Tewari, *Online Bandit Learning against an Adaptive Adversary: from Regret to Policy Regret*, ICML 2012.
    """

    losses: AdaptiveLosses | None = None  # those of the simulation, which sets them

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        # The comparators are one run for each arm.
        assert self.losses is not None
        return Sum.zero(runs_shape), Sum.zero((num_arms,)), self.losses.init((num_arms,))

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        assert self.losses is not None
        suffered, constant, adversary = state
        every = jnp.arange(constant.value.shape[0], dtype=jnp.int32)
        alone = jnp.diagonal(jnp.broadcast_to(self.losses.expected_after(adversary, info.t), (every.size, every.size)))
        suffered = suffered.add(inner(info.probabilities, info.means))
        return suffered, constant.add(alone), self.losses.update(adversary, info.t, every)

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        suffered, constant, _ = state
        best = jnp.min(constant.value + constant.error)
        return {"policy_regret": (suffered.value - best) + suffered.error}


@pytree_dataclass
class BestArm:
    """Whether the arm played most often so far is the best one: reads ``misidentified`` and ``simple_regret``, ``[C, runs]``.

    ``misidentified`` is 1 where the mean losses so far of that arm are above those of the best arm in hindsight, else 0: its mean over
    runs is the probability of naming a wrong arm after t rounds. ``simple_regret`` is by how much, for each round. Of arms
    that were played equally often the first one is named.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.DelayedUCB1(), jb.losses.Bernoulli([0.1, 0.9]), jb.delays.Fixed(5), rounds=500, runs=64, seed=0,
    ...                      measure=[jb.measure.BestArm()])
    >>> float(result.measured["misidentified"][-1].mean())
    0.0
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        return jnp.zeros((), jnp.int32), jnp.zeros((num_arms, *runs_shape), jnp.int32), Sum.zero((num_arms,))

    def update(self, state: PyTree, info: RoundInfo) -> Any:
        _, pulls, excess = state
        pulls = pulls + one_hot(info.arm, pulls.shape[0])
        return info.t, pulls, excess.add(info.means - info.means.min())

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        t, pulls, excess = state
        total = excess.value + excess.error
        named = jnp.argmax(pulls, 0).astype(jnp.int32)
        rounds = jnp.maximum(t, 1).astype(total.dtype)
        above = pick((total - total.min()) / rounds, named)
        # Sums of moving means that ought to be equal differ in their last digits.
        wrong = above > 16 * jnp.finfo(total.dtype).eps
        return {"misidentified": wrong.astype(total.dtype), "simple_regret": jnp.where(wrong, above, 0)}


@pytree_dataclass
class Trajectory:
    """Arm, loss, delay, arrival and probabilities of chosen runs in chosen rounds: ``result.trajectory``.

    The rounds need not be those of ``record``. Memory is that of the chosen rounds and runs: K + 4 numbers of 4 bytes
    for each round of each run. More than 1 GB raises a warning that states the bytes, and more than the machine has an error, both
    before the first round.

    Args:
      runs: how many, counted from the first run, or a list of run ids; None for all runs.
      rounds: how many, counted from round 1, or an ascending list of rounds, such as ``range(900, 1001)``; None for all rounds.

    The outcome is a :class:`jaxbandit.results.trajectory.Trajectories`; :func:`jaxbandit.plots.trajectory` draws one run.

    >>> import jaxbandit as jb
    >>> result = jb.simulate(jb.DelayedUCB1(), jb.losses.Bernoulli([0.2, 0.8]), jb.delays.Geometric(10), rounds=1000, runs=512,
    ...                      seed=0, measure=[jb.measure.Trajectory(runs=[3, 17], rounds=range(1, 101))])
    >>> result.trajectory.arm.shape, result.trajectory.probabilities.shape
    ((100, 2), (100, 2, 2))
    >>> result.trajectory.to_pandas().groupby("run").loss.sum().shape
    (2,)
    """

    runs: Any = static(default=None)
    rounds: Any = static(default=None)

    def __post_init__(self) -> None:
        # Static fields are compared and hashed.
        for name in ("runs", "rounds"):
            value = vars(self)[name]
            if isinstance(value, list | tuple | np.ndarray) and is_numeric(value):
                object.__setattr__(self, name, tuple(np.ravel(value).tolist()))

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Any:
        whole, dtype = jnp.zeros(runs_shape, jnp.int32), float_dtype()
        return whole, jnp.zeros(runs_shape, dtype), whole, whole, jnp.zeros((num_arms, *runs_shape), dtype)

    def update(self, state: PyTree, info: RoundInfo) -> PyTree:
        x = info.probabilities.astype(state[4].dtype)
        return info.arm, info.loss, info.delay, info.outstanding, jnp.broadcast_to(x, state[4].shape)

    def read(self, state: PyTree) -> dict[str, jax.Array]:
        return {f"trajectory.{name}": array for name, array in zip(self.names(), state, strict=True)}

    @staticmethod
    def names() -> tuple[str, ...]:
        """The arrays that are read, in the order of the state."""
        return "arm", "loss", "delay", "outstanding", "probabilities"

    def chosen_rounds(self, rounds: int) -> Sequence[int]:
        """The rounds up to ``rounds``, ascending."""
        return self._chosen("rounds", 1, rounds)

    def chosen_runs(self, runs: int, first_run: int) -> Sequence[int]:
        """The ids of the runs, ascending."""
        return self._chosen("runs", first_run, first_run + runs - 1)

    def _chosen(self, name: str, first: int, last: int) -> Sequence[int]:
        wanted = vars(self)[name]
        if wanted is None:
            return range(first, last + 1)  # not an array: there may be more than fit into memory
        if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool):
            if not 1 <= wanted <= last - first + 1:
                raise ValueError(f"measure=[Trajectory({name}={wanted})]: give a number of {name} from 1 to {last - first + 1}")
            return range(first, first + int(wanted))
        numbers: Sequence[int] = wanted if isinstance(wanted, range | tuple) else ()
        if isinstance(numbers, range):
            ascending = numbers.step > 0
        else:
            ascending = all(type(one) is int for one in numbers) and bool(np.all(np.diff(numbers) > 0))
        if not numbers or not ascending or numbers[0] < first or numbers[-1] > last:
            raise ValueError(
                f"measure=[Trajectory({name}={show(wanted)})]: give how many {name}, or a list of {name}, ascending, from {first} to {last}"
            )
        return numbers


def check_measure(measure: Any) -> None:
    if not isinstance(measure, Sequence) or isinstance(measure, str):
        raise TypeError(f"measure={show(measure)}: give a list of measurements, such as [jb.ControlVariates()]")
    for one in measure:
        if isinstance(one, Measurement) and not isinstance(one, type) and jax.tree_util.all_leaves([one]):
            cls = type(one).__name__
            raise TypeError(f"measure=[{cls}(…)]: make {cls} a pytree: put @jb.extend.pytree_dataclass before the class")
        if isinstance(one, type):
            raise TypeError(f"measure=[{one.__name__}]: give a measurement, not its class: {one.__name__}(...)")
        if not isinstance(one, Measurement):
            raise TypeError(
                f"measure=[{show(one)}]: a measurement, such as jb.ControlVariates(), has the methods init, update and read"
            )


RESERVED = {
    "regret",
    "round",
    "run",
    "outstanding_max",
    "total_delay",
    "lost",
    "probability",
}  # names of a Result's columns
