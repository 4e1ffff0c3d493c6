"""Random learners of the registry, each with its NumPy reference.

Thompson sampling draws from its posterior with the library's own sampler (``beta_odds``, tested on its own against the
distribution), given the random numbers of the learner's stream and the posterior of the reference. All other draws are made here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandit as jb
from jaxbandit._core.randomness import Words
from jaxbandit._core.randomness import threefry as library_threefry
from jaxbandit.learners.thompson import beta_odds
from tests.reference import learners as reference
from tests.reference import streams
from tests.reference.interface import Reference
from tests.reference.random_environments import BOUND, ROUNDS, Kit


class Draws(NamedTuple):
    """The random numbers of a learner in one run."""

    seed: int
    run: int

    def key(self, t: int) -> streams.Pair:
        """The key of round t, which the number of the run is folded into."""
        return streams.fold_in(streams.fold_in(streams.key(self.seed), streams.LEARNER), t)

    def pair(self, t: int) -> streams.Pair:
        return streams.fold_in(self.key(t), self.run)

    def uniforms(self, t: int) -> list[float]:
        return [float(streams.uniform(number)) for number in self.pair(t)]


class Asked(reference.QPMD):
    """QPM-D on the learner's stream: a question asked at the end of round t has the random numbers of round t + 1."""

    def __init__(self, arms, draws: Draws, base, **options):
        super().__init__(arms, base, uniforms=iter(self.uniform, None), **options)
        self.draws, self.round, self.number = draws, 1, 0

    def uniform(self) -> float:
        self.number += 1
        return float(streams.uniform(streams.fold_in(self.draws.pair(self.round), 2 * (self.number - 1))[0]))

    def end(self, t, outstanding):
        self.round, self.number = t + 1, 0
        super().end(t, outstanding)


@jax.jit
def _odds(key, run, alpha, beta):
    return beta_odds(lambda pair: library_threefry(Words(*key), Words(pair, run)), alpha, beta)


class Sampled(Reference):
    """Thompson sampling: the posterior of another reference, and one draw from it."""

    def __init__(self, arms, draws: Draws, posterior: Reference):
        super().__init__(arms)
        self.draws, self.posterior = draws, posterior

    def act(self, t, outstanding):
        if isinstance(self.posterior, reference.SlidingWindowThompson | reference.DiscountedThompson):
            self.posterior.tally(t)
        losses, counts = self.posterior.sums, self.posterior.counts
        with jax.enable_x64(True):
            odds = np.asarray(_odds(self.draws.key(t), np.uint32(self.draws.run), 1 + losses, 1 + counts - losses))
        return self.remember(t, np.eye(self.arms)[odds.argmin()])

    def observe(self, t, s, arm, loss):
        self.posterior.observe(t, s, arm, loss)


def pair(library, theirs, names: dict[str, str] | None = None, **numbers):
    """A learner of the library and its reference with the same numbers; ``names`` renames or drops (None) some for the reference."""
    names = names or {}
    renamed = {names.get(name, name): value for name, value in numbers.items()}
    renamed.pop(None, None)
    return library(**numbers), lambda arms, draws: theirs(arms, **renamed)


def _scales(kit: Kit) -> dict[str, float]:
    return {"tsallis_scale": kit.real(0.5, 2), "entropy_scale": kit.real(0.2, 2)}


BOBW_NAMES = {"tsallis_scale": "eta_scale", "entropy_scale": "gamma_scale"}


def _bobw_numbers(kit: Kit) -> dict[str, float]:
    return {"max_delay": kit.whole(0, BOUND), "linear": kit.real(0, 10), "factor": kit.real(0, 3), **_scales(kit)}


def _asymmetric(kit: Kit, losses):
    gaps = kit.rng.uniform(0, 1, kit.arms) if kit.flag() else None
    numbers = {"gaps": gaps, "floor": kit.real(0.01, 0.3), "centred": kit.flag(), **_bobw_numbers(kit)}
    return pair(jb.AsymmetricBestOfBothWorlds, reference.AsymmetricBestOfBothWorlds, BOBW_NAMES, **numbers)


def _sapo(kit: Kit, losses):
    horizon = kit.one_of([3.0, 60.0]) * kit.real(1, 2)  # a short horizon makes narrow intervals
    mine, theirs = kit.one_of([(jb.ZimmertSeldin(), reference.ZimmertSeldin), (jb.TsallisINF(), reference.TsallisINF)])
    numbers = {"horizon": horizon, "separation": kit.real(0, 0.5), "phase": kit.real(0.3, 20), "limit": kit.real(0, 1)}
    return jb.DelayedSAPO(base=mine, **numbers), lambda arms, draws: reference.DelayedSAPO(arms, base=theirs, **numbers)


def _tsallis(kit: Kit, losses=None):
    numbers = {"estimator": kit.one_of(["iw", "rv"]), "scale": kit.real(0.5, 2), "threshold": kit.real(2, 20)}
    return pair(jb.TsallisINF, reference.TsallisINF, **numbers)


def _banker(kit: Kit, losses):
    numbers = {"scale": kit.real(0.5, 2), "delay_scale": kit.real(0, 2)}
    mine = jb.BankerTsallisINF(**numbers)
    return mine, lambda arms, draws: reference.BankerTsallisINF(arms, "proportional", **numbers)


def _horizon(kit: Kit) -> dict[str, float]:
    return {"horizon": kit.real(2, 100)}


def _conversions(library, theirs):
    def make(kit: Kit, losses):
        # Multiples of 1/16: their sums are exact in any order, so that ties are ties in both programs.
        curve = np.sort(kit.rng.integers(0, 17, kit.one_of([1, 3, 10]))) / 16
        return pair(library, theirs, curve=curve, epsilon=kit.real(0, 1))

    return make


def _state_exp3(kit: Kit, losses):
    transitions = np.asarray(losses.transitions)
    numbers = {"horizon": kit.real(10, 100), "scale": kit.real(0.5, 4)}
    delay, states = kit.real(0, 10), transitions.shape[1]
    mine = jb.StateExp3(transitions, mean_delay=delay, **numbers)
    theirs = {"states": states, "delay": delay, "transitions": transitions, **numbers}
    wrapper = kit.one_of([None, jb.BOLD, jb.LimitedTracking])
    if wrapper is jb.BOLD:
        return jb.BOLD(mine, ROUNDS + 1), lambda arms, draws: reference.BOLD(arms, reference.StateExp3, **theirs)
    if wrapper is jb.LimitedTracking:
        room = {"capacity": kit.whole(1, 20), "backlog": kit.whole(0, 10)}
        return jb.LimitedTracking(mine, **room), lambda arms, draws: reference.LimitedTracking(
            arms, reference.StateExp3, uniforms=draws.uniforms, **room, **theirs
        )
    return mine, lambda arms, draws: reference.StateExp3(arms, **theirs)


def _estimated_state_exp3(kit: Kit, losses):
    states, delay, smoothing, mixing = losses.num_signals, kit.real(0, 10), kit.real(0.01, 1), kit.real(0, 0.5)
    numbers = {"horizon": kit.real(10, 100), "scale": kit.real(0.5, 4)}
    mine = jb.EstimatedStateExp3(states, mean_delay=delay, smoothing=smoothing, mixing=mixing, **numbers)
    theirs = {"states": states, "delay": delay, "alpha": smoothing, "gamma": mixing, **numbers}
    return mine, lambda arms, draws: reference.StateExp3(arms, **theirs)


def _thompson(kit: Kit, losses):
    return jb.DelayedThompson(), lambda arms, draws: Sampled(arms, draws, reference.DelayedThompson(arms))


def _window_thompson(kit: Kit, losses):
    window = kit.one_of([1, 7, 40])
    mine = jb.SlidingWindowThompson(window)
    return mine, lambda arms, draws: Sampled(arms, draws, reference.SlidingWindowThompson(arms, window))


def _discounted_thompson(kit: Kit, losses):
    discount = kit.real(0.5, 1)
    mine = jb.DiscountedThompson(discount)
    return mine, lambda arms, draws: Sampled(arms, draws, reference.DiscountedThompson(arms, discount))


# Bases of the wrappers that meet no delay: the name in LEARNERS.
BASES = ["tsallis-inf", "bobw", "exp3", "ucb1"]


def _wrapped(kit: Kit, names: list[str]):
    """A base and a class-like function that makes its reference from the number of arms."""
    name = kit.one_of(names)
    mine, theirs = LEARNERS[name](kit, None)
    return name, mine, lambda arms: theirs(arms, None)


def _qpmd(kit: Kit, losses):
    _, mine, theirs = _wrapped(kit, BASES)
    return jb.QPMD(mine, ROUNDS), lambda arms, draws: Asked(arms, draws, theirs)


def _bold(kit: Kit, losses):
    _, mine, theirs = _wrapped(kit, BASES)
    return jb.BOLD(mine, ROUNDS + 1), lambda arms, draws: reference.BOLD(arms, theirs)


def _colo(kit: Kit, losses):
    _, mine, theirs = _wrapped(kit, BASES)
    delay = kit.whole(0, 3)
    return jb.CoLo(mine, delay), lambda arms, draws: reference.CoLo(arms, delay, draws.uniforms, theirs)


def _limited_tracking(kit: Kit, losses):
    name, mine, theirs = _wrapped(kit, ["delayed-exp3", "zimmert-seldin", "robust-bobw", "bobw", "ucb1"])
    numbers = {"capacity": kit.whole(1, 20), "backlog": kit.whole(0, 10), "probability": kit.real(0.1, 1) if kit.flag() else None}
    return jb.LimitedTracking(mine, **numbers), lambda arms, draws: reference.LimitedTracking(
        arms, theirs, uniforms=draws.uniforms, weighted=name != "ucb1", **numbers
    )


def plain(library, theirs, numbers: Callable[[Kit], dict[str, Any]], names: dict[str, str] | None = None):
    return lambda kit, losses: pair(library, theirs, names, **numbers(kit))


LEARNERS: dict[str, Callable[[Kit, Any], tuple[Any, Callable[[int, Any], Reference]]]] = {
    "bobw": plain(jb.BestOfBothWorlds, reference.BestOfBothWorlds, _bobw_numbers, BOBW_NAMES),
    "zimmert-seldin": plain(
        jb.ZimmertSeldin, reference.ZimmertSeldin, lambda kit: {"skipping": kit.flag(), **_scales(kit)}
    ),
    "robust-bobw": plain(
        jb.RobustBestOfBothWorlds, reference.RobustBestOfBothWorlds, lambda kit: {"factor": kit.real(0.05, 5), **_scales(kit)}
    ),
    "tapered-ftrl": plain(
        jb.TaperedFTRL,
        reference.TaperedFTRL,
        lambda kit: {"robustness": kit.real(0.3, 1.5), "power": kit.real(0, 1), "tsallis_scale": kit.real(0.5, 2), **_horizon(kit)},
    ),
    "delayed-sapo": _sapo,
    "asymmetric-bobw": _asymmetric,
    "tsallis-inf": _tsallis,
    "banker": _banker,
    "arm-dependent": plain(
        jb.ArmDependentFTRL, reference.ArmDependentFTRL, lambda kit: {"max_missing": kit.whole(0, 20), **_scales(kit)}
    ),
    "delayed-exp3": plain(jb.DelayedExp3, reference.DelayedExp3, lambda kit: {"scale": kit.real(0.3, 3)}),
    "dew": plain(
        jb.DelayedExponentialWeights,
        reference.DelayedExponentialWeights,
        lambda kit: {"total_delay": kit.real(0, 300), "max_delay": kit.whole(0, 3), "scale": kit.real(0.3, 3), **_horizon(kit)},
    ),
    "skipper": plain(
        jb.Skipper,
        reference.Skipper,
        lambda kit: {"beta": kit.whole(1, 9), "total_delay": kit.real(0, 300), "scale": kit.real(0.3, 3), **_horizon(kit)},
    ),
    "fixed-delay-exp3": plain(
        jb.FixedDelayExp3,
        reference.FixedDelayExp3,
        lambda kit: {"delay": kit.whole(0, 5), "gamma": kit.real(0.1, 1) if kit.flag() else None, **_horizon(kit)},
    ),
    "exp3": plain(jb.Exp3, reference.Exp3, lambda kit: {"scale": kit.real(0.3, 3)}),
    "exp3++": plain(
        jb.Exp3PlusPlus, reference.Exp3PlusPlus, lambda kit: {"alpha": kit.real(0.02, 3), "beta": kit.real(0.01, 1)}
    ),
    "ucb1": plain(jb.DelayedUCB1, reference.DelayedUCB1, lambda kit: {"alpha": kit.real(0.1, 2)}),
    "kl-ucb": plain(jb.KLUCB, reference.KLUCB, lambda kit: {"alpha": kit.real(0.1, 2)}),
    "thompson": _thompson,
    "delayed-ucb": _conversions(jb.DelayedUCB, reference.DelayedUCB),
    "delayed-kl-ucb": _conversions(jb.DelayedKLUCB, reference.DelayedKLUCB),
    "successive-elimination": plain(jb.SuccessiveElimination, reference.SuccessiveElimination, _horizon),
    "phased-elimination": plain(
        jb.PhasedElimination, reference.PhasedElimination, lambda kit: {"factor": kit.real(0.01, 0.3), **_horizon(kit)}
    ),
    "opse": plain(jb.OptimisticPessimisticElimination, reference.OptimisticPessimisticElimination, _horizon),
    "odaaf": plain(
        jb.ODAAF, reference.ODAAF, lambda kit: {"horizon": kit.real(1, 4), "mean_delay": kit.real(0, 0.5)}
    ),
    "state-exp3": _state_exp3,
    "estimated-state-exp3": _estimated_state_exp3,
    "sliding-window-ucb": plain(
        jb.SlidingWindowUCB, reference.SlidingWindowUCB, lambda kit: {"window": kit.one_of([1, 7, 40]), "alpha": kit.real(0.1, 2)}
    ),
    "discounted-ucb": plain(
        jb.DiscountedUCB, reference.DiscountedUCB, lambda kit: {"discount": kit.real(0.5, 1), "alpha": kit.real(0.1, 2)}
    ),
    "sliding-window-thompson": _window_thompson,
    "discounted-thompson": _discounted_thompson,
    "qpm-d": _qpmd,
    "bold": _bold,
    "colo": _colo,
    "limited-tracking": _limited_tracking,
    "uniform": lambda kit, losses: (jb.Uniform(), lambda arms, draws: Reference(arms)),
}  # fmt: skip
