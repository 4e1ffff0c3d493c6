"""The gradient of the **expected** regret in a learner's hyperparameters.

Differentiating a rollout holds the sampled arms fixed, which is not that gradient: the arms are drawn from probabilities
that move with the hyperparameters. ``docs/gradients.md`` derives the estimators and measures them.
"""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit.arms import inner, pick
from jaxbandit.blocks import Block, compiled, join, play_blocks
from jaxbandit.delays import Delays
from jaxbandit.forms import block_size
from jaxbandit.game import Feedback, Game, State, checked_game
from jaxbandit.gradients.gradient import Gradient, named_leaves
from jaxbandit.gradients.jump import FluidLimit, JumpTangent
from jaxbandit.learners.base import as_learner
from jaxbandit.losses import Losses
from jaxbandit.measure import ControlVariates, Moment
from jaxbandit.progress import Progress, showing
from jaxbandit.pytrees import canonical, float_dtype, pytree_dataclass, show
from jaxbandit.statistics import increments, intercepts
from jaxbandit.validation import check_outside_transformations, given_key, log_spaced

Estimator = Literal["jump", "paired", "score", "fluid"]
RECORDED = 24  # log-spaced rounds at which the control variates are read
MANY = 8  # numbers from which on reverse mode is used
GROUPS = 16  # of runs in a block, in reverse mode: one gradient for each group
FEEDBACK: dict[str, Feedback] = {"jump": JumpTangent(), "fluid": FluidLimit()}  # the other estimators use the sampled losses


def regret_gradient(
    learner: Any,
    losses: Losses,
    delays: Delays,
    *,
    rounds: int,
    runs: int,
    key: jax.Array | None = None,
    seed: int | None = None,
    estimator: Estimator | None = None,
    first_run: int = 0,
    control_variates: bool = True,
    step: float = 0.3,
    reverse: bool | None = None,
    only: Sequence[str] | None = None,
    progress: bool | Progress = False,
) -> Gradient:
    """The gradient of the expected regret after ``rounds`` rounds in the learner's hyperparameters.

    ================ ======================================== ======================= ===================================
    estimator        bias                                     spread                  cost, in simulations
    ================ ======================================== ======================= ===================================
    ``"jump"``       no bound proved; mostly below 2 %, up    smallest                1 + about 0.4 for each number
                     to 10 % at low rates without delay
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
      learner, losses, delays, rounds, runs, key, seed, first_run: as in :func:`jaxbandit.simulate`; run i meets the same numbers.
      estimator: ``"jump"`` (also for None), ``"paired"`` (central differences with common random numbers), ``"score"`` (score
        function with a leave-one-out baseline) or ``"fluid"`` (every play brings the expected losses).
      control_variates: use the known means of the loss estimates to narrow all errors; see :meth:`jaxbandit.Result.estimate`.
      step: of ``"paired"``, in the logarithm of positive hyperparameters; those that are 0 move to ``step``.
      reverse: for ``"jump"``: reverse mode, whose cost does not grow with the number of hyperparameters and whose memory
        grows with √rounds, or forward mode, whose memory is flat. None: reverse from 8 numbers on. Errors are then over
        groups of runs, so give it many runs.
      only: the hyperparameters wanted, by name; the others get 0. None: all that are not whole numbers.
      progress: show a progress bar, or move one that is shown already. It moves once for each block of runs.

    Returns:
      A :class:`Gradient`; ``optax.apply_updates(learner, updates)`` takes what an optimiser makes of its ``gradient``.

    >>> import jax, jaxbandit as jb
    >>> found = jb.regret_gradient(jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5),
    ...                            rounds=200, runs=256, key=jax.random.key(0))
    >>> bool(found.gradient.factor > 5 * found.error.factor > 0)  # a smaller factor is better here
    True
    """
    check_outside_transformations("regret_gradient", learner, losses, delays, rounds, runs, first_run, key, seed)
    key = given_key(key, seed)
    check_options(estimator, step)
    used, note = estimator or "jump", ""
    measure = (*([ControlVariates()] if control_variates else []), *([Score()] if used == "score" else []))
    game = checked_game(learner, losses, delays, rounds=rounds, key=key, runs=runs, first_run=first_run, measure=measure)
    rounds, learner = int(rounds), canonical(learner)
    if used in FEEDBACK:
        note = _obstacle(learner, delays, used)
        if note:
            _say_once(note)
            used = "paired"
        game = dataclasses.replace(game, feedback=FEEDBACK.get(used))
    size = block_size(game.losses.num_arms)
    certain = used == "fluid" and delays.shared
    if certain:  # nothing is left to chance, so that one run stands for all
        game, size = dataclasses.replace(game, runs=game.runs[:1]), 1
    which = _chosen(learner, only)
    record = log_spaced(rounds, RECORDED).astype(np.int32)
    many = sum(jax.tree.leaves(learner)[i].size for i in which) >= MANY
    text = f"gradient over {game.runs.size} runs x {rounds} rounds"
    with showing(progress, game.runs.size * rounds, text) as bar:
        work = Work(game, size, rounds, bar)
        if used == "paired":
            per_run = _paired(work, record, which, step)
        elif used == "jump" and (many if reverse is None else reverse):
            per_run = over_blocks(_backward, work, rounds=rounds, which=which)
        else:
            per_run = over_blocks(_forward, work, record, which=which)
    return _summed_up(learner, which, per_run, certain, used, note)


def check_options(estimator: Any, step: Any = 0.3) -> None:
    """Raise ValueError, in one sentence, if there is no such estimator or step."""
    if estimator is not None and estimator not in get_args(Estimator):
        raise ValueError(f"estimator={show(estimator)}: the estimators are {', '.join(map(repr, get_args(Estimator)))}")
    if not isinstance(step, int | float) or not 0 < step < math.inf:
        raise ValueError(f"step={show(step)}: the step of paired differences is a number above 0, such as 0.3")


def check_names(learner: Any, only: Any) -> None:
    """Raise, in one sentence, unless ``only`` is None or some of the learner's hyperparameters."""
    known, owner = named_leaves(learner), type(learner).__name__
    if not known:
        raise ValueError(f"learner={owner}(…): it has no hyperparameter to differentiate by")
    if only is None:
        return
    if isinstance(only, str) or not isinstance(only, Sequence) or not only:
        raise ValueError(f"only={show(only)}: give a list of hyperparameters; {owner} has {', '.join(known)}")
    for name in only:
        if name not in known:
            raise ValueError(f"only=[{name!r}]: {owner} has the hyperparameters {', '.join(known)}")


def _chosen(learner: Any, only: Sequence[str] | None) -> tuple[int, ...]:
    """The places of the wanted leaves among all."""
    names = [
        jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree_util.tree_flatten_with_path(learner)[0]
    ]
    check_names(learner, only)
    wanted = named_leaves(learner) if only is None else only
    return tuple(sorted(names.index(name) for name in wanted))


def _obstacle(learner: Any, delays: Delays, estimator: str) -> str:
    """A sentence that says why the estimator cannot be used here; empty if it can."""
    name = type(learner).__name__
    if not as_learner(learner).importance_weighted:
        return f"estimator={estimator!r}: {name} uses its feedback otherwise than by importance weighting; 'paired' is used"
    if estimator == "jump" and not delays.oblivious:
        return f"estimator='jump': delays.{type(delays).__name__} may depend on the arm or the loss; 'paired' is used"
    return ""


@functools.cache
def _say_once(note: str) -> None:
    warnings.warn(note, stacklevel=3)


@pytree_dataclass
class PerRun:
    """What an estimator brings back of each run (or group of runs), on the last axis."""

    # Arrays of JAX inside a program, of NumPy once blocks are joined.
    regret: Any  # [runs]
    gradient: list[Any]  # of each leaf [..., runs]
    features: Any  # [C, F, runs] control variates at the recorded rounds, cumulative; or None
    rounds: Any  # [C] those rounds
    own: list[Any] | None = None  # [C, F, runs] control variates of each number of the gradient, if it has its own


def _summed_up(learner: Any, which: tuple[int, ...], per_run: PerRun, certain: bool, estimator: str, note: str) -> Gradient:
    """Means over runs with their errors, in the shape of the learner; ``certain``: all runs are the same, so the errors are 0."""
    runs = per_run.regret.shape[-1]
    rows = np.concatenate([leaf.reshape(-1, runs) for leaf in per_run.gradient]).astype(np.float64)
    features = None if per_run.features is None else increments(per_run.features, per_run.rounds)
    value, value_error = intercepts(per_run.regret[None].astype(np.float64), features)
    if per_run.own is None:
        slopes, errors = intercepts(rows, features)
    else:
        fits = [intercepts(row[None], increments(own, per_run.rounds)) for row, own in zip(rows, per_run.own, strict=True)]
        slopes, errors = (np.concatenate(column) for column in zip(*fits, strict=True))
    if certain:
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


@dataclasses.dataclass(frozen=True)
class Work:
    """What an estimator plays."""

    game: Game  # with the ids of all runs
    size: int  # runs in a block
    rounds: int
    progress: Progress


def over_blocks(program: Callable[..., PerRun], work: Work, *arrays: Any, **options: Any) -> PerRun:
    """``program(game, *arrays, **options)`` for every block of runs, joined on the last axis."""

    def play(block: Block) -> PerRun:
        found = jax.tree.map(np.asarray, program(block.game, *block.put(arrays), **options))
        block.played(work.rounds)
        return found

    blocks = play_blocks(play, work.game, size=work.size, progress=work.progress)
    # An estimator may bring back one column for each group of runs in place of one for each run.
    kept = math.ceil(work.game.runs.size * blocks[0].regret.shape[-1] / work.size)
    joined = join([dataclasses.replace(one, rounds=None) for one in blocks], kept)
    return dataclasses.replace(joined, rounds=blocks[0].rounds)


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


@compiled
def _forward(game: Game, record: jax.Array, *, which: tuple[int, ...]) -> PerRun:
    """Forward mode: one derivative for each number, all carried through one loop."""
    values = [jax.tree.leaves(game.learner)[i] for i in which]
    sizes = [value.size for value in values]

    def regret(values):
        regret, measured = _played(_with_leaves(game, which, values), record)
        score = measured.pop("score", None)
        return regret if score is None else regret + score[-1], (regret, measured.get("control_variates"))

    def along(direction):
        parts = jnp.split(direction, np.cumsum(sizes)[:-1])
        tangent = [part.reshape(value.shape) for part, value in zip(parts, values, strict=True)]
        _, slope, (regret_, features) = jax.jvp(regret, (values,), (tangent,), has_aux=True)
        return slope, regret_, features

    slopes, value, features = jax.vmap(along, out_axes=(0, None, None))(jnp.eye(sum(sizes), dtype=float_dtype()))
    parts = jnp.split(slopes, np.cumsum(sizes)[:-1])
    gradient = [part.reshape(*leaf.shape, -1) for part, leaf in zip(parts, values, strict=True)]
    return PerRun(value, gradient, features, record)


@pytree_dataclass
class Score:
    """A measurement that is always 0 and whose derivative is Σ_t (r_t - b_t)·d log p(arms before t), r_t = <x_t, m_t - min m_t>.

    Added to the regret it changes no value and makes its derivative that of the score function, with rewards averaged over
    the arm of the round. The baseline b_t is the mean of r_t over the other runs of the block.
    """

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(runs_shape, float_dtype()), jnp.zeros(runs_shape, float_dtype())

    def update(self, state: tuple[jax.Array, jax.Array], moment: Moment) -> tuple[jax.Array, jax.Array]:
        score, chance = state  # chance: 0, with the derivative of log p(arms so far)
        above = moment.means - moment.means.min()
        regret = lax.stop_gradient(inner(moment.probabilities, above))
        baseline = (regret.sum() - regret) / max(regret.size - 1, 1)
        chosen = jnp.log(pick(moment.probabilities, moment.arm))
        return score + (regret - baseline) * chance, chance + (chosen - lax.stop_gradient(chosen))

    def read(self, state: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
        return {"score": state[0]}


def _paired(work: Work, record: np.ndarray, which: tuple[int, ...], step: float) -> PerRun:
    """Central differences, all perturbed learners in one batch; run i of each meets the same numbers."""
    leaves, structure = jax.tree.flatten(work.game.learner)
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
    out = over_blocks(_batch, work, learners, record)
    slopes = (out.gradient[0][:count] - out.gradient[0][count : 2 * count]) / np.array(widths)[:, None]
    parts = np.split(slopes, np.cumsum(sizes)[:-1])
    gradient = [part.reshape(*leaves[i].shape, -1) for part, i in zip(parts, which, strict=True)]
    if out.features is None:
        return dataclasses.replace(out, gradient=gradient)
    own = [np.concatenate([out.features[row], out.features[count + row]], 1) for row in range(count)]
    return dataclasses.replace(out, gradient=gradient, features=out.features[-1], own=own)


@compiled
def _batch(game: Game, learners: Any, record: jax.Array) -> PerRun:
    """Regrets of several learners on a leading axis, in the place of a gradient."""
    regret, measured = jax.vmap(lambda learner: _played(dataclasses.replace(game, learner=learner), record))(learners)
    return PerRun(regret[-1], [regret], measured.get("control_variates"), record)


@compiled
def _backward(game: Game, *, rounds: int, which: tuple[int, ...]) -> PerRun:
    """Reverse mode: one gradient for each group of runs.

    Rounds are cut into √rounds segments; only the states between them are kept, and a segment is played once more on the way back.
    """
    values = [jax.tree.leaves(game.learner)[i] for i in which]
    segment = math.isqrt(rounds)
    groups = game.runs.reshape(min(GROUPS, game.runs.shape[0]), -1)

    def mean_regret(values, ids):
        mine = dataclasses.replace(_with_leaves(game, which, values), runs=ids)

        def one_round(state: State, t):
            return mine.step(state, t, differentiable=True)[0], None

        @jax.checkpoint
        def one_segment(state: State, first):
            state, _ = lax.scan(one_round, state, first + jnp.arange(segment, dtype=jnp.int32))
            return state, mine.readings(state)

        in_segments = rounds // segment * segment  # the rounds of all segments but a shorter last one
        state, read = lax.scan(one_segment, mine.start(), jnp.arange(1, in_segments + 1, segment, dtype=jnp.int32))
        if in_segments < rounds:
            state, _ = jax.checkpoint(lambda state: lax.scan(one_round, state, jnp.arange(in_segments + 1, rounds + 1)))(state)
            read = jax.tree.map(lambda all, last: jnp.append(all, last[None], 0), read, mine.readings(state))
        features = read.get("control_variates")
        regret = mine.regret(state).mean()
        return regret, (regret, None if features is None else features.mean(-1))

    per_group = jax.vmap(jax.grad(mean_regret, has_aux=True), (None, 0), out_axes=-1)
    gradient, (regret, features) = per_group(values, groups)
    ends = jnp.minimum(jnp.arange(1, -(-rounds // segment) + 1) * segment, rounds)
    return PerRun(regret, gradient, features, ends)
