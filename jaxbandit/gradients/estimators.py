"""The gradient of the **expected** regret in the numbers of learner, losses and delays.

Differentiating a rollout holds the sampled arms fixed and gives another gradient: the arms are drawn from probabilities
that depend on the hyperparameters. ``docs/appendix/gradient_estimators.md`` derives the estimators and measures them.
"""

import dataclasses
import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._checks.inputs import check_outside_transformations, check_switch, given_key
from jaxbandit._checks.records import log_spaced
from jaxbandit._checks.warn import caller
from jaxbandit._core.fields import canonical, float_dtype, is_numeric, show
from jaxbandit._engine.blocks import execution_for
from jaxbandit._engine.player import Hook, Player
from jaxbandit._engine.set_up import checked_game
from jaxbandit._io.progress import Progress, showing
from jaxbandit.delays import Delays
from jaxbandit.gradients import verification
from jaxbandit.gradients.gradient import Gradient
from jaxbandit.gradients.jump import FluidLimit, JumpTangent
from jaxbandit.gradients.numbers import Owner, Parameter, check_one_value, check_wrt, chosen
from jaxbandit.gradients.probe import readable
from jaxbandit.gradients.programs import PerRun, Score, Trail, Work, backward, forward, over_blocks, regrets
from jaxbandit.gradients.unbiased import BRANCHES, unbiased
from jaxbandit.learners.base import ImportanceWeighted, LearnerLike, as_learner, is_importance_weighted
from jaxbandit.losses import AdaptiveLosses, DifferentiableLosses, Losses
from jaxbandit.measure import ControlVariates
from jaxbandit.results.statistics import increments, intercepts

Estimator = Literal["jump", "unbiased", "paired", "score", "fluid"]
RECORDED = 24  # log-spaced rounds at which the control variates are read
MANY = 8  # numbers from which on reverse mode is used
LEARNER_STEP, LAW_STEP = 0.3, 0.1  # of paired differences
PARTED, PARTED_FOR_ARM = 64, 16  # runs that must have diverged, in all and for each arm, before their two sides are compared
LONGEST_STEP = 10  # in the logarithm: a factor of 22,000


def regret_gradient(
    learner: LearnerLike,
    losses: Losses,
    delays: Delays,
    *,
    rounds: int,
    runs: int,
    key: jax.Array | None = None,
    seed: int | None = None,
    wrt: Owner | Sequence[Owner] = "learner",
    estimator: Estimator | None = None,
    first_run: int = 0,
    control_variates: bool = True,
    step: float | None = None,
    reverse: bool | None = None,
    only: Sequence[str] | None = None,
    verify: bool = True,
    progress: bool | Progress = False,
) -> Gradient:
    """The gradient of the expected regret after ``rounds`` rounds in the numbers of the learner, the losses or the delays.

    ================ ======================================== ======================= ===================================
    estimator        bias                                     spread                  cost, in simulations
    ================ ======================================== ======================= ===================================
    ``"jump"``       no bound proved; mostly below 2 %, 2 to  smallest                1 + about 0.4 for each number
                     30 % for Tsallis-INF at scales below .7
    ``"unbiased"``   none                                     1 to 3000 times that of 6 to 10
                                                              "paired"
    ``"paired"``     O(step²), of means and gaps O(step⁴)     1 to 40 times larger    2 for each number, 4 for means and gaps
    ``"score"``      none                                     2 to 10⁵ times larger   1 + about 0.4 for each number
    ``"fluid"``      5 to 50 %                                none                    that of one run, whatever ``runs``
    ================ ======================================== ======================= ===================================

    ``"jump"``, the jump tangent, and ``"unbiased"``, which corrects it, need a learner whose feedback enters through
    importance-weighted estimates (the FTRL family and exponential weights; see
    :class:`jaxbandit.learners.base.ImportanceWeighted`) and delays that depend neither on arms nor on losses. Of the losses they
    need fields in which they are smooth (the means of Bernoulli, the gap of the stochastically constrained adversary, …). For
    all other numbers, among them those of delays, ``"paired"`` is used, and ``note`` states the reason. A warning is given once
    where the learner is the reason. Where a hyperparameter also decides which observations are skipped, only ``"paired"`` accounts for
    these decisions; the other estimators hold them fixed. The threshold 16 of reduced variance is also covered by ``"jump"``.

    Args:
      learner, losses, delays, rounds, runs, key, seed, first_run: as in :func:`jaxbandit.simulate`, with the same random numbers.
      wrt: whose numbers: ``"learner"``, ``"losses"`` (means, gaps), ``"delays"`` (the mean delay, the probability that feedback
        arrives), or several of them. Required inputs of a learner (its ``max_delay``) stay fixed when the delays change.
      estimator: ``"jump"`` (also for None), ``"unbiased"`` (the jump tangent, corrected at randomly drawn actions by the same run
        without their feedback), ``"paired"`` (central differences with common random numbers), ``"score"`` (score
        function with a leave-one-out baseline; of the losses only where they are 0 or 1) or ``"fluid"`` (feedback is the
        expected loss of every arm).
      control_variates: use the known means of the loss estimates to narrow all errors; see :meth:`jaxbandit.Result.estimate`.
      step: of ``"paired"``, in the logarithm of positive numbers; those that are 0 move to ``step``. Numbers of a model between
        0 and 1 move by half of it, whole numbers always by one. None: 0.3 for a learner, 0.1 for a model. Means and gaps, in
        which the regret is curved on the scale of a gap, use this step and half of it, extrapolated to step 0. This takes
        four simulations. The error does not include the bias of the step; compare with a smaller one.
      reverse: for ``"jump"``: reverse mode, whose cost does not grow with the number of hyperparameters and whose memory
        grows with the square root of the rounds, or forward mode, whose memory is constant. None: reverse from 8 numbers on. Errors are then over
        groups of runs, so use many runs.
      only: the numbers to differentiate in, by name (``"means"``; with several parts ``"losses.means"``); the others get 0. None:
        all but a learner's whole numbers.
      verify: where a class of the learner, losses or delays is your own, compare ``"jump"`` or ``"unbiased"`` with ``"paired"`` on up
        to 512 runs of 500 rounds, once for each class and its code. Where they disagree, ``"paired"`` is used, see ``note``.
      progress: show a progress bar, or move one that is shown already.

    Returns:
      A :class:`Gradient`, its ``gradient`` shaped like the learner or model, or a dict of them by the names in ``wrt``;
      ``optax.apply_updates(learner, updates)`` applies the updates of an optimiser.

    >>> import jaxbandit as jb
    >>> game = jb.BestOfBothWorlds(max_delay=5), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(5)
    >>> found = jb.regret_gradient(*game, rounds=200, runs=256, seed=0)
    >>> bool(found.gradient.factor > 5 * found.error.factor > 0)  # a smaller factor is better here
    True
    >>> price = jb.regret_gradient(*game, rounds=200, runs=256, seed=0, wrt="delays")  # of one more round of delay
    >>> bool(price.gradient.delay > 0)
    True
    """
    check_outside_transformations("regret_gradient", learner, losses, delays, rounds, runs, first_run, key, seed)
    key = given_key(key, seed)
    check_options(estimator, step)
    check_switch("control_variates", control_variates)
    check_switch("reverse", reverse, or_none=True)
    check_switch("verify", verify)
    check_one_value(learner, losses, delays, runs)
    if not isinstance(progress, Progress):
        check_switch("progress", progress)
    step = None if step is None else float(step)
    parts, used = check_wrt(wrt), estimator or "jump"
    measure = (
        *([ControlVariates()] if control_variates else []),
        *([Score("losses" in parts)] if used == "score" else []),
    )
    game, _ = checked_game(learner, losses, delays, rounds=rounds, key=key, runs=runs, first_run=first_run, measure=measure)
    if isinstance(losses, AdaptiveLosses):
        raise TypeError(
            f"losses={type(losses).__name__}(…): the losses depend on the arms of the run, and no estimator of the gradient is known to be "
            "right for them; compare jb.simulate at two values"
        )
    rounds = int(rounds)
    given: dict[Owner, Any] = {"learner": canonical(learner), "losses": canonical(losses), "delays": canonical(delays)}
    owners: dict[Owner, Any] = {part: given[part] for part in parts}
    numbers = chosen(owners, only)
    chances = any(number.part == "losses" and number.field in _chance_fields(losses) for number in numbers)
    surely = chances and _some_loss_is_certain(game.losses, rounds)
    obstacles = {number: _obstacle(number, learner, losses, delays, used, surely) for number in numbers}
    if verify and used in ("jump", "unbiased"):
        free = [number for number in numbers if not obstacles[number]]
        sample = {"rounds": min(rounds, verification.ROUNDS), "runs": verification.RUNS, "key": key}

        def sampled(estimator: Estimator, numbers: list[Parameter]) -> Gradient:
            names = [f"{number.part}.{number.name}" if len(parts) > 1 else number.name for number in numbers]
            return regret_gradient(
                learner, losses, delays, **sample, wrt=parts, only=names, estimator=estimator, reverse=False, verify=False
            )

        for number, clause in verification.disagreements(tuple(given.values()), free, used, sampled).items():
            obstacles[number] = f"estimator={used!r}: the gradient {clause}; 'paired' is used"
    smooth = [number for number in numbers if not obstacles[number] and used != "paired"]
    moved = [number for number in numbers if number not in smooth]
    note = "; ".join(dict.fromkeys(filter(None, obstacles.values())))
    if note and (estimator or any(obstacles[number] for number in numbers if number.part == "learner")):
        _say_once(note)
    if used == "jump" and smooth and isinstance(learner, ImportanceWeighted) and learner.jumps_far():
        far = (
            f"estimator='jump': with these numbers single losses move the probabilities of {type(learner).__name__} far, and the "
            "estimate may be off by more than 2 %; compare with estimator='paired'"
        )
        _say_once(far)
        note = "; ".join(filter(None, (note, far)))
    many = sum(number.value.size for number in smooth) >= MANY
    backwards = used == "jump" and bool(smooth) and (many if reverse is None else reverse)
    copies = 2 * math.isqrt(rounds) if backwards else 1 + sum(number.value.size for number in smooth)
    execution = execution_for(game, at_once=copies, differentiable=True, rounds=rounds, resumable=False)
    size = execution.block
    certain = used == "fluid" and delays.shared and not moved
    if certain:  # deterministic, so that one run represents all
        game, size = dataclasses.replace(game, runs=game.runs[:1]), 1
    record = log_spaced(rounds, RECORDED).astype(np.int32)
    text = f"gradient over {game.runs.size} runs x {rounds} rounds"
    passes = (1 + BRANCHES * (used == "unbiased")) * bool(smooth)
    passes += sum(2 * number.value.size * (1 + number.extrapolated) for number in moved)
    with showing(progress, passes * game.runs.size * rounds, text) as bar:
        work, found = Work(game, Player(execution=execution), size, rounds, bar), []
        if smooth:
            found.append((smooth, _differentiated(work, smooth, used, record, backwards)))
        if moved:
            watched = (ControlVariates(), Trail()) if control_variates else ()
            plain = dataclasses.replace(work, game=dataclasses.replace(game, measure=watched))
            found.append((moved, _paired(plain, given, moved, record, step)))
    names = " and ".join([*([used] if smooth else []), *(["paired"] if moved else [])])
    return _summed_up(owners, found, certain, names, note)


def check_options(estimator: object, step: Any = None) -> None:
    """Raise ValueError if there is no such estimator or step."""
    if estimator is not None and not (isinstance(estimator, str) and estimator in get_args(Estimator)):
        raise ValueError(f"estimator={show(estimator)}: the estimators are {', '.join(map(repr, get_args(Estimator)))}")
    number = is_numeric(step) and np.ndim(step) == 0 and np.asarray(step).dtype.kind != "b"
    if step is not None and not (number and 0 < step <= LONGEST_STEP):
        raise ValueError(
            f"step={show(step)}: the step of paired differences is a number above 0, {LONGEST_STEP} at most, such as 0.3"
        )


def _obstacle(number: Parameter, learner: Any, losses: Losses, delays: Delays, estimator: str, certain: bool) -> str:
    """The reason why the estimator cannot be used for a number; empty if it can. ``certain``: a mean loss is 0 or 1."""
    if estimator == "paired" or (estimator == "score" and number.part == "learner"):
        return ""
    so = "'paired' is used"
    if number.part == "delays":
        return f"estimator={estimator!r}: the regret jumps with the numbers of delays.{type(delays).__name__}; {so}"
    if number.part == "losses":
        values = losses.value_fields if isinstance(losses, DifferentiableLosses) and estimator != "score" else ()
        smooth = (*_chance_fields(losses), *values)
        if number.field not in smooth:
            return f"estimator={estimator!r}: losses.{type(losses).__name__} is not known to be smooth in {number.field}; {so}"
        if number.field in _chance_fields(losses) and estimator != "fluid" and certain:
            return f"estimator={estimator!r}: losses with mean 0 or 1 have no derivative with respect to their means; {so}"
        if estimator == "score":
            return ""
    if not is_importance_weighted(as_learner(learner)):
        return f"estimator={estimator!r}: {show(learner)} does more than add importance-weighted losses (extend.ImportanceWeighted); {so}"
    if estimator in ("jump", "unbiased") and not delays.oblivious:
        return f"estimator={estimator!r}: delays.{type(delays).__name__} may depend on the arm or the loss; {so}"
    return ""


def _chance_fields(losses: Losses) -> tuple[str, ...]:
    return losses.chance_fields if isinstance(losses, DifferentiableLosses) else ()


def _some_loss_is_certain(losses: Losses, rounds: int) -> bool:
    """Whether an arm's mean loss is 0 or 1 in some round."""
    return bool(_certain(losses, jnp.asarray(rounds, jnp.int32)))


@jax.jit
def _certain(losses: Losses, rounds: jax.Array) -> jax.Array:
    def look(t: jax.Array, found: jax.Array) -> jax.Array:
        means = losses.expected(t)
        return found | jnp.any((means <= 0) | (means >= 1))

    return lax.fori_loop(jnp.int32(1), rounds + 1, look, jnp.asarray(False))


@functools.cache
def _say_once(note: str) -> None:
    warnings.warn(note, stacklevel=caller())


def _summed_up(
    owners: dict[Owner, Any], found: list[tuple[list[Parameter], PerRun]], certain: bool, estimator: str, note: str
) -> Gradient:
    """Means over runs with their errors, shaped like the owners; ``certain``: all runs are the same, so the errors are 0."""
    first = found[0][1]
    features = None if first.features is None else increments(first.features, first.rounds)
    value, value_error = intercepts(first.regret[None].astype(np.float64), features)
    if certain:
        value_error = np.zeros(1)
    gradient: dict[Owner, list[Any]] = {part: _zeros(owner) for part, owner in owners.items()}
    error: dict[Owner, list[Any]] = {part: _zeros(owner) for part, owner in owners.items()}
    for numbers, per_run in found:
        slopes, errors = _means(per_run)
        if certain:
            errors = np.zeros_like(slopes)
        start = 0
        for number in numbers:
            size, shape, dtype = number.value.size, number.value.shape, float_dtype()
            for out, row in ((gradient, slopes), (error, errors)):
                out[number.part][number.place] = row[start : start + size].reshape(shape).astype(dtype)
            start += size
    slope, spread = (_shaped(owners, out) for out in (gradient, error))
    return Gradient(float(value[0]), float(value_error[0]), slope, spread, estimator, note)


def _zeros(owner: Any) -> list[Any]:
    """The leaves of a learner or model, with 0 in place of every number."""
    return [np.zeros(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(owner)]


def _shaped(owners: dict[Owner, Any], leaves: dict[Owner, list[Any]]) -> Any:
    """Leaves in the shape of their owner, or a dict of such where there are several."""
    trees = {part: jax.tree.unflatten(jax.tree.structure(owner), leaves[part]) for part, owner in owners.items()}
    return trees if len(trees) > 1 else next(iter(trees.values()))


def _means(per_run: PerRun) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each number of the gradient over runs, and its error."""
    runs = per_run.regret.shape[-1]
    rows = np.concatenate([leaf.reshape(-1, runs) for leaf in per_run.gradient]).astype(np.float64)
    if per_run.own is None:
        features = None if per_run.features is None else increments(per_run.features, per_run.rounds)
        return intercepts(rows, features)
    narrowed = [None if own is None else increments(own, per_run.rounds) for own in per_run.own]
    fits = [intercepts(row[None], features) for row, features in zip(rows, narrowed, strict=True)]
    slopes, errors = (np.concatenate(column) for column in zip(*fits, strict=True))
    return slopes, errors


def _differentiated(work: Work, numbers: list[Parameter], estimator: str, record: np.ndarray, backwards: bool) -> PerRun:
    """Derivatives by automatic differentiation, with the feedback of the estimator."""
    game = work.game
    before = {"learner": 0, "losses": len(jax.tree.leaves(game.learner))}
    which = tuple(before[number.part] + number.place for number in numbers)
    coins = any(number.part == "losses" and number.field in _chance_fields(game.losses) for number in numbers)
    with readable(game.learner):
        if estimator == "unbiased":
            return unbiased(work, which, record, coins)
        hook = feedback_of(estimator, work.rounds, coins)
        work = dataclasses.replace(work, player=dataclasses.replace(work.player, hook=hook))
        if backwards:
            return over_blocks(backward, work, rounds=work.rounds, which=which)
        return over_blocks(forward, work, record, which=which)


def feedback_of(estimator: str, rounds: int, coins: bool = False) -> Hook | None:
    """The feedback under an estimator; None: the sampled loss. ``coins``: the probabilities of losses 0 and 1 vary too."""
    if estimator == "fluid":
        return FluidLimit()
    return JumpTangent(coins, jnp.asarray(rounds, float_dtype())) if estimator == "jump" else None


def _paired(work: Work, given: dict[Owner, Any], numbers: list[Parameter], record: np.ndarray, step: float | None) -> PerRun:
    """Central differences with common random numbers. Some are extrapolated from two steps: :meth:`Parameter.differences`."""
    centre = over_blocks(regrets, work, record)
    slopes: list[Any] = []
    own: list[Any] = []
    for number in numbers:
        rows = []
        for differences in number.differences(step or (LEARNER_STEP if number.part == "learner" else LAW_STEP)):
            row, own_features = 0.0, [centre.features]
            for up, down, width, weight in (_kept_legal(given, number, work.game.losses.num_arms, one) for one in differences):
                sides = [over_blocks(regrets, _moved(work, given, number, value), record) for value in (up, down)]
                row = row + weight * (sides[0].regret - sides[1].regret) / width
                own_features.append(None if centre.features is None else _apart(*sides))
            rows.append(row)
            used = [one for one in own_features if one is not None]
            own.append(np.concatenate(used, 1) if len(used) == len(own_features) else None)
        slopes.append(np.stack(rows).reshape(*number.value.shape, -1))
    return dataclasses.replace(centre, gradient=slopes, own=own, trail=None)


def _apart(up: PerRun, down: PerRun) -> np.ndarray | None:
    """The difference ``[C, K, runs]`` of the two sides' control variates, from where many runs have diverged; None: nowhere.

    Their difference has mean 0 as well. Until an arm or a loss differs, it is smooth in the number, as the regrets are. Only
    the runs that diverge there make its mean 0. With few of these, a fit would treat the derivative itself as noise. The errors
    must not be narrowed then either: the few diverging runs, which a sample may not contain, are most of the variance.
    """
    parted = (up.trail != down.trail).sum(1) >= max(PARTED, PARTED_FOR_ARM * up.features.shape[1])
    if not parted.any():
        return None
    first, apart = int(parted.argmax()), up.features.astype(np.float64) - down.features
    return np.where(np.arange(len(parted))[:, None, None] > first, apart - apart[first], 0)


def _kept_legal(given: dict[Owner, Any], number: Parameter, num_arms: int, difference: tuple[Any, Any, float, float]):
    """The difference, one-sided where the other side is an invalid delay model, such as low above high."""
    up, down, width, weight = difference
    if number.part == "delays":
        up, down = (value if _may_be(given, number, num_arms, value) else number.value for value in (up, down))
        if up is number.value or down is number.value:
            width = float(np.sum(np.asarray(up, np.float64) - np.asarray(down, np.float64))) or width
    return up, down, width, weight


def _may_be(given: dict[Owner, Any], number: Parameter, num_arms: int, value: np.ndarray) -> bool:
    leaves, structure = jax.tree.flatten(given["delays"])
    leaves[number.place] = value
    try:
        jax.tree.unflatten(structure, leaves).check(num_arms)
    except ValueError:
        return False
    return True


def _moved(work: Work, given: dict[Owner, Any], number: Parameter, value: np.ndarray) -> Work:
    """The same work with another value of a number."""
    leaves, structure = jax.tree.flatten(given[number.part])
    leaves[number.place] = jnp.asarray(value)
    owner = jax.tree.unflatten(structure, leaves)
    if number.part == "delays" and number.whole and value > owner.bound:  # a delay that is longer by one may need a longer ring
        owner = dataclasses.replace(owner, bound=int(value))
    owner = as_learner(owner) if number.part == "learner" else owner.prepare()
    return dataclasses.replace(work, game=dataclasses.replace(work.game, **{number.part: owner}))
