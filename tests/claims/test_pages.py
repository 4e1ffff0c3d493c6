"""Formulas in the pages of claims."""

import pytest

from experiments.claims.harness.experiment import Experiment
from experiments.claims.harness.figures import lay_out
from experiments.claims.harness.notation import typeset


@pytest.mark.parametrize(
    ("plain", "made"),
    [
        ("24·d_max·K^{1/3}·log K", "24·d<sub>max</sub>·K<sup>1/3</sup>·log K"),
        ("Reg_T = O(Σ_{i≠i*} 1/Δ_i)", "Reg<sub>T</sub> = O(Σ<sub>i≠i*</sub> 1/Δ<sub>i</sub>)"),
        ("L_(1) ≥ L_(n)²", "L<sub>(1)</sub> ≥ L<sub>(n)</sub>²"),
        ("(1/Δ)^0.66. Then", "(1/Δ)<sup>0.66</sup>. Then"),
        ("`max_delay` and x_t^2", "`max_delay` and x<sub>t</sub><sup>2</sup>"),
        ("max_delay, no_oracle, `d_max`", "max_delay, no_oracle, `d_max`"),  # names of Python and code stay
    ],
)
def test_formulas(plain, made):
    assert typeset(plain) == made


def test_figures_lie_one_below_the_other_with_formulas(tmp_path):
    """Rejects panels side by side, which a page shrinks, and `d_max` in a title; matplotlib must be able to draw what is made."""
    experiment = Experiment({}, 0, tmp_path)
    upper, lower = experiment.panels(2)
    upper.set(title="d_max·K^{1/3}, Σ_{i≠i*} x_t^2", xlabel="$T$ and a_1")
    lower.plot([1, 2], [3, 4], label="σ_max = 2, `max_delay`")
    lower.legend()
    figure = experiment.figure
    assert figure is not None
    lay_out(figure)
    figure.savefig(tmp_path / "figure.png")
    assert upper.get_title() == r"$d_{\mathrm{max}}$·K$^{1/3}$, $Σ_{i≠i*}$ $x_{t}^{2}$"
    assert upper.get_xlabel() == "$T$ and a_1"  # has a formula of its own: left alone
    assert lower.get_legend().get_texts()[0].get_text() == r"$σ_{\mathrm{max}}$ = 2, `max_delay`"
    assert upper.get_position().y0 > lower.get_position().y1
    assert figure.get_figwidth() == 6
