"""The gradient of the **expected** regret in a learner's hyperparameters.

Differentiating a rollout holds the sampled arms fixed, which is not that gradient: the arms are drawn from probabilities
that move with the hyperparameters. ``docs/gradients.md`` derives the estimators and measures them.
"""

import dataclasses
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.arms import pick, sums
from jaxbandit.measure import ControlVariates
from jaxbandit.pytrees import canonical, float_dtype, pytree_dataclass, show
from jaxbandit.result import _increments, _intercepts
from jaxbandit.rollout import Game, State, log_spaced
from jaxbandit.simulate import block_size
from jaxbandit.validation import check_game, check_key, check_rounds, check_runs

Estimator = Literal["jump", "paired", "score", "fluid"]
RECORDED = 24  # log-spaced rounds at which the control variates are read
MANY = 8  # numbers from which on reverse mode is used
GROUPS = 16  # of runs in a block, in reverse mode: one gradient for each group


@dataclasses.dataclass(frozen=True, eq=False)
class Gradient:
    """Expected final regret and its derivative, each with its standard error over runs."""

    value: float
    value_error: float
    gradient: Any  # shaped like the learner, in its own coordinates; 0 in leaves of whole numbers
    error: Any  # shaped like the learner
    estimator: str  # the one used
    note: str = ""  # why it is not the one asked for


def regret_gradient(
    learner,
    losses,
    delays,
    *,
    rounds: int,
    runs: int,
    key: jax.Array,
    estimator: Estimator | None = None,
    first_run: int = 0,
    control_variates: bool = True,
    step: float = 0.3,
    reverse: bool | None = None,
    only: Sequence[str] | None = None,
) -> Gradient:
    """The gradient of the expected regret after ``rounds`` rounds in the learner's hyperparameters.

    ================ ======================================== ======================= ===================================
    estimator        bias                                     spread                  cost, in simulations
    ================ ======================================== ======================= ===================================
    ``"jump"``       third order in the size of one jump of   smallest                1 + about 0.4 for each number
                     the loss estimates: a few per mille
    ``"paired"``     O(step²)                                 2 to 40 times larger    2 for each number
    ``"score"``      none                                     100 to 10⁵ times larger 1 + about 0.4 for each number
    ``"fluid"``      5 to 50 %                                none                    that of one run, whatever ``runs``
    ================ ======================================== ======================= ===================================

    ``"jump"``, the jump tangent, needs a learner whose feedback enters through importance-weighted estimates (the FTRL
    family and exponential weights; see :class:`jaxbandit.learners.base.ImportanceWeighted`) and delays that depend neither
    on arms nor on losses. Otherwise ``"paired"`` is used, a warning says so once, and ``note`` says why. Where a
    hyperparameter also decides something by a threshold (which plays are skipped, the 16 of reduced variance), ``"jump"``
    and ``"score"`` see what it does between two decisions, and only ``"paired"`` sees the decisions.

    Args:
      learner, losses, delays, rounds, runs, key, first_run: as in :func:`jaxbandit.simulate`; run i meets the same numbers.
      estimator: ``"jump"`` (also for None), ``"paired"`` (central differences with common random numbers), ``"score"`` (score
        function with a leave-one-out baseline) or ``"fluid"`` (every play brings the expected losses).
      control_variates: use the known means of the loss estimates to narrow all errors; see :meth:`jaxbandit.Result.estimate`.
      step: of ``"paired"``, in the logarithm of positive hyperparameters; those that are 0 move to ``step``.
      reverse: for ``"jump"``: reverse mode, whose cost does not grow with the number of hyperparameters and whose memory
        grows with √rounds, or forward mode, whose memory is flat. None: reverse from 8 numbers on. Errors are then over
        groups of runs, so give it many runs.
      only: the hyperparameters wanted, by name; the others get 0. None: all that are not whole numbers.

    Returns:
      A :class:`Gradient`; ``optax.apply_updates(learner, updates)`` takes what an optimiser makes of its ``gradient``.

    >>> import jax, jaxbandit as jb
    >>> found = jb.regret_gradient(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                            rounds=200, runs=256, key=jax.random.key(0))
    >>> bool(found.gradient.factor > 5 * found.error.factor > 0)  # a smaller factor is better here
    True
    """
    check_key(key)
    check_rounds(rounds)
    check_runs(runs, first_run)
    check_game(learner, losses, delays, rounds)
    _check_options(estimator, step)
    learner, losses, delays = canonical(learner), canonical(losses), canonical(delays)
    estimator = estimator or "jump"
    note = "" if estimator in ("paired", "score") else _obstacle(learner, delays, estimator)
    if note:
        _say_once(note)
        estimator = "paired"
    measure = (*([ControlVariates()] if control_variates else []), *([Score()] if estimator == "score" else []))
    feedback = {"jump": "jump", "fluid": "expected"}.get(estimator, "sampled")
    block = block_size(losses.num_arms)
    if estimator == "fluid" and getattr(delays, "shared", False):
        block = runs = 1  # all runs are the same
    game = Game.set_up(learner, losses, delays, key, jnp.zeros(block, jnp.uint32), measure)
    game = dataclasses.replace(game, feedback=feedback)
    which = _chosen(learner, only)
    record = log_spaced(rounds, RECORDED).astype(np.int32)
    many = sum(jax.tree.leaves(learner)[i].size for i in which) >= MANY
    if estimator == "paired":
        per_run = _paired(game, record, which, step, runs, first_run)
    elif estimator == "jump" and (many if reverse is None else reverse):
        per_run = _reversed(game, rounds, which, runs, first_run)
    else:
        per_run = _over_blocks(functools.partial(_forward, which=which), game, (record,), runs, first_run)
    return _summed_up(learner, which, per_run, estimator, note)


def _check_options(estimator: Any, step: Any) -> None:
    if estimator is not None and estimator not in get_args(Estimator):
        raise ValueError(f"estimator={show(estimator)}: the estimators are {', '.join(map(repr, get_args(Estimator)))}")
    if not isinstance(step, int | float) or not 0 < step < math.inf:
        raise ValueError(f"step={show(step)}: the step of paired differences is a number above 0, such as 0.3")


def named_leaves(learner) -> dict[str, jax.Array]:
    """The leaves that are not whole numbers, by name."""
    paths = jax.tree_util.tree_flatten_with_path(learner)[0]
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
    return {name: leaf for name, leaf in named.items() if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)}


def _chosen(learner, only: Sequence[str] | None) -> tuple[int, ...]:
    """The places of the wanted leaves among all."""
    names = [
        jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree_util.tree_flatten_with_path(learner)[0]
    ]
    known = named_leaves(learner)
    wanted = list(known) if only is None else list(only)
    if not known:
        raise ValueError(f"learner={type(learner).__name__}(…): it has no hyperparameter to differentiate by")
    for name in wanted:
        if name not in known:
            raise ValueError(f"only=[{name!r}]: {type(learner).__name__} has the hyperparameters {', '.join(known)}")
    return tuple(sorted(names.index(name) for name in wanted))


def _obstacle(learner, delays, estimator: str) -> str:
    name = type(learner).__name__
    if not getattr(learner, "importance_weighted", False):
        return f"estimator={estimator!r}: {name} uses its feedback otherwise than by importance weighting; 'paired' is used"
    if estimator == "jump" and not getattr(delays, "oblivious", False):
        return f"estimator='jump': delays.{type(delays).__name__} may depend on the arm or the loss; 'paired' is used"
    return ""


@functools.cache
def _say_once(note: str) -> None:
    warnings.warn(note, stacklevel=4)


@pytree_dataclass
class PerRun:
    """What an estimator brings back of each run (or group of runs), on the last axis."""

    regret: Any  # [runs], an array of JAX in a block and of NumPy once blocks are joined; so are all
    gradient: list[Any]  # of each leaf [..., runs]
    features: Any  # [C, F, runs] control variates at the recorded rounds, cumulative; or None
    rounds: Any  # [C] those rounds
    own: list[Any] | None = None  # [C, F, runs] control variates of each number of the gradient, if it has its own


def _summed_up(learner, which: tuple[int, ...], per_run: PerRun, estimator: str, note: str) -> Gradient:
    runs = per_run.regret.shape[-1]
    rows = np.concatenate([leaf.reshape(-1, runs) for leaf in per_run.gradient]).astype(np.float64)
    features = None if per_run.features is None else _increments(per_run.features, per_run.rounds)
    value, value_error = _intercepts(per_run.regret[None].astype(np.float64), features)
    if per_run.own is None:
        slopes, errors = _intercepts(rows, features)
    else:
        fits = [_intercepts(row[None], _increments(own, per_run.rounds)) for row, own in zip(rows, per_run.own, strict=True)]
        slopes, errors = (np.concatenate(column) for column in zip(*fits, strict=True))
    if runs == 1:  # the fluid limit: nothing is left to chance
        value_error, errors = np.zeros(1), np.zeros_like(slopes)
    gradient, error = ([np.zeros(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(learner)] for _ in range(2))
    start = 0
    for place in which:
        size, shape = gradient[place].size, gradient[place].shape
        for out, numbers in ((gradient, slopes), (error, errors)):
            out[place] = numbers[start : start + size].reshape(shape).astype(out[place].dtype)
        start += size
    structure = jax.tree.structure(learner)
    return Gradient(
        float(value[0]),
        float(value_error[0]),
        jax.tree.unflatten(structure, gradient),
        jax.tree.unflatten(structure, error),
        estimator,
        note,
    )


def _over_blocks(call: Callable, game: Game, arguments: tuple, runs: int, first_run: int) -> PerRun:
    """``call(game, *arguments)`` for every block of runs, blocks in turn on the devices; joined on the last axis."""
    block = game.runs.shape[0]

    def work(start: int, device):
        ids = np.arange(first_run + start, first_run + start + block, dtype=np.int64).astype(np.uint32)
        mine, placed = jax.device_put((dataclasses.replace(game, runs=ids), arguments), device)
        return jax.tree.map(np.asarray, call(mine, *placed))

    devices = jax.local_devices()
    threads = [ThreadPoolExecutor(1) for _ in devices]
    try:
        turns = itertools.cycle(zip(threads, devices, strict=True))
        futures = [one.submit(work, start, device) for start, (one, device) in zip(range(0, runs, block), turns, strict=False)]
        blocks = [future.result() for future in futures]
    finally:
        for thread in threads:
            thread.shutdown(wait=False, cancel_futures=True)
    whole = len(blocks) * blocks[0].regret.shape[-1]
    kept = math.ceil(runs * whole / (len(blocks) * block))
    joined = jax.tree.map(lambda *parts: np.concatenate(parts, -1)[..., :kept], *[_no_rounds(one) for one in blocks])
    return dataclasses.replace(joined, rounds=blocks[0].rounds)


def _no_rounds(per_run: PerRun) -> PerRun:
    return dataclasses.replace(per_run, rounds=np.zeros(1))


def _with_leaves(game: Game, which: tuple[int, ...], values: Sequence[jax.Array]) -> Game:
    """The game with some leaves of its learner replaced."""
    leaves, structure = jax.tree.flatten(game.learner)
    for place, value in zip(which, values, strict=True):
        leaves[place] = value
    return dataclasses.replace(game, learner=jax.tree.unflatten(structure, leaves))


def _played(game: Game, record: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Final regret ``[...]`` and what was measured, by a loop whose memory is flat."""
    state, records = game.advance(game.start(), jnp.int32(0), record, False)
    return game.regret(state), records.measured


@functools.partial(jax.jit, static_argnames="which")
def _forward(game: Game, record: jax.Array, which: tuple[int, ...]) -> PerRun:
    """Forward mode: one tangent for each number, all carried through one loop."""
    values = [jax.tree.leaves(game.learner)[i] for i in which]
    sizes = [value.size for value in values]

    def regret(values):
        regret, measured = _played(_with_leaves(game, which, values), record)
        score = measured.pop("score", None)
        return regret if score is None else regret + score[-1], (regret, measured.get("control_variates"))

    def along(direction):
        pieces = jnp.split(direction, np.cumsum(sizes)[:-1])
        tangent = [piece.reshape(value.shape) for piece, value in zip(pieces, values, strict=True)]
        _, slope, (regret_, features) = jax.jvp(regret, (values,), (tangent,), has_aux=True)
        return slope, regret_, features

    slopes, value, features = jax.vmap(along, out_axes=(0, None, None))(jnp.eye(sum(sizes), dtype=float_dtype()))
    pieces = jnp.split(slopes, np.cumsum(sizes)[:-1])
    gradient = [piece.reshape(*leaf.shape, -1) for piece, leaf in zip(pieces, values, strict=True)]
    return PerRun(value, gradient, features, record)


@pytree_dataclass
class Score:
    """A measurement of value 0 whose tangent is Σ_t (r_t - b_t)·d log p(arms before t), r_t = <x_t, m_t - min m_t>.

    The baseline b_t is the mean of r_t over the other runs of the block. With the path derivative of the regret it is the
    score function's gradient, its rewards averaged over the arm of the round.
    """

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape, float_dtype()), jnp.zeros(runs_shape, float_dtype())

    def update(self, state, moment):
        score, chance = state
        above = moment.means - moment.means.min()
        (regret,) = lax.stop_gradient(sums(moment.probabilities * above.reshape(-1, *[1] * moment.arm.ndim)))
        baseline = (regret.sum() - regret) / max(regret.size - 1, 1)
        chosen = jnp.log(pick(moment.probabilities, moment.arm))
        return score + (regret - baseline) * chance, chance + (chosen - lax.stop_gradient(chosen))

    def read(self, state):
        return {"score": state[0]}


def _paired(game: Game, record, which: tuple[int, ...], step: float, runs: int, first_run: int) -> PerRun:
    """Central differences, all perturbed learners in one batch; run i of each meets the same numbers."""
    leaves, structure = jax.tree.flatten(game.learner)
    sizes = [leaves[i].size for i in which]
    count = sum(sizes)
    stacked = [np.repeat(np.asarray(leaf)[None], 2 * count + 1, 0) for leaf in leaves]  # the last is the learner itself
    widths, row = [], 0
    for place in which:
        flat = stacked[place].reshape(2 * count + 1, -1)
        for column in range(flat.shape[1]):
            centre = float(flat[-1, column])
            flat[row, column] = centre * math.exp(step) if centre else step
            flat[count + row, column] = centre * math.exp(-step)
            widths.append(2 * step * centre if centre else step)  # a central difference in the logarithm
            row += 1
    learners = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in stacked])
    out = _over_blocks(_batch, game, (learners, record), runs, first_run)
    slopes = (out.gradient[0][:count] - out.gradient[0][count : 2 * count]) / np.array(widths)[:, None]
    pieces = np.split(slopes, np.cumsum(sizes)[:-1])
    gradient = [piece.reshape(*leaves[i].shape, -1) for piece, i in zip(pieces, which, strict=True)]
    if out.features is None:
        return dataclasses.replace(out, gradient=gradient)
    own = [np.concatenate([out.features[row], out.features[count + row]], 1) for row in range(count)]
    return dataclasses.replace(out, gradient=gradient, features=out.features[-1], own=own)


@jax.jit
def _batch(game: Game, learners: Any, record: jax.Array) -> PerRun:
    """Regrets of several learners on a leading axis, in the place of a gradient."""
    regret, measured = jax.vmap(lambda learner: _played(dataclasses.replace(game, learner=learner), record))(learners)
    return PerRun(regret[-1], [regret], measured.get("control_variates"), record)


def _reversed(game: Game, rounds: int, which: tuple[int, ...], runs: int, first_run: int) -> PerRun:
    call = functools.partial(_backward, rounds=rounds, which=which)
    return _over_blocks(call, game, (), runs, first_run)


@functools.partial(jax.jit, static_argnames=("rounds", "which"))
def _backward(game: Game, rounds: int, which: tuple[int, ...]) -> PerRun:
    """Reverse mode: one gradient for each group of runs, states kept at every √rounds-th round."""
    values = [jax.tree.leaves(game.learner)[i] for i in which]
    stretch = math.isqrt(rounds)
    groups = game.runs.reshape(min(GROUPS, game.runs.shape[0]), -1)

    def mean_regret(values, ids):
        mine = dataclasses.replace(_with_leaves(game, which, values), runs=ids)

        def one_round(state: State, t):
            return mine.step(state, t, differentiable=True)[0], None

        @jax.checkpoint
        def one_stretch(state: State, first):
            state, _ = lax.scan(one_round, state, first + jnp.arange(stretch, dtype=jnp.int32))
            return state, mine.readings(state)

        whole = rounds // stretch * stretch
        state, read = lax.scan(one_stretch, mine.start(), jnp.arange(1, whole + 1, stretch, dtype=jnp.int32))
        if whole < rounds:
            state, _ = jax.checkpoint(lambda state: lax.scan(one_round, state, jnp.arange(whole + 1, rounds + 1)))(state)
            read = jax.tree.map(lambda all, last: jnp.append(all, last[None], 0), read, mine.readings(state))
        features = read.get("control_variates")
        regret = mine.regret(state).mean()
        return regret, (regret, None if features is None else features.mean(-1))

    per_group = jax.vmap(jax.grad(mean_regret, has_aux=True), (None, 0), out_axes=-1)
    gradient, (regret, features) = per_group(values, groups)
    ends = jnp.minimum(jnp.arange(1, -(-rounds // stretch) + 1) * stretch, rounds)
    return PerRun(regret, gradient, features, ends)
