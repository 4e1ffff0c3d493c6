"""Progressive feedback: Thompson sampling that learns from a first outcome at once and from the final one when it arrives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._core.arms import one_hot
from jaxbandit._core.fields import Numbers, PyTree, number, pytree_dataclass
from jaxbandit.learners.base import Observation, ReadsSignals, Round
from jaxbandit.learners.thompson import normals
from jaxbandit.learners.ucb import Observed, uniform_over_smallest

LARGEST = 0.999  # of a correlation: at 1 the covariance has no inverse


def _deviations(default: tuple[float, float]) -> Numbers:
    # With these limits all terms of the posterior fit into float32.
    return number(default=default, low=0.01, high=100.0, axes="2")


@pytree_dataclass
class Seen:
    final: Observed  # losses that have arrived
    final_clicks: jax.Array  # [K, ...] int32, clicks of the actions whose loss has arrived
    clicks: jax.Array  # [K, ...] int32, of all actions
    plays: jax.Array  # [K, ...] int32


@pytree_dataclass
class ProgressiveThompson(ReadsSignals[Seen]):
    """Thompson sampling for progressive feedback: a click :math:`c \\in \\{0, 1\\}` at once, the reward :math:`r = 1 - \\ell` later.

    The pair :math:`(c, r)` of an action on arm i is modelled as normal with mean :math:`\\theta_i \\in \\mathbb{R}^2` and a known covariance V,
    and :math:`\\theta_i` has a normal prior. The posterior is exact: it uses the clicks of all actions and the rewards that have
    arrived. Clicks inform about the reward in two ways: by the correlation in the prior (arms with more clicks have more
    rewards) and by the correlation in V (an action with a click has more reward). With both correlations 0, clicks are not used.

    .. math:: I_t = \\arg\\max_i \\vartheta_i, \\quad \\vartheta_i \\sim N\\big(E[\\theta_{i,2} \\mid H_t],\\, \\mathrm{Var}[\\theta_{i,2} \\mid H_t]\\big)

    The draw is part of the learner: the probabilities are one-hot. Requires losses with two signals, such as
    :class:`jaxbandit.losses.ClickThenPurchase`, and delays that do not depend on the loss.

    Args:
      prior_mean: ``[2]``, the prior means of click rate and mean reward.
      prior_deviation: ``[2]``, their standard deviations over the arms.
      prior_correlation: their correlation over the arms.
      noise_deviation: ``[2]``, the standard deviations of click and reward of one arm.
      noise_correlation: the correlation of click and reward of one arm.

    By default these are the moments for a click rate and a rate of purchases per click that are independent and uniform on [0, 1].
    They assume that arms with more clicks have more rewards: where this is false, regret is larger than without clicks. Estimate
    the moments from earlier arms where there are some.

    >>> import jaxbandit as jb
    >>> law = jb.losses.ClickThenPurchase(clicks=[0.4, 0.2], purchases=[0.5, 0.5])
    >>> jb.simulate(jb.ProgressiveThompson(), law, jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: the model of McDonald, Maystre, Lalmas, Russo & Ciosek, *Impatient Bandits*, KDD 2023, and Zhang et al., JMLR 2026, with
    two stages. Model read from the public program of the former; the algorithm of the latter is recalled, not checked against the
    paper. That program conditions on the mean of each stage; the posterior here is given all observations.
    """

    prior_mean: Numbers = number(default=(1 / 2, 1 / 4), high=1.0, axes="2")
    prior_deviation: Numbers = _deviations((float(np.sqrt(1 / 12)), float(np.sqrt(7 / 144))))
    prior_correlation: ArrayLike = number(default=float(np.sqrt(3 / 7)), low=-LARGEST, high=LARGEST)
    noise_deviation: Numbers = _deviations((float(np.sqrt(1 / 6)), float(np.sqrt(5 / 36))))
    noise_correlation: ArrayLike = number(default=float(np.sqrt(3 / 10)), low=-LARGEST, high=LARGEST)
    num_signals = 2

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> Seen:
        none = jnp.zeros((num_arms, *runs_shape), jnp.int32)
        return Seen(Observed.start(num_arms, runs_shape), none, none, none)

    def act(self, state: Seen, round: Round) -> tuple[jax.Array, PyTree, Seen]:
        mean, variance = self.posterior(state)
        pairs = jnp.arange(1, 1 + mean.shape[0], dtype=jnp.uint32).reshape(-1, *[1] * (mean.ndim - 1))
        draw = mean + jnp.sqrt(variance) * normals(round.words(pairs), mean.dtype)[0]
        return uniform_over_smallest(round.restrict(-draw)), (), state

    def signalled(self, state: Seen, round: Round, arm: jax.Array, signal: jax.Array, memo: PyTree) -> tuple[PyTree, Seen]:
        played = one_hot(arm, state.plays.shape[0])
        clicks, plays = state.clicks + jnp.where(played, signal, 0), state.plays + played.astype(jnp.int32)
        return signal, Seen(state.final, state.final_clicks, clicks, plays)

    def observe(self, state: Seen, observation: Observation) -> Seen:
        clicks = state.final_clicks + observation.at_arm(observation.memo, state.plays.shape[0])
        return Seen(state.final.add(observation), clicks, state.clicks, state.plays)

    def posterior(self, state: Seen) -> tuple[jax.Array, jax.Array]:
        """Mean and variance of the mean reward of each arm, both ``[K, ...]``.

        Given the click, the reward has mean φ + βc with φ = θ₂ - βθ₁. Clicks inform about θ₁ only and rewards about φ only, so the
        precision matrix of (θ₁, φ) changes on its diagonal alone.
        """
        dtype = state.final.losses.dtype
        (click_mean, reward_mean), (click_spread, reward_spread), (click_noise, reward_noise) = (
            jnp.asarray(pair, dtype) for pair in (self.prior_mean, self.prior_deviation, self.noise_deviation)
        )
        among_arms, within_arm = jnp.asarray(self.prior_correlation, dtype), jnp.asarray(self.noise_correlation, dtype)
        slope = within_arm * reward_noise / click_noise  # β
        covariance = click_spread * (among_arms * reward_spread - slope * click_spread)  # of θ₁ and φ
        spread = reward_spread**2 * (1 - among_arms**2)  # the prior variance of φ given θ₁
        cross = -covariance / (click_spread**2 * spread)
        seen_clicks = state.plays.astype(dtype) / click_noise**2
        noise = reward_noise**2 * (1 - within_arm**2)
        seen_rewards = state.final.counts.astype(dtype) / noise
        # Determinant and variance are written as sums of terms that are not negative: nothing cancels.
        click_precision = 1 / click_spread**2 + cross**2 * spread + seen_clicks
        reward_precision = 1 / spread + seen_rewards
        determinant = (1 / click_spread**2 + seen_clicks) * reward_precision + cross**2 * spread * seen_rewards

        clicks = (state.clicks - state.plays * click_mean) / click_noise**2
        rest = state.final.counts * (1 - reward_mean + slope * click_mean) - (state.final.losses + state.final.error)
        rewards = (rest - slope * state.final_clicks) / noise
        more_clicks = reward_precision * clicks - cross * rewards
        more_rest = click_precision * rewards - cross * clicks
        mean = reward_mean + (more_rest + slope * more_clicks) / determinant
        variance = 1 / click_spread**2 + seen_clicks + slope**2 * seen_rewards + spread * (cross - slope / spread) ** 2
        return mean, variance / determinant
