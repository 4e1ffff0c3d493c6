"""Regret bounds as functions that return every term by name.

Each :class:`Bound` says how far its constants can be trusted:

- ``proved``: explicit constants with a proof in the source; a curve to draw. Where the source was recalled and not read
  again, ``source`` says so.
- ``recomputed``: explicit constants put together here from the source's lemmas, because the printed ones do not follow.
- ``as printed``: explicit constants as they stand in the source, although they do not follow from it. Never a certificate.
- ``order``: an O- or Ω-form; every constant is 1. To be scaled by a fit, and said so.

MZS22 is Masoudian, Zimmert & Seldin (2022), "L…" a line of its source; ZS20 is Zimmert & Seldin (AISTATS 2020); MZS24 is
Masoudian, Zimmert & Seldin (NeurIPS 2024).
"""

import dataclasses
from typing import Literal, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxbandit.pytrees import is_numeric, show
from jaxbandit.theory.skipping import arrivals, check_arms, check_sequence, outstanding, skipping_optimum, truncated

Status = Literal["proved", "recomputed", "as printed", "order"]


@dataclasses.dataclass(frozen=True)
class Bound:
    """A sum of named terms, numbers or arrays over the horizon."""

    terms: dict[str, np.ndarray]
    status: Status
    source: str

    @property
    def total(self) -> np.ndarray:
        """The sum of the terms."""
        return sum(self.terms.values(), np.zeros(()))

    def __getitem__(self, term: str) -> np.ndarray:
        return self.terms[term]


def _bound(status: Status, source: str, **terms) -> Bound:
    return Bound({name: np.asarray(value, float) for name, value in terms.items()}, status, source)


class Rates(NamedTuple):
    """Inverse learning rates, ``[T]`` each."""

    tsallis: np.ndarray  # 1/η_t
    entropy: np.ndarray  # 1/γ_t, 0 where there was no delay yet


class Constants(NamedTuple):
    """η₀ and γ₀ of MZS22, Algorithm 1."""

    tsallis: float
    entropy: float


def mzs22_constants(max_delay: float, num_arms: int, linear: float = 10.0, factor: float = 24.0) -> Constants:
    """η₀ = 10·d_max + d_max²/(K^{1/3} log K)² and γ₀ = 24²·d_max²·K^{2/3}·log K (L143; K, not K - 1).

    >>> from jaxbandit import theory
    >>> round(float(theory.mzs22_constants(max_delay=1, num_arms=8).entropy / np.log(8)))
    2304
    """
    check_arms(num_arms)
    log_k = np.log(num_arms)
    tsallis = linear * max_delay + (max_delay / (num_arms ** (1 / 3) * log_k)) ** 2
    return Constants(tsallis, (factor * max_delay) ** 2 * num_arms ** (2 / 3) * log_k)


def mzs22_rates(
    delays: ArrayLike, num_arms: int, max_delay: float | None = None, linear: float = 10.0, factor: float = 24.0
) -> Rates:
    """1/η_t = √(t + η₀) and 1/γ_t = √((Σ_{s<=t} σ_s + γ₀)/log K) for a sequence of delays ``[T]``.

    ``max_delay`` is what the learner is told; the longest delay of the sequence unless given.

    >>> from jaxbandit import theory
    >>> theory.mzs22_rates([0, 0, 0, 0], num_arms=4, max_delay=1).entropy.round(2)
    array([38.1, 38.1, 38.1, 38.1])
    """
    delays = check_sequence(delays)
    start = mzs22_constants(delays.max() if max_delay is None else max_delay, num_arms, linear, factor)
    waited = np.cumsum(outstanding(delays))
    rounds = np.arange(1, len(delays) + 1)
    return Rates(np.sqrt(rounds + start.tsallis), np.sqrt((waited + start.entropy) / np.log(num_arms)))


def zs20_rates(delays: ArrayLike, num_arms: int) -> Rates:
    """ZS20 without skipping: 1/η_t = √t, 1/γ_t = √(2 Σ_{s<=t} σ_s/log K).

    >>> from jaxbandit import theory
    >>> theory.zs20_rates([1, 1, 1, 1], num_arms=4).entropy.round(2)
    array([0.  , 1.2 , 1.7 , 2.08])
    """
    check_arms(num_arms)
    waited = np.cumsum(outstanding(delays))
    return Rates(np.sqrt(np.arange(1, len(waited) + 1)), np.sqrt(2 * waited / np.log(num_arms)))


def adversarial(rates: Rates, delays: ArrayLike, num_arms: int) -> Bound:
    """The bound for **any** non-increasing rates, at every horizon: terms are arrays ``[T]`` (L334-338; proved in ZS20).

    Reg_T <= Σ η_t√K + Σ γ_t σ_t + 2√K/η_T + log K/γ_T. The curve to draw in the adversarial regime.

    >>> from jaxbandit import theory
    >>> delays = np.full(1000, 10)
    >>> bound = theory.adversarial(theory.mzs22_rates(delays, 4), delays, 4)
    >>> sorted(bound.terms), bound.total.shape
    (['entropy_penalty', 'entropy_stability', 'tsallis_penalty', 'tsallis_stability'], (1000,))
    """
    check_arms(num_arms)
    sigma = outstanding(delays)
    for name, inverse in zip(rates._fields, rates, strict=True):
        if np.shape(inverse) != sigma.shape or np.any(np.diff(inverse) < 0):
            raise ValueError(f"rates.{name}={show(inverse)}: inverse rates are one number for each round and never fall")
    waiting = sigma > 0
    gamma_sigma = np.where(waiting, sigma / np.where(waiting, rates.entropy, 1), 0)
    return _bound(
        "proved",
        "MZS22 L334-338, from ZS20; any non-increasing rates",
        tsallis_stability=np.cumsum(1 / rates.tsallis) * np.sqrt(num_arms),
        entropy_stability=np.cumsum(gamma_sigma),
        tsallis_penalty=2 * rates.tsallis * np.sqrt(num_arms),
        entropy_penalty=rates.entropy * np.log(num_arms),
    )


def mzs22_adversarial(delays: ArrayLike, num_arms: int) -> Bound:
    """Theorem 1, adversarial: √(KT) + √(D log K) + d_max K^{1/3} log K, D cut off at the horizon.

    >>> from jaxbandit import theory
    >>> theory.mzs22_adversarial(np.full(100, 3), num_arms=4)["bandit"]
    array(20.)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    return _bound(
        "order",
        "MZS22 Theorem 1",
        bandit=np.sqrt(num_arms * len(delays)),
        delay=np.sqrt(delays.sum() * np.log(num_arms)),
        longest=delays.max() * num_arms ** (1 / 3) * np.log(num_arms),
    )


def mzs22_stochastic(gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float, max_delay: float) -> Bound:
    """Theorem 1, stochastic: Σ_i (log T/Δ_i + σ_max/(Δ_i log K)) + d_max K^{1/3} log K over the gaps above 0.

    >>> from jaxbandit import theory
    >>> theory.mzs22_stochastic([0, 0.5, 0.5], rounds=1000, outstanding_max=0, max_delay=0)["log"].round(2)
    np.float64(27.63)
    """
    inverse, num_arms = _inverse_gaps(gaps)
    return _bound(
        "order",
        "MZS22 Theorem 1",
        log=inverse * np.log(rounds),
        outstanding=inverse * outstanding_max / np.log(num_arms),
        longest=max_delay * num_arms ** (1 / 3) * np.log(num_arms),
    )


class SelfBounding(NamedTuple):
    """The constants a, b, c of Reg <= aA + bB + cC + D (equation (10) of MZS22, there part of A, B, C)."""

    a: float
    b: float
    c: float


PRINTED = SelfBounding(14.0, 8.0, 2.0)  # L1003
# stability <= 2 Σ z(ℓ̂ - α)² (L280, L566) and z <= 2η x^{3/2}, z <= γx give 4η and 4γ where L284 has 2 and L989 has 1 and 2.
# With the drift of the key lemma: A: 2·(4·(2√2 + 2) + 2), B: 2·(4·2), C: 2·1.
RECOMPUTED = SelfBounding(16 * np.sqrt(2) + 20, 16.0, 2.0)


def self_bounding_limits(
    gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float, arrivals_max: float, max_delay: float, constants=RECOMPUTED
) -> Bound:
    """What 4aA - Reg, 4bB - Reg and 4cC - Reg stay below, on every path, and 4D: their sum bounds the regret.

    Σ 4a²/Δ_i·log(T/η₀ + 1) (L312 has 16a², which also holds), 64b²·a_max·log K (L319 has 32), Σ 128c²·σ_max/(Δ_i log K).
    With d_max = 0 the logarithm is 1 + log T. Rests on the key lemma, whose printed proof has a gap at L820.

    >>> from jaxbandit import theory
    >>> limits = theory.self_bounding_limits([0, 0.5], 1000, outstanding_max=5, arrivals_max=1, max_delay=5)
    >>> sorted(limits.terms), limits.status
    (['A', 'B', 'C', 'D'], 'recomputed')
    """
    inverse, num_arms = _inverse_gaps(gaps)
    start, log_k = mzs22_constants(max_delay, num_arms), np.log(num_arms)
    log_t = np.log(np.asarray(rounds) / start.tsallis + 1) if start.tsallis else 1 + np.log(rounds)
    return _bound(
        "recomputed",
        "MZS22 Lemmas for A, B, C with the constants recomputed",
        A=4 * constants.a**2 * inverse * log_t,
        B=64 * constants.b**2 * arrivals_max * log_k,
        C=128 * constants.c**2 * outstanding_max * inverse / log_k,
        D=4 * self_bounding_remainder(num_arms, max_delay),
    )


def self_bounding_remainder(num_arms: int, max_delay: float) -> float:
    """D of equation (10): 4√(1 + η₀)(√K - 1) + 2√(γ₀ log K) + d_max (from L977, before it is rounded up).

    >>> from jaxbandit import theory
    >>> round(float(theory.self_bounding_remainder(num_arms=4, max_delay=0)), 6)
    4.0
    """
    start = mzs22_constants(max_delay, num_arms)
    return 4 * np.sqrt(1 + start.tsallis) * (np.sqrt(num_arms) - 1) + 2 * np.sqrt(start.entropy * np.log(num_arms)) + max_delay


def mzs22_printed(gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float, arrivals_max: float, max_delay: float) -> Bound:
    """The final bound at L1020, letter by letter. It loses factors of 2 on the way (256 should be 512): not a certificate.

    Σ 56²/Δ_i·log(T/η₀ + 1) + 2048·a_max·log K + Σ 256·σ_max/(Δ_i log K) + 16√(η₀(K - 1)) + 8√(γ₀ log K) + 4·d_max.

    >>> from jaxbandit import theory
    >>> theory.mzs22_printed([0, 0.5], 1000, outstanding_max=5, arrivals_max=1, max_delay=5)["arriving"].round(1)
    np.float64(1419.6)
    """
    inverse, num_arms = _inverse_gaps(gaps)
    start, log_k = mzs22_constants(max_delay, num_arms), np.log(num_arms)
    return _bound(
        "as printed",
        "MZS22 L1020",
        log=56**2 * inverse * (np.log(np.asarray(rounds) / start.tsallis + 1) if start.tsallis else 1 + np.log(rounds)),
        arriving=2048 * arrivals_max * log_k,
        outstanding=256 * outstanding_max * inverse / log_k,
        start=16 * np.sqrt(start.tsallis * (num_arms - 1)) + 8 * np.sqrt(start.entropy * log_k) + 4 * max_delay,
    )


def fixed_delay_adversarial(delay: float, num_arms: int, rounds: ArrayLike) -> Bound:
    """Corollary, adversarial: √(KT) + √(dT log K), for T >= d·K^{2/3}·log K (L196 has K^{1/3}, a misprint).

    >>> from jaxbandit import theory
    >>> theory.fixed_delay_adversarial(delay=10, num_arms=4, rounds=[100, 10_000])["bandit"]
    array([ 20., 200.])
    """
    check_arms(num_arms)
    rounds = np.asarray(rounds)
    return _bound(
        "order",
        "MZS22 Corollary, first part",
        bandit=np.sqrt(num_arms * rounds),
        delay=np.sqrt(delay * rounds * np.log(num_arms)),
    )


def fixed_delay_stochastic(gaps: ArrayLike, rounds: ArrayLike, delay: float) -> Bound:
    """Corollary, stochastic: Theorem 1 with σ_max = d_max = d.

    >>> from jaxbandit import theory
    >>> theory.fixed_delay_stochastic([0, 0.5], rounds=1000, delay=10)["log"].round(2)
    np.float64(13.82)
    """
    return dataclasses.replace(mzs22_stochastic(gaps, rounds, delay, delay), source="MZS22 Corollary, second part")


def zs20_simple(delays: ArrayLike, num_arms: int) -> Bound:
    """ZS20 without skipping: 4√(KT) + √(8 D log K).

    >>> from jaxbandit import theory
    >>> theory.zs20_simple(np.zeros(100, int), num_arms=4).total
    np.float64(80.0)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    return _bound(
        "proved", "ZS20", bandit=4 * np.sqrt(num_arms * len(delays)), delay=np.sqrt(8 * delays.sum() * np.log(num_arms))
    )


def zs20_skipping(delays: ArrayLike, num_arms: int) -> Bound:
    """ZS20 with skipping: 4√(KT) + 10·max{min_S(|S| + √(D_S̄ log K)), 2 log K}.

    >>> from jaxbandit import theory
    >>> lost = [0] * 99 + [10**6] + [0] * 900  # one delay that outlasts the game
    >>> bool(theory.zs20_skipping(lost, num_arms=4).total < theory.zs20_simple(lost, num_arms=4).total)
    True
    """
    delays = truncated(delays)
    least = skipping_optimum(delays, num_arms).value
    return _bound("proved", "ZS20", bandit=4 * np.sqrt(num_arms * len(delays)), skipping=10 * max(least, 2 * np.log(num_arms)))


def mzs24_adversarial(delays: ArrayLike, num_arms: int) -> Bound:
    """MZS24: √(KT) + min_S(|S| + √(D_S̄ log K)) + S* + K σ_max (recalled, not checked against the paper).

    S* = min{d_max K^{2/3} log K, min_S(|S| + √(D_S̄ K^{2/3} log K))} bounds the number of skipped rounds.

    >>> from jaxbandit import theory
    >>> theory.mzs24_adversarial(np.full(100, 2), num_arms=4)["outstanding"]
    array(8.)
    """
    delays = truncated(delays)
    return _bound(
        "order",
        "MZS24, recalled",
        bandit=np.sqrt(num_arms * len(delays)),
        skipping=skipping_optimum(delays, num_arms).value,
        skipped=mzs24_skipped(delays, num_arms),
        outstanding=num_arms * outstanding(delays).max(),
    )


def mzs24_stochastic(gaps: ArrayLike, delays: ArrayLike) -> Bound:
    """MZS24: Σ_i (log T/Δ_i + σ_max/(Δ_i log K)) + S* + K σ_max (recalled, not checked against the paper).

    >>> from jaxbandit import theory
    >>> theory.mzs24_stochastic([0, 0.5], np.zeros(1000, int)).total.round(2)
    np.float64(13.82)
    """
    inverse, num_arms = _inverse_gaps(gaps)
    delays = truncated(delays)
    sigma = outstanding(delays).max()
    return _bound(
        "order",
        "MZS24, recalled",
        log=inverse * np.log(len(delays)),
        outstanding=inverse * sigma / np.log(num_arms) + num_arms * sigma,
        skipped=mzs24_skipped(delays, num_arms),
    )


def mzs24_skipped(delays: ArrayLike, num_arms: int) -> float:
    """S* of MZS24, see :func:`mzs24_adversarial`.

    >>> from jaxbandit import theory
    >>> theory.mzs24_skipped([0] * 50 + [40] + [0] * 49, num_arms=4)
    1.0
    """
    check_arms(num_arms)
    delays, scale = truncated(delays), num_arms ** (2 / 3)
    longest_first = np.sort(delays)[::-1]
    left = longest_first.sum() - np.concatenate([[0], np.cumsum(longest_first)])
    least = np.min(np.arange(len(left)) + np.sqrt(left * scale * np.log(num_arms)))
    return float(min(delays.max() * scale * np.log(num_arms), least))


def tsallis_inf_adversarial(num_arms: int, rounds: ArrayLike, estimator: Literal["iw", "rv"] = "iw") -> Bound:
    """No delays: "iw" 4√(KT) + 1, "rv" 2√(KT) + 10 K log T + 16 (Zimmert & Seldin, JMLR 2021).

    >>> from jaxbandit import theory
    >>> theory.tsallis_inf_adversarial(num_arms=4, rounds=100).total
    np.float64(81.0)
    """
    check_arms(num_arms)
    bandit = np.sqrt(num_arms * np.asarray(rounds))
    rest = {"iw": 1.0, "rv": 10 * num_arms * np.log(rounds) + 16}
    if estimator not in rest:
        raise ValueError(f"estimator={show(estimator)}: the estimator is 'iw' or 'rv'")
    return _bound("proved", "Zimmert & Seldin, JMLR 2021", bandit=(4 if estimator == "iw" else 2) * bandit, rest=rest[estimator])


def tsallis_inf_stochastic(gaps: ArrayLike, rounds: ArrayLike) -> Bound:
    """No delays, "iw": Σ (4 log T + 20)/Δ_i + 4√K (recalled, not checked against the paper).

    >>> from jaxbandit import theory
    >>> theory.tsallis_inf_stochastic([0, 0.5], rounds=1000)["log"].round(2)
    np.float64(95.26)
    """
    inverse, num_arms = _inverse_gaps(gaps)
    return _bound(
        "proved", "Zimmert & Seldin, JMLR 2021, recalled", log=inverse * (4 * np.log(rounds) + 20), rest=4 * np.sqrt(num_arms)
    )


def dew(delays: ArrayLike, num_arms: int) -> Bound:
    """DEW: η(KTe/2 + D) + log K/η at its rate η = √(log K/(KTe/2 + D)), capped at 1/(4e·d_max) (Thune et al. 2019; recalled).

    >>> from jaxbandit import theory
    >>> theory.dew(np.zeros(1000, int), num_arms=4).total.round(1)
    np.float64(173.6)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    load = num_arms * len(delays) * np.e / 2 + delays.sum()
    rate = np.sqrt(np.log(num_arms) / load)
    rate = min(rate, 1 / (4 * np.e * delays.max())) if delays.max() else rate
    return _bound("proved", "Thune et al. 2019, recalled", stability=rate * load, penalty=np.log(num_arms) / rate)


def delayed_exp3(delays: ArrayLike, num_arms: int) -> Bound:
    """Delay-adaptive Exp3: 3√(log K·(KT/2 + D)), after György & Joulani (2021).

    >>> from jaxbandit import theory
    >>> theory.delayed_exp3(np.zeros(1000, int), num_arms=4).total.round(1)
    np.float64(158.0)
    """
    check_arms(num_arms)
    delays = truncated(delays)
    total = 3 * np.sqrt(np.log(num_arms) * (num_arms * len(delays) / 2 + delays.sum()))
    return _bound("proved", "after György & Joulani 2021; this form derived", total=total)


def delayed_ucb1(gaps: ArrayLike, rounds: ArrayLike, outstanding_max: float) -> Bound:
    """Delayed UCB1: Σ (8 log T/Δ_i + 3.5 Δ_i) + σ_max Σ Δ_i (Joulani et al. 2013; recalled).

    >>> from jaxbandit import theory
    >>> theory.delayed_ucb1([0, 0.5], rounds=1000, outstanding_max=10)["outstanding"]
    array(5.)
    """
    inverse, _ = _inverse_gaps(gaps)
    total = float(np.sum(gaps))
    return _bound(
        "proved",
        "Joulani et al. 2013, recalled",
        log=8 * inverse * np.log(rounds),
        rest=3.5 * total,
        outstanding=outstanding_max * total,
    )


def lai_robbins(means: ArrayLike, rounds: ArrayLike) -> Bound:
    """Σ_i Δ_i/kl(m_i, m*)·log T: no consistent learner of Bernoulli losses has a smaller slope (Lai & Robbins 1985).

    Asymptotic: a slope, not a bound at finite T.

    >>> from jaxbandit import theory
    >>> theory.lai_robbins([0.25, 0.75], np.e).total.round(4)
    np.float64(0.9102)
    """
    means = np.asarray(means, float)
    best = means.min()
    worse = means[means > best]
    if not (means.ndim == 1 and np.all((means > 0) & (means < 1)) and worse.size):
        raise ValueError(f"means={show(means)}: mean losses are numbers between 0 and 1, not all the same")
    divergence = worse * np.log(worse / best) + (1 - worse) * np.log((1 - worse) / (1 - best))
    return _bound("order", "Lai & Robbins 1985, slope in log T", log=np.sum((worse - best) / divergence) * np.log(rounds))


def bandit_lower(num_arms: int, rounds: ArrayLike) -> Bound:
    """No bandit learner does better against all adversaries than min{√(KT), T}/20 (Auer et al. 2002; no delays needed).

    >>> from jaxbandit import theory
    >>> theory.bandit_lower(num_arms=4, rounds=10_000).total
    np.float64(10.0)
    """
    check_arms(num_arms)
    rounds = np.asarray(rounds, float)
    return _bound("proved", "Auer et al. 2002, Theorem 5.1, recalled", bandit=np.minimum(np.sqrt(num_arms * rounds), rounds) / 20)


def stochastic_lower(gaps: ArrayLike, rounds: ArrayLike, delay: float) -> Bound:
    """Fixed delay, stochastic: d + Σ log T/Δ_i (L198).

    >>> from jaxbandit import theory
    >>> theory.stochastic_lower([0, 0.5], rounds=1000, delay=10).total.round(2)
    np.float64(23.82)
    """
    inverse, _ = _inverse_gaps(gaps)
    return _bound("order", "MZS22 L198", delay=delay, log=inverse * np.log(rounds))


def full_information_lower(ranges: ArrayLike, num_arms: int) -> Bound:
    """Theorem 2: no full-information learner does better when the losses of round t lie in [0, L_t].

    max{½ Σ_{n <= N} L_(n), 1/32·√(Σ_{n > N} L_(n)² log K)} with L_(1) >= L_(2) >= … and N = ⌊log₂ K⌋ (L357 has the order the
    wrong way round, and its second sum should start one later). The two terms are alternatives: ``total`` is the larger.

    >>> from jaxbandit import theory
    >>> theory.full_information_lower(np.ones(1000), 4).total.round(3)
    np.float64(1.162)
    """
    check_arms(num_arms)
    array = np.asarray(ranges, float) if is_numeric(ranges) else np.empty(0)
    if array.ndim != 1 or array.size == 0 or np.any(~np.isfinite(array)) or np.any(array < 0):
        raise ValueError(f"ranges={show(ranges)}: loss ranges are a sequence of numbers, 0 or more, one for each round")
    largest_first, top = np.sort(array)[::-1], int(np.log2(num_arms))
    halving = largest_first[:top].sum() / 2
    spread = np.sqrt((largest_first[top:] ** 2).sum() * np.log(num_arms)) / 32
    return _Larger({"halving": np.asarray(halving), "spread": np.asarray(spread)}, "proved", "MZS22 Theorem 2")


class _Larger(Bound):
    @property
    def total(self) -> np.ndarray:
        return np.max(list(self.terms.values()), 0)


def buckets(delays: ArrayLike) -> np.ndarray:
    """First rounds b_1 = 1, b_2, … of the buckets of the Corollary: all plays of a bucket precede all its feedback.

    b_{m+1} = 1 + min_{t in B_m}(t + d_t), found greedily: a play joins the bucket unless some feedback of the bucket has
    arrived before it. (With L373 as printed buckets of plays with d_t = 0 would be empty.)

    >>> from jaxbandit import theory
    >>> theory.buckets([2, 2, 2, 1, 0, 0])
    array([1, 4, 6])
    """
    delays = check_sequence(delays)
    starts, first_due = [], 0  # the end of this round brings the bucket's first feedback
    for t, delay in enumerate(delays, start=1):
        if t > first_due:
            starts.append(t)
            first_due = t + delay
        first_due = min(first_due, t + delay)
    return np.array(starts)


def delayed_lower(delays: ArrayLike, num_arms: int) -> Bound:
    """Corollary of Theorem 2: with all losses of a bucket equal, the game is the one of Theorem 2 with ranges |B_m|.

    Proved for any delays; that it is of the order min_S(|S| + √(D_S̄ log K)) needs them to be non-increasing.

    >>> from jaxbandit import theory
    >>> theory.delayed_lower(np.full(1000, 9), num_arms=4).total.round(2)
    np.float64(10.0)
    """
    delays = check_sequence(delays)
    sizes = np.diff(np.append(buckets(delays), len(delays) + 1))
    return dataclasses.replace(full_information_lower(sizes, num_arms), source="MZS22 Corollary of Theorem 2")


def summary(delays: ArrayLike) -> dict[str, int]:
    """What the bounds ask of a sequence of delays: T, D (cut off at the horizon), d_max, σ_max and a_max.

    >>> from jaxbandit import theory
    >>> theory.summary([2, 1, 0, 9])
    {'rounds': 4, 'total': 3, 'longest': 2, 'outstanding_max': 2, 'arrivals_max': 3}
    """
    delays = truncated(delays)
    return {
        "rounds": len(delays),
        "total": int(delays.sum()),
        "longest": int(delays.max()),
        "outstanding_max": int(outstanding(delays).max()),
        "arrivals_max": int(arrivals(delays).max()),
    }


def _inverse_gaps(gaps: ArrayLike) -> tuple[float, int]:
    """Σ 1/Δ_i over the gaps above 0, and K."""
    array = np.asarray(gaps, float) if is_numeric(gaps) else np.empty(0)
    if array.ndim != 1 or array.size < 2 or np.any(array < 0) or np.any(array > 1) or not np.any(array > 0) or array.min() > 0:
        raise ValueError(f"gaps={show(gaps)}: gaps are K numbers between 0 and 1, one for each arm, 0 for the best")
    return float(np.sum(1 / array[array > 0])), len(array)
