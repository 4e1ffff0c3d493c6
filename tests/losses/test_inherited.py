"""Subclasses of loss and delay models with a method of their own: what they inherit must not describe the former method."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.extend import pytree_dataclass


@pytree_dataclass
class Alternating(jb.losses.Bernoulli):
    """Means that change places in every round."""

    def expected(self, t):
        means = jnp.asarray(self.means)
        return jnp.where(t % 2 == 0, means, means[::-1])


@pytree_dataclass
class Declared(Alternating):
    stationary = False


@pytree_dataclass
class Random(jb.delays.Fixed):
    """Random delays, of a model with one known delay."""

    def draw(self, t, arm, loss, noise):
        return jnp.floor(noise * self.delay).astype(jnp.int32)


@pytree_dataclass
class OfArm(jb.delays.UniformRandom):
    """Delays that depend on the arm, of a model in which they do not."""

    def draw(self, t, arm, loss, noise):
        return jnp.where(arm == 0, 0, super().draw(t, arm, loss, noise))


@pytree_dataclass
class Twice(jb.delays.KnownAtAction):
    """A ``draw`` that is lost when the base is prepared."""

    def draw(self, t, arm, loss, noise):
        return 2 * self.base.draw(t, arm, loss, noise)


BERNOULLI, FIXED = jb.losses.Bernoulli([0.2, 0.6]), jb.delays.Fixed(1)


@pytest.mark.parametrize(
    ("losses", "delays", "text"),
    [
        (
            Alternating([0.2, 0.6]),
            FIXED,
            r"losses=Alternating\(…\): .* expected of its own and inherits stationary from Bernoulli",
        ),
        (BERNOULLI, Random(8), r"delays=Random\(…\): .* inherits oblivious, noisy, may_lose, fixed_age from Fixed"),
        (BERNOULLI, OfArm(2, 6), r"delays=OfArm\(…\): .* inherits oblivious"),
        (BERNOULLI, Twice(jb.delays.Fixed(2)), r"delays=Twice\(…\): .* prepare"),
        (BERNOULLI, jb.delays.ArmDependent([FIXED, Random(8)]), r"delays=Random\(…\)"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_trait_of_the_former_method_raises(losses, delays, text):
    """Without the error these gave a dynamic regret, arrivals after a fixed delay, and delays other than drawn."""
    with pytest.raises(TypeError, match=text):
        jb.simulate(jb.DelayedExp3(), losses, delays, rounds=10, runs=2, seed=0)


def test_a_trait_that_is_declared_again_counts():
    """Uniform play has no regret against the best fixed arm if the means change places."""
    result = jb.simulate(jb.Uniform(), Declared([0.2, 0.6]), FIXED, rounds=10, runs=2, seed=0)
    np.testing.assert_allclose(result.regret[-1], 0, atol=1e-5)
