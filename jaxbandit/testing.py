"""Checks of your own learners, loss models and delay models: ``check_learner``, ``check_losses`` and ``check_delays``.

Each simulates a few rounds and raises an error for the first violated rule. :func:`jaxbandit.simulate` looks at
shapes and ranges by itself (:mod:`jaxbandit._checks.dry_run`); what is found here besides are mistakes that make a simulation wrong
without a sign. The library's own classes are held to these same checks by its tests.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._checks.dry_run import (
    ADAPTED,
    TOLERANCE,
    a_round,
    a_signal,
    an_observation,
    an_outcome,
    check_probabilities,
    delays_of,
    some_arms,
    some_rounds,
    stateless,
    try_delays,
    try_learner,
    try_losses,
)
from jaxbandit._checks.inputs import check_outside_transformations, validate_delays, validate_learner, validate_losses
from jaxbandit._core.fields import canonical, float_dtype, show
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit._engine.rollout import rollout
from jaxbandit._engine.simulation import simulate
from jaxbandit.delays import ArmDependent, Delays, Fixed, KnownAtAction, PacketLoss, ShowsDelays, UniformRandom
from jaxbandit.learners.base import (
    Learner,
    LearnerLike,
    ReadsDelays,
    TakesSums,
    adds_at_arm,
    adds_only,
    as_learner,
    is_a,
    signals_read,
    stages_read,
)
from jaxbandit.losses import (
    AdaptiveLosses,
    Bernoulli,
    DifferentiableLosses,
    Funnel,
    IntermediateStates,
    Losses,
    ShowsSignals,
    ShowsStages,
)
from jaxbandit.losses.base import second_moment

ROUNDS, RUNS = 200, 8
SAMPLES = 20_000
MOST_ERRORS = 5  # standard errors that a mean of samples may be away from what it should be


def _name(argument: str, owner: Any) -> str:
    return f"{argument}={type(owner).__name__}(…)"


def _same(one: Any, two: Any) -> bool:
    """Whether two pytrees of arrays are the same bits (nan equals nan)."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f") for a, b in pairs)


def _check_deterministic(name: str, method: str, function: Callable, *arguments: Any) -> None:
    """Raise if the program of a method is another one each time: numbers of NumPy's generators or of a clock are in it."""

    def program() -> tuple[str, list[Any]]:
        # A new function each time, which JAX has not traced before. Addresses of helper objects are not part of the program.
        traced = jax.make_jaxpr(lambda *arguments: function(*arguments))(*arguments)
        return re.sub("0x[0-9a-f]+", "", str(traced.jaxpr)), traced.consts

    one, two = program(), program()
    if one[0] != two[0] or not _same(one[1], two[1]):
        raise ValueError(
            f"{name}: {method} is another program each time it is traced; draw from the noise, or from round.keys(), that it is given, "
            "not from NumPy, Python's random or a clock"
        )


def _check_batches(name: str, function: Callable, part: Any) -> None:
    """Raise if a batch over the numbers of ``part`` cannot be traced."""
    leaves, structure = jax.tree.flatten(canonical(part))
    batch = jax.tree.unflatten(structure, [jnp.stack([leaf, leaf]) for leaf in leaves])
    if not leaves:
        return
    try:
        jax.eval_shape(jax.vmap(function), batch)
    except Exception as error:  # a method of the user's class may raise anything
        error.add_note(f"{name}: this happened in a batch over its numbers (jax.vmap), which sweeps and rollout need")
        raise


# ---------------------------------------------------------------------------------------------------------------- losses


def check_losses(losses: Losses, *, rounds: int = 1000) -> None:
    """Check a loss model, also your own; returns None if all checks pass, and raises an error about the first rule that is broken.

    Shapes; means and losses between 0 and 1 in rounds up to ``rounds``; the mean of samples is ``expected``, and that of their
    squares ``second_moment``; ``stationary`` means that do not move; the same loss for the same noise, for each run by itself; it
    can be traced, also in batches over its numbers.

    >>> import jaxbandit as jb
    >>> jb.check_losses(jb.losses.Bernoulli([0.3, 0.5]))
    """
    check_outside_transformations("check_losses", losses)
    validate_losses(losses)
    try_losses(losses, rounds)
    name, law, at = _name("losses", losses), stateless(canonical(losses)), some_rounds(rounds, losses.length)[[0, -1]]
    if isinstance(losses, AdaptiveLosses):
        _check_adaptive(name, canonical(losses))
    _check_deterministic(name, "expected", lambda law, t: law.expected(t), law, jnp.int32(1))
    _check_deterministic(name, "sample", lambda law, t: _samples(law, t, 4)[0], law, jnp.int32(1))
    for t in at:
        drawn, turned, mean, square = (np.asarray(one, np.float64) for one in _sampled(law, jnp.int32(t)))
        if not np.array_equal(drawn, turned):
            raise ValueError(
                f"{name}: sample({t}, arm, noise) lets the loss of one run depend on the others; use no sums over runs"
            )
        moments = [(drawn, mean, "expected"), (drawn**2, square, "second_moment")]
        for moment, wanted, method in moments[: 1 + isinstance(losses, DifferentiableLosses)]:
            found = moment.mean(1)
            error = np.maximum(moment.std(1) / np.sqrt(SAMPLES), TOLERANCE)
            wrong = np.abs(found - wanted) > MOST_ERRORS * error
            if wrong.any():
                arm, squares = int(some_arms(losses.num_arms)[wrong.argmax()]), " of their squares" * (method != "expected")
                raise ValueError(
                    f"{name}: {method}({t}) is {wanted[wrong.argmax()]:.4f} for arm {arm}, and the mean{squares} of {SAMPLES:,} samples "
                    f"{found[wrong.argmax()]:.4f} ± {error[wrong.argmax()]:.4f}; they must agree"
                )
    if isinstance(law, ShowsSignals):
        _check_signal(name, law, jnp.int32(at[-1]))
    if isinstance(law, ShowsStages):
        _check_stages(name, law, jnp.int32(at[-1]))
    means = np.asarray(jax.vmap(law.expected)(jnp.asarray(some_rounds(rounds, losses.length))))
    if losses.stationary and np.abs(means - means[0]).max() > TOLERANCE:
        raise ValueError(f"{name}: stationary is True, but expected(t) moves; leave stationary out of the class")
    _check_batches(name, lambda law: _once(stateless(law)), losses)


def _once(law: Losses) -> tuple[jax.Array, jax.Array]:
    return law.expected(jnp.int32(1)), _samples(law, jnp.int32(1), 4)[0]


def _check_adaptive(name: str, law: AdaptiveLosses) -> None:
    """Raise if the state of one run depends on the arms of the others."""
    arm = jnp.asarray(np.random.default_rng(0).integers(0, law.num_arms, (ADAPTED, 4)), jnp.int32)

    @jax.jit
    def means(law: AdaptiveLosses, arm: jax.Array) -> jax.Array:
        state = law.init(arm.shape[1:])
        for t in range(1, 9):
            state = law.update(state, jnp.int32(t), arm[t - 1])
        return law.expected_after(state, jnp.int32(9))

    together, alone = means(law, arm), jnp.concatenate([means(law, arm[:, run : run + 1]) for run in range(4)], 1)
    if not np.allclose(together, alone, atol=TOLERANCE):
        raise ValueError(f"{name}: update lets the losses of one run depend on the arms of the others; use no sums over runs")


def _samples(law: Losses, t: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """``[arms, count]`` losses, and the same with the runs in another order, put back."""
    arms = jnp.asarray(some_arms(law.num_arms))
    arm = jnp.repeat(arms, count)
    noise = _noise(law, arm.shape)
    order = jax.random.permutation(jax.random.key(8), arm.size)
    drawn = jnp.broadcast_to(law.sample(t, arm, noise), arm.shape)
    turned = jnp.broadcast_to(law.sample(t, arm[order], noise[order]), arm.shape)
    return drawn.reshape(-1, count), jnp.zeros_like(drawn).at[order].set(turned).reshape(-1, count)


def _noise(law: Losses, shape: tuple[int, ...]) -> jax.Array:
    """The random inputs of losses and signals: uniform numbers, or keys where the loss model requires them."""
    key = jax.random.key(7)
    return jax.random.split(key, shape) if law.needs_key else jax.random.uniform(key, shape, float_dtype(), 1e-7, 1)


def _check_signal(name: str, law: ShowsSignals, t: jax.Array) -> None:
    arm = jnp.repeat(jnp.asarray(some_arms(law.num_arms)), 64)
    signal = jax.jit(lambda law, t, arm, noise: law.signal(t, arm, noise))(law, t, arm, _noise(law, arm.shape))
    if signal.shape != arm.shape or signal.dtype != jnp.int32 or not bool(jnp.all((signal >= 0) & (signal < law.num_signals))):
        raise ValueError(
            f"{name}: signal({t}, arm, noise) gives {signal.dtype}{list(signal.shape)} from {show(signal.min())} to {show(signal.max())}; "
            f"one int32 from 0 to {law.num_signals - 1} is needed for each of {arm.size} plays"
        )


def _check_stages(name: str, law: ShowsStages, t: jax.Array) -> None:
    arm, count = jnp.repeat(jnp.asarray(some_arms(law.num_arms)), 64), len(law.stage_delays)
    stages = jax.jit(lambda law, t, arm, noise: law.stages(t, arm, noise))(law, t, arm, _noise(law, arm.shape))
    if stages.shape != (count, *arm.shape) or not bool(jnp.all((stages >= -TOLERANCE) & (stages <= 1 + TOLERANCE))):
        raise ValueError(
            f"{name}: stages({t}, arm, noise) gives {stages.dtype}{list(stages.shape)} from {show(stages.min())} to {show(stages.max())}; "
            f"{count} rows of numbers between 0 and 1 are needed for {arm.size} plays, a row for each of stage_delays"
        )


@jax.jit
def _sampled(law: Losses, t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    arms = some_arms(law.num_arms)
    return *_samples(law, t, SAMPLES), law.expected(t)[arms], second_moment(law, t)[arms]


# ---------------------------------------------------------------------------------------------------------------- delays


def check_delays(delays: Delays, *, num_arms: int = 3, rounds: int = 1000) -> None:
    """Check a delay model, also your own; returns None if all checks pass, and raises an error about the first rule that is broken.

    Shapes and types; delays of 0 or more up to ``bound``, beyond it or NEVER only where it ``may_lose``, in rounds up to ``rounds``;
    what the traits ``oblivious``, ``noisy``, ``shared``, ``fixed_age`` and ``longest`` say; the same delay for the same noise, for each
    run by itself; it can be traced, also in batches over its numbers.

    >>> import jaxbandit as jb
    >>> jb.check_delays(jb.delays.Geometric(5.0))
    """
    check_outside_transformations("check_delays", delays)
    num_arms = delays.num_arms or num_arms if isinstance(delays, Delays) else num_arms
    validate_delays(delays, num_arms)
    try_delays(delays, num_arms, rounds)
    name, law = _name("delays", delays), canonical(delays).prepare()
    given = (jnp.int32(1), *(jnp.zeros(() if delays.shared else 4, kind) for kind in (jnp.int32, float_dtype(), float_dtype())))
    _check_deterministic(name, "draw", lambda law, *given: law.draw(*given), law, *given)
    drawn = np.asarray(delays_of(law, some_rounds(rounds, delays.length), some_arms(num_arms)))  # [T, arm, loss, noise]
    if delays.oblivious and (drawn != drawn[:, :1, :1]).any():
        raise ValueError(f"{name}: oblivious is True, but draw looks at arm or loss; leave oblivious out of the class")
    if not delays.noisy and (drawn != drawn[..., :1]).any():
        raise ValueError(f"{name}: noisy is False, but draw looks at noise; leave noisy out of the class")
    coming = drawn[drawn <= delays.bound]
    age, longest = law.fixed_age(), float(np.max(np.asarray(law.longest())))
    if age is not None and (coming != int(np.asarray(age))).any():
        raise ValueError(
            f"{name}: fixed_age() is {int(np.asarray(age))}, but draw gives {coming[coming != int(np.asarray(age))][0]}"
        )
    if coming.size and coming.max() > longest:
        raise ValueError(f"{name}: longest() is {longest:g}, but draw gives {coming.max()}")
    if not delays.shared:
        _check_runs_of_delays(name, law, num_arms)
    _check_batches(name, lambda law: law.prepare().draw(*given), delays)


def _check_runs_of_delays(name: str, law: Delays, num_arms: int) -> None:
    keys, runs = jax.random.split(jax.random.key(9), 4), (256,)
    arm, loss = jax.random.randint(keys[0], runs, 0, num_arms), jax.random.uniform(keys[1], runs, float_dtype())
    noise, order = jax.random.uniform(keys[2], runs, float_dtype(), 1e-7, 1), jax.random.permutation(keys[3], runs[0])
    draw = jax.jit(lambda law, *given: jnp.broadcast_to(law.draw(jnp.int32(1), *given), runs))
    if not _same(draw(law, arm, loss, noise)[order], draw(law, arm[order], loss[order], noise[order])):
        raise ValueError(f"{name}: draw lets the delay of one run depend on the others; use no sums over runs")


# -------------------------------------------------------------------------------------------------------------- learners


def laws_to_play(num_arms: int) -> list[Delays]:
    """One delay for all, and delays that depend on the arm of which some never end."""
    return [Fixed(3), ArmDependent((UniformRandom(0, 4), *[PacketLoss(0.2, delay=2)] * (num_arms - 1)))]


def delays_to_play(learner: Learner, law: Delays) -> Delays | None:
    """``law``; where the learner reads delays, the same with delays known at action time, None if they cannot be."""
    if not is_a(learner, ReadsDelays) or isinstance(law, ShowsDelays):
        return law
    return KnownAtAction(law) if law.oblivious else None


def losses_to_play(learner: Learner, means: np.ndarray) -> Losses:
    """Bernoulli losses with these means; where the learner reads signals, plays show some, of which arm i shows those next to it."""
    arms, signals = len(means), signals_read(learner)
    if stages_read(learner):
        # Stage j has delay 2j: the last outcomes are observed with the loss or after it is due.
        rate, count = (1 - np.asarray(means)) ** (1 / (stages_read(learner) + 1)), stages_read(learner)
        return Funnel(np.tile(rate, (count + 1, 1)), tuple(Fixed(2 * stage) for stage in range(count)))
    if not signals:
        return Bernoulli(means)
    if signals == 1 or arms == 1:
        return IntermediateStates(np.full((arms, signals), 1 / signals), Bernoulli(np.resize(means, signals)))
    places = np.linspace(0, arms - 1, signals)
    transitions = np.stack([np.interp(np.arange(arms), places, one) for one in np.eye(signals)], 1)
    return IntermediateStates(transitions, Bernoulli(np.interp(places, np.arange(arms), means)))


def check_learner(learner: LearnerLike, *, num_arms: int = 3, delays: Iterable[Delays] | None = None) -> None:
    """Check a learner, also your own; returns None if all checks pass, and raises an error about the first rule that is broken.

    Shapes and types of what its methods return, for one run and for many; probabilities that are 0 or more and sum to 1, in
    every round; an observation that has not arrived changes nothing; what the traits ``watches_plays`` and ``adds_only`` and the
    base class ``TakesSums`` say; bitwise identical results for a run alone and among others; the same program each time; it can be traced, also in batches
    over its numbers.

    Args:
      learner: such as ``EpsilonGreedy(0.1)``.
      num_arms: K of the simulations.
      delays: the delay models; by default a short delay, and arm-dependent delays with missing feedback.

    >>> import jaxbandit as jb
    >>> jb.check_learner(jb.DelayedExp3())
    """
    check_outside_transformations("check_learner", learner)
    validate_learner(learner, num_arms)
    try_learner(learner, num_arms)
    name, full = _name("learner", learner), as_learner(canonical(learner))
    _check_watching(name, full, num_arms)
    _check_observing(name, full, num_arms)
    if isinstance(full, TakesSums):
        _check_sums(name, full, num_arms)
    for law in laws_to_play(num_arms) if delays is None else delays:
        law = delays_to_play(full, law)
        if law is None:
            continue
        if full.watches_plays and law.may_lose and not law.oblivious:
            continue  # refused: which observations are outstanding is not known
        _check_play(name, learner, law, num_arms)


def _check_play(name: str, learner: LearnerLike, law: Delays, num_arms: int) -> None:
    losses = losses_to_play(as_learner(learner), np.linspace(0.3, 0.7, num_arms))
    game = Game.set_up(learner, losses, law, jax.random.key(1), jnp.zeros(RUNS, jnp.uint32))
    player = Player()
    state = jax.eval_shape(player.start, game)
    _check_deterministic(name, "one of its methods", player.step, game, state, jax.ShapeDtypeStruct((), jnp.int32))
    options = {"rounds": ROUNDS, "seed": 1, "record": 5, "probabilities": True}  # one program for both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of guarantees that do not hold in so short a game
        result = simulate(learner, losses, law, runs=RUNS, **options)
        alone = simulate(learner, losses, law, runs=1, first_run=RUNS - 1, **options)
    assert result.probabilities is not None
    check_probabilities(f"{name}: act(state, round) under {show(law)}", result.probabilities, 1)
    if not _same(alone.regret[:, 0], result.regret[:, -1]):
        raise ValueError(
            f"{name}: results depend on which other runs are in the batch; sum over arms (axis 0) only, never over runs"
        )
    _check_batches(name, lambda learner: rollout(learner, losses, law, rounds=3, runs=2, key=jax.random.key(0)).regret, learner)


def _check_watching(name: str, full: Learner, num_arms: int) -> None:
    asked = []

    def is_outstanding(s: jax.Array) -> jax.Array:
        asked.append(s)
        return jnp.zeros(jnp.broadcast_shapes(jnp.shape(s), (4,)), bool)

    jax.eval_shape(
        lambda full: full.act(full.init(num_arms, (4,)), a_round((4,), is_outstanding=is_outstanding, learner=full)), full
    )
    if asked and not full.watches_plays:
        raise ValueError(f"{name}: act calls round.is_outstanding, so say watches_plays = True in the class")


def _check_observing(name: str, full: Learner, num_arms: int) -> None:
    """What has not arrived changes nothing; with ``adds_only``, what has arrived adds the same whatever the state."""
    runs = (4,)

    @jax.jit
    def observed(full: Learner) -> tuple[Any, Any, list[Any]]:
        first = full.init(num_arms, runs)
        _, memo, state = full.act(first, a_round(runs, learner=full))
        memo, state = a_signal(full, state, memo, runs)
        for stage in range(stages_read(full)):
            state = an_outcome(full, state, stage, runs, memo, True, num_arms)
        state = full.observe(state, an_observation(runs, memo, True, full, num_arms))
        _, memo, state = full.act(state, a_round(runs, 2, learner=full))
        memo, state = a_signal(full, state, memo, runs, 2)
        arrived = an_observation(runs, memo, True, full, num_arms)
        added = [jax.tree.map(jnp.subtract, full.observe(one, arrived), one) for one in (first, state)] if adds_only(full) else []
        after = full.observe(state, an_observation(runs, memo, False, full, num_arms))
        for stage in range(stages_read(full)):
            after = an_outcome(full, after, stage, runs, memo, False, num_arms)
        return state, after, added

    before, after, added = observed(full)
    places = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(before)]
    for place, one, two in zip(places, jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        if not _same(one, two):
            raise ValueError(
                f"{name}: observe changes state{place} where observation.arrived is False; use observation.at_arm and "
                "observation.loss_estimate, or jnp.where(observation.arrived, …)"
            )
    for place, one, two in zip(places, *map(jax.tree.leaves, added), strict=True) if added else ():
        if not np.allclose(one, two, atol=TOLERANCE, rtol=1e-4):
            raise ValueError(
                f"{name}: adds_only is True, but what observe adds to state{place} depends on the state; leave it out"
            )
        if adds_at_arm(full) and one.shape == (num_arms, *runs) and np.any(one[1:] != 0):
            raise ValueError(f"{name}: _adds_at_arm is True, but an observation of arm 0 changes state{place} of another arm")


def _check_sums(name: str, full: Learner, num_arms: int) -> None:
    """With ``TakesSums``, two losses count as their sum does, whichever plays they are of."""
    runs = (4,)

    @jax.jit
    def observed(full: Learner) -> tuple[Any, Any]:
        _, memo, state = full.act(full.init(num_arms, runs), a_round(runs, learner=full))
        whole = an_observation(runs, memo, True, full, num_arms)
        nobody = whole._replace(origin=whole.origin + 5, arm=whole.arm - 1, probability=whole.probability / 2)
        first, second = nobody._replace(loss=0.25 * whole.loss), whole._replace(loss=0.75 * whole.loss)
        return full.observe(state, nobody), full.observe(full.observe(state, first), second)

    places = zip(*map(jax.tree_util.tree_leaves_with_path, observed(full)), strict=True)
    for (path, one), (_, two) in places:
        if not np.allclose(one, two, atol=TOLERANCE):
            raise ValueError(
                f"{name}: it inherits from TakesSums, but observe makes something else of state{jax.tree_util.keystr(path)} if a loss comes in two "
                "pieces, of another arm, round or probability; look at observation.loss alone and only add, or leave it out"
            )
