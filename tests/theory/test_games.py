"""The games of the lower bounds against plain Python: sets of arms, a list of pending losses, float64."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import theory

LEARNERS = {
    "hedge": theory.games.Hedge(0.3),
    "bobw": jb.BestOfBothWorlds(max_delay=4),
    "zimmert-seldin": jb.ZimmertSeldin(),
    "tsallis-inf": jb.TsallisINF(),
    "delayed-exp3": jb.DelayedExp3(),
    "uniform": jb.Uniform(),
}


def plain_direction(x):
    """Algorithm 2 as printed, with sets."""
    inside = {int(np.argmax(x))}
    while True:
        rest = [i for i in range(len(x)) if i not in inside]
        smallest = min(rest, key=lambda i: x[i])
        if sum(x[i] for i in inside) + x[smallest] > 2 / 3:
            break
        inside.add(smallest)
    p = sum(x[i] for i in inside)
    return np.array([min(1, (1 - p) / p) if i in inside else max(-1, -p / (1 - p)) for i in range(len(x))])


@pytest.mark.parametrize(
    "num_arms",
    [
        pytest.param(2, marks=pytest.mark.thorough),
        3,
        pytest.param(7, marks=pytest.mark.thorough),
        pytest.param(30, marks=pytest.mark.thorough),
    ],
)
def test_hard_direction_is_algorithm_2_and_has_the_lemma_s_properties(num_arms):
    rng = np.random.default_rng(num_arms)
    x = rng.dirichlet(np.full(num_arms, 0.7), 4000)
    x = x[x.max(1) <= 2 / 3][:1000]
    assert len(x) > 100
    with jax.enable_x64(True):
        loss = np.asarray(jax.vmap(theory.games.hard_direction)(jnp.asarray(x)))
    for one, found in zip(x[:200], loss, strict=False):
        np.testing.assert_allclose(found, plain_direction(one), atol=1e-9)
    assert np.all(np.abs(loss) <= 1)
    assert np.max(np.abs((x * loss).sum(1))) < 1e-9
    assert np.min((x * loss**2).sum(1)) >= 0.5 - 1e-9


def plain_hedge(rate, losses, delays):
    """x_t of Hedge from losses [T, K] with delays, float64."""
    total, x = np.zeros(losses.shape[1]), []
    for t in range(len(losses)):
        weights = np.exp(-rate * (total - total.min()))
        x.append(weights / weights.sum())
        total = total + sum(losses[s] for s in range(t + 1) if s + delays[s] == t)
    return np.array(x)


def test_the_adversary_is_algorithm_3_against_the_learner_it_played():
    """The recorded losses replayed: Hedge in float64 plays the same x_t, and Algorithm 3 answers with the same losses."""
    ranges = np.concatenate([np.full(400, 1.0), [3.0, 2.0], np.full(400, 0.5)])
    num_arms, rate = 5, 0.3
    game = theory.games.play_with_ranges(theory.games.Hedge(rate), ranges, num_arms)
    assert game.adversary == "halving"
    ranges = np.concatenate([np.full(4000, 1.0), np.linspace(0.2, 1.0, 500)])
    game = theory.games.play_with_ranges(theory.games.Hedge(rate), ranges, num_arms)
    assert game.adversary == "spread"
    assert np.all((game.losses >= 0) & (game.losses <= ranges[:, None] + 1e-6))
    x = plain_hedge(rate, game.losses[:300], np.zeros(300, int))
    np.testing.assert_allclose(game.probabilities[:300], x, atol=2e-4)
    top = np.argsort(-ranges, kind="stable")[:2]
    eta = np.sqrt(np.log(num_arms) / np.sum(np.delete(ranges, top) ** 2))
    centred = game.losses - ranges[:, None] / 2
    total, checked = np.zeros(num_arms), 0
    for t in range(len(ranges)):
        z = np.exp(-eta * (total - total.min()))
        z /= z.sum()
        if t in top or z.max() > 2 / 3 + 1e-4:
            np.testing.assert_allclose(centred[t], 0, atol=1e-6)
        elif z.max() < 2 / 3 - 1e-4:
            direction = plain_direction(z) * ranges[t] / 2
            # Ties in z may be broken either way in float32: the lemma's properties must hold whichever it was.
            assert abs(z @ centred[t]) < 1e-4
            assert z @ centred[t] ** 2 >= ranges[t] ** 2 / 8 - 1e-4
            assert game.probabilities[t] @ centred[t] >= -1e-5
            checked += np.allclose(np.abs(centred[t]), np.abs(direction), atol=1e-3)
        total = total + centred[t]
    assert checked > 50


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "num_arms"), [*((name, 5) for name in LEARNERS), ("hedge", 16), ("tsallis-inf", 2)])
def test_no_learner_beats_the_lower_bound(name, num_arms):
    # One length for all: one compilation for each learner and number of arms.
    steep = 0.97 ** np.arange(300)
    for ranges in (np.ones(300), steep, np.random.default_rng(0).permutation(steep), 1 / np.sqrt(np.arange(1, 301))):
        assert theory.games.play_with_ranges(LEARNERS[name], ranges, num_arms).ratio >= 1 - 1e-4
    for delays in (np.full(300, 10), np.arange(300)[::-1] // 10, np.append(np.full(40, 300), np.zeros(260, int))):
        game = theory.games.play_with_delays(LEARNERS[name], delays, num_arms)
        assert game.ratio >= 1 - 1e-4
        assert game.bound == pytest.approx(float(theory.bounds.delayed_lower(delays, num_arms).total))
        assert np.all((game.losses >= -1e-6) & (game.losses <= 1 + 1e-6))


def test_a_cheating_learner_would_be_seen():
    """One that is told the losses of its own round beats the bound: the games can fail."""
    game = theory.games.play_with_ranges(LEARNERS["tsallis-inf"], np.ones(600), 8)
    foresight = np.eye(8)[game.losses.argmin(1)]
    assert (foresight * game.losses).sum() - game.losses.sum(0).min() < game.bound


def test_delayed_learners_hear_of_losses_when_they_are_due():
    delays = np.array([4, 3, 3, 2, 5, 0, 1, 1, 0, 0, 2, 0] * 5)
    game = theory.games.play_with_delays(theory.games.Hedge(0.5), delays, 3)
    np.testing.assert_allclose(game.probabilities, plain_hedge(0.5, game.losses, delays), atol=1e-4)
    starts = np.append(theory.bounds.buckets(delays), len(delays) + 1)
    for first, after in itertools.pairwise(starts):
        assert np.all(game.losses[first - 1 : after - 1] == game.losses[first - 1])


def test_halving_leaves_the_trusted_half_behind():
    adversary = theory.games.Halving()
    left, x = adversary.start(5), jnp.array([0.1, 0.4, 0.2, 0.05, 0.25])
    loss, left = adversary.choose(left, x, 2.0, True)
    np.testing.assert_array_equal(loss, [-1, 1, 0, -1, 1])  # five arms: the middle one gets nothing
    np.testing.assert_array_equal(left, [True, False, False, True, False])
    loss, same = adversary.choose(left, x, 2.0, False)
    assert not loss.any()
    np.testing.assert_array_equal(left, same)
    loss, left = adversary.choose(left, x, 4.0, True)
    np.testing.assert_array_equal(loss, [2, 0, 0, -2, 0])


def test_learners_that_draw_cannot_play():
    with pytest.raises(TypeError, match="draws random numbers is not supported"):
        theory.games.play_with_ranges(jb.DelayedThompson(), np.ones(10), 3)
