"""States on the disk: kept only while something may go on from them, gone only after what went on is there."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli.folders import verify
from jaxbandit.sweeps import Store, StoreError
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.spec import SpecError
from jaxbandit.sweeps.writer import StoreWriter
from tests.sweeps.examples import LOSSES, digests, spec


def small(**changes) -> jb.Spec:
    """Two blocks of one cell that can go on to any number of rounds."""
    return spec(**{"learners": [jb.Uniform()], "losses": LOSSES[:1], "runs": 300, "rounds": 20, "record": 3, **changes})


def states(out):
    return sorted(path.name.partition("_")[2].partition("_")[0] for path in out.glob("units/*/*.state"))


def test_which_cells_can_go_on():
    """Neither those that are told the horizon, nor anything on a trace that ends there."""
    whole = Plan.make(spec())
    assert whole.lasting() == {cell.id for cell in whole.cells if isinstance(cell.learner, jb.Uniform)}
    for length, lasts in ((60, False), (61, True)):
        traced = Plan.make(spec(delays=[jb.delays.Trace(np.ones(length, int))], learners=[jb.Uniform()]))
        assert bool(traced.lasting()) == lasts


def test_only_the_last_state_stays(tmp_path):
    jb.sweep(small(), tmp_path)
    assert states(tmp_path) == ["0-20", "0-20"]
    jb.sweep(small(), tmp_path, rounds=40)
    assert states(tmp_path) == ["20-40", "20-40"]
    jb.sweep(small(), tmp_path, rounds=50)
    assert states(tmp_path) == ["40-50", "40-50"]
    data = jb.open_sweep(tmp_path)
    direct = jb.simulate(
        jb.Uniform(), LOSSES[0], jb.delays.Fixed(3), rounds=50, runs=300, key=jax.random.key(0), record=data["round"].values
    )
    np.testing.assert_array_equal(data.regret.squeeze().values, direct.regret)
    assert verify(tmp_path) == 0


@pytest.mark.parametrize("how", ["spec", "call"])
def test_without_states_rounds_cannot_be_raised_and_runs_can(tmp_path, how):
    options = {"states": False} if how == "call" else {}
    given = small(states=False) if how == "spec" else small()
    jb.sweep(given, tmp_path, **options)
    assert states(tmp_path) == []
    before = digests(tmp_path)
    with pytest.raises(StoreError, match=r"2 of 2 units kept no state at round 20 .* rounds cannot be raised to 40"):
        jb.sweep(small(), tmp_path, rounds=40)
    assert digests(tmp_path) == before, "the refusal changed nothing"
    assert jb.sweep(given, tmp_path, runs=600, **options).computed == 1
    assert jb.sweep(small(), tmp_path, runs=600).computed == 0, "to ask for states later computes nothing again"


def test_states_may_be_given_up_later_and_the_last_raise_may_do_without(tmp_path):
    jb.sweep(small(), tmp_path)
    jb.sweep(small(), tmp_path, rounds=40, states=False)
    assert states(tmp_path) == []
    assert not np.isnan(jb.open_sweep(tmp_path).regret.values).any()
    jb.sweep(small(), tmp_path / "other")
    assert jb.sweep(small(), tmp_path / "other", states=False).computed == 0
    assert states(tmp_path / "other") == []


class Killed(BaseException):
    pass


@pytest.mark.parametrize("kill", ["before the unit", "before the drop"])
def test_a_kill_between_two_files_loses_no_state_that_is_needed(tmp_path, monkeypatch, kill):
    """A program that drops a state before the unit after it is there cannot go on without computing round 1 to 20 again."""
    jb.sweep(small(), tmp_path / "whole")
    jb.sweep(small(), tmp_path / "whole", rounds=40)
    out = tmp_path / "killed"
    jb.sweep(small(), out)
    name = "_write_result" if kill == "before the unit" else "remove"
    real = vars(StoreWriter)[name]

    def killing(self, *arguments):
        if kill == "before the drop" or arguments[-1] == ".npz":
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(StoreWriter, name, killing)
    with pytest.raises(Killed):
        jb.sweep(small(), out, rounds=40)
    monkeypatch.undo()
    assert states(out).count("0-20") == 2
    assert jb.sweep(small(), out, rounds=40).computed == (2 if kill == "before the unit" else 1)
    assert digests(out) == digests(tmp_path / "whole")


def test_a_damaged_state_comes_back_with_its_unit(tmp_path):
    jb.sweep(small(), tmp_path)
    before = digests(tmp_path)
    state = sorted(tmp_path.glob("units/*/*.state"))[0]
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    assert list(Store.open(tmp_path).damaged()) == [state]
    summary = jb.sweep(small(), tmp_path)
    assert (summary.damaged, summary.computed) == (1, 1)
    assert digests(tmp_path) == before


def test_a_result_without_state_says_so():
    game = (jb.Uniform(), jb.losses.Bernoulli([0.2, 0.6]), jb.delays.Fixed(1))
    result = jb.simulate(*game, rounds=10, runs=4, seed=0)
    with pytest.raises(ValueError, match="resume: this Result has no state to go on from"):
        jb.simulate(*game, rounds=20, runs=4, seed=0, resume=result.without_state())
    later, whole = (jb.simulate(*game, rounds=20, runs=4, seed=0, resume=one) for one in (result.at_end(), result))
    np.testing.assert_array_equal(later.regret, whole.regret)


def test_wrong_values(tmp_path):
    with pytest.raises(SpecError, match="states: 3 is not true or false"):
        jb.sweep(small(states=3), tmp_path / "a")
    with pytest.raises(ValueError, match="states='no': whether states are kept is True or False"):
        jb.sweep(small(), tmp_path / "a", states="no")  # type: ignore[arg-type]
