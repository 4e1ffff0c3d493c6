"""The estimators of the literature in ``experiments/gradients``: their mean is the derivative of the expected regret."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

import jaxbandit as jb
from tests import enumeration

HERE = Path(__file__).parents[2] / "experiments" / "gradients"
ESTIMATORS = ["measure-valued", "smoothed", "stochastic AD"]


@dataclasses.dataclass
class Case:
    learner: object
    rule: enumeration.Rule  # the same in NumPy
    means: list[float]
    rounds: int
    delay: int
    runs: int


TSALLIS, THREE_ARMS = (jb.TsallisINF(scale=1.0), enumeration.Tsallis(1.0), [0.2, 0.9]), [0.7, 0.1, 0.9]
HEDGE = jb.DelayedExp3(scale=0.5), enumeration.Hedge(0.5), THREE_ARMS
CASES = {
    "Tsallis-INF": Case(*TSALLIS, rounds=8, delay=0, runs=1 << 15),
    "Tsallis-INF, delay 1": Case(*TSALLIS, rounds=8, delay=1, runs=1 << 15),
    # Three arms have two boundaries between them, and the play of the middle one may change both ways.
    "exponential weights, three arms": Case(*HEDGE, rounds=6, delay=0, runs=3 << 16),
    "exponential weights, three arms, delay 1": Case(*HEDGE, rounds=7, delay=1, runs=3 << 16),
}


@pytest.fixture(scope="module")
def others():
    sys.path.insert(0, str(HERE))
    try:
        import other_estimators

        yield other_estimators
    finally:
        sys.path.remove(str(HERE))
        sys.modules.pop("other_estimators", None)


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", CASES)
def test_the_mean_is_the_exact_derivative(name, estimator, others, monkeypatch):
    monkeypatch.setattr(others, "BRANCHES", 3)  # so that not every play of a short game has a branch
    case, pairs = CASES[name], others.PAIRS[estimator]
    delays = jb.delays.Fixed(case.delay, bound=3)
    coins = [[0.0, 1.0]] * len(case.means)
    truth = enumeration.true_gradient(case.rule, "scale", coins, case.means, case.rounds, case.delay)

    def estimate():
        game = case.learner, jb.losses.Bernoulli(case.means), delays
        return others.gradient(*game, rounds=case.rounds, runs=case.runs, seed=5, number="scale", estimator=estimator)

    mean, error = estimate()
    assert abs(mean - truth) < 5 * error
    # A tenth of what the branches bring would have been seen: without any, the error is fifty of these errors.
    monkeypatch.setitem(others.PAIRS, estimator, lambda *given: pairs(*given).where(slice(0)))
    assert abs(estimate()[0] - truth) > 50 * error


def test_tables_of_the_page_are_those_of_the_stored_numbers(others, capsys):
    import unbiased  # found as `others` was

    try:
        unbiased.show(json.loads((HERE / "unbiased.json").read_text()))
    finally:
        sys.modules.pop("unbiased")
    page = (HERE.parents[1] / "docs" / "appendix" / "gradient_estimators.md").read_text()
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 4
    assert [table for table in tables if f"\n\n{table}\n\n" not in page] == []
