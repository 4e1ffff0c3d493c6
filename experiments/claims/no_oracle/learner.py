"""Algorithm 1 without an oracle for the longest delay."""

import jax.numpy as jnp

import jaxbandit as jb
from jaxbandit.extend import number, pytree_dataclass
from jaxbandit.learners.ftrl import follow_leader, log_arms
from jaxbandit.learners.skipping import SkippingState


@pytree_dataclass
class SkippingMZS22(jb.ZimmertSeldin):
    """Algorithm 1 without an oracle: d_max is replaced by the running skipping threshold b_t = √(D_t/log K) of ZS20.

    D_t counts the outstanding observations that have not been skipped; an observation that has been outstanding for more than b_t rounds is skipped.
    """

    linear: object = number(default=1.0, low=0.0, high=1e3)
    factor: object = number(default=1.0, low=0.0, high=1e3)

    def inverse_rates(self, state, round, num_arms):
        total, log_k = state.waiting.total.as_float(round.total_outstanding.dtype), log_arms(num_arms)
        longest, root = jnp.sqrt(total / log_k), num_arms ** (1 / 3)
        tsallis = jnp.sqrt(round.time + self.linear * longest + (longest / (root * log_k)) ** 2)
        return tsallis, jnp.sqrt(total / log_k + (self.factor * longest * root) ** 2)

    def act(self, state, round):
        state = SkippingState(state.ftrl, state.waiting.count(round))
        num_arms = state.ftrl.loss_estimates.shape[0]
        tsallis, entropy = self.inverse_rates(state, round, num_arms)
        probabilities, ftrl = follow_leader(state.ftrl, tsallis, entropy)
        longest = jnp.sqrt(state.waiting.total.as_float(tsallis.dtype) / log_arms(num_arms))
        return probabilities, (), SkippingState(ftrl, state.waiting.skip(round, round.t, longest))
