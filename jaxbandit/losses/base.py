"""Base classes of loss models, and helpers that loss models share."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

from jaxbandit._core.arms import pick
from jaxbandit._core.fields import PyTree, is_concrete, is_numeric, lists_to_arrays, show
from jaxbandit.delays.base import Delays


class Losses:
    """Base class of loss models, including user-defined ones: the full interface, with defaults.

    A loss model defines ``num_arms``, :meth:`expected` and :meth:`sample`. Each trait may be a class constant, a static
    field or a property.
    """

    num_arms: int = 0  # K; required
    stationary: bool = False  # the means are the same in every round
    needs_key: bool = False  # `sample` gets a JAX key for each run in place of a uniform number
    length: int | None = None  # number of rounds with losses; None: unlimited

    def __post_init__(self) -> None:
        lists_to_arrays(self)

    def expected(self, t: Int32[Array, ""]) -> Float[Array, " K *#runs"]:
        """The mean losses of round t, ``[K]``, exact."""
        raise NotImplementedError(f"{type(self).__name__} has no method expected(t)")

    def sample(self, t: Int32[Array, ""], arm: Int32[Array, "*runs"], noise: jax.Array) -> Float[Array, "*runs"]:
        """The loss of ``arm [...]`` in round t, in [0, 1]; ``noise [...]`` is uniform in (0, 1), or keys (``needs_key``)."""
        raise NotImplementedError(f"{type(self).__name__} has no method sample(t, arm, noise)")

    def prepare(self) -> "Losses":
        """The model used during the rounds, with everything precomputed that :meth:`expected` needs and that does not change."""
        return self

    def check(self) -> None:
        """Raise ValueError if fields are inconsistent; each field has been checked before."""


class DifferentiableLosses(Losses):
    """Losses with fields in which the expected regret can be differentiated without finite differences."""

    chance_fields: tuple[str, ...] = ()  # losses are 0 or 1, and `expected` has the right derivative in these fields
    value_fields: tuple[str, ...] = ()  # `sample` has the right derivative in these fields

    def second_moment(self, t: jax.Array) -> jax.Array:
        """E[ℓ²] of each arm in round t, ``[K]``; the default is exact for losses in {0, 1}. Reduces the variance of gradients."""
        return self.expected(t)


class ShowsSignals(Losses):
    """Losses with intermediate observations: an action's signal is observed at once, its loss later."""

    num_signals: int = 0  # S, the number of different signals

    def signal(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """The signal, int32 from 0 to S - 1, of the action whose loss is ``sample(t, arm, noise)``."""
        raise NotImplementedError(f"{type(self).__name__} has no method signal(t, arm, noise)")


class ShowsStages(Losses):
    """Losses with progressive feedback: outcomes of an action are observed one after another while its loss is outstanding.

    Outcome j has a delay of its own from the action on, a draw of ``stage_delays[j]``. It is observed neither before outcome
    j - 1 nor after the loss. Outcomes are not missing: a delay above the bound of its model is the bound.
    """

    stage_delays: tuple[Delays, ...] = ()  # a delay model for each outcome before the loss

    def stages(self, t: Int32[Array, ""], arm: Int32[Array, "*runs"], noise: jax.Array) -> Float[Array, " J *runs"]:
        """The outcomes ``[J, ...]``, in [0, 1], of the action whose loss is ``sample(t, arm, noise)``; ``stage_delays`` has length J."""
        raise NotImplementedError(f"{type(self).__name__} has no method stages(t, arm, noise)")


class AdaptiveLosses(Losses):
    """Losses of an adaptive adversary: the losses of a round may depend on the arms that the run chose before.

    The model has a state for each run, which starts as :meth:`init` and is updated by the arm of each round. A subclass defines
    ``num_arms``, :meth:`init`, :meth:`update` and :meth:`expected_after`, in place of :meth:`Losses.expected` and
    :meth:`Losses.sample`.

    The regret compares with the best fixed arm on the realised sequence of mean losses:
    :math:`\\sum_t \\langle x_t, m_t \\rangle - \\min_i \\sum_t m_{t,i}`, where :math:`m_t` depends on the arms that were chosen. For
    policy regret the comparator is charged the losses that the adversary would have chosen against it:
    :class:`jaxbandit.measure.PolicyRegret`.
    """

    def init(self, runs_shape: tuple[int, ...]) -> PyTree:
        """The state before round 1: a pytree of arrays with the runs on the last axis."""
        raise NotImplementedError(f"{type(self).__name__} has no method init(runs_shape)")

    def update(self, state: PyTree, t: jax.Array, arm: jax.Array) -> PyTree:
        """The state after ``arm [...]`` was chosen in round t."""
        raise NotImplementedError(f"{type(self).__name__} has no method update(state, t, arm)")

    def expected_after(self, state: PyTree, t: jax.Array) -> jax.Array:
        """The mean losses ``[K, ...]`` of round t, given the arms before it."""
        raise NotImplementedError(f"{type(self).__name__} has no method expected_after(state, t)")

    def sample_after(self, state: PyTree, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """The loss of ``arm [...]``, given the arms before round t; by default 1 with the probability of its mean, else 0."""
        return coin(self.expected_after(state, t), arm, noise)

    def expected(self, t: jax.Array) -> jax.Array:
        """Not defined: the means depend on the arms before round t."""
        raise TypeError(f"losses={type(self).__name__}(…): mean losses depend on past arms; expected_after(state, t) gives them")

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        """Not defined: losses depend on the arms before round t."""
        raise TypeError(f"losses={type(self).__name__}(…): losses depend on past arms; sample_after(state, …) gives them")


class Now(NamedTuple):
    """The losses of adaptive adversaries in one round: as of a loss model without a state."""

    losses: AdaptiveLosses
    state: PyTree

    def expected(self, t: jax.Array) -> jax.Array:
        return self.losses.expected_after(self.state, t)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        return self.losses.sample_after(self.state, t, arm, noise)


def second_moment(losses: Losses, t: jax.Array) -> jax.Array:
    """E[ℓ²] of each arm in round t, ``[K]``; the mean, which is at least as large, where it is not known."""
    return losses.second_moment(t) if isinstance(losses, DifferentiableLosses) else losses.expected(t)


def check_declared(losses: Losses) -> None:
    """Raise for a trait that has no effect, because the class does not inherit from the base that declares it."""
    cls = type(losses)
    for base in (DifferentiableLosses, ShowsSignals, ShowsStages, AdaptiveLosses):
        unused = [name for name in vars(base) if not name.startswith("_") and name in dir(cls) and name not in vars(Losses)]
        if unused and not issubclass(cls, base):
            name = cls.__name__
            raise TypeError(
                f"losses={name}(…): {name}.{unused[0]} counts only in a class that inherits from jb.extend.{base.__name__}"
            )


class WithMeans(DifferentiableLosses):
    """Base of the loss models with fixed ``means``, or ``rewards`` in their place: a reward r is the loss 1 - r."""

    means: Any
    stationary: bool = True

    def __post_init__(self, rewards: Any) -> None:
        if rewards is not None:
            name = f"losses.{type(self).__name__}"
            if self.means is not None:
                raise ValueError(f"{name}(rewards={show(rewards)}): means and rewards are both given; give one of the two")
            if is_concrete(rewards) and not is_numeric(rewards):
                raise ValueError(
                    f"{name}(rewards={show(rewards)}): mean rewards must be numbers between 0 and 1, one for each arm"
                )
            if is_concrete(rewards) and not np.all((np.asarray(rewards) >= 0) & (np.asarray(rewards) <= 1)):
                raise ValueError(f"{name}(rewards={show(rewards)}): mean rewards must lie between 0 and 1")
            object.__setattr__(self, "means", 1 - (np.asarray(rewards) if is_concrete(rewards) else jnp.asarray(rewards)))
        super().__post_init__()

    @property
    def num_arms(self) -> int:
        return np.shape(self.means)[0]

    def check(self) -> None:
        if self.means is None:
            name = f"losses.{type(self).__name__}"
            raise ValueError(
                f"{name}(): give means=[0.3, 0.5], the mean losses, or rewards=[0.7, 0.5], the mean rewards, one for each arm"
            )


def coin(means: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
    """1 with probability ``means[arm]``, else 0."""
    noise = jnp.asarray(noise)
    return (noise < pick(means, jnp.asarray(arm))).astype(means.dtype)
