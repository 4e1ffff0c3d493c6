"""Each inequality of docs/notes/taper_bound.md on simulated paths, in float64; the sums over rounds in closed form; the two-expert game."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxbandit as jb
from experiments.frontier import cover, terms
from jaxbandit.learners.base import Round

SMALL = 1e-9


def table(kind: str, rounds: int, arms: int, delay: int) -> np.ndarray:
    rng = np.random.default_rng(rounds + arms)
    if kind == "random blocks":
        return np.repeat(rng.integers(0, 2, (rounds, arms)), delay + 1, 0)[:rounds].astype(float)
    if kind == "in turn":
        return (np.arange(rounds)[:, None] // (delay + 1) % arms != np.arange(arms)).astype(float)
    return rng.random((rounds, arms))


def jumping(arms: int, delay: int, rounds: int) -> terms.Rates:
    """Inverse rates that jump up and down by factors of up to 30."""
    rng = np.random.default_rng(7)
    return terms.Rates(*(np.exp(rng.uniform(-1, 2.4, rounds)) for _ in range(2)))


def constants(robustness, power):
    return lambda arms, delay, rounds: terms.tapered(arms, delay, rounds, robustness, power)


@pytest.mark.parametrize("make", [constants(0.5, 0.5), constants(0.8, 0.75), jumping])
@pytest.mark.parametrize(("arms", "delay", "kind"), [(2, 8, "random blocks"), (4, 5, "in turn"), (3, 0, "uniform")])
def test_terms_sum_to_the_regret_and_each_is_bounded(make, arms, delay, kind):
    rounds = 160
    rates = make(arms, delay, rounds)
    found = terms.play(table(kind, rounds, arms, delay), delay, rates, runs=32, seed=1)
    np.testing.assert_allclose(sum(found.sums().values()), found.regret, atol=1e-8)
    assert (found.stability >= -SMALL).all()
    assert (found.stability <= found.stability_bound + SMALL).all()
    assert (found.delay <= found.delay_bound + SMALL).all()
    assert (found.change <= found.change_bound + SMALL).all()
    assert (found.end <= SMALL).all()
    whole = terms.bound(rates, terms.outstanding(delay, rounds), arms)
    assert np.cumsum(found.change_bound, 0)[-1].max() <= whole["penalty"] + SMALL
    # Negative controls: without the factor 1/2 of Taylor's theorem halved again, or with half of the outstanding estimates, they fail.
    assert (found.stability > 0.5 * found.stability_bound + SMALL).any()
    assert delay == 0 or (found.delay > 0.5 * found.delay_bound + SMALL).any()


def test_expectations_of_the_bounds_by_enumeration():
    """E[stability bound] and E[delay bound] are at most √K η_t and γ_t σ_t: two arms, all paths of nine rounds."""
    rounds, arms, delay = 9, 2, 3
    rates = terms.tapered(arms, delay, rounds, 0.5, 0.5)
    sigma = terms.outstanding(delay, rounds)
    losses = table("uniform", rounds, arms, delay)
    paths = np.array(list(itertools.product(range(arms), repeat=rounds)))
    weight, estimates = np.ones(len(paths)), np.zeros((rounds, len(paths), arms))
    for t in range(rounds):
        a, b = rates.tsallis[t], rates.entropy[t]
        observed = estimates[: max(t - delay, 0)].sum(0)
        x = np.exp(terms.leader(observed, a, b, np.full((len(paths), arms), -np.log(arms)))[0])
        mine = np.take_along_axis(x, paths[:, t : t + 1], 1)[:, 0]
        weight = weight * mine
        estimates[t][np.arange(len(paths)), paths[:, t]] = losses[t, paths[:, t]] / mine
        weighted = estimates[t].sum(1)
        missing = np.take_along_axis(estimates[:t].sum(0) - observed, paths[:, t : t + 1], 1)[:, 0] if t else 0 * mine
        curvature = a * mine**-1.5 / 2 + b / mine
        # Later rounds have total weight 1 for each path so far: sum over their arms with uniform shares.
        share = weight / arms ** (rounds - t - 1)
        assert (share * weighted**2 / curvature / 2).sum() <= np.sqrt(arms) / a + SMALL
        assert (share * weighted * missing / curvature).sum() <= (sigma[t] / b if sigma[t] else 0) + SMALL


def test_the_bound_of_monotone_rates_fails_for_falling_inverse_rates():
    """The sum of MZS22 with the last inverse rate in place of all rises: uniform play until the last round has regret T/2 and exceeds it."""
    rounds, arms = 60, 2
    rates = terms.Rates(np.append(np.full(rounds - 1, 1e6), 1.0), np.full(rounds, 1e-9))
    losses = np.tile([0.0, 1.0], (rounds, 1))
    found = terms.play(losses, 0, rates, runs=64, seed=2)
    monotone = np.sqrt(arms) * (1 / rates.tsallis).sum() + 2 * rates.tsallis[-1] * np.sqrt(arms)
    assert found.regret.mean() > 4 * monotone
    assert found.regret.mean() < sum(terms.bound(rates, np.zeros(rounds, int), arms).values())


@pytest.mark.parametrize("power", [0.25, 0.5, 0.75, 0.95])
@pytest.mark.parametrize(("arms", "delay", "rounds"), [(2, 20, 5000), (10, 100, 400), (4, 1, 30), (3, 50, 50)])
def test_closed_forms(power, arms, delay, rounds):
    """The corollary: sums by the Beta function, rises by the maximum of √t (1 - t/T)^p."""
    kappa = 0.7
    rates = terms.tapered(arms, delay, rounds, kappa, power)
    exact = terms.bound(rates, terms.outstanding(delay, rounds), arms)
    beta = scipy.special.beta(0.5, 1 - power)
    peak = (1 / (1 + 2 * power)) ** 0.5 * (2 * power / (1 + 2 * power)) ** power
    assert exact["stability"] <= np.sqrt(arms * (rounds + 1)) * beta / (1.2 * kappa)
    assert exact["delay"] <= np.sqrt(2 * delay * (rounds + 1) * np.log(arms)) * beta / kappa
    # (T + 1)/T: w counts the round itself.
    top = kappa * peak * np.sqrt(rounds + 1) * (1 + 1 / rounds) ** power
    assert exact["penalty"] <= 2.4 * (np.sqrt(arms) - 1) * top + np.sqrt(delay * np.log(arms)) * top


def test_rates_are_those_of_the_library():
    rounds, delay, arms = 50, 4, 3
    state = jb.TaperedFTRL(rounds).init(arms, ())
    ours = terms.tapered(arms, delay, rounds, 0.5, 0.5)
    total = np.cumsum(terms.outstanding(delay, rounds))
    for t in (1, 7, 50):
        round = Round(jnp.int32(t), jnp.int32(0), jnp.float32(total[t - 1]), lambda: None, lambda s: s)
        theirs = jb.TaperedFTRL(rounds).inverse_rates(state, round, arms)
        np.testing.assert_allclose(theirs, [ours.tsallis[t - 1], ours.entropy[t - 1]], rtol=1e-5)


def test_two_experts_against_enumeration_and_cover():
    """The dynamic program finds the largest regret over all sequences; the minimax value is that of Cover's walk."""
    inverse = 0.6 * np.sqrt(np.arange(6, 0, -1))
    largest = -np.inf
    for losses in itertools.product([(0, 0), (0, 1), (1, 0)], repeat=6):
        cumulative, incurred = np.zeros(2), 0.0
        for loss, rate in zip(losses, inverse, strict=True):
            weights = np.exp(-(cumulative - cumulative.min()) / rate)
            incurred += weights @ loss / weights.sum()
            cumulative += loss
        largest = max(largest, incurred - cumulative.min())
    assert cover.worst(inverse) == pytest.approx(largest)
    walk = [abs(sum(steps)) for steps in itertools.product([-1, 1], repeat=9)]
    assert cover.minimax(9) == pytest.approx(np.mean(walk) / 2)
    assert cover.minimax(10) == pytest.approx(np.mean([abs(sum(s)) for s in itertools.product([-1, 1], repeat=10)]) / 2)
    falling, constant = (cover.best_scale(form, 200)[1] for form in ("c √(T - t)", "c √T (constant)"))
    assert cover.minimax(200) < falling < 0.85 * constant
