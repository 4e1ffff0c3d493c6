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

from jaxbandit.theory.bounds.base import Bound
from jaxbandit.theory.bounds.feedback_models import composite, limited_tracking, state_exp3, state_exp3_single
from jaxbandit.theory.bounds.lower import (
    bandit_lower,
    buckets,
    delayed_lower,
    full_information_lower,
    lai_robbins,
    stochastic_lower,
)
from jaxbandit.theory.bounds.mzs22 import (
    PRINTED,
    RECOMPUTED,
    fixed_delay_adversarial,
    fixed_delay_stochastic,
    mzs22_adversarial,
    mzs22_constants,
    mzs22_printed,
    mzs22_rates,
    mzs22_stochastic,
    self_bounding_limits,
    self_bounding_remainder,
)
from jaxbandit.theory.bounds.mzs24 import mzs24_adversarial, mzs24_skipped, mzs24_stochastic
from jaxbandit.theory.bounds.others import (
    delayed_exp3,
    delayed_hedge,
    delayed_ucb1,
    dew,
    doubling_skipper,
    tsallis_inf_adversarial,
    tsallis_inf_stochastic,
)
from jaxbandit.theory.bounds.zs20 import Rates, adversarial, zs20_rates, zs20_simple, zs20_skipping

__all__ = [
    "PRINTED",
    "RECOMPUTED",
    "Bound",
    "Rates",
    "adversarial",
    "bandit_lower",
    "buckets",
    "composite",
    "delayed_exp3",
    "delayed_hedge",
    "delayed_lower",
    "delayed_ucb1",
    "dew",
    "doubling_skipper",
    "fixed_delay_adversarial",
    "fixed_delay_stochastic",
    "full_information_lower",
    "lai_robbins",
    "limited_tracking",
    "mzs22_adversarial",
    "mzs22_constants",
    "mzs22_printed",
    "mzs22_rates",
    "mzs22_stochastic",
    "mzs24_adversarial",
    "mzs24_skipped",
    "mzs24_stochastic",
    "self_bounding_limits",
    "self_bounding_remainder",
    "state_exp3",
    "state_exp3_single",
    "stochastic_lower",
    "tsallis_inf_adversarial",
    "tsallis_inf_stochastic",
    "zs20_rates",
    "zs20_simple",
    "zs20_skipping",
]
