"""The learners of the frontier: each published one as a curve over a scale of its own, and the tapers over κ."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxbandit as jb
from jaxbandit._core.fields import number, pytree_dataclass


@pytree_dataclass
class InflatedThompson(jb.DelayedThompson):
    """Thompson sampling with a posterior in which each observation counts as ``share``."""

    share: float = number(default=0.1, high=1.0)

    def _posterior(self, state: Any) -> tuple[jax.Array, jax.Array]:
        alpha, beta = super()._posterior(state)
        return 1 + self.share * (alpha - 1), 1 + self.share * (beta - 1)


@pytree_dataclass
class CoverFTRL(jb.TaperedFTRL):
    r"""The rates of Cover's game under bandit feedback: :math:`\kappa (1.2 \sqrt{T - t + 1}, \sqrt{d(T - t + 1)/\log K})`. Given T and d."""

    delay: float = number(default=0.0)

    def inverse_rates(self, state: Any, round: Any, num_arms: int) -> tuple[jax.Array, jax.Array]:
        left = self.robustness * jnp.sqrt(jnp.maximum(self.horizon - round.time + 1, 1))
        return self.tsallis_scale * left, jnp.sqrt(self.delay / jnp.log(num_arms)) * left


class Curve(NamedTuple):
    """One learner over its scale."""

    colour: str
    marker: str
    needs_horizon: bool
    points: dict[str, Any]  # label -> learner, in the order of the searches


def curves(delay: int, rounds: int) -> dict[str, Curve]:
    total = delay * rounds - delay * (delay + 1) // 2

    def mzs22(scale: float) -> Any:
        return jb.BestOfBothWorlds(delay, linear=1.0, factor=1.0, tsallis_scale=scale, entropy_scale=scale)

    def anytime(kappa: float) -> Any:  # the rates of the taper with p = 0; max_delay = 0 leaves no constants in the rates
        return jb.BestOfBothWorlds(0, linear=0.0, factor=0.0, tsallis_scale=1.2 * kappa, entropy_scale=kappa)

    def mzs24(factor: float, scale: float) -> Any:
        return jb.RobustBestOfBothWorlds(factor, tsallis_scale=scale, entropy_scale=scale)

    def taper(power: float, *kappas: float) -> dict[str, Any]:
        return {f"κ = {kappa}": jb.TaperedFTRL(rounds, robustness=kappa, power=power) for kappa in kappas}

    return {
        "DEW": Curve(
            "#17becf",
            "s",
            True,
            {f"scale {s}": jb.DelayedExponentialWeights(rounds, total, delay, s) for s in (4, 3, 1, 2)},
        ),
        "MZS22 without constants, (1.2κ, κ)": Curve(
            "#e377c2", "h", False, {f"κ = {kappa}": anytime(kappa) for kappa in (0.45, 0.3)}
        ),
        "TaperedFTRL, p = 0.5": Curve("#d62728", "o", True, taper(0.5, 0.5, 0.8, 0.3)),
        "TaperedFTRL, p = 0.75": Curve("#ff7f0e", "o", True, taper(0.75, 0.8)),
        "TaperedFTRL, entropy alone": Curve(
            "#c49c94",
            "o",
            True,
            {f"κ = {kappa}": jb.TaperedFTRL(rounds, robustness=kappa, tsallis_scale=1e-3) for kappa in (0.5,)},
        ),
        "TaperedFTRL, κ = 0.5, given another T": Curve(
            "#fdae61",
            "d",
            True,
            {f"given {share} T": jb.TaperedFTRL(share * rounds) for share in (0.8, 2)},
        ),
        "Rates √(T − t)": Curve(
            "#bcbd22",
            "X",
            True,
            {f"κ = {kappa}": CoverFTRL(rounds, robustness=kappa, delay=float(delay)) for kappa in (0.35, 0.5, 0.25)},
        ),
        "Delayed Exp3": Curve("#1f77b4", "o", False, {f"scale {s}": jb.DelayedExp3(s) for s in (2, 1, 4)}),
        "ZS20": Curve(
            "#2ca02c",
            "^",
            False,
            {f"scale {s}": jb.ZimmertSeldin(tsallis_scale=s, entropy_scale=s) for s in (0.5, 1)},
        ),
        "MZS22": Curve(
            "#9467bd",
            "D",
            False,
            {f"(1, 1), scale {s}": mzs22(s) for s in (0.25, 1)},
        ),
        "MZS24": Curve(
            "#8c564b",
            "v",
            False,
            {"factor 0.5, scale 0.25": mzs24(0.5, 0.25)},
        ),
        "Tsallis-INF": Curve("#7f7f7f", "P", False, {f"scale {s}": jb.TsallisINF(scale=s) for s in (1,)}),
        "Thompson sampling": Curve("#000000", "*", False, {"": jb.DelayedThompson()}),
        "Thompson sampling, inflated": Curve(
            "#555555", "*", False, {f"share {share}": InflatedThompson(share=share) for share in (0.1, 0.01, 0.03, 0.3)}
        ),
    }
