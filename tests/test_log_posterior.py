"""The posterior of rates, rewards and delays: against brute force, and its calibration on thin arms and revenue."""

import numpy as np
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit.logs.posterior import Outcomes, bin_means, draw, fit_rates, mean_values


def outcomes(which, converted, rewards=None, waits=None):
    converted = np.asarray(converted, bool)
    count = len(converted)
    rewards = converted.astype(float) if rewards is None else np.where(converted, rewards, 0.0)
    waits = np.arange(count) if waits is None else np.asarray(waits)
    return Outcomes(np.asarray(which), waits.astype(np.int32), waits * 10**9, rewards, converted, np.ones(count))


def log_of(rates, rows, seed=0):
    random = np.random.default_rng(seed)
    which = np.repeat(np.arange(len(rates)), rows)
    return outcomes(which, random.uniform(size=len(which)) < np.asarray(rates)[which])


def test_rates_against_numerical_integration():
    """The posterior mean of the first arm by sums over priors and rates, without Beta functions of the data."""
    data = outcomes([0, 0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0, 0])
    fit = fit_rates(data, 2)
    grid = (np.arange(4000) + 0.5) / 4000
    likelihood = [grid**s * (1 - grid) ** f for s, f in ((2, 2), (0, 3))]
    strengths = np.geomspace(1, 1000, 25)
    centre, offsets = np.log(3 / 6), 5 * np.linspace(-1, 1, 41) ** 3
    means = 1 / (1 + np.exp(-(centre + offsets)))
    top = bottom = 0.0
    for mean, step in zip(means, np.gradient(offsets), strict=True):
        for strength in strengths:
            prior = scipy.stats.beta.pdf(grid, mean * strength, (1 - mean) * strength)
            prior /= prior.sum()
            weight = step * mean * (1 - mean)
            evidence = [(prior * one).sum() for one in likelihood]
            bottom += weight * evidence[0] * evidence[1]
            top += weight * (prior * likelihood[0] * grid).sum() * evidence[1]
    assert fit.mean()[0] == pytest.approx(top / bottom, rel=0.01)
    drawn = fit.draw(np.random.default_rng(0), 40_000)
    np.testing.assert_allclose(drawn.mean(1), fit.mean(), atol=5 * fit.deviation().max() / 200)
    np.testing.assert_allclose(drawn.std(1), fit.deviation(), rtol=0.03)


def test_fifty_thin_arms_do_not_overstate_the_loss_of_uniform_allocation():
    """50 arms with 40 rows each: independent posteriors from a uniform prior put the best arm far too high."""
    rates = np.random.default_rng(1).beta(6, 94, 50)
    data = log_of(rates, 40)
    truth = rates.max() - rates.mean()
    drawn = fit_rates(data, 50).draw(np.random.default_rng(0), 400)
    pooled = drawn.max(0) - drawn.mean(0)
    hits = np.bincount(data.which, data.converted)
    alone = np.random.default_rng(0).beta(1 + hits[:, None], 41 - hits[:, None], (50, 400))
    assert (alone.max(0) - alone.mean(0)).mean() > 1.8 * truth
    assert np.quantile(pooled, 0.025) < truth < np.quantile(pooled, 0.975)
    assert pooled.mean() == pytest.approx(truth, rel=0.35)


def test_intervals_of_rates_cover():
    """200 logs of four arms: the 95% intervals of the gap between best arm and mean cover it about as often."""
    random, inside = np.random.default_rng(5), []
    for seed in range(200):
        rates = random.beta(8, 92, 4)
        drawn = fit_rates(log_of(rates, [60, 200, 400, 800], seed), 4).draw(random, 400)
        low, high = np.quantile(drawn.max(0) - drawn.mean(0), [0.025, 0.975])
        inside.append(low <= rates.max() - rates.mean() <= high)
    assert np.mean(inside) > 0.95 - 5 * np.sqrt(0.05 * 0.95 / 200)


def test_delays_of_an_arm_without_conversions_are_uncertain():
    """One arm has 2 conversions, the others 300 each at other delays: its drawn medians spread over all of them."""
    random = np.random.default_rng(0)
    which = np.repeat([0, 1, 2], [300, 300, 2])
    waits = np.concatenate([random.poisson(10, 300), random.poisson(1000, 300), [400, 500]])
    data = outcomes(which, np.ones(602), waits=waits)
    medians = np.median(draw(data, fit_rates(data, 3), random, 200, 64).delays, axis=1)
    assert np.ptp(medians[0]) < 10
    assert np.ptp(np.quantile(medians[2], [0.05, 0.95])) > 200


def test_revenue_keeps_its_distribution():
    """Heavy-tailed rewards that are mostly below one half: their mean is kept, and their delays are those of conversions."""
    random = np.random.default_rng(0)
    which, converted = np.arange(6000) % 2, random.uniform(size=6000) < 0.2
    rewards = np.minimum(0.02 * (1 + random.pareto(1.6, 6000)) * (1 + which), 1)
    waits = np.where(converted, 5, 700)
    data = outcomes(which, converted, rewards, waits)
    drawn = draw(data, fit_rates(data, 2), random, 200, 64)
    for arm in (0, 1):
        own = rewards[converted & (which == arm)]
        assert drawn.values[arm].mean() == pytest.approx(own.mean(), abs=5 * own.std() / np.sqrt(len(own)))
        assert drawn.values[arm].mean(0).std() == pytest.approx(own.std() / np.sqrt(len(own)), rel=0.5)
    assert (drawn.delays == 5).all()
    means, errors = mean_values(data, 2)
    assert abs(means[1] - drawn.values[1].mean()) < 3 * errors[1]


def test_revenue_in_a_log(tmp_path):
    rows = ["ad,shown,bought,value"]
    for i in range(300):
        rows.append(f"{'ab'[i % 2]},{60 * i}," + (f"{60 * i + 30},{(i % 7 + 1) * 12.5}" if i % 3 == 0 else ","))
    (tmp_path / "log.csv").write_text("\n".join(rows))
    columns = dict(arm="ad", action="shown", feedback="bought", window="10m", reward="value")
    with pytest.raises(ValueError, match=r"value='12.5' in row 1 .* divided by scale=, here for example 87.5 .* largest is 87.5"):
        jb.load_log(tmp_path / "log.csv", **columns)
    log = jb.load_log(tmp_path / "log.csv", **columns, scale=100)
    assert log.outcomes.rewards.max() == 0.875
    assert log.dependence.conversions.sum() == log.outcomes.converted.sum()
    np.testing.assert_allclose(1 - log.means, 0.5 / 3, atol=0.05)
    with pytest.warns(UserWarning, match=r"of the rewards are above scale= and count as 1, which cuts off 3\d%"):
        jb.load_log(tmp_path / "log.csv", **columns, scale=40)


def test_zero_inflated_losses():
    law = jb.losses.ZeroInflated([[0.5, 0.25], [0.1, 0.8]], starts=[1, 5], values=[[0.2, 0.6], [1.0, 0.0]])
    jb.check_losses(law)
    np.testing.assert_allclose(law.expected(4), [1 - 0.5 * 0.4, 1 - 0.25 * 0.5], rtol=1e-6)
    np.testing.assert_allclose(law.expected(5), [1 - 0.1 * 0.4, 1 - 0.8 * 0.5], rtol=1e-6)
    noise = np.array([0.1, 0.3, 0.49, 0.51])
    np.testing.assert_allclose(law.sample(1, np.zeros(4, int), noise), [0.8, 0.4, 0.4, 1], rtol=1e-6)
    with pytest.raises(ValueError, match="2 numbers for 3 arms"):
        jb.check_losses(jb.losses.ZeroInflated([[0.5, 0.25, 0.1]], starts=[1], values=[[0.2], [1.0]]))


def test_means_of_bins_stay_within_the_values():
    """Many rewards are cut off at the scale: sums of weights 1e-300 and more must not round a reward to above 1."""
    random = np.random.default_rng(0)
    for _ in range(200):
        values = np.sort(np.minimum(random.lognormal(-1, 1, 50), 1.0))
        found = bin_means(values, random.gamma(random.choice([0.02, 1.0], 50)) + 1e-300, 64)
        assert values[0] <= found.min() <= found.max() <= values[-1]
