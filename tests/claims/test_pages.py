"""Formulas in the pages of claims."""

import pytest

from jaxbandit.claims.pages import typeset


@pytest.mark.parametrize(
    ("plain", "made"),
    [
        ("24·d_max·K^{1/3}·log K", "24·d<sub>max</sub>·K<sup>1/3</sup>·log K"),
        ("Reg_T = O(Σ_{i≠i*} 1/Δ_i)", "Reg<sub>T</sub> = O(Σ<sub>i≠i*</sub> 1/Δ<sub>i</sub>)"),
        ("`max_delay` and x_t^2", "`max_delay` and x<sub>t</sub><sup>2</sup>"),
        ("max_delay, no_oracle, `d_max`", "max_delay, no_oracle, `d_max`"),  # names of Python and code stay
    ],
)
def test_formulas(plain, made):
    assert typeset(plain) == made
