"""What a learner is: three pure methods on a pytree of hyperparameters.

Arrays are ``[K, ...]`` per arm and ``[...]`` per run, arms first and runs last, so the same code serves one run and a block
of runs. :class:`Round` is what a learner may know when it acts, :class:`Observation` what reaches it later.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot
from jaxbandit._core.fields import PyTree, field_values, lists_to_arrays, number, pytree_dataclass, show
from jaxbandit._core.randomness import Words

State = TypeVar("State")  # a pytree of ``[K, ...]`` and ``[...]`` arrays


def multiplier(*, default: float = 1.0, low: float = 1e-3) -> Any:
    """A field that multiplies a rate."""
    return number(default=default, low=low, high=1e3)


class Round(NamedTuple):
    """What a learner may know at the start of round t."""

    t: jax.Array  # [] int32, the round, from 1 ([...] where a wrapper gives each run's copy its own clock)
    outstanding: jax.Array  # [] or [...] int32, σ_t: plays made before t whose feedback has not arrived before t
    total_outstanding: jax.Array  # [] or [...] float, Σ_{s<=t} σ_s
    words: Callable[
        ..., Words
    ]  # two fresh random words for each run; words(n) another pair for each n (uint32, shapes broadcast)
    is_outstanding: Callable[[jax.Array], jax.Array]  # of a round s ([] or [...] int32): s < t and s + d_s >= t
    restrict: Callable[[jax.Array], jax.Array] = lambda values: values  # ``[K, ...]``, ∞ at arms withdrawn from a live agent
    runs_shape: tuple[int, ...] | None = (
        None  # of the runs, where it is given: a call of ``words`` counts as a draw in live agents
    )

    @property
    def time(self) -> jax.Array:
        """t as a float."""
        return self.t.astype(self.total_outstanding.dtype)

    def keys(self) -> jax.Array:
        """One JAX key for each run."""
        return self.words().key()


class Observation(NamedTuple):
    """One arrived observation for each run; where ``arrived`` is False it must change nothing."""

    arrived: jax.Array  # [] or [...] bool
    origin: jax.Array  # [] or [...] int32, the round s of the play
    arm: jax.Array  # [...] int32, -1 where nothing arrived
    loss: jax.Array  # [...]
    probability: jax.Array  # [...] of the arm at play time
    memo: Any  # what the learner left with the play
    jump: Any = None  # see jaxbandit.gradients.jump, where the gradient of the expected regret is asked for
    weight: Any = None  # [...] what the estimate is multiplied by, for how few such observations there are; None: 1

    def loss_estimate(self, num_arms: int, *, floor: jax.Array | None = None, baseline: jax.Array | None = None) -> jax.Array:
        """The importance-weighted estimate ``[K, ...]``, 0 where nothing arrived.

        (ℓ - B)/max(x_s, floor) in the row of the played arm, plus B in every row; x_s is of the time of the play, B the
        ``baseline [K, ...]``. The floor is ``[K, ...]``, or ``[...]`` for the played arm. It carries the jump tangent, so a learner whose feedback enters only here is differentiated
        right; see :class:`ImportanceWeighted`.
        """
        # The probability of a play that was never made may be 0: put a safe value in before dividing.
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
        """``value [...]`` in the row of the played arm, 0 elsewhere; ``[K, ...]``."""
        return jnp.where(one_hot(self.arm, num_arms), value, jnp.zeros((), value.dtype))

    @property
    def weighted_loss(self) -> jax.Array:
        """The loss times ``weight``, for estimates that :meth:`loss_estimate` does not make."""
        return self.loss if self.weight is None else self.weight * self.loss


class LearnerLike(Protocol[State]):
    """What ``simulate`` and all else accept as a learner: any object with these three methods, a :class:`Learner` or not."""

    @property
    def init(self) -> Callable[..., State]:
        """``init(num_arms, runs_shape)``, or ``init(num_arms)`` for one run (``batched = False``)."""
        ...

    def act(self, state: State, round: Round, /) -> tuple[jax.Array, PyTree, State]:
        """``(probabilities, memo, state)``."""
        ...

    def observe(self, state: State, observation: Observation, /) -> State:
        """The state after one observation for each run."""
        ...


class Learner(Generic[State]):
    """Base of every learner: all that may be asked of one, with defaults.

    A learner must have :meth:`init`, :meth:`act` and :meth:`observe`, and be a pytree of its hyperparameters
    (:func:`jaxbandit._core.fields.pytree_dataclass` makes it one). A class with just these need not inherit: :func:`as_learner`
    supplies the rest. Each trait may be a constant of the class, a static field or a property.
    """

    batched: bool = True  # methods work on arrays [K, ...] of any number of runs; False: on those of one run, see SingleRun
    watches_plays: bool = False  # `act` calls `round.is_outstanding`
    adds_only: bool = False  # `observe` is state + f(observation), leaf by leaf, with an f that looks at no state
    _adds_at_arm: bool = False  # what it adds is 0 in all rows of a ``[K, ...]`` leaf but that of the played arm

    def __post_init__(self) -> None:
        lists_to_arrays(self)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> State:
        """The state before round 1: a pytree of ``[K, ...]`` and ``[...]`` arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no method init(num_arms, runs_shape)")

    def act(self, state: State, round: Round) -> tuple[jax.Array, PyTree, State]:
        """``(probabilities [K, ...], memo, state)``; ``memo`` is stored until the feedback arrives."""
        raise NotImplementedError(f"{type(self).__name__} has no method act(state, round)")

    def observe(self, state: State, observation: Observation) -> State:
        """The state after one observation for each run; called in ascending round of origin."""
        raise NotImplementedError(f"{type(self).__name__} has no method observe(state, observation)")

    def played(self, state: State, round: Round, arm: jax.Array, probability: jax.Array) -> State:
        """The state once the learner knows which arm was drawn, before any feedback; called between act and observe."""
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
        """h_i = 2/abs(d log x_i/dL_i) ``[K, ...]`` in the round that ``act`` went to ``state`` in; ∞ where unknown.

        None: it is derived from ``act`` by automatic differentiation, which takes more time than a formula.
        """
        return None

    def jumps_far(self) -> bool:
        """Whether, with these numbers, single losses move probabilities so far that the jump tangent is known to be biased."""
        return False

    def baseline(self, round: Round, probabilities: jax.Array) -> jax.Array:
        """B ``[K, ...]``, the baseline of this round in ``loss_estimate``.

        Needed where ``observe`` gives a baseline: the jump tangent takes its derivative too. Where B is a step, give it the
        derivative of a narrow ramp.
        """
        return jnp.zeros_like(probabilities)


class ReadsSignals(Learner[State]):
    """Learners that read the signal of a play, which is observed at once; the loss arrives later (intermediate observations)."""

    num_signals: int = 0  # how many different signals it reads; 0: it reads none

    def signalled(self, state: State, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree) -> tuple[PyTree, State]:
        """``(memo, state)`` after the intermediate observation; called after :meth:`played` where losses have signals.

        ``memo`` is that of :meth:`act`; the returned one is stored until the feedback arrives.
        """
        return memo, state


class TakesSums(Learner[State]):
    """Learners that only add up losses: the feedback of a round may arrive as one sum that is not attributed to plays."""


def is_importance_weighted(learner: Learner) -> bool:
    """Whether feedback enters only through :meth:`Observation.loss_estimate`."""
    return isinstance(learner, ImportanceWeighted) and learner.importance_weighted


def signals_read(learner: Learner) -> int:
    """How many different signals a learner reads, 0 for most."""
    return learner.num_signals if isinstance(learner, ReadsSignals) else 0


def signalled(
    learner: Learner[State], state: State, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree
) -> tuple[PyTree, State]:
    """``(memo, state)`` of any learner after a signal is observed."""
    return learner.signalled(state, round, arm, signal, memo) if isinstance(learner, ReadsSignals) else (memo, state)


OPTIONAL = {
    **{
        name: "Learner"
        for name in vars(Learner)
        if not name.startswith("_") and name not in ("init", "act", "observe", "batched")
    },
    **{name: cls.__name__ for cls in (ImportanceWeighted, ReadsSignals) for name in vars(cls) if not name.startswith("_")},
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
class SingleRun(Learner):
    """A learner for one run, ``batched = False``, mapped over the runs.

    It has ``init(num_arms)``, ``act(state, round)`` and ``observe(state, observation)``, with arrays ``[K]`` per arm and plain numbers
    per run. ``observe`` is called for every round and its result is dropped where nothing has arrived.
    """

    learner: Any

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> PyTree:
        def for_runs(leaf: ArrayLike) -> jax.Array:
            leaf = jnp.asarray(leaf)
            return jnp.broadcast_to(leaf.reshape(*leaf.shape, *[1] * len(runs_shape)), (*leaf.shape, *runs_shape))

        return jax.tree.map(for_runs, self.learner.init(num_arms))

    def act(self, state: PyTree, round: Round) -> tuple[jax.Array, PyTree, PyTree]:
        shape = round.words().first.shape if round.runs_shape is None else round.runs_shape
        if not shape:
            return self.learner.act(state, round)

        def one(run, state, t, outstanding, total):
            def words(pair: Any = 0) -> Words:
                return Words(*(word[run] for word in round.words(pair)))

            mine = Round(t, outstanding, total, words, lambda s: round.is_outstanding(jnp.broadcast_to(s, shape))[run])
            return self.learner.act(state, mine)

        numbers = [jnp.broadcast_to(number, shape) for number in (round.t, round.outstanding, round.total_outstanding)]
        runs = jnp.arange(shape[0], dtype=jnp.uint32)
        return jax.vmap(one, -1, -1)(runs, state, *numbers)

    def observe(self, state: PyTree, observation: Observation) -> PyTree:
        shape = observation.arm.shape
        given = observation._replace(
            arrived=jnp.broadcast_to(observation.arrived, shape), origin=jnp.broadcast_to(observation.origin, shape)
        )

        def one(state, observation):
            after = self.learner.observe(state, observation)
            return jax.tree.map(lambda new, old: jnp.where(observation.arrived, new, old).astype(old.dtype), after, state)

        return jax.vmap(one, -1, -1)(state, given) if shape else one(state, given)


def as_learner(learner: LearnerLike) -> Learner:
    """``learner`` itself, or one with all defaults in front of an object that only has ``init``, ``act`` and ``observe``."""
    if isinstance(learner, type):
        raise TypeError(f"learner={learner.__name__}: give a learner, not its class: {learner.__name__}(...)")
    if isinstance(learner, Learner):
        _check_declared(type(learner))
        return learner if learner.batched else SingleRun(learner)
    # Anything may have come here from the user, so its methods can only be asked for by name.
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
    for name, base in (("importance_weighted", ImportanceWeighted), ("num_signals", ReadsSignals), ("takes_sums", TakesSums)):
        if not issubclass(cls, base) and name in dir(cls) and name not in fields:
            _raise_not_inherited(cls.__name__, name)


def _raise_not_inherited(cls: str, name: str) -> NoReturn:
    raise TypeError(f"learner={cls}(…): {cls}.{name} counts only in a class that inherits from jb.extend.{OPTIONAL[name]}")
