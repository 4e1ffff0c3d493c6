"""Wrong input, told in one sentence before anything is compiled: the argument, its value, what would be right."""

import math
import warnings
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxbandit.delays import ArmDependent, Delays
from jaxbandit.learners.base import Learner
from jaxbandit.losses import Losses
from jaxbandit.pytrees import is_concrete, is_numeric, show

MOST_ROUNDS = 2**30


def check_key(key: Any) -> None:
    if not isinstance(key, jax.Array) or not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"key={show(key)}: the key must be a typed JAX key, as jax.random.key(0) makes (not PRNGKey, not a number)"
        )
    if key.shape != ():
        raise TypeError(f"key of shape {key.shape}: one key is needed; each run gets its own numbers from it")
    if str(jax.random.key_impl(key)) != "threefry2x32":
        raise TypeError(
            f"key of implementation {jax.random.key_impl(key)}: runs are defined by threefry; use jax.random.key(seed, impl='threefry2x32')"
        )


def _whole(value: Any, least: int, most: float = math.inf) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def check_rounds(rounds: Any) -> None:
    if not _whole(rounds, 1, MOST_ROUNDS):
        raise ValueError(f"rounds={show(rounds)}: the number of rounds is a whole number from 1 to 2**30")


def check_runs(runs: Any, first_run: Any) -> None:
    if not _whole(runs, 1):
        raise ValueError(f"runs={show(runs)}: the number of runs is a whole number, 1 or more")
    if is_concrete(first_run) and not (
        is_numeric(first_run) and np.size(first_run) == 1 and 0 <= first_run == np.floor(first_run)
    ):
        raise ValueError(f"first_run={show(first_run)}: the id of the first run is a whole number, 0 or more")
    if is_concrete(first_run) and int(first_run) + runs > 2**32:
        raise ValueError(f"first_run={show(first_run)}, runs={show(runs)}: run ids must stay below 2**32")


def check_record(record: Any, after: int, rounds: int) -> np.ndarray:
    """The rounds to record, as an array; they ascend from ``after + 1`` and end at ``rounds``."""
    if not is_numeric(record) or np.ndim(record) != 1 or np.size(record) == 0:
        raise ValueError(f"record={show(record)}: give how many rounds to record, or a list of them")
    array = np.asarray(record)
    if np.any(array != np.floor(array)) or np.any(np.diff(array) <= 0) or array[0] <= after or array[-1] > rounds:
        raise ValueError(
            f"record={show(record)}: recorded rounds are whole numbers, ascending, between {after + 1} and rounds={rounds}"
        )
    array = array.astype(np.int64)
    return array if array[-1] == rounds else np.append(array, rounds)


def check_game(learner: Any, losses: Any, delays: Any, rounds: Any) -> None:
    """Everything that can be wrong with the three players, alone or together."""
    check_losses(losses)
    check_delays(delays, losses.num_arms)
    check_learner(learner)
    for law, name in ((losses, "losses"), (delays, "delays")):
        length = getattr(law, "length", None)
        if length is not None and is_concrete(rounds) and rounds > length:
            raise ValueError(
                f"rounds={show(rounds)}: {name}.{type(law).__name__} has only {length} rounds; use rounds={length} or a longer one"
            )
    if getattr(learner, "watches_plays", False) and not getattr(delays, "oblivious", False):
        _check_watched(learner, delays, rounds)
    _warn_about_max_delay(learner, delays)


def _check_watched(learner: Any, delays: Any, rounds: Any) -> None:
    """A learner that asks which old plays are outstanding needs the ring to remember those that were lost."""
    if getattr(delays, "loses", True) and not (is_concrete(rounds) and delays.bound >= rounds):
        raise ValueError(
            f"delays={type(delays).__name__}(bound={delays.bound}): {type(learner).__name__} asks which plays are outstanding, and "
            f"feedback that depends on the arm may be lost; give the laws bound={show(rounds)}, the number of rounds"
        )


def check_losses(losses: Any) -> None:
    if isinstance(losses, type) or not isinstance(losses, Losses):
        raise TypeError(
            f"losses={show(losses)}: losses must be a law such as jb.losses.Bernoulli([0.3, 0.5]), with num_arms, expected and sample"
        )
    if hasattr(losses, "check"):
        losses.check()  # type: ignore[attr-defined]


def check_delays(delays: Any, num_arms: int) -> None:
    if isinstance(delays, type) or not isinstance(delays, Delays):
        raise TypeError(f"delays={show(delays)}: delays must be a law such as jb.delays.Fixed(10), with bound and draw")
    if isinstance(delays, ArmDependent):
        delays.check(num_arms)
    elif hasattr(delays, "check"):
        delays.check()  # type: ignore[attr-defined]
    if getattr(delays, "shared", False) and not getattr(delays, "oblivious", False):
        raise ValueError(
            f"delays={type(delays).__name__}(…): shared delays must be oblivious to arm and loss (say oblivious = True in the class)"
        )


def check_learner(learner: Any) -> None:
    if isinstance(learner, type):
        raise TypeError(f"learner={learner.__name__}: give a learner, not its class: {learner.__name__}(...)")
    missing = [name for name in ("init", "act", "observe") if not callable(getattr(learner, name, None))]
    if missing:
        raise TypeError(
            f"learner={show(learner)}: a learner has the methods init, act and observe; {', '.join(missing)} is missing"
        )
    assert isinstance(learner, Learner)
    if hasattr(learner, "base"):
        check_learner(learner.base)  # type: ignore[attr-defined]
    for path, leaf in jax.tree_util.tree_flatten_with_path(learner)[0]:
        if isinstance(leaf, jax.core.Tracer):
            continue
        name = "".join(str(part) for part in path).lstrip(".")
        if not is_numeric(leaf):
            raise TypeError(f"{type(learner).__name__}({name}={show(leaf)}): {name} must be a number")
        if not np.all(np.isfinite(leaf)) or np.any(np.asarray(leaf) < 0):
            raise ValueError(f"{type(learner).__name__}({name}={show(leaf)}): {name} must be a finite number, 0 or more")
    if hasattr(learner, "check"):
        learner.check()  # type: ignore[attr-defined]


_warned: set[tuple] = set()


def _warn_about_max_delay(learner: Any, delays: Any) -> None:
    told = getattr(learner, "max_delay", None)
    if told is None or not hasattr(delays, "longest") or not is_concrete((told, delays)):
        return
    longest = float(np.max(np.asarray(delays.longest())))
    told = float(np.max(np.asarray(told)))
    case = (type(learner).__name__, told, longest)
    if told < longest and case not in _warned:
        _warned.add(case)
        can_come = "feedback can be lost" if math.isinf(longest) else f"delays of {longest:.0f} can come"
        warnings.warn(
            f"{case[0]}(max_delay={told:g}): {can_come}, so its guarantee does not hold here (the simulation is still exact)",
            stacklevel=4,
        )
