"""What every learner of the registry must do, under every kind of delay."""

import importlib
import itertools
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._checks.dry_run import try_learner
from jaxbandit._core.fields import facts
from jaxbandit._engine.player import Player
from jaxbandit.learners.base import as_learner
from jaxbandit.learners.wrappers import Wrapper
from jaxbandit.testing import delays_to_play, losses_to_play

ROUNDS, RUNS = 10_000, 24
MEANS = np.array([0.3, 0.5, 0.6])
D = jb.delays
LAWS = {
    "no delay": D.Fixed(0),
    "fixed": D.Fixed(10),
    "per run": D.Geometric(3.0, bound=15),
    "lost": D.PacketLoss(0.7, delay=2),
    "arm-dependent": D.ArmDependent([D.Fixed(1), D.UniformRandom(0, 6), D.Fixed(10)]),
}
# By the name of the fact (the fields say which by `given`): true or generous under every law above.
FACTS = {
    "max_delay": 15,
    "horizon": ROUNDS,
    "total_delay": 10 * ROUNDS,
    "beta": 12,
    "max_missing": 16,
    "queue_capacity": 192,
    "copies": 192,
    "mean_delay": 10,
    "conversion_curve": np.linspace(0, 1, 16),
    "transitions": np.eye(3),
    "signals": 3,
}


def example_of_the_docs():
    """The learner of docs/adding_a_learner.md, run from the page itself."""
    page = (Path(__file__).parents[2] / "docs" / "adding_a_learner.md").read_text()
    skeleton = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    assert len(skeleton.splitlines()) <= 40
    names: dict = {}
    exec(skeleton, names)
    return names["EpsilonGreedy"]


CLASSES = {**jb.REGISTRY, "docs example": example_of_the_docs()}
VARIANTS = {
    "zimmert-seldin, skipping": ("zimmert-seldin", {"skipping": True}),
    "tsallis-inf, rv": ("tsallis-inf", {"estimator": "rv"}),
}


def make(name, **changes):
    name, fixed = VARIANTS.get(name, (name, {}))
    cls = CLASSES[name]
    known = {field: FACTS[fact] for field, fact in facts(cls).items() if fact in FACTS}
    base = {"base": jb.TsallisINF()} if issubclass(cls, Wrapper) else {}
    small = {"separation": 0.5, "phase": 20.0} if cls is jb.DelayedSAPO else {}  # with the paper's it plays uniformly here
    room = {"capacity": 64} if cls is jb.LimitedTracking else {}
    return cls(**{**known, **base, **small, **room, **fixed, **changes})


def simulate(learner, delays, means=MEANS, **options):
    options = {"rounds": ROUNDS, "runs": RUNS, "key": jax.random.key(5), "record": 5, "probabilities": True, **options}
    delays = delays_to_play(as_learner(learner), delays)
    if delays is None:
        pytest.skip("arm-dependent delays are not known at action time")
    return jb.simulate(learner, losses_to_play(as_learner(learner), means), delays, **options)


@pytest.fixture
def traces(monkeypatch):
    counter = []
    original = Player.advance
    monkeypatch.setattr(Player, "advance", lambda self, *args: counter.append(1) or original(self, *args))
    importlib.import_module("jaxbandit._engine.blocks").advance.clear_cache()
    return counter


QUICK = {"fixed"}  # the same learner and program under other laws: `make test-slow`
# Learners for one feedback model (docs/shapes.md), and costly relatives of others: `make test-all`. Each is in `make test` against its reference.
SHAPES = {"delayed-ucb", "delayed-kl-ucb", "censored-thompson", "censored-kl-ucb", "opse", "delayed-sapo", "odaaf"}
SHAPES |= {"doubling-skipper", "delayed-hedge", "full-information"}
SHAPES |= {"state-exp3", "estimated-state-exp3", "progressive-thompson", "colo", "limited-tracking"}
SHAPES |= {"bold", "qpm-d", "asymmetric-bobw", "banker", "phased-elimination", "fixed-delay-exp3", "exp3++"}
SHAPES |= {"sliding-window-ucb", "discounted-ucb", "sliding-window-thompson", "discounted-thompson"}


@pytest.mark.parametrize("law", [pytest.param(law, marks=() if law in QUICK else pytest.mark.slow) for law in LAWS])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough if name in SHAPES else ()) for name in [*CLASSES, *VARIANTS]]
)
def test_contract(name, law, traces):
    delays, learner = LAWS[law], make(name)
    if name == "bold" and law == "lost":
        with pytest.raises(RuntimeError, match="capacity"):  # a copy waits for ever for each lost play
            simulate(learner, delays)
        return
    result = simulate(learner, delays)

    # On the simplex, and finite after ten thousand rounds: a tighter limit than the one of check_learner.
    assert np.all(np.isfinite(result.regret))
    assert np.all(result.probabilities >= 0)
    np.testing.assert_allclose(result.probabilities.sum(1), 1, atol=2e-6)
    assert np.all(np.diff(result.regret, axis=0) >= 0)
    if name not in ("uniform",):
        # Better than uniform play where it can learn at all; the asymmetric rates alone start out worse (see its docstring).
        assert result.estimate().mean[-1] < (1.05 if name == "asymmetric-bobw" else 1.0) * ROUNDS * (MEANS - 0.3).mean()

    # The same bits in another place of another batch.
    shifted = simulate(learner, delays, first_run=3, runs=RUNS - 3)
    np.testing.assert_array_equal(shifted.regret, result.regret[:, 3:])

    # Arms relabelled: the same regret in distribution (arm-dependent delays would have to be relabelled as well).
    if law != "arm-dependent":
        mirrored = simulate(learner, delays, MEANS[::-1], key=jax.random.key(6)).estimate()
        estimate = result.estimate()
        if estimate.error[-1] + mirrored.error[-1] > 0:
            assert abs(estimate.mean[-1] - mirrored.mean[-1]) < 6 * np.hypot(estimate.error[-1], mirrored.error[-1])

    # Any value of any hyperparameter runs the same program.
    for leaf in ("scale", "tsallis_scale", "entropy_scale", "factor", "linear", "alpha", "floor", "epsilon", "max_delay"):
        if leaf in getattr(learner, "__dataclass_fields__", {}):
            for value in (0.4, 1, np.float64(0.7)):
                simulate(make(name, **{leaf: value}), delays, rounds=20)
    assert len(traces) <= 2  # as one function and, where XLA cannot compile that, once more


def test_learners_are_told_apart():
    """Learners with the same fields are different programs to jit, whose caches compare structures."""
    structures = [jax.tree.structure(make(name)) for name in CLASSES]
    assert all(one != two for one, two in itertools.combinations(structures, 2))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHAPES else pytest.mark.thorough) for name in [*CLASSES, *VARIANTS]]
)
def test_shapes(name):
    """Of what the methods give, for one run and for many; the state keeps its structure."""
    try_learner(make(name), 3)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*CLASSES, *VARIANTS])
def test_conformance(name):
    """The rules that a user's own learner is held to: shapes, ranges, masked observations, traits, the same bits, batches."""
    laws = [D.Fixed(3)] if name == "bold" else None  # a copy of BOLD waits for ever for each lost play
    jb.check_learner(make(name), delays=laws)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CLASSES if name not in ("qpm-d", "bold", "colo")])  # theirs is the base's work
@pytest.mark.parametrize("arms", [1, 1000])
def test_one_arm_and_many(name, arms):
    told = {"transitions": np.full((arms, 3), 1 / 3)} if name == "state-exp3" else {}
    result = simulate(make(name, **told), D.UniformRandom(0, 3), np.linspace(0.1, 0.9, arms), rounds=60, runs=3)
    np.testing.assert_allclose(result.probabilities.sum(1, dtype=float), 1, rtol=1e-5)
