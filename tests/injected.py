"""Drive a learner's three methods by hand, with injected arms, losses and delays: one run, no simulator, no sampling.

For comparisons with the references of ``tests/reference``, path against path, in float64::

    with jax.enable_x64(True):
        mine = injected(jb.TsallisINF(), arms, losses, delays)
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical, float_dtype
from jaxbandit.learners.base import Observation, Round, as_learner

# Each program is compiled for a few hundred calls of one run: the compiler's optimisations would cost more than they save.
QUICK = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def injected(learner, arms, losses, delays, key=None, signals=None, stages=None, stage_delays=()) -> dict:
    """Probabilities ``[T, K]``, the final state, and the outstanding counts ``[T]``.

    ``arms [T]`` are the arms played, ``losses [T, K]``, ``delays [T]`` whole numbers or ``math.inf`` (never arrives),
    ``signals [T, K]`` what each play would show at once, ``stages [T, J, K]`` its outcomes before the loss, which are observed after
    ``stage_delays [T, J]``, ascending and at most the delay of the loss.
    """
    losses, dtype = np.asarray(losses), float_dtype()
    rounds, num_arms = losses.shape
    learner = canonical(learner)
    stream = randomness.stream(jax.random.key(0) if key is None else key, randomness.LEARNER)
    arrival = np.array([t + d if math.isfinite(d) else 2**30 for t, d in enumerate(delays, 1)])
    arrivals = jnp.asarray(np.concatenate([[0], arrival]), jnp.int32)

    @QUICK
    def act(state, t, outstanding, total, arm, signal):
        def is_outstanding(s):
            return (s >= 1) & (s < t) & (arrivals[jnp.clip(s, 0, rounds)] >= t)

        def words(pair=0):
            return randomness.fold(randomness.fold(stream, t), jnp.zeros((), jnp.uint32), pair)

        round = Round(t, outstanding, total, words, is_outstanding)
        x, memo, state = learner.act(state, round)
        state = as_learner(learner).played(state, round, arm, x[arm])
        memo, state = (memo, state) if signals is None else learner.signalled(state, round, arm, signal, memo)
        return x, memo, state

    observe = QUICK(learner.observe)
    staged = QUICK(learner.staged, static_argnums=1) if stages is not None else None
    state, total = learner.init(num_arms, ()), 0
    plays, probabilities, counts = {}, np.zeros((rounds, num_arms)), np.zeros(rounds, int)
    for t in range(1, rounds + 1):
        counts[t - 1] = outstanding = int((arrival[: t - 1] >= t).sum())
        total += outstanding
        arm = int(arms[t - 1])
        shown = jnp.int32(0 if signals is None else signals[t - 1][arm])
        x, memo, state = act(state, jnp.int32(t), jnp.int32(outstanding), jnp.asarray(total, dtype), jnp.int32(arm), shown)
        probabilities[t - 1] = np.asarray(x)
        plays[t] = (x[arms[t - 1]], memo)

        def seen(s, loss, known):
            probability, memo = plays[s]
            shown = None if stages is None else jnp.asarray(np.where(known, stages[s - 1][:, arms[s - 1]], 0), dtype)
            return Observation(
                jnp.asarray(True), jnp.int32(s), jnp.int32(arms[s - 1]), jnp.asarray(loss, dtype), probability, memo, stages=shown
            )

        count = 0 if stages is None else len(stages[0])
        for stage in range(count):
            for s in range(1, t + 1):
                if s + stage_delays[s - 1][stage] == t:
                    state = staged(state, stage, seen(s, 0, np.arange(count) <= stage))
        for s in range(1, t + 1):
            if arrival[s - 1] == t:
                state = observe(state, seen(s, losses[s - 1, arms[s - 1]], True))
                plays.pop(s)
    return {"probabilities": probabilities, "outstanding": counts, "state": state}
