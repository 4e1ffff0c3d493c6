"""The word ``"oracle"`` in a spec: a learner is oracle-tuned for its cell."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import PyTree, facts, field_values
from jaxbandit.delays import NEVER, Delays
from jaxbandit.losses import AdaptiveLosses, IntermediateStates, Losses, ShowsSignals
from jaxbandit.sweeps.spec import ORACLE

QUANTILES = 1 << 16  # of a random delay model, for its expected total
ROUNDS_AT_ONCE = 1 << 16  # of losses whose means move


class Oracle:
    """The facts of one cell (losses, delays, horizon), for fields made by :func:`jaxbandit._core.fields.given` that say ``"oracle"``.

    ====================  ===========================================================================
    ``max_delay``         the longest possible delay
    ``copies``            one more than that: the capacity of BOLD
    ``queue_capacity``    K times as many: the capacity of QPMD
    ``horizon``           the number of rounds
    ``total_delay``       Σ min(d_t, T - t): exact for a fixed sequence, its mean for random delays
    ``mean_delay``        the mean delay
    ``conversion_curve``  the probabilities that a loss of 0 (of arm 0) arrives within 0, 1, … rounds
    ``transitions``       the probability of each state given each arm, of losses.IntermediateStates
    ``signals``           the number of different signals
    ``gaps``              mean losses minus the best arm's, averaged over the rounds if they vary
    ====================  ===========================================================================
    """

    def __init__(self, losses: Losses, delays: Delays, rounds: int):
        self.losses, self.delays, self.rounds = losses, delays, rounds

    def tell(self, learner: PyTree) -> Any:
        """The learner with every ``"oracle"`` replaced, also inside a base learner."""
        if not dataclasses.is_dataclass(learner) or isinstance(learner, type):
            return learner
        names, new = facts(learner), {}
        for field, value in field_values(learner).items():
            if isinstance(value, str) and value == ORACLE:
                fact = FACTS.get(names.get(field, ""))
                try:
                    new[field] = fact(self) if fact else self._unknown(learner)
                except ValueError as error:
                    raise ValueError(f"{field} = {ORACLE!r}: {error}") from None
            elif dataclasses.is_dataclass(value):
                new[field] = self.tell(value)
        return dataclasses.replace(learner, **new) if new else learner

    def _unknown(self, learner: Any) -> None:
        known = ", ".join(name for name, fact in facts(learner).items() if fact in FACTS)
        hint = f"of {type(learner).__name__} it is known for {known}" if known else "give a number"
        raise ValueError(f"the truth about this field is not known here; {hint}")

    def max_delay(self) -> float:
        longest = float(np.max(np.asarray(self.delays.longest())))
        if np.isinf(longest):
            law = type(self.delays)
            own = "" if law.__module__.startswith("jaxbandit.") else f", or may_lose = False in {law.__name__} if it always comes"
            raise ValueError(f"under {law.__name__} feedback can be lost, so there is no longest delay; give a number{own}")
        return longest

    def copies(self) -> int:
        return int(self.max_delay()) + 1

    def queue_capacity(self) -> int:
        return self.losses.num_arms * self.copies()

    def horizon(self) -> int:
        return self.rounds

    def sequence(self) -> np.ndarray | None:
        """``[T]`` the delays, if they are one known sequence."""
        law = self.delays
        if not law.oblivious or law.noisy:
            return None
        rounds = jnp.arange(1, self.rounds + 1, dtype=jnp.int32)
        draw = jax.vmap(lambda t: jnp.broadcast_to(law.draw(t, jnp.int32(0), jnp.float32(0), jnp.float32(0.5)), ()))
        return np.asarray(draw(rounds)).astype(np.int64)

    def total_delay(self) -> float:
        self._check_oblivious()
        sequence, rest = self.sequence(), self.rounds - np.arange(1, self.rounds + 1)
        if sequence is not None:
            return float(np.minimum(sequence, rest).sum())
        drawn = self._quantiles()
        delays = np.where(drawn == NEVER, self.rounds, np.minimum(drawn.astype(np.int64), self.rounds))
        # Σ_t E min(d, T - t) = Σ_k P(d > k)·(T - 1 - k)
        later = 1 - np.cumsum(np.bincount(delays, minlength=self.rounds + 1)[: self.rounds]) / QUANTILES
        return float(later @ rest)

    def mean_delay(self) -> float:
        longest = self.max_delay()  # raises if there is none
        sequence = self.sequence()
        if sequence is not None:
            return float(sequence.mean())
        self._check_oblivious()
        return float(np.minimum(self._quantiles().astype(np.float64), longest).mean())

    def conversion_curve(self) -> np.ndarray:
        bound = self.delays.bound
        counts = np.bincount(np.minimum(self._quantiles(), bound + 1), minlength=bound + 2)
        return np.cumsum(counts[:-1]) / QUANTILES

    def _check_oblivious(self) -> None:
        if not self.delays.oblivious:
            raise ValueError(f"under {type(self.delays).__name__} delays depend on the actions; give a number")

    def _quantiles(self) -> np.ndarray:
        """``[QUANTILES]`` int32: those of a random delay model that is constant over rounds; they represent its distribution."""
        law, noise = self.delays.prepare(), jnp.asarray((np.arange(QUANTILES) + 0.5) / QUANTILES, jnp.float32)
        return np.asarray(jax.vmap(lambda one: law.draw(jnp.int32(1), jnp.int32(0), jnp.float32(0), one))(noise))

    def transitions(self) -> np.ndarray:
        if not isinstance(self.losses, IntermediateStates):
            raise ValueError(f"under {type(self.losses).__name__} there are no intermediate states; give numbers")
        return np.asarray(self.losses.transitions)

    def signals(self) -> int:
        if not isinstance(self.losses, ShowsSignals):
            raise ValueError(f"under {type(self.losses).__name__} there are no intermediate observations; give a number")
        return self.losses.num_signals

    def gaps(self) -> np.ndarray:
        if isinstance(self.losses, AdaptiveLosses):
            raise ValueError(f"under {type(self.losses).__name__} mean losses depend on the arms that are chosen; give numbers")
        means = np.asarray(self.losses.expected(jnp.int32(1)), np.float64)
        if not self.losses.stationary:
            parts = np.array_split(np.arange(1, self.rounds + 1, dtype=np.int32), -(-self.rounds // ROUNDS_AT_ONCE))
            sums = [np.asarray(jax.vmap(self.losses.expected)(jnp.asarray(part)), np.float64).sum(0) for part in parts]
            means = np.sum(sums, 0) / self.rounds
        return means - means.min()


FACTS: dict[str, Callable[[Oracle], Any]] = {
    "max_delay": Oracle.max_delay,
    "copies": Oracle.copies,
    "queue_capacity": Oracle.queue_capacity,
    "horizon": Oracle.horizon,
    "total_delay": Oracle.total_delay,
    "mean_delay": Oracle.mean_delay,
    "conversion_curve": Oracle.conversion_curve,
    "transitions": Oracle.transitions,
    "signals": Oracle.signals,
    "gaps": Oracle.gaps,
}
