"""The interface of learners: three pure methods on a pytree of hyperparameters.

Arrays are ``[K, ...]`` per arm and ``[...]`` per run, arms first and runs last, so the same code serves one run and a block
of runs. :class:`Round` is the input of :meth:`Learner.act`, :class:`Observation` that of :meth:`Learner.observe`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int32

from jaxbandit._core.arms import one_hot
from jaxbandit._core.fields import PyTree, field_values, lists_to_arrays, number, pytree_dataclass, show, speaks_of
from jaxbandit._core.randomness import Words

State = TypeVar("State")  # a pytree of ``[K, ...]`` and ``[...]`` arrays


def multiplier(*, default: float = 1.0, low: float = 1e-3) -> Any:
    """A field that multiplies a rate."""
    return number(default=default, low=low, high=1e3)


class Round(NamedTuple):
    """The information available to a learner at the start of round t.

    Args:
      t: the round, from 1; a wrapper may give each run its own clock.
      outstanding: :math:`\\sigma_t`, the number of earlier actions whose feedback has not arrived.
      total_outstanding: :math:`\\sum_{s \\le t} \\sigma_s`.
      words: ``words()`` gives two random numbers (uint32) for each run, ``words(n)`` another pair for each n; shapes broadcast.
      is_outstanding: whether the feedback of round s is outstanding, s < t and :math:`s + d_s \\ge t`.
      restrict: ``[K, ...]`` to the same, ∞ at arms withdrawn from a live agent.
      runs_shape: the shape of the runs, if known; in live agents a call of ``words`` counts as a draw.
      delay: the delay of this round's action, ``NEVER`` if it has none; for ``ReadsDelays`` only.
    """

    t: Int32[Array, "*#runs"]
    outstanding: Int32[Array, "*#runs"]
    total_outstanding: Float[Array, "*#runs"]
    words: Callable[..., Words]
    is_outstanding: Callable[[Int32[Array, "*#runs"]], Bool[Array, "*#runs"]]
    restrict: Callable[[jax.Array], jax.Array] = lambda values: values
    runs_shape: tuple[int, ...] | None = None
    delay: Any = None  # Int32[Array, "*#runs"]

    @property
    def time(self) -> jax.Array:
        """t as a float."""
        return self.t.astype(self.total_outstanding.dtype)

    def keys(self) -> jax.Array:
        """One JAX key for each run."""
        return self.words().key()


class Observation(NamedTuple):
    """One arrived observation for each run; where ``arrived`` is False it must change nothing.

    Args:
      arrived: whether there is an observation.
      origin: the round s of the action.
      arm: the arm of round s; -1 where nothing arrived.
      loss: the loss of the arm in round s.
      probability: the probability of the arm in round s.
      memo: the second value that ``act`` returned in round s.
      jump: the jump tangent, set while the gradient of the expected regret is computed.
      weight: multiplies the estimate where some observations are skipped; None: 1.
      losses: the losses of all arms in round s, ``[K, ...]``; for ``FullInformation`` only.
      stages: the outcomes before the loss, ``[J, ...]``, 0 where not observed yet; for ``ReadsStages`` only.
    """

    arrived: Bool[Array, "*#runs"]
    origin: Int32[Array, "*#runs"]
    arm: Int32[Array, "*runs"]
    loss: Float[Array, "*runs"]
    probability: Float[Array, "*runs"]
    memo: Any
    jump: Any = None
    weight: Float[Array, "*#runs"] | None = None
    losses: Any = None  # Float[Array, " K *runs"]
    stages: Any = None  # Float[Array, " J *runs"]

    def loss_estimate(self, num_arms: int, *, floor: jax.Array | None = None, baseline: jax.Array | None = None) -> jax.Array:
        """The importance-weighted estimate ``[K, ...]``, 0 where nothing arrived.

        .. math:: \\hat\\ell_i = B_i + 1[i = I_s] \\frac{\\ell - B_i}{\\max(x_{s,i}, \\text{floor}_i)}

        with :math:`I_s` and :math:`x_s` the arm and the probabilities of round s, and B the ``baseline [K, ...]``. The floor is
        ``[K, ...]``, or ``[...]`` for the chosen arm. The estimate carries the jump tangent. Gradients are therefore correct for
        learners whose feedback enters only here; see :class:`ImportanceWeighted`.
        """
        # The probability may be 0 where no action was taken: substitute a safe value before dividing.
        loss = self.loss if baseline is None else self.loss - baseline
        probability = self.probability if self.jump is None else lax.stop_gradient(self.probability)
        divisor = probability if floor is None else jnp.maximum(probability, floor)
        if floor is not None and self.jump is not None:  # at a tie the derivative is that of the probability, in the jump
            divisor = jnp.where(floor > probability, floor, probability)
        weighted = jnp.where(self.arrived, loss, 0) / jnp.where(self.arrived, divisor, 1)
        estimate = self.at_arm(weighted, num_arms) if self.jump is None else self.jump.estimate(self, weighted, floor, baseline)
        estimate = estimate if baseline is None else jnp.where(self.arrived, baseline, 0) + estimate
        return estimate if self.weight is None else self.weight * estimate

    def at_arm(self, value: jax.Array, num_arms: int) -> jax.Array:
        """``value [...]`` in the row of the chosen arm, 0 elsewhere; ``[K, ...]``."""
        return jnp.where(one_hot(self.arm, num_arms), value, jnp.zeros((), value.dtype))

    @property
    def weighted_loss(self) -> jax.Array:
        """The loss times ``weight``, for estimates other than :meth:`loss_estimate`."""
        return self.loss if self.weight is None else self.weight * self.loss


class LearnerLike(Protocol[State]):
    """Any object with these three methods. ``simulate`` and all other functions accept it as a learner."""

    @property
    def init(self) -> Callable[..., State]:
        """``init(num_arms, runs_shape)``, or ``init(num_arms)`` for one run (``batched = False``)."""
        ...

    def act(self, state: State, round: Round, /) -> tuple[Float[Array, " K *runs"], PyTree, State]:
        """``(probabilities, memo, state)``."""
        ...

    def observe(self, state: State, observation: Observation, /) -> State:
        """The state after one observation for each run."""
        ...


class Learner(Generic[State]):
    """Base class of learners: the full interface, with defaults.

    A learner defines :meth:`init`, :meth:`act` and :meth:`observe`, and is a pytree of its hyperparameters
    (:func:`jaxbandit.extend.pytree_dataclass`). A class with only these need not inherit. Each trait may be a class constant, a static field or a property.
    """

    batched: bool = True  # methods work on arrays [K, ...] of any number of runs; False: on those of one run, see SingleRun
    watches_plays: bool = False  # `act` calls `round.is_outstanding`
    adds_only: bool = False  # `observe` is state + f(observation), leaf by leaf, where f does not depend on the state
    _adds_at_arm: bool = False  # the added value is 0 in all rows of a ``[K, ...]`` leaf except that of the chosen arm

    def __post_init__(self) -> None:
        lists_to_arrays(self)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> State:
        """The state before round 1: a pytree of ``[K, ...]`` and ``[...]`` arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no method init(num_arms, runs_shape)")

    def act(self, state: State, round: Round) -> tuple[Float[Array, " K *runs"], PyTree, State]:
        """``(probabilities [K, ...], memo, state)``; ``memo`` is stored until the feedback arrives."""
        raise NotImplementedError(f"{type(self).__name__} has no method act(state, round)")

    def observe(self, state: State, observation: Observation) -> State:
        """The state after one observation for each run; called in ascending round of origin."""
        raise NotImplementedError(f"{type(self).__name__} has no method observe(state, observation)")

    def played(self, state: State, round: Round, arm: jax.Array, probability: jax.Array) -> State:
        """The state after the arm is drawn, before any feedback; called between :meth:`act` and :meth:`observe`."""
        return state

    def propensity(self, state: State, round: Round, arm: jax.Array) -> jax.Array | None:
        """The probability ``[...]`` of ``arm`` given the history, over all draws of :meth:`act`; ``state`` is the one given to it.

        Live agents call this for learners whose ``act`` draws random numbers. None: not known.
        """
        return None

    def check(self) -> None:
        """Raise ValueError if fields are inconsistent; each field has been checked before."""

    def _check_state(self, state: State) -> None:
        """Raise RuntimeError if the final state of the runs indicates an error."""


class ImportanceWeighted(Learner[State]):
    """Learners whose feedback enters only through :meth:`Observation.loss_estimate`: the jump tangent applies to them.

    A learner of your own that inherits from this gets fast gradients. Its stiffness and floor are derived from its
    methods; :meth:`stiffness` and :meth:`baseline` are optional formulas.
    """

    importance_weighted: bool = True  # a property where it depends on the fields

    def stiffness(self, state: State, round: Round, probabilities: jax.Array) -> jax.Array | None:
        """The stiffness ``[K, ...]`` in the round whose ``act`` returned ``state``; ∞ where unknown.

        .. math:: h_i = \\frac{2}{\\lvert d \\log x_i / d L_i \\rvert}

        None: it is derived from ``act`` by automatic differentiation, which takes more time than a formula.
        """
        return None

    def jumps_far(self) -> bool:
        """Whether single losses change the probabilities so much that the jump tangent is known to be biased."""
        return False

    def baseline(self, round: Round, probabilities: jax.Array) -> jax.Array:
        """B ``[K, ...]``, the baseline of this round in ``loss_estimate``.

        Needed where ``observe`` gives a baseline: the jump tangent takes its derivative too. Where B is a step, give it the
        derivative of a narrow ramp.
        """
        return jnp.zeros_like(probabilities)


class ReadsSignals(Learner[State]):
    """Learners that use intermediate observations: an action's signal is observed at once, its loss later."""

    num_signals: int = 0  # how many different signals it reads; 0: it reads none

    def signalled(self, state: State, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree) -> tuple[PyTree, State]:
        """``(memo, state)`` after the intermediate observation; called after :meth:`played` where losses have signals.

        ``memo`` is that of :meth:`act`; the returned one is stored until the feedback arrives.
        """
        return memo, state


class ReadsStages(Learner[State]):
    """Learners for progressive feedback: they observe outcomes of an action, :attr:`Observation.stages`, before its loss."""

    num_stages: int = 0  # J, the number of outcomes before the loss

    def staged(self, state: State, stage: int, observation: Observation) -> State:
        """The state after outcome ``stage`` (static, from 0) of one action for each run, in ascending round of origin.

        It is row ``stage`` of :attr:`Observation.stages`, whose later rows are 0, as is the loss. In a round, outcomes are
        observed before losses, and earlier outcomes before later ones.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method staged(state, stage, observation)")


class TakesSums(Learner[State]):
    """Learners that only sum losses. The feedback of a round may arrive as one sum that is not attributed to actions."""


class ReadsDelays(Learner[State]):
    """Learners that require the delay of an action when they choose it: :attr:`Round.delay`.

    The delay model must show the delays, as :class:`jaxbandit.delays.KnownAtAction` does.
    """


class FullInformation(Learner[State]):
    """Learners that observe the losses of all arms in the round of the action: :attr:`Observation.losses`.

    With :meth:`revealed` it is the losses of some arms (semi-bandit feedback, feedback graphs).
    """

    def revealed(self, arm: jax.Array, num_arms: int) -> jax.Array | None:
        """Mask ``[K, ...]`` of the arms whose losses are observed after an action ``arm [...]``; None: all.

        The other rows of :attr:`Observation.losses` are 0.
        """
        return None


def is_a(learner: Learner, base: type[Learner]) -> bool:
    """Whether a learner, or the single-run learner that it maps over the runs, inherits from ``base``."""
    return isinstance(learner.learner if isinstance(learner, SingleRun) else learner, base)


def losses_shown(learner: Learner, losses: jax.Array, arm: jax.Array) -> jax.Array:
    """The losses ``[K, ...]`` of all arms, those that a learner with full information does not observe set to 0."""
    full: Any = learner.learner if isinstance(learner, SingleRun) else learner
    mask = full.revealed(arm, losses.shape[0])
    return losses if mask is None else jnp.where(mask, losses, 0)


def stages_read(learner: Learner) -> int:
    """How many outcomes before the loss a learner reads, 0 for most."""
    return learner.num_stages if isinstance(learner, ReadsStages) else 0


def is_importance_weighted(learner: Learner) -> bool:
    """Whether feedback enters only through :meth:`Observation.loss_estimate`."""
    return isinstance(learner, ImportanceWeighted) and learner.importance_weighted


def adds_only(learner: Learner) -> bool:
    """Whether ``observe`` is state + f(observation): the trait, where it speaks of the ``observe`` that the learner has."""
    return learner.adds_only and speaks_of(type(learner), "adds_only", "observe")


def adds_at_arm(learner: Learner) -> bool:
    """Whether f changes the row of the chosen arm only."""
    return learner._adds_at_arm and speaks_of(type(learner), "_adds_at_arm", "observe")


def propensity_of(learner: Learner[State], state: State, round: Round, arm: jax.Array) -> jax.Array | None:
    """:meth:`Learner.propensity`; None also where it was written for another ``act`` than the learner has."""
    return learner.propensity(state, round, arm) if speaks_of(type(learner), "propensity", "act") else None


def signals_read(learner: Learner) -> int:
    """How many different signals a learner reads, 0 for most."""
    return learner.num_signals if isinstance(learner, ReadsSignals) else 0


def signalled(
    learner: Learner[State], state: State, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree
) -> tuple[PyTree, State]:
    """``(memo, state)`` of any learner after a signal is observed."""
    return learner.signalled(state, round, arm, signal, memo) if isinstance(learner, ReadsSignals) else (memo, state)


TRAITS = {
    name: base
    for base in (ImportanceWeighted, ReadsSignals, ReadsStages, FullInformation)
    for name in vars(base)
    if not name.startswith("_")
}

OPTIONAL = {
    **{
        name: "Learner"
        for name in vars(Learner)
        if not name.startswith("_") and name not in ("init", "act", "observe", "batched")
    },
    **{name: base.__name__ for name, base in TRAITS.items()},
    "takes_sums": "TakesSums",
}


@pytree_dataclass
class _Plain(Learner):
    """A learner that does not inherit from :class:`Learner`, with the defaults for all but its three methods."""

    learner: Any

    def init(self, num_arms, runs_shape):
        return self.learner.init(num_arms, runs_shape)

    def act(self, state, round):
        return self.learner.act(state, round)

    def observe(self, state, observation):
        return self.learner.observe(state, observation)


@pytree_dataclass
class SingleRun(ReadsSignals, ReadsStages):
    """A learner for one run, ``batched = False``, mapped over the runs.

    It has ``init(num_arms)``, ``act(state, round)`` and ``observe(state, observation)``, with arrays ``[K]`` per arm and plain numbers
    per run. ``observe`` is called for every round and its result is dropped where nothing has arrived. The optional methods
    ``played``, ``signalled`` and ``propensity`` are mapped as well.
    """

    learner: Any

    @property
    def watches_plays(self) -> bool:
        return isinstance(self.learner, Learner) and self.learner.watches_plays

    @property
    def num_signals(self) -> int:
        return signals_read(self.learner)

    @property
    def num_stages(self) -> int:
        return stages_read(self.learner)

    def check(self) -> None:
        if isinstance(self.learner, Learner):
            self.learner.check()

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> PyTree:
        def for_runs(leaf: ArrayLike) -> jax.Array:
            leaf = jnp.asarray(leaf)
            return jnp.broadcast_to(leaf.reshape(*leaf.shape, *[1] * len(runs_shape)), (*leaf.shape, *runs_shape))

        return jax.tree.map(for_runs, self.learner.init(num_arms))

    def act(self, state: PyTree, round: Round) -> tuple[jax.Array, PyTree, PyTree]:
        return self._for_each_run(self.learner.act, round, state)

    def played(self, state: PyTree, round: Round, arm: jax.Array, probability: jax.Array) -> PyTree:
        if not isinstance(self.learner, Learner) or type(self.learner).played is Learner.played:
            return state
        return self._for_each_run(self.learner.played, round, state, arm, probability)

    def signalled(self, state: PyTree, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree) -> tuple[PyTree, PyTree]:
        if not self.num_signals:
            return memo, state
        return self._for_each_run(self.learner.signalled, round, state, arm, signal, memo)

    def propensity(self, state: PyTree, round: Round, arm: jax.Array) -> jax.Array | None:
        if not isinstance(self.learner, Learner) or type(self.learner).propensity is Learner.propensity:
            return None
        return self._for_each_run(self.learner.propensity, round, state, arm)

    def _for_each_run(self, method: Callable, round: Round, state: PyTree, *arguments: Any) -> Any:
        """``method(state, round, *arguments)`` for each run, the last axis."""
        shape = round.words().first.shape if round.runs_shape is None else round.runs_shape
        if not shape:
            return method(state, round, *arguments)

        def one(run, state, arguments, t, outstanding, total, *delay):
            def words(pair: Any = 0) -> Words:
                pair = jnp.asarray(pair)[..., None] if jnp.ndim(pair) else pair  # the runs are the last axis of what is drawn
                return Words(*(word[..., run] for word in round.words(pair)))

            mine = Round(t, outstanding, total, words, lambda s: round.is_outstanding(jnp.broadcast_to(s, shape))[run])
            return method(state, mine._replace(delay=delay[0]) if delay else mine, *arguments)

        given = (round.t, round.outstanding, round.total_outstanding, *([] if round.delay is None else [round.delay]))
        numbers = [jnp.broadcast_to(number, shape) for number in given]
        runs = jnp.arange(shape[0], dtype=jnp.uint32)
        return jax.vmap(one, -1, -1)(runs, state, arguments, *numbers)

    def observe(self, state: PyTree, observation: Observation) -> PyTree:
        return self._observed(self.learner.observe, state, observation)

    def staged(self, state: PyTree, stage: int, observation: Observation) -> PyTree:
        """As in :class:`ReadsStages`, if the learner is one."""
        return self._observed(lambda state, one: self.learner.staged(state, stage, one), state, observation)

    def _observed(self, observe: Callable, state: PyTree, observation: Observation) -> PyTree:
        shape = observation.arm.shape
        given = observation._replace(
            arrived=jnp.broadcast_to(observation.arrived, shape), origin=jnp.broadcast_to(observation.origin, shape)
        )

        def one(state, observation):
            after = observe(state, observation)
            return jax.tree.map(lambda new, old: jnp.where(observation.arrived, new, old).astype(old.dtype), after, state)

        return jax.vmap(one, -1, -1)(state, given) if shape else one(state, given)


def as_learner(learner: LearnerLike) -> Learner:
    """Return ``learner``, wrapped with all defaults if it only has ``init``, ``act`` and ``observe``."""
    if isinstance(learner, type):
        raise TypeError(f"learner={learner.__name__}: give a learner, not its class: {learner.__name__}(...)")
    if isinstance(learner, Learner):
        _check_declared(type(learner))
        return learner if learner.batched else SingleRun(learner)
    # The argument may be any object of the user's, so its methods are looked up by name.
    missing = [name for name in ("init", "act", "observe") if not callable(getattr(learner, name, None))]
    if missing:
        raise TypeError(
            f"learner={show(learner)}: give a learner such as jb.TsallisINF(); one of your own has the methods init, act and observe, "
            f"and here {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        )
    more = sorted(OPTIONAL.keys() & {*dir(type(learner))} - {*field_values(learner)})
    if more:
        _raise_not_inherited(type(learner).__name__, more[0])
    return _Plain(learner) if getattr(learner, "batched", True) else SingleRun(learner)  # a plain class may declare it


@functools.cache
def _check_declared(cls: type[Learner]) -> None:
    """Raise for a trait that has no effect, because the class does not inherit from the base that declares it."""
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    for name, base in {**TRAITS, "takes_sums": TakesSums}.items():
        if not issubclass(cls, base) and name in dir(cls) and name not in fields:
            _raise_not_inherited(cls.__name__, name)


def _raise_not_inherited(cls: str, name: str) -> NoReturn:
    raise TypeError(f"learner={cls}(…): {cls}.{name} counts only in a class that inherits from jb.extend.{OPTIONAL[name]}")
