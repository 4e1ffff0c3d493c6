"""Trial calls of user-defined classes before anything is compiled.

Loss and delay models are evaluated in some rounds up to the horizon, for different arms, losses and noise; learners in their
first round. Values out of range would not stop a simulation, but make its results wrong. The classes of this package are tested
against the same rules (:mod:`jaxbandit.testing`), so that only user-defined classes are tried each time.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.per_run import over_runs, own_leaves, run_of
from jaxbandit._core import randomness
from jaxbandit._core.fields import (
    MOST_ROUNDS,
    canonical,
    explain_tracing,
    field_values,
    float_dtype,
    is_concrete,
    pytree_dataclass,
    show,
)
from jaxbandit.delays import NEVER, Delays
from jaxbandit.learners.base import (
    FullInformation,
    Learner,
    Observation,
    ReadsDelays,
    Round,
    as_learner,
    is_a,
    signalled,
    signals_read,
    stages_read,
)
from jaxbandit.losses import AdaptiveLosses, Losses, ShowsStages

TOLERANCE = 1e-5  # of probabilities, means and losses, in single precision
MOST_ARMS = 64  # the number of arms that are tried, at most


def from_elsewhere(part: Any) -> bool:
    """Whether the class of a learner or model, or of one of its parts, is not of this package."""
    inside = [one for value in field_values(part).values() for one in (value if isinstance(value, tuple | list) else [value])]
    own = type(part).__module__.split(".")[0] != __name__.split(".")[0]
    return own or any(from_elsewhere(one) for one in inside if isinstance(one, Learner | Losses | Delays))


def try_game(learner: Any, losses: Losses, delays: Delays, rounds: Any, runs: int | None = None) -> None:
    """Raise if a user's class would not run, with the values of any run; classes of this package are not tried."""
    horizon, num_arms = int(rounds) if is_concrete(rounds) else MOST_ROUNDS, losses.num_arms
    if from_elsewhere(losses):
        when, arms = some_rounds(horizon, losses.length), some_arms(num_arms)
        _try_runs(losses, runs, lambda one: try_losses(one, horizon), _sane_losses, when, arms)
    if from_elsewhere(delays):
        when, arms = some_rounds(horizon, delays.length), some_arms(num_arms)
        _try_runs(delays, runs, lambda one: try_delays(one, num_arms, horizon), _sane_delays, when, arms)
    if from_elsewhere(learner):
        _try_runs(learner, runs, lambda one: try_learner(one, num_arms), _sane_learner, jnp.arange(num_arms))


def _try_runs(part: Any, runs: int | None, attempt: Callable[[Any], None], sane: Callable, *arguments: Any) -> None:
    """``attempt`` the first run, whose shapes all runs share, and each run that is not ``sane``, evaluated for all at once."""
    if runs is None or not any(own_leaves(part)):
        attempt(part)
        return
    attempt(run_of(part, 0))
    for run in np.flatnonzero(~np.asarray(over_runs(sane, part, *arguments))):
        attempt(run_of(part, int(run)))


def _sane_losses(law: Losses, rounds: jax.Array, arms: jax.Array) -> jax.Array:
    law = stateless(law)
    means, drawn = _losses_of(law, rounds, arms)
    return jnp.all(jnp.stack([jnp.all((values >= -TOLERANCE) & (values <= 1 + TOLERANCE)) for values in (means, drawn)]))


def _sane_delays(law: Delays, rounds: jax.Array, arms: jax.Array) -> jax.Array:
    drawn = delays_of(law.prepare(), rounds, arms)
    return jnp.all((drawn >= 0) & ((drawn <= law.bound) | law.may_lose | (law._long_waits > 0)))


def _sane_learner(learner: Any, arms: jax.Array) -> jax.Array:
    x = _first_probabilities(as_learner(learner), arms.size)
    return jnp.all(x >= -TOLERANCE) & jnp.all(jnp.abs(x.sum(0) - 1) <= TOLERANCE)


def _numbers_known(part: Any) -> bool:
    """Whether values are concrete: not inside jit, where even a constant has no value."""
    return is_concrete((part, jnp.zeros(())))


def some_rounds(horizon: int, length: int | None) -> np.ndarray:
    """The first rounds and some later ones up to the last, int32."""
    last = min(horizon, length or horizon)
    spaced = np.round(np.geomspace(1, last, 24)).astype(np.int64)
    return np.unique(np.append(spaced, np.arange(1, min(last, 8) + 1))).astype(np.int32)


def some_noise() -> jax.Array:
    """Uniform numbers as drawn in the rounds, from the smallest to the largest possible."""
    words = np.linspace(0, 2**32 - 1, 17).astype(np.uint32)
    return randomness.uniform(jnp.asarray(words), randomness.grain(float_dtype()))


def some_arms(num_arms: int) -> np.ndarray:
    return np.unique(np.linspace(0, num_arms - 1, min(num_arms, MOST_ARMS)).astype(np.int32))


# Only the shapes are used, by functions at module level: JAX then traces each class once.
_expected = jax.jit(lambda law, t: law.expected(t))
_sample = jax.jit(lambda law, *given: law.sample(*given))
_draw = jax.jit(lambda law, *given: law.draw(*given))
_init = jax.jit(lambda learner, num_arms, runs: learner.init(num_arms, runs), static_argnums=(1, 2))
_act = jax.jit(lambda learner, state, runs: learner.act(state, a_round(runs, learner=learner)), static_argnums=2)
_signalled = jax.jit(lambda learner, state, memo, runs: a_signal(learner, state, memo, runs), static_argnums=3)
_observe = jax.jit(
    lambda learner, state, memo, runs, K: learner.observe(state, an_observation(runs, memo, True, learner, K)),
    static_argnums=(3, 4),
)


_staged = jax.jit(
    lambda learner, state, memo, stage, runs, K: an_outcome(learner, state, stage, runs, memo, True, K),
    static_argnums=(3, 4, 5),
)
_stages = jax.jit(lambda law, *given: law.stages(*given))


def try_losses(losses: Losses, horizon: int) -> None:
    """Raise if means or losses have the wrong shape or leave [0, 1]."""
    name, law, K = f"losses={type(losses).__name__}(…)", canonical(losses), losses.num_arms
    if isinstance(law, AdaptiveLosses):
        _try_adaptive(name, law)
        law = stateless(law)
    t = jax.ShapeDtypeStruct((), jnp.int32)
    with explain_tracing(f"{name}: expected(t)"):
        means = _expected.eval_shape(law, t)
    _shape(name, "expected(t)", means, (K,), f"the means of {K} arms")
    for runs in ((), (5,)):
        arm = jax.ShapeDtypeStruct(runs, jnp.int32)
        noise = jax.ShapeDtypeStruct(runs, jax.random.key(0).dtype if losses.needs_key else float_dtype())
        with explain_tracing(f"{name}: sample(t, arm, noise)"):
            found = _sample.eval_shape(law, t, arm, noise)
        _shape(name, "sample(t, arm, noise)", found, runs, "one loss for each run")
        if isinstance(law, ShowsStages):
            with explain_tracing(f"{name}: stages(t, arm, noise)"):
                found = _stages.eval_shape(law, t, arm, noise)
            count = len(law.stage_delays)
            _shape(name, "stages(t, arm, noise)", found, (count, *runs), f"an outcome for each of {count} stages and each run")
    if not _numbers_known(losses):
        return
    rounds, arms = some_rounds(horizon, losses.length), some_arms(K)
    means, drawn = map(np.asarray, _losses_of(law, rounds, arms))
    for values, call, noun in ((means[:, arms], "expected({})", "a mean of"), (drawn, "sample({}, arm, noise)", "the loss")):
        wrong = np.argwhere(~((values >= -TOLERANCE) & (values <= 1 + TOLERANCE)))
        if len(wrong):
            where, value = call.format(rounds[wrong[0][0]]), show(values[tuple(wrong[0])])
            raise ValueError(f"{name}: {where} gives {noun} {value} for arm {arms[wrong[0][1]]}; losses lie between 0 and 1")


ADAPTED = 64  # rounds in which an adaptive adversary is tried


@pytree_dataclass
class Frozen(Losses):
    """Adaptive losses after some arms, as losses that depend on none."""

    law: AdaptiveLosses
    state: Any

    @property
    def num_arms(self) -> int:
        return self.law.num_arms

    @property
    def needs_key(self) -> bool:
        return self.law.needs_key

    @property
    def length(self) -> int | None:
        return self.law.length

    def expected(self, t: jax.Array) -> jax.Array:
        return self.law.expected_after(self.state, t)

    def sample(self, t: jax.Array, arm: jax.Array, noise: jax.Array) -> jax.Array:
        state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[..., None], (*leaf.shape, arm.size)), self.state)
        drawn = self.law.sample_after(state if arm.ndim else self.state, t, arm, noise)
        return drawn


def stateless(law: Losses) -> Losses:
    """Return ``law``; for adaptive losses, the losses after a few rounds of different arms."""
    if not isinstance(law, AdaptiveLosses):
        return law
    played = jnp.arange(1, ADAPTED + 1, dtype=jnp.int32)

    def one_round(state: Any, t: jax.Array) -> tuple[Any, None]:
        return law.update(state, t, (t * t + t // 7) % law.num_arms), None

    return Frozen(law, jax.lax.scan(one_round, law.init(()), played)[0])


def _try_adaptive(name: str, law: AdaptiveLosses) -> None:
    """Raise if the state of an adaptive adversary does not keep its shapes, or if its means have the wrong one."""
    t = jax.ShapeDtypeStruct((), jnp.int32)
    for runs in ((), (5,)):
        with explain_tracing(f"{name}: init(runs_shape)"):
            state = jax.eval_shape(lambda law, runs=runs: law.init(runs), law)
        with explain_tracing(f"{name}: update(state, t, arm)"):
            after = jax.eval_shape(lambda law, *given: law.update(*given), law, state, t, jax.ShapeDtypeStruct(runs, jnp.int32))
        _same(name, "update(state, t, arm)", state, after)
        with explain_tracing(f"{name}: expected_after(state, t)"):
            means = jax.eval_shape(lambda law, *given: law.expected_after(*given), law, state, t)
        _shape(name, "expected_after(state, t)", means, (law.num_arms, *runs), f"the means of {law.num_arms} arms for each run")


@jax.jit
def _losses_of(law: Losses, rounds: jax.Array, arms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The means ``[T, K]`` and losses ``[T, arms, noise]`` of a loss model."""
    noise = some_noise()
    arm, draw = jnp.repeat(arms, noise.size), jnp.tile(noise, arms.size)
    given = jax.random.split(jax.random.key(0), arm.shape) if law.needs_key else draw
    drawn = jax.vmap(lambda t: jnp.broadcast_to(law.sample(t, arm, given), arm.shape))(rounds)
    return jax.vmap(law.expected)(rounds), drawn.reshape(rounds.size, arms.size, noise.size)


def try_delays(delays: Delays, num_arms: int, horizon: int) -> None:
    """Raise if delays have the wrong shape or type, are negative, or exceed the bound of a model without missing feedback."""
    name, law = f"delays={type(delays).__name__}(…)", canonical(delays).prepare()
    t = jax.ShapeDtypeStruct((), jnp.int32)
    for runs in ((), (5,)):
        arm, loss = jax.ShapeDtypeStruct(runs, jnp.int32), jax.ShapeDtypeStruct(runs, float_dtype())
        noise = jax.ShapeDtypeStruct((), float_dtype()) if delays.shared else loss
        with explain_tracing(f"{name}: draw(t, arm, loss, noise)"):
            found = _draw.eval_shape(law, t, arm, loss, noise)
        if found.shape != ():
            _shape(name, "draw(t, arm, loss, noise)", found, noise.shape, "one delay for each run")
        if not jnp.issubdtype(found.dtype, jnp.integer):
            raise TypeError(
                f"{name}: draw(…) gives {found.dtype}; a delay is a whole number of rounds: end with .astype(jnp.int32)"
            )
    if not _numbers_known(delays):
        return
    rounds, arms = some_rounds(horizon, delays.length), some_arms(num_arms)
    drawn = np.asarray(delays_of(law, rounds, arms))
    _check_drawn(delays, name, rounds, drawn)


def _check_drawn(delays: Delays, name: str, rounds: np.ndarray, drawn: np.ndarray) -> None:
    def first(wrong: np.ndarray) -> tuple[str, str]:
        place = tuple(np.argwhere(wrong)[0])
        return f"draw({rounds[place[0]]}, arm, loss, noise)", show(drawn[place])

    if (drawn < 0).any():
        call, value = first(drawn < 0)
        raise ValueError(f"{name}: {call} gives {value}; a delay is 0 or more rounds, or NEVER")
    late = (drawn > delays.bound) & ~np.asarray(delays.may_lose or delays._long_waits > 0)
    if late.any():
        call, value = first(late)
        raise ValueError(
            f"{name}: {call} gives {'NEVER' if value == str(NEVER) else value}, above bound={delays.bound}, and may_lose is False; "
            "raise the bound, or say may_lose = True in the class"
        )


@jax.jit
def delays_of(law: Delays, rounds: jax.Array, arms: jax.Array) -> jax.Array:
    """The delays ``[T, arm, loss, noise]`` of a prepared model, for the losses 0, 1/2 and 1; equal for all arms if shared."""
    noise, losses = some_noise(), jnp.asarray([0.0, 0.5, 1.0], float_dtype())
    grid = jnp.meshgrid(arms, losses, noise, indexing="ij")
    if law.shared:
        one = jax.vmap(lambda t, noise: law.draw(t, jnp.int32(0), losses[0], noise), (None, 0))
        return jax.vmap(lambda t: jnp.broadcast_to(one(t, noise), grid[0].shape))(rounds)
    arm, loss, draw = (axis.ravel() for axis in grid)
    return jax.vmap(lambda t: jnp.broadcast_to(law.draw(t, arm, loss, draw), arm.shape).reshape(grid[0].shape))(rounds)


def a_round(runs: tuple[int, ...], t: int = 1, is_outstanding: Callable | None = None, learner: Learner | None = None) -> Round:
    """The information of a ``learner`` in a round without outstanding observations."""
    none = jnp.zeros(runs, jnp.int32)
    root, ids = randomness.Words(jnp.uint32(1), jnp.uint32(t)), jnp.arange(max(none.size, 1), dtype=jnp.uint32).reshape(runs)
    return Round(
        jnp.int32(t),
        none,
        none.astype(float_dtype()),
        lambda pair=0: randomness.fold(root, ids, pair),
        is_outstanding or (lambda s: jnp.zeros(jnp.broadcast_shapes(jnp.shape(s), runs), bool)),
        delay=none if learner is not None and is_a(learner, ReadsDelays) else None,
    )


def a_signal(learner: Learner, state: Any, memo: Any, runs: tuple[int, ...], t: int = 1) -> tuple[Any, Any]:
    """Memo and state after the signal 0 of an action of arm 0, for learners that read signals; unchanged for others."""
    zero = jnp.zeros(runs, jnp.int32)
    return (
        signalled(learner, state, a_round(runs, t, learner=learner), zero, zero, memo) if signals_read(learner) else (memo, state)
    )


def an_observation(
    runs: tuple[int, ...], memo: Any, arrived: bool, learner: Learner | None = None, num_arms: int = 0
) -> Observation:
    """A dummy observation of round 1 and arm 0, or one that has not arrived, filled with values that must not be used."""
    nothing, nan = jnp.full(runs, -1, jnp.int32), jnp.full(runs, jnp.nan, float_dtype())
    seen = Observation(jnp.zeros(runs, bool), nothing, nothing, nan, jnp.zeros(runs, float_dtype()), memo)
    if arrived:
        arm, loss, probability = jnp.zeros(runs, jnp.int32), jnp.ones(runs, float_dtype()), jnp.full(runs, 0.5, float_dtype())
        seen = Observation(jnp.ones(runs, bool), jnp.ones(runs, jnp.int32), arm, loss, probability, memo)
    rows = {}
    if learner is not None and is_a(learner, FullInformation):
        rows["losses"] = num_arms
    if learner is not None and stages_read(learner):
        rows["stages"] = stages_read(learner)
    return seen._replace(**{name: jnp.broadcast_to(seen.loss, (count, *runs)) for name, count in rows.items()})


def an_outcome(learner: Any, state: Any, stage: int, runs: tuple[int, ...], memo: Any, arrived: bool, num_arms: int) -> Any:
    """The state of a learner that reads outcomes before the loss, after a dummy one."""
    seen = an_observation(runs, memo, arrived, learner, num_arms)
    later = jnp.arange(stages_read(learner)).reshape(-1, *[1] * len(runs)) > stage
    return learner.staged(state, stage, seen._replace(loss=jnp.zeros_like(seen.loss), stages=jnp.where(later, 0, seen.stages)))


def try_learner(learner: Any, num_arms: int) -> None:
    """Raise if the outputs of the methods have wrong shapes, or if the probabilities of round 1 are invalid."""
    name, full = f"learner={type(learner).__name__}(…)", as_learner(canonical(learner))
    for runs in ((), (5,)):
        with explain_tracing(f"{name}: init(num_arms, runs_shape)"):
            state = _init.eval_shape(full, num_arms, runs)
        with explain_tracing(f"{name}: act(state, round)"):
            acted = _act.eval_shape(full, state, runs)
        if not isinstance(acted, tuple) or len(acted) != 3:
            raise TypeError(f"{name}: act(state, round) must return three things: probabilities, memo (or ()) and state")
        probabilities, memo, after = acted
        _shape(
            name, "act(state, round)", probabilities, (num_arms, *runs), f"a probability for each of {num_arms} arms and each run"
        )
        if not jnp.issubdtype(probabilities.dtype, jnp.floating):
            raise TypeError(
                f"{name}: act(state, round) gives probabilities of dtype {probabilities.dtype}; they are floats: end with "
                ".astype(float_dtype()), also after one_hot"
            )
        _same(name, "act(state, round)", state, after)
        with explain_tracing(f"{name}: signalled(state, round, arm, signal, memo)"):
            memo, after = _signalled.eval_shape(full, after, memo, runs)
        _same(name, "signalled(state, round, arm, signal, memo)", state, after)
        for stage in range(stages_read(full)):
            with explain_tracing(f"{name}: staged(state, stage, observation)"):
                staged = _staged.eval_shape(full, state, memo, stage, runs, num_arms)
            _same(name, "staged(state, stage, observation)", state, staged)
        with explain_tracing(f"{name}: observe(state, observation)"):
            observed = _observe.eval_shape(full, state, memo, runs, num_arms)
        _same(name, "observe(state, observation)", state, observed)
    if _numbers_known(learner):
        check_probabilities(f"{name}: act(state, round) in round 1", np.asarray(_first_probabilities(full, num_arms)))


@functools.partial(jax.jit, static_argnames="num_arms")
def _first_probabilities(learner: Learner, num_arms: int) -> jax.Array:
    return learner.act(learner.init(num_arms, (5,)), a_round((5,), learner=learner))[0]


def check_probabilities(where: str, x: np.ndarray, axis: int = 0) -> None:
    """Raise if ``x`` is not on the simplex along ``axis``."""
    if not np.all(np.isfinite(x)):
        raise ValueError(f"{where} gives the probability {show(x[~np.isfinite(x)][0])}; probabilities are finite numbers")
    if x.min() < -TOLERANCE:
        raise ValueError(f"{where} gives the probability {show(x.min())}; probabilities are 0 or more")
    total = x.sum(axis, dtype=np.float64)
    if np.abs(total - 1).max() > TOLERANCE:
        worst = total.flat[np.abs(total - 1).argmax()]
        raise ValueError(f"{where} gives probabilities that sum to {worst:.6g}; over the arms, axis {axis}, they must sum to 1")


def _shape(name: str, call: str, found: Any, wanted: tuple[int, ...], meaning: str) -> None:
    if not isinstance(found, jax.ShapeDtypeStruct):
        raise TypeError(f"{name}: {call} gives a {type(found).__name__}; an array of shape {wanted} is needed, {meaning}")
    if found.shape != wanted:
        raise ValueError(f"{name}: {call} gives an array of shape {found.shape}; {wanted} is needed, {meaning}")


def _same(name: str, call: str, before: Any, after: Any) -> None:
    """Check that a state keeps its structure, shapes and types."""
    one, two = jax.tree_util.tree_flatten_with_path(before), jax.tree_util.tree_flatten_with_path(after)
    if one[1] != two[1]:
        raise TypeError(f"{name}: {call} gives a state of another structure than init: {two[1]} in place of {one[1]}")
    for (path, was), (_, now) in zip(one[0], two[0], strict=True):
        if (was.shape, was.dtype) != (now.shape, now.dtype):
            leaf = f"state{jax.tree_util.keystr(path)}"
            raise TypeError(
                f"{name}: {call} makes {leaf} {now.dtype}{list(now.shape)}, and init made it {was.dtype}{list(was.shape)}; "
                "a state keeps shapes and types"
            )
