"""Bounds and the skipping optimum against brute force: all subsets, plain event queues, sums written out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbandit import theory
from jaxbandit.theory.bounds import Rates

sequences = st.lists(st.integers(0, 15), min_size=1, max_size=12)


def queue(delays):
    """σ_t and a_t by moving plays through a list."""
    waiting, sigma, arrived = [], [], []
    for t, delay in enumerate(delays, start=1):
        sigma.append(len(waiting))
        waiting.append(t + delay)
        arrived.append(sum(due == t for due in waiting))
        waiting = [due for due in waiting if due > t]
    return sigma, arrived


def subsets(delays):
    for size in range(len(delays) + 1):
        for skipped in itertools.combinations(range(len(delays)), size):
            yield size, [d for t, d in enumerate(delays) if t not in skipped]


@given(sequences)
@settings(max_examples=60)
def test_outstanding_and_arrivals_are_those_of_an_event_queue(delays):
    sigma, arrived = queue(delays)
    np.testing.assert_array_equal(theory.optimal_skipping.outstanding(delays), sigma)
    np.testing.assert_array_equal(theory.optimal_skipping.arrivals(delays), arrived)
    # Everything revealed at the end: the outstanding plays add up to the total delay, and none is left.
    cut = theory.optimal_skipping.truncated(delays)
    assert theory.optimal_skipping.outstanding(cut).sum() == cut.sum() == theory.optimal_skipping.summary(delays)["total"]
    assert theory.optimal_skipping.arrivals(cut).sum() == len(delays)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=9), st.integers(2, 9))
@settings(max_examples=60)
def test_skipping_optimum_is_the_least_over_all_subsets(delays, num_arms):
    best = min(size + math.sqrt(sum(kept) * math.log(num_arms)) for size, kept in subsets(delays))
    optimum = theory.optimal_skipping.skipping_optimum(delays, num_arms)
    assert optimum.value == pytest.approx(best, rel=1e-12)
    kept = sorted(delays)[: len(delays) - optimum.skipped]
    assert optimum.value == pytest.approx(optimum.skipped + math.sqrt(sum(kept) * math.log(num_arms)))
    assert optimum.longest_kept == (kept[-1] if kept else 0)
    scale = num_arms ** (2 / 3) * math.log(num_arms)
    cut = theory.optimal_skipping.truncated(delays).tolist()
    least = min(size + math.sqrt(sum(kept) * scale) for size, kept in subsets(cut))
    assert theory.bounds.mzs24_skipped(delays, num_arms) == pytest.approx(min(max(cut) * scale, least), rel=1e-12)


@pytest.mark.parametrize("delays", [[0] * 12, [12] * 12, list(range(12)), [100, *[0] * 11], [7, 3] * 6])
def test_skipping_optimum_at_twelve_rounds(delays):
    assert theory.optimal_skipping.skipping_optimum(delays, 5).value == pytest.approx(
        min(size + math.sqrt(sum(kept) * math.log(5)) for size, kept in subsets(delays)), rel=1e-12
    )


@given(sequences)
@settings(max_examples=60)
def test_outstanding_optimum_is_the_least_over_all_subsets_and_bounds_sigma(delays):
    optimum = theory.optimal_skipping.outstanding_optimum(delays)
    assert optimum.value == min(size + max(kept, default=0) for size, kept in subsets(delays))
    assert max(queue(delays)[0]) <= optimum.value


def test_ten_million_rounds():
    delays = np.zeros(10**7, np.int64)
    delays[: 10**4] = 10**7
    optimum = theory.optimal_skipping.skipping_optimum(delays, 10)
    assert (optimum.value, optimum.skipped) == (10**4, 10**4)
    assert theory.optimal_skipping.outstanding_optimum(delays).value == theory.optimal_skipping.outstanding(delays).max() == 10**4


def test_rates_and_the_bound_for_any_rates_written_out():
    delays, num_arms = [3, 0, 5, 1, 2, 2, 0, 4], 5
    sigma, _ = queue(delays)
    log_k, longest = math.log(num_arms), 5
    eta0 = 10 * longest + longest**2 / (num_arms ** (1 / 3) * log_k) ** 2
    gamma0 = 24**2 * longest**2 * num_arms ** (2 / 3) * log_k
    a = [math.sqrt(t + eta0) for t in range(1, 9)]
    b = [math.sqrt((sum(sigma[:t]) + gamma0) / log_k) for t in range(1, 9)]
    rates = theory.bounds.mzs22_rates(delays, num_arms)
    np.testing.assert_allclose(rates.tsallis, a, rtol=1e-14)
    np.testing.assert_allclose(rates.entropy, b, rtol=1e-14)
    bound = theory.bounds.adversarial(rates, delays, num_arms)
    for horizon in (1, 5, 8):
        total = (
            sum(math.sqrt(num_arms) / x for x in a[:horizon])
            + sum(s / x for s, x in zip(sigma[:horizon], b[:horizon], strict=True))
            + 2 * a[horizon - 1] * math.sqrt(num_arms)
            + b[horizon - 1] * log_k
        )
        assert bound.total[horizon - 1] == pytest.approx(total, rel=1e-13)
    assert bound.status == "proved"


def test_bound_for_any_rates_without_delays_is_that_of_tsallis_inf():
    delays = np.zeros(10_000, int)
    bound = theory.bounds.adversarial(theory.bounds.zs20_rates(delays, 8), delays, 8)
    assert bound["entropy_stability"][-1] == bound["entropy_penalty"][-1] == 0
    assert 0 <= theory.bounds.tsallis_inf_adversarial(8, 10_000).total - bound.total[-1] < 0.02 * bound.total[-1]
    assert bound.total[-1] <= theory.bounds.zs20_simple(delays, 8).total


def test_zs20_follows_from_the_bound_for_any_rates():
    delays = np.random.default_rng(0).integers(0, 50, 3000)
    bound = theory.bounds.adversarial(
        theory.bounds.zs20_rates(theory.optimal_skipping.truncated(delays), 6), theory.optimal_skipping.truncated(delays), 6
    )
    assert bound.total[-1] <= theory.bounds.zs20_simple(delays, 6).total
    assert bound.total[-1] > 0.9 * theory.bounds.zs20_simple(delays, 6).total


def test_recomputed_limits_are_those_of_the_lemmas():
    gaps, rounds, sigma, most, longest = [0, 0.1, 0.4], 1000, 7, 3, 9
    log_k = math.log(3)
    eta0 = 10 * longest + longest**2 / (3 ** (1 / 3) * log_k) ** 2
    a, b, c = theory.bounds.RECOMPUTED
    limits = theory.bounds.self_bounding_limits(gaps, rounds, sigma, most, longest)
    assert limits["A"] == pytest.approx(sum(4 * a**2 / g * math.log(rounds / eta0 + 1) for g in gaps[1:]))
    assert limits["B"] == pytest.approx(64 * b**2 * most * log_k)
    assert limits["C"] == pytest.approx(sum(128 * c**2 * sigma / g / log_k for g in gaps[1:]))
    # 512 where the paper prints 256, and larger a and b: the printed bound is the smaller one, and not a certificate.
    printed = theory.bounds.mzs22_printed(gaps, rounds, sigma, most, longest)
    assert limits["C"] == pytest.approx(2 * printed["outstanding"])
    assert printed.status == "as printed"
    assert printed.total < limits.total


def test_named_terms_of_the_other_bounds():
    delays, gaps = [4, 0, 2, 9, 1, 1], [0.0, 0.25, 0.5]
    cut = np.minimum(delays, [5, 4, 3, 2, 1, 0])
    total, log_k = cut.sum(), math.log(3)
    assert theory.bounds.mzs22_adversarial(delays, 3)["delay"] == pytest.approx(math.sqrt(total * log_k))
    assert theory.bounds.zs20_simple(delays, 3)["delay"] == pytest.approx(math.sqrt(8 * total * log_k))
    assert theory.bounds.zs20_skipping(delays, 3)["skipping"] == pytest.approx(
        10 * max(theory.optimal_skipping.skipping_optimum(cut, 3).value, 2 * log_k)
    )
    assert theory.bounds.fixed_delay_stochastic(gaps, 100, 5)["outstanding"] == pytest.approx(6 * 5 / log_k)
    assert theory.bounds.delayed_exp3(delays, 3).total == pytest.approx(3 * math.sqrt(log_k * (9 + total)))
    rate = min(math.sqrt(log_k / (9 * math.e + total)), 1 / (4 * math.e * cut.max()))
    assert theory.bounds.dew(delays, 3)["penalty"] == pytest.approx(log_k / rate)
    assert theory.bounds.state_exp3(3, 5, 700, 6).total == pytest.approx(math.sqrt(2 * 7 * 5 * 700 * log_k))
    assert theory.bounds.composite(3, 700, 6).total == pytest.approx(math.sqrt(7 * 3 * 700))
    terms = theory.bounds.limited_tracking(3, 700, 4200, 10).terms
    assert list(terms.values()) == pytest.approx([math.sqrt(2100), math.sqrt(1260), math.sqrt(4200 * log_k)])
    assert theory.bounds.delayed_ucb1(gaps, math.e, 4).total == pytest.approx(8 * 6 + (3.5 + 4) * 0.75)
    kl = 0.5 * math.log(0.5 / 0.2) + 0.5 * math.log(0.5 / 0.8)
    assert theory.bounds.lai_robbins([0.2, 0.5, 0.5], math.e**2).total == pytest.approx(2 * 2 * 0.3 / kl)
    assert theory.bounds.stochastic_lower(gaps, math.e, 7).total == pytest.approx(7 * np.mean(gaps) + 6)
    assert theory.bounds.bandit_lower(4, 10_000).total == pytest.approx(10)


def test_lower_bound_of_variable_ranges_written_out():
    ranges = [5.0, 1.0, 3.0, 2.0, 2.0]
    bound = theory.bounds.full_information_lower(ranges, 5)  # floor(log2 5) = 2 largest: 5 and 3
    assert bound["halving"] == 4
    assert bound["spread"] == pytest.approx(math.sqrt((1 + 4 + 4) * math.log(5)) / 32)
    assert bound.total == 4
    assert theory.bounds.full_information_lower(np.ones(10**6), 2).total == pytest.approx(
        math.sqrt((10**6 - 1) * math.log(2)) / 32
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
@settings(max_examples=60)
def test_buckets_hold_no_feedback_of_their_own_and_are_as_large_as_can_be(delays):
    starts = [*theory.bounds.buckets(delays), len(delays) + 1]
    for first, after in itertools.pairwise(starts):
        earliest = min(t + delays[t - 1] for t in range(first, after))
        assert earliest >= after - 1, "feedback of a bucket comes before its last play"
        assert after == len(delays) + 1 or earliest == after - 1, "the next play could have joined"


@given(st.lists(st.integers(0, 20), min_size=3, max_size=60), st.integers(2, 16))
@settings(max_examples=40)
def test_properties_of_buckets_of_falling_delays(delays, num_arms):
    delays = np.sort(delays)[::-1]
    starts = np.append(theory.bounds.buckets(delays), len(delays) + 1)
    sizes = np.diff(starts)
    whole = sizes[:-1]  # the horizon may cut the last one short
    assert np.all(np.diff(whole) <= 0)
    for m in range(len(sizes) - 1):
        assert sizes[m] ** 2 >= delays[starts[m + 1] - 1 : starts[m + 2] - 1].sum()
    assert theory.bounds.delayed_lower(delays, num_arms).total == theory.bounds.full_information_lower(sizes, num_arms).total


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.optimal_skipping.skipping_optimum([1, -2], 3), "delays=.*whole numbers, 0 or more"),
        (lambda: theory.optimal_skipping.skipping_optimum([1, 0.5], 3), "delays=.*whole numbers"),
        (lambda: theory.optimal_skipping.skipping_optimum([1], 1), "num_arms=1.*2 or more"),
        (lambda: theory.bounds.mzs22_stochastic([0.1, 0.2], 10, 1, 1), "gaps=.*0 for the best"),
        (lambda: theory.bounds.adversarial(Rates(np.array([2.0, 1.0]), np.ones(2)), [0, 0], 2), "rates.tsallis=.*never fall"),
        (lambda: theory.bounds.full_information_lower([1.0, -1.0], 2), "ranges=.*0 or more"),
        (lambda: theory.bounds.lai_robbins([0.5, 0.5], 10), "means=.*not all the same"),
        (lambda: theory.bounds.tsallis_inf_adversarial(2, 10, "xx"), "estimator='xx'"),
        (lambda: theory.bounds.state_exp3(2, 0, 10, 3), "num_signals=0: num_signals is a number, 1 or more"),
        (lambda: theory.bounds.composite(2, 10, -1), "delay=-1: delay is a number, 0 or more"),
    ],
)
def test_wrong_input_is_told_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("wrong", [None, "3", True, np.nan, -1])
@pytest.mark.parametrize("name", ["num_signals", "rounds", "delay", "rate"])
def test_bounds_of_states_name_what_is_not_a_number(name, wrong):
    """Rejects a negative bound for a negative rate, and NaN for NaN."""
    if (name, wrong) == ("rate", None):
        return  # the rate of the learner
    arguments = {"num_arms": 8, "num_signals": 4, "rounds": 1000, "delay": 5, name: wrong}
    with pytest.raises(ValueError, match=rf"^{name}=.*: {name} is a number"):
        theory.bounds.state_exp3_single(**arguments)
