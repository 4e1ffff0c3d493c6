"""Progressive feedback: Thompson sampling that learns from each outcome of an action when it is observed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit._core.fields import Numbers, PyTree, is_concrete, number, pytree_dataclass
from jaxbandit.learners.base import Observation, ReadsStages, Round
from jaxbandit.learners.thompson import normals
from jaxbandit.learners.ucb import Observed, uniform_over_smallest

SMALLEST = 1e-4  # of a variance, and of an eigenvalue of a correlation matrix: in float32 smaller ones are not positive
State = tuple[Observed, ...]  # of each stage: the part of its outcome that the outcomes before do not explain


def uniform_moments(stages: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means ``[J]``, covariances over the arms and of one action ``[J, J]``, for rates of the stages that are uniform on [0, 1]."""
    place = np.arange(1, stages + 1)
    first, last = np.minimum.outer(place, place), np.maximum.outer(place, place)
    together = 3.0**-first * 2.0 ** (first - last)  # E[θ_i θ_j]
    return 2.0**-place, together - np.multiply.outer(2.0**-place, 2.0**-place), 2.0**-last - together


MEAN, AMONG, WITHIN = uniform_moments(2)


def _covariance(default: np.ndarray) -> Numbers:
    return number(default=tuple(map(tuple, default.tolist())), low=-1e4, high=1e4, axes="JJ")


@pytree_dataclass
class ProgressiveThompson(ReadsStages[State]):
    r"""Thompson sampling for progressive feedback: outcomes of an action, such as click and basket, are observed before its reward.

    The outcomes :math:`z \in \mathbb{R}^J` of an action on arm i, the last of which is the reward :math:`1 - \ell`, are modelled as normal
    with mean :math:`\theta_i` and a known covariance V. :math:`\theta_i` has a normal prior. The posterior is exact: a Gaussian filter is
    given every outcome that has been observed, of actions with and without a reward.

    .. math:: I_t = \arg\max_i \vartheta_i, \quad \vartheta_i \sim N\big(E[\theta_{i,J} \mid H_t],\, \mathrm{Var}[\theta_{i,J} \mid H_t]\big)

    Outcomes inform about the reward in two ways: by the covariance in the prior (arms with more clicks have more rewards), and by that
    in V (an action with a click has more reward). With diagonal covariances only rewards are used.

    The draw is part of the learner: the probabilities are one-hot. Requires losses with J - 1 outcomes before the loss, such as
    :class:`jaxbandit.losses.Funnel`, and delays that do not depend on the outcomes.

    Args:
      prior_mean: ``[J]``, the prior means of the outcomes.
      prior_covariance: ``[J, J]``, the covariance of the mean outcomes over the arms.
      noise_covariance: ``[J, J]``, V, the covariance of the outcomes of one arm.

    By default these are the moments of a funnel of two stages whose rates are independent and uniform on [0, 1];
    :meth:`for_stages` gives them for more. They assume that arms with more clicks have more rewards: where this is false, regret is
    larger than without clicks. Estimate the moments from earlier arms where there are some.

    >>> import jaxbandit as jb
    >>> law = jb.losses.Funnel([[0.4, 0.2], [0.5, 0.5], [0.5, 0.5]], delays=[jb.delays.Fixed(0), jb.delays.Fixed(5)])
    >>> learner = jb.ProgressiveThompson.for_stages(3)
    >>> jb.simulate(learner, law, jb.delays.Fixed(10), rounds=100, runs=8, seed=0).regret[-1].shape
    (8,)

    Reference: the model of McDonald, Maystre, Lalmas, Russo & Ciosek, *Impatient Bandits*, KDD 2023, and Zhang et al., JMLR 2026. Model
    read from the public program of the former; the algorithm of the latter is recalled, not checked against the paper [R]. That
    program conditions on the mean of each stage; the posterior here is given all observations.
    """

    prior_mean: Numbers = number(default=tuple(MEAN.tolist()), high=1.0, axes="J")
    prior_covariance: Numbers = _covariance(AMONG)
    noise_covariance: Numbers = _covariance(WITHIN)

    @classmethod
    def for_stages(cls, stages: int) -> "ProgressiveThompson":
        """With the moments of a funnel of so many stages, the last for the reward, whose rates are uniform on [0, 1]."""
        return cls(*uniform_moments(stages))

    @property
    def num_stages(self) -> int:
        return np.shape(self.prior_mean)[0] - 1

    def check(self) -> None:
        for name in ("prior_covariance", "noise_covariance"):
            if is_concrete(vars(self)[name]):
                matrices = np.moveaxis(np.asarray(vars(self)[name], np.float64), (0, 1), (-2, -1))
                _check_covariance(name, matrices)

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> State:
        return tuple(Observed.start(num_arms, runs_shape) for _ in range(self.num_stages + 1))

    def act(self, state: State, round: Round) -> tuple[jax.Array, PyTree, State]:
        mean, variance = self.posterior(state)
        pairs = jnp.arange(1, 1 + mean.shape[0], dtype=jnp.uint32).reshape(-1, *[1] * (mean.ndim - 1))
        draw = mean + jnp.sqrt(variance) * normals(round.words(pairs), mean.dtype)[0]
        return uniform_over_smallest(round.restrict(-draw)), (), state

    def staged(self, state: State, stage: int, observation: Observation) -> State:
        return self._add(state, stage, observation, list(observation.stages[: stage + 1]))

    def observe(self, state: State, observation: Observation) -> State:
        return self._add(state, self.num_stages, observation, [*observation.stages, 1 - observation.loss])

    def _add(self, state: State, stage: int, observation: Observation, outcomes: list[jax.Array]) -> State:
        left, _ = self._factors(outcomes[0].dtype)
        rest = _solve(left, outcomes)[stage]
        return (*state[:stage], state[stage].add(observation._replace(loss=rest)), *state[stage + 1 :])

    def _factors(self, dtype: Any) -> tuple[list, list]:
        """V = L D Lᵀ: the rows of L, which is lower triangular with ones on the diagonal, and the diagonal of D."""
        noise = jnp.asarray(self.noise_covariance, dtype)
        left, diagonal = [], []
        for i in range(noise.shape[0]):
            row: list = []
            for j in range(i):
                row.append((noise[i, j] - sum(row[k] * left[j][k] * diagonal[k] for k in range(j))) / diagonal[j])
            diagonal.append(noise[i, i] - sum(row[k] ** 2 * diagonal[k] for k in range(i)))
            left.append(row)
        return left, diagonal

    def posterior(self, state: State) -> tuple[jax.Array, jax.Array]:
        """Mean and variance of the mean reward of each arm, both ``[K, ...]``.

        With V = L D Lᵀ, the numbers :math:`L^{-1} z` of an action are independent given :math:`\\phi = L^{-1}\\theta`: number j has mean
        :math:`\\phi_j` and variance D_j. An action whose first j outcomes are observed gives the first j of them. The filter conditions
        on the sums of these numbers, stage by stage.
        """
        dtype = state[0].losses.dtype
        left, noise = self._factors(dtype)
        prior, stages = jnp.asarray(self.prior_covariance, dtype), range(len(state))
        mean = _solve(left, [jnp.asarray(self.prior_mean, dtype)[i] for i in stages])
        rows = [_solve(left, [prior[max(i, j), min(i, j)] for j in stages]) for i in stages]  # Σ L⁻ᵀ
        columns = [_solve(left, [rows[i][j] for i in stages]) for j in stages]  # L⁻¹ Σ L⁻ᵀ, symmetric
        cover = [[columns[max(i, j)][min(i, j)] for j in stages] for i in stages]
        for j in stages:
            count = state[j].counts.astype(dtype)
            surprise = (state[j].losses + state[j].error) - count * mean[j]
            scale = 1 / (count * cover[j][j] + noise[j])
            mean = [mean[i] + cover[i][j] * surprise * scale for i in stages]
            # Row and column j are multiplied by 1 - n C_jj / (n C_jj + D_j), here without a difference.
            cover = [
                [
                    cover[i][k] * noise[j] * scale if j in (i, k) else cover[i][k] - cover[i][j] * cover[k][j] * count * scale
                    for k in stages
                ]
                for i in stages
            ]
        last = [*left[-1], 1.0]
        whole: Any = sum(weight * one for weight, one in zip(last, mean, strict=True))
        variance = sum(last[i] * last[k] * cover[i][k] for i in stages for k in stages)
        return whole, jnp.maximum(variance, 0)


def _solve(left: list, values: list) -> list:
    """y of L y = values, for as many rows as there are values."""
    found: list = []
    for row, value in zip(left[: len(values)], values, strict=True):
        found.append(value - sum(factor * one for factor, one in zip(row, found, strict=True)))
    return found


def _check_covariance(name: str, matrices: np.ndarray) -> None:
    """Raise if one of the matrices ``[..., J, J]`` is not a covariance that float32 can invert."""
    if not np.allclose(matrices, np.swapaxes(matrices, -1, -2), rtol=1e-4, atol=1e-7):
        raise ValueError(f"ProgressiveThompson({name}=…): a covariance is symmetric")
    variances = np.diagonal(matrices, axis1=-2, axis2=-1)
    if variances.min() < SMALLEST:
        raise ValueError(f"ProgressiveThompson({name}=…): the variance {variances.min():g} is below {SMALLEST:g}")
    deviations = np.sqrt(variances)
    least = np.linalg.eigvalsh(matrices / (deviations[..., :, None] * deviations[..., None, :])).min()
    if least < SMALLEST:
        raise ValueError(
            f"ProgressiveThompson({name}=…): not positive definite, the smallest eigenvalue of its correlations is {least:.2g}; "
            "stages that determine each other are one stage"
        )
