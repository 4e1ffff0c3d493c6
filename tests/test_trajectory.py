"""Trajectories against an event queue in NumPy, and bitwise the same however they are computed."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import simulation, trajectories
from jaxbandit.delays import NEVER
from tests.event_queue import LONGEST, Probe, Staircase, plays

KEY = jax.random.key(5)
RUNS = 300  # two blocks
IDS = [0, 7, 255, 256, 299]
DELAYS = {
    "random": jb.delays.Geometric(4.0, bound=15),
    "lost": jb.delays.PacketLoss(0.3, 5),
    "by arm": jb.delays.ArmDependent([jb.delays.Fixed(0), jb.delays.Fixed(3), jb.delays.Fixed(9)]),
}


def outstanding(delay):
    """σ_t of each round from the delays alone: feedback of round s arrives at the end of round s + d_s."""
    waits = np.where(delay == NEVER, 10**6, delay)
    return np.array([sum(s + waits[s] >= t for s in range(t)) for t in range(len(delay))])


def same(one, other):
    for name, array in vars(one).items():
        np.testing.assert_array_equal(array, vars(other)[name], err_msg=name)


def simulate(delays, trajectory, rounds=LONGEST, **options):
    given = {"rounds": rounds, "runs": RUNS, "key": KEY} | options
    return jb.simulate(Probe(), Staircase(), delays, measure=[trajectory], **given)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "lost" else pytest.mark.thorough) for name in DELAYS])
def test_against_an_event_queue(name):
    """Rejects: rounds counted from 0, the delay of the previous round, σ after the arrivals, columns of other runs."""
    found = simulate(DELAYS[name], jb.measure.Trajectory(runs=IDS)).trajectory
    made = plays(DELAYS[name], KEY, RUNS)
    np.testing.assert_array_equal(found.rounds, np.arange(1, LONGEST + 1))
    np.testing.assert_array_equal(found.runs, IDS)
    np.testing.assert_array_equal(found.arm, made.arm[:, IDS])
    np.testing.assert_array_equal(found.loss, made.loss[:, IDS])
    np.testing.assert_array_equal(found.delay, made.delay[:, IDS])
    np.testing.assert_array_equal(found.probabilities, made.probabilities[:, :, IDS])
    np.testing.assert_array_equal(found.outstanding, np.stack([outstanding(made.delay[:, i]) for i in IDS], 1))
    wait = made.delay[:, IDS]
    np.testing.assert_array_equal(found.arrival, np.where(wait == NEVER, NEVER, np.arange(1, LONGEST + 1)[:, None] + wait))


def test_any_rounds_and_chunks_resumed_or_cut(monkeypatch, tmp_path):
    """Rejects a trajectory that depends on the recorded rounds, on the length of a call, or on where a simulation was stopped."""
    law = DELAYS["random"]
    whole = simulate(law, jb.measure.Trajectory(runs=IDS))
    plain = jb.simulate(Probe(), Staircase(), law, rounds=LONGEST, runs=RUNS, key=KEY)
    np.testing.assert_array_equal(whole.regret, plain.regret)
    assert not whole.measured
    monkeypatch.setattr(trajectories, "AT_ONCE", 7)
    monkeypatch.setattr(simulation, "SEGMENT", 5 * 256 * 3)
    same(simulate(law, jb.measure.Trajectory(runs=IDS), record=[3, 40]).trajectory, whole.trajectory)
    some = simulate(law, jb.measure.Trajectory(runs=IDS, rounds=[2, 3, 50])).trajectory
    np.testing.assert_array_equal(some.loss, whole.trajectory.loss[[1, 2, 49]])
    first = simulate(law, jb.measure.Trajectory(runs=IDS), rounds=20)
    first.save(tmp_path / "first.npz")
    second = simulate(law, jb.measure.Trajectory(runs=IDS), resume=jb.Result.load(tmp_path / "first.npz"))
    same(jb.Result.concat_rounds([first, second]).trajectory, whole.trajectory)
    halves = [whole.take_runs(0, 200), whole.take_runs(200, RUNS)]
    assert [half.trajectory.runs.tolist() for half in halves] == [[0, 7], [255, 256, 299]]
    same(jb.Result.concat_runs(halves).trajectory, whole.trajectory)
    assert whole.at_end().trajectory is None


@pytest.mark.thorough
def test_rollouts():
    law = DELAYS["random"]
    whole = simulate(law, jb.measure.Trajectory()).trajectory

    def one(run, **options):
        given = {"rounds": LONGEST, "key": KEY, "first_run": run, "measure": [jb.measure.Trajectory()]} | options
        return jb.rollout(Probe(), Staircase(), law, **given)

    mapped = jax.vmap(one)(np.arange(4)).trajectory
    np.testing.assert_array_equal(mapped.arm.T, whole.arm[:, :4])
    np.testing.assert_array_equal(mapped.delay.T, whole.delay[:, :4])
    single = jax.jit(one)(7)
    np.testing.assert_array_equal(single.trajectory.loss, whole.loss[:, 7])
    assert set(single.trajectory.to_pandas().run) == {7}
    several = one(0, runs=20, record=[10, LONGEST], measure=[jb.measure.Trajectory(runs=[3, 7], rounds=range(5, 9))])
    np.testing.assert_array_equal(several.trajectory.arm, whole.arm[4:8, [3, 7]])
    assert several.regret.shape == (2, 20)
    traced = jax.jit(
        lambda rounds: one(
            0, runs=20, rounds=rounds, record=[10, 40], measure=[jb.measure.Trajectory(runs=2, rounds=range(30, 39))]
        )
    )(np.int32(40))
    np.testing.assert_array_equal(traced.trajectory.arm, whole.arm[29:38, :2])
    np.testing.assert_array_equal(traced.regret, one(0, runs=20, rounds=40, record=[10, 40], measure=()).regret)


def test_tables_and_figure():
    result = simulate(DELAYS["lost"], jb.measure.Trajectory(runs=[3, 7]), runs=8)
    found, table, data = result.trajectory, result.trajectory.to_pandas(), result.trajectory.to_xarray()
    row = table[(table["round"] == 30) & (table["run"] == 7)].iloc[0]
    assert (row.arm, row.loss, row.outstanding) == (found.arm[29, 1], found.loss[29, 1], found.outstanding[29, 1])
    assert row.probability_2 == found.probabilities[29, 2, 1]
    assert (table.arrival.isna() == table.delay.isna()).all()
    assert table.delay.isna().sum() == (found.delay == NEVER).sum() > 0
    assert data.played.sel(round=30, run=7) == found.arm[29, 1]
    assert int(data.arrival.isnull().sum()) == (found.delay == NEVER).sum()
    made = jb.plots.trajectory(result, run=7)
    dots = sum(len(line.get_xdata()) for line in made.axes[0].get_lines() if line.get_marker() == "o")
    assert dots == LONGEST
    np.testing.assert_array_equal(made.axes[1].get_lines()[0].get_ydata(), found.outstanding[:, 1])
    with pytest.raises(ValueError, match="there is no trajectory of run 5"):
        jb.plots.trajectory(result, run=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": [3, 400]}, r"Trajectory\(runs=\(3, 400\)\).*from 0 to 299"),
        ({"runs": [7, 3]}, "ascending"),
        ({"runs": "all"}, "give how many runs"),
        ({"rounds": 65}, r"rounds=65.*from 1 to 64"),
        ({"rounds": [0, 1]}, "from 1 to 64"),
    ],
)
def test_wrong_choices(options, words):
    with pytest.raises(ValueError, match=words):
        simulate(DELAYS["random"], jb.measure.Trajectory(**options))


def test_memory_is_stated_before_anything_runs(monkeypatch):
    game = (jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1))
    with pytest.raises(ValueError, match=r"1,000,000,000 rounds × 300 runs × 24 bytes are 7,200.0 GB"):
        jb.simulate(*game, rounds=10**9, runs=300, seed=0, measure=[jb.measure.Trajectory()])
    monkeypatch.setattr(trajectories, "LARGE", 1000)
    with pytest.warns(UserWarning, match=r"10 rounds × 9 runs × 24 bytes are 0.0 GB"):
        jb.simulate(*game, rounds=10, runs=9, seed=0, measure=[jb.measure.Trajectory()])


def test_other_runs_and_rounds_share_a_program():
    game = (jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1))
    from jaxbandit._engine.blocks import advance

    jb.simulate(*game, rounds=40, runs=9, seed=0, record=40, measure=[jb.measure.Trajectory(runs=2)])
    size = advance.one_function._cache_size() + advance.plain._cache_size()
    jb.simulate(*game, rounds=40, runs=9, seed=0, record=40, measure=[jb.measure.Trajectory(runs=[3, 4, 5], rounds=10)])
    assert advance.one_function._cache_size() + advance.plain._cache_size() == size


def test_two_trajectories_are_refused():
    with pytest.raises(ValueError, match="give one Trajectory"):
        jb.simulate(
            jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1), rounds=9, runs=2, seed=0,
            measure=[jb.measure.Trajectory(), jb.measure.Trajectory(runs=1)],
        )  # fmt: skip


def test_records_are_spaced_as_asked():
    game = (jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(1))
    every = jb.simulate(*game, rounds=2000, runs=2, seed=0, record=2000)
    np.testing.assert_array_equal(every.rounds, np.arange(1, 2001))
    linear = jb.simulate(*game, rounds=2000, runs=2, seed=0, record=5, spacing="linear")
    assert linear.rounds.tolist() == [400, 800, 1200, 1600, 2000]
    later = jb.simulate(*game, rounds=2103, runs=2, seed=0, record=4, spacing="linear", resume=linear)
    assert later.rounds.tolist() == [2025, 2051, 2077, 2103]
    np.testing.assert_array_equal(linear.regret, every.regret[linear.rounds - 1])
    assert jb.rollout(*game, rounds=10, seed=0, record=2, spacing="linear").rounds.tolist() == [5, 10]
    with pytest.raises(ValueError, match="spacing='even': the recorded rounds are spaced 'log' or 'linear'"):
        jb.simulate(*game, rounds=20, runs=2, seed=0, spacing="even")
