"""Tuning: against closed forms and grids; constraints hold; a stopped tuning goes on to the same bits; wrong options."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbandit as jb
from jaxbandit._checks import warn
from jaxbandit.extend import float_dtype, number, pytree_dataclass
from jaxbandit.gradients import tuning
from jaxbandit.gradients.coordinates import coordinates
from jaxbandit.gradients.record import Record, Step, check_file
from jaxbandit.gradients.tuned import Outcome, Tuned
from jaxbandit.learners import ImportanceWeighted
from jaxbandit.learners.ftrl import FTRLState, follow_leader, hybrid_stiffness

KEY = jax.random.key(0)
LAW, DELAYS = jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(3)
SMALL = {"rounds": 60, "runs": 64, "steps": 4, "fresh_runs": 128, "key": KEY}


@pytree_dataclass
class Fixed(ImportanceWeighted):
    """Plays with these probabilities, whatever it sees: its regret is rounds·<weights, gaps>, exactly."""

    weights: object = number(high=1.0, axes="K")

    def init(self, num_arms, runs_shape):
        return jnp.zeros(runs_shape, float_dtype())

    def act(self, state, round):
        weights = jnp.asarray(self.weights)
        return jnp.broadcast_to(weights.reshape(-1, *[1] * state.ndim), (*weights.shape, *state.shape)), (), state

    def observe(self, state, observation):
        return state


@pytree_dataclass
class Leaning(Fixed):
    """Plays the first of two arms with probability 1/(1 + exp(-lean))."""

    weights: object = number(default=1.0)
    lean: object = number(default=-0.5, low=-1.0, high=0.6)  # the nearest number of float32 is above 0.6

    def act(self, state, round):
        first = jax.nn.sigmoid(jnp.asarray(self.lean))
        return Fixed(jnp.stack([first, 1 - first])).act(state, round)


@pytree_dataclass
class Scheduled(ImportanceWeighted):
    """Tsallis-INF whose inverse rate is √t times a multiplier, given at knots evenly spaced in log t up to 60 rounds."""

    knots: object = number(low=0.01, high=100.0, axes="J")

    def init(self, num_arms, runs_shape):
        return FTRLState.start(num_arms, runs_shape)

    def _rate(self, round):
        knots = jnp.asarray(self.knots)
        places = jnp.linspace(0.0, np.log(60), len(knots))
        return jnp.interp(jnp.log(round.time), places, knots) * jnp.sqrt(round.time)

    def act(self, state, round):
        probabilities, state = follow_leader(state, self._rate(round), 0.0)
        return probabilities, (), state

    def stiffness(self, state, round, probabilities):
        return hybrid_stiffness(probabilities, self._rate(round), 0.0)

    def observe(self, state, observation):
        return state.add_weighted(observation)


@pytree_dataclass
class Limited(Fixed, jb.extend.FTRL):
    """Plays evenly, whatever its numbers are."""

    weights: object = number(default=1.0)
    knots: object = number(low=0.01, axes="J", default=1.0)
    scale: object = number(default=1.0)

    def act(self, state, round):
        return Fixed(jnp.full(3, 1 / 3)).act(state, round)

    def burn_in(self, num_arms, gap):
        return self.scale


def better(arm, gap):
    """Three coins, one of them better than the others by ``gap``."""
    means = np.full(3, 0.8)
    means[arm] -= gap
    return jb.losses.Bernoulli(means)


FOUND = {"rounds": 10, "runs": 8, "fresh_runs": 8, "audit": False, "key": KEY}


@pytest.mark.thorough
def test_simplex_by_hand():
    """One step in the logarithms by hand: softmax of log w - 0.1·w·(g - <w, g>), g = rounds·gaps."""
    weights, gaps = np.array([0.2, 0.3, 0.5]), np.array([0.0, 0.5, 0.5])
    tuned = jb.tune(
        Fixed(weights), better(0, 0.5), DELAYS, steps=1, optimizer=optax.sgd(0.1), constraints={"weights": "simplex"}, **FOUND
    )
    slope = weights * (10 * gaps - weights @ (10 * gaps))
    free = np.log(weights) - 0.1 * slope
    np.testing.assert_allclose(tuned.values()["weights"], np.exp(free) / np.exp(free).sum(), rtol=1e-5)
    assert tuned.before.value == pytest.approx(10 * weights @ gaps, rel=1e-5)
    assert tuned.path["weights"].shape == (2, 3)


@pytest.mark.thorough
def test_worst_of_games():
    """Three games, arm i better by gap_i in game i, of regret rounds·(1 - w_i)·gap_i. The least worst has all three equal:
    w_i = 1 - c/gap_i with Σ w_i = 1. Who takes the mean puts all weight on the arm of the widest gap."""
    gaps = np.array([0.7, 0.6, 0.5])
    best = 1 - (2 / np.sum(1 / gaps)) / gaps
    options = {**FOUND, "steps": 60, "optimizer": optax.adam(optax.cosine_decay_schedule(0.3, 60)), "only": ["weights"]}
    laws, start = [better(arm, gap) for arm, gap in enumerate(gaps)], Fixed(np.full(3, 1 / 3))
    worst, mean = (
        jb.tune(start, laws, DELAYS, goal=goal, constraints={"weights": "simplex"}, **options) for goal in ("worst", "mean")
    )
    found = worst.values()["weights"]
    assert found.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found, best, atol=0.01)
    assert worst.after.value == pytest.approx(10 * (1 - best[0]) * gaps[0], rel=0.02)
    assert worst.after.value == worst.after.tasks.max()
    assert mean.values()["weights"][0] > 0.95
    assert mean.after.value == pytest.approx(mean.after.tasks.mean())
    assert mean.after.tasks.max() > 1.2 * worst.after.value, "this would pass for the worst otherwise"


def test_a_goal_of_ones_own_by_hand():
    """Two games and one step: the slope is that of r₀ + r₁²/2, so the second game counts with its regret."""
    weights, gaps = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.2])
    laws = [better(arm, gap) for arm, gap in enumerate(gaps)]
    tuned = jb.tune(
        Fixed(weights),
        laws,
        DELAYS,
        steps=1,
        optimizer=optax.sgd(0.1),
        constraints={"weights": "simplex"},
        goal=lambda regrets: regrets[0] + regrets[1] ** 2 / 2,
        **FOUND,
    )
    regrets = 10 * gaps * (1 - weights[:2])
    gradient = 10 * np.array([0, gaps[0], gaps[0]]) + regrets[1] * 10 * np.array([gaps[1], 0, gaps[1]])
    free = np.log(weights) - 0.1 * weights * (gradient - weights @ gradient)
    np.testing.assert_allclose(tuned.values()["weights"], np.exp(free) / np.exp(free).sum(), rtol=1e-5)
    assert tuned.before.value == pytest.approx(regrets[0] + regrets[1] ** 2 / 2, rel=1e-5)
    np.testing.assert_allclose(tuned.before.tasks, regrets, rtol=1e-5)


@pytest.mark.thorough
def test_a_number_of_any_sign_within_its_range():
    """Leaning to the better arm is always better: from -0.5 through 0 to the end of the declared range, and not beyond."""
    game = (Leaning(), jb.losses.Bernoulli([0.3, 0.5]), DELAYS)
    tuned = jb.tune(*game, steps=8, optimizer=optax.sgd(1.0), only=["lean"], constraints={"lean": "real"}, **FOUND)
    slope = 10 * 0.2 * -jax.nn.sigmoid(-0.5) * jax.nn.sigmoid(0.5)
    assert tuned.path["lean"][1] == pytest.approx(-0.5 - float(slope), rel=1e-5)
    assert tuned.path["lean"][-1] == np.nextafter(np.float32(0.6), np.float32(0)) <= 0.6


@pytest.mark.thorough
def test_a_schedule_against_a_grid():
    """Two knots by gradients, and all 25 pairs of multipliers by simulation, on other runs."""
    law = jb.losses.Bernoulli([0.2, 0.6])
    rates = optax.adam(optax.cosine_decay_schedule(0.3, 40))
    tuned = jb.tune(
        Scheduled([1.0, 1.0]), law, DELAYS, rounds=60, runs=256, steps=40, optimizer=rates, key=KEY, fresh_runs=64, audit=False
    )
    game = {"losses": law, "delays": DELAYS, "rounds": 60, "runs": 4096, "record": 1, "seed": 1}
    sides = np.geomspace(0.125, 2, 5)
    grid = {(a, b): jb.simulate(Scheduled([a, b]), **game).regret[-1] for a in sides for b in sides}
    best = min(grid, key=lambda pair: grid[pair].mean())
    ours = jb.simulate(tuned.learner, **game).regret[-1]
    worse = ours - grid[best]
    assert worse.mean() < 0.02 * grid[best].mean()
    start = jb.simulate(Scheduled([1.0, 1.0]), **game).regret[-1]
    assert start.mean() > 1.1 * grid[best].mean(), "else nothing was to be gained"


@pytest.mark.slow
def test_ten_knots():
    """The ten knots of a schedule, tuned together (in reverse mode), beat the best of nine constant rates, on other runs."""
    law = jb.losses.Bernoulli([0.2, 0.6])
    tuned = jb.tune(Scheduled(np.ones(10)), law, DELAYS, rounds=60, runs=1024, steps=24, key=KEY, fresh_runs=1024)
    assert tuned.values()["knots"].shape == tuned.audit.paired["knots"][0].shape == (10,)
    assert tuned.audit.agrees
    game = {"losses": law, "delays": DELAYS, "rounds": 60, "runs": 8192, "record": 1, "seed": 1}
    ours = jb.simulate(tuned.learner, **game).regret[-1]
    for rate in np.geomspace(0.1, 2, 9):
        gained = jb.simulate(Scheduled(np.full(10, rate)), **game).regret[-1] - ours
        assert gained.mean() > 5 * gained.std() / 8192**0.5


class Killed(BaseException):
    """In place of a signal that ends the process."""


@pytest.mark.thorough
def test_resumed_is_unbroken(tmp_path, monkeypatch):
    """The same bits, whether it was killed or not, and nothing is played twice."""
    game = (Scheduled([0.5, 2.0]), LAW, DELAYS)
    options = {**FOUND, "steps": 4, "optimizer": optax.adam(0.3)}
    whole = jb.tune(*game, file=tmp_path / "whole.json", **options)
    played, gradient = [], tuning.regret_gradient

    def killed_in_the_third_step(*arguments, **named):
        if len(played) == 2:
            raise Killed
        played.append(named["first_run"])
        return gradient(*arguments, **named)

    monkeypatch.setattr(tuning, "regret_gradient", killed_in_the_third_step)
    with pytest.raises(Killed):
        jb.tune(*game, file=tmp_path / "killed.json", **options)
    monkeypatch.setattr(tuning, "regret_gradient", lambda *a, **n: played.append(n["first_run"]) or gradient(*a, **n))
    resumed = jb.tune(*game, file=tmp_path / "killed.json", **options)
    assert played == [0, 8, 16, 24]
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["killed.json", "whole.json"]
    for name, values in whole.path.items():
        np.testing.assert_array_equal(resumed.path[name], values)
    np.testing.assert_array_equal(resumed.learner.knots, whole.learner.knots)
    assert resumed.after.value == whole.after.value

    def told(message, **changes):
        with pytest.raises(ValueError, match=message):
            jb.tune(*game, file=tmp_path / "whole.json", **(options | changes))

    told("whole.json': it holds a tuning with another rounds; give the same arguments", rounds=11)
    told("another key and runs", key=jax.random.key(1), runs=16)
    told("step 2 of it was made by another optimizer", optimizer=optax.adam(0.2))
    for content in (
        (tmp_path / "whole.json").read_bytes().replace(b'{"knots": [[', b'{"knocks": [['),
        b"",
        b"[]",
        b"{}",
        b"\xff",
        (tmp_path / "whole.json").read_bytes()[:-9],
        b'{"format": "jaxbandit tuning 1", "tuning": 3}',
    ):
        (tmp_path / "whole.json").write_bytes(content)
        told("this is not the whole file of a tuning; remove it")
        assert (tmp_path / "whole.json").read_bytes() == content


def step(value, error):
    return Step({}, value, error, {})


def test_stops_by_the_interval():
    """Not before twelve steps, not while the last six gained, and not while their interval is too wide to say."""
    level, falling = [step(100.0, 0.1)] * 12, [step(100.0 - turn, 0.1) for turn in range(12)]
    assert tuning._nothing_gained(level, 0.01)
    assert not tuning._nothing_gained(level[:11], 0.01)
    assert not tuning._nothing_gained(falling, 0.01)
    assert tuning._nothing_gained(falling + level, 0.01)
    assert not tuning._nothing_gained([step(100.0, 1.0)] * 12, 0.01), "2·√12/6 = 1.15 per cent may have been gained"
    assert tuning._nothing_gained([step(100.0, 0.8)] * 12, 0.01)
    assert tuning._nothing_gained([step(0.0, 0.0)] * 12, 0.01), "arms are alike: there is nothing to gain"


@pytest.mark.thorough
def test_early_stop_in_a_tuning():
    game = (Leaning(lean=0.599), jb.losses.Bernoulli([0.3, 0.5]), DELAYS)  # at the end of its range: nothing can be gained
    tuned = jb.tune(*game, steps=40, tolerance=0.01, only=["lean"], **FOUND)
    assert len(tuned.path["regret"]) == 12
    assert tuned.path["lean"].shape == (13,)


@pytest.mark.thorough
def test_regret_falls_and_the_rest_stays():
    start = jb.BestOfBothWorlds(3, linear=5.0)
    tuned = jb.tune(start, LAW, DELAYS, only=["factor"], **SMALL)
    assert tuned.after.value < tuned.before.value - 5 * (tuned.before.error + tuned.after.error)
    assert float(tuned.learner.factor) < 24
    assert (float(tuned.learner.linear), float(tuned.learner.max_delay)) == (5.0, 3.0)
    assert tuned.path["factor"].shape == (5,)
    assert tuned.path["regret"].shape == (4,)
    assert all(set(one.used) == set(one.paired) == {"factor"} for one in tuned.audit.points.values())
    assert "regret" in str(tuned)


def test_an_audit_without_errors_does_not_agree(monkeypatch):
    learner = jb.BestOfBothWorlds(3)
    which = coordinates(learner, ["factor"], None)
    monkeypatch.setattr(tuning, "_objective", lambda *_: (1.0, np.nan, {"factor": (np.array(1.0), np.array(np.nan))}))
    with pytest.warns(UserWarning, match="cannot be compared with paired differences at the end.*more than fresh_runs=2"):
        audit = tuning._audit({"end": learner}, [], which, "mean", {"runs": 2}, None)
    assert audit.agrees is None
    outcome = Outcome(1.0, 0.1, np.ones(1), np.ones(1))
    assert "too few runs" in str(Tuned(learner, {"factor": np.ones(1)}, outcome, outcome, audit))


def test_an_unknown_error_is_null_in_the_file(tmp_path):
    one = Step({"factor": np.array(1.0)}, 2.0, np.nan, {"factor": (np.array(1.0), np.array(np.nan))})
    identity = {"precision": "float32", "choice of hyperparameters": {"factor": "positive"}}
    Record(tmp_path / "steps.json", identity, one.free).add(one)
    assert "NaN" not in (tmp_path / "steps.json").read_text()
    (back,) = Record(tmp_path / "steps.json", identity, one.free).steps
    assert np.isnan(back.error)
    assert np.isnan(back.slopes["factor"][1])


@pytest.mark.parametrize("only", [pytest.param("knots", marks=pytest.mark.thorough), "scale"])
def test_a_start_at_the_end_of_a_range(only):
    """0.01 in float32 is below 0.01: the learner as it was given is played before, and numbers that are not tuned stay."""
    start = Limited(knots=[0.01, 1.0])
    tuned = jb.tune(start, LAW, DELAYS, **FOUND, steps=1, only=[only], estimator="fluid")
    assert tuned.before.value > 0
    assert only == "knots" or tuned.learner.knots is start.knots


def test_whole_numbers_of_jax(tmp_path):
    """The same tuning, and the same file, as with Python's."""
    counts = {"rounds": 10, "runs": 8, "fresh_runs": 8, "steps": 2}
    found = []
    for name, kind in (("python", int), ("jax", jnp.int32)):
        numbers = {count: kind(value) for count, value in counts.items()}
        options = {**FOUND, **numbers, "only": ["scale"], "estimator": "fluid", "file": tmp_path / name}
        found.append(jb.tune(Limited(knots=[1.0]), LAW, DELAYS, **options).after.value)
    assert found[0] == found[1]
    assert (tmp_path / "python").read_bytes() == (tmp_path / "jax").read_bytes()


def test_a_file_that_was_changed(tmp_path):
    free, identity = {"knots": np.zeros(2)}, {"precision": "float32", "choice of hyperparameters": {"knots": "positive"}}

    def told(message, place=(0.0, 0.0), slope=(1.0, 1.0), **changes):
        (tmp_path / "steps.json").unlink(missing_ok=True)
        one = Step({"knots": np.array(place)}, 1.0, 0.1, {"knots": (np.array(slope), np.ones(2))})
        Record(tmp_path / "steps.json", identity, free).add(one)
        with pytest.raises(ValueError, match=message):
            Record(tmp_path / "steps.json", identity | changes, free)

    told("the slope of knots in step 1 of it has another shape; remove it, or give another file", slope=(1.0, 1.0, 1.0))
    told("the slope of knots in step 1 of it is not a finite number", slope=(1.0, np.nan))
    told("the value of knots in step 1 of it has another shape", place=(0.0,))
    told("it holds a tuning in float32, and this is float64; set jax_enable_x64", precision="float64", learner="ab12")


def test_facts_and_zeros_are_not_tuned_by_themselves():
    assert list(coordinates(jb.BestOfBothWorlds(3, linear=0.0), None, None)) == ["factor", "tsallis_scale", "entropy_scale"]
    assert "base.max_delay" not in coordinates(jb.BOLD(jb.BestOfBothWorlds(3), capacity=4), None, None)
    assert list(coordinates(Leaning(), None, {"lean": "real"})) == ["weights", "lean"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps=0"),
        ({"goal": "best"}, "goal='best'"),
        ({"only": ["facto"]}, r"only=\['facto'\]"),
        ({"only": ["linear"]}, "linear=0.0 is not a positive number"),
        ({"only": []}, r"only=\[\]: give a list of hyperparameters"),
        ({"only": "factor"}, "only='factor': give a list of hyperparameters"),
        ({"optimizer": "adam"}, r"optimizer='adam': give an optimizer of optax, such as optax.adam\(0.1\)"),
        ({"estimator": "magic"}, "estimator='magic'"),
        ({"rounds": 0}, "rounds=0"),
        ({"runs": 2.5}, "runs=2.5"),
        ({"fresh_runs": 0}, "fresh_runs=0: the number of runs"),
        ({"fresh_runs": 1}, "fresh_runs=1: one run has no error to judge by; give 2 or more"),
        ({"runs": 2**31}, r"run ids must stay below 2\*\*32"),
        ({"goal": lambda regrets: regrets}, r"it makes an array of shape \(1,\); it must make one number"),
        (
            {"goal": lambda regrets: regrets[0], "file": "steps.json"},
            "file='steps.json': steps towards a goal that is a function",
        ),
        ({"goal": np.ones(2)}, r"goal=\[1.0, 1.0\]: the goal"),
        ({"estimator": np.ones(2)}, r"estimator=\[1.0, 1.0\]: the estimators are"),
        ({"constraints": {"factor": np.ones(2)}}, "a constraint is 'positive', 'simplex' or 'real'"),
        ({"audit": "no"}, "audit='no': audit is True or False"),
        ({"audit": np.ones(2)}, r"audit=\[1.0, 1.0\]: audit is True or False"),
        ({"progress": "yes"}, "progress='yes': progress is True or False"),
        ({"tolerance": 0.0}, "tolerance=0.0: a part of the regret"),
        ({"tolerance": "1 %"}, "tolerance='1 %'"),
        ({"file": 3}, "file=3: give the name of a file"),
        ({"file": "/"}, "file='/': this is a folder"),
        ({"constraints": "simplex"}, "constraints='simplex': give a dict of names"),
        ({"constraints": {"facto": "real"}}, r"constraints=.*: 'facto' is not among max_delay, linear"),
        ({"constraints": {"linear": "real"}, "only": ["factor"]}, "'linear' is not among factor"),
        (
            {"constraints": {"factor": "round"}},
            r"constraints=\{'factor': 'round'\}: a constraint is 'positive', 'simplex' or 'real'",
        ),
        ({"constraints": {"factor": "simplex"}}, "factor=24.0 must start as a list of two or more positive numbers with sum 1"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        jb.tune(jb.BestOfBothWorlds(3, linear=0.0), LAW, DELAYS, **(SMALL | options))


def test_a_file_that_cannot_be_written(tmp_path, monkeypatch):
    """Told before the first step, and nothing is left behind."""
    monkeypatch.setattr(tuning, "regret_gradient", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.json").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir())
    for file, message in (
        ("", r"file='': this is a folder"),
        ("/proc/x/y.json", r"file='/proc/x/y.json': nothing can be written into /proc"),
        ("one.json/x.json", r"file='one.json/x.json': .*one.json is a file; give a file in a folder"),
        ("a" * 300, r"file='aaa.*: no file can have this name \(File name too long\)"),
        ("a\x00b", r"file='a\\x00b': no file can have this name"),
        ("link", r"file='link': this is a link to nothing"),
        ("pipe", r"file='pipe': this is not an ordinary file"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            jb.tune(jb.BestOfBothWorlds(3), LAW, DELAYS, **SMALL, file=file)
        assert "\n" not in str(caught.value)
    assert sorted(os.listdir()) == before
    check_file("new/folder/steps.json")


def test_a_key_that_is_traced():
    with pytest.raises(TypeError, match="tune cannot be called inside jit, vmap or grad"):
        jax.vmap(lambda key: jb.tune(jb.BestOfBothWorlds(3), LAW, DELAYS, **(SMALL | {"key": key})))(jax.random.split(KEY, 2))


def test_moves_and_slopes_that_are_not_finite(tmp_path, monkeypatch):
    """Whose fault it is, and no such slope gets into the file."""
    game, options = (jb.BestOfBothWorlds(3), LAW, DELAYS), {**SMALL, "only": ["factor"], "file": tmp_path / "steps.json"}

    def slope(value):
        monkeypatch.setattr(tuning, "_objective", lambda *_: (1.0, 0.1, {"factor": (np.array(value), np.array(0.1))}))

    slope(np.nan)
    with pytest.raises(ValueError, match=r"learner=BestOfBothWorlds\(…\): in step 1 its regret has no finite derivative"):
        jb.tune(*game, **options)
    assert not os.listdir(tmp_path)
    slope(1.0)
    with pytest.raises(ValueError, match=r"optimizer=.*: in step 1 it makes no finite move of factor, but nan; give another"):
        jb.tune(*game, **options, optimizer=optax.scale(np.nan))


def test_a_long_burn_in_is_said_once_and_where_tune_was_called(monkeypatch):
    monkeypatch.setattr(warn, "_warned", set())
    shrink = optax.stateless(lambda slopes, _: {"scale": -0.1})
    with pytest.warns(UserWarning, match="it explores nearly uniformly for about") as said:
        jb.tune(
            Limited(knots=[1.0], scale=50.0), LAW, DELAYS, **FOUND, steps=2, only=["scale"], optimizer=shrink, estimator="fluid"
        )
    assert [warning.filename for warning in said] == [__file__]


def test_a_vector_that_is_no_start():
    with pytest.raises(ValueError, match=r"knots=\[1.0, 0.0\] is not all positive|knots must be"):
        jb.tune(Scheduled([1.0, 0.0]), LAW, DELAYS, **SMALL, only=["knots"])
    with pytest.raises(ValueError, match=r"knots=\[1.0, 2.0\] must start as a list .* with sum 1"):
        jb.tune(Scheduled([1.0, 2.0]), LAW, DELAYS, **SMALL, constraints={"knots": "simplex"})
