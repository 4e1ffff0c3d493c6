"""Sweeps that add runs where they are needed: the decisions of ``jb.compare``, the same bytes after any interruption."""

import json
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli import app
from jaxbandit.sweeps import MismatchError, SpecError, Store, StoreError, batch, merge
from jaxbandit.sweeps.status import status_lines
from jaxbandit.sweeps.writer import StoreWriter
from tests.sweeps.examples import digests, forge

LEARNERS = {"UCB1": jb.DelayedUCB1(), "KL-UCB": jb.KLUCB(), "uniform": jb.Uniform()}
LOSSES = [jb.losses.Bernoulli([0.3, 0.9]), jb.losses.Bernoulli([0.48, 0.52])]
DELAYS = [jb.delays.Fixed(3)]
MOST = 4096


def spec(**changes) -> jb.Spec:
    given = {
        "rounds": 40,
        "runs": MOST,
        "record": 2,
        "learners": LEARNERS,
        "losses": LOSSES,
        "delays": DELAYS,
        "until": "decided",
    }
    return jb.Spec(**{**given, **changes})


def runs(out) -> dict[tuple[int, ...], int]:
    """The runs of each cell that are there."""
    there = jb.open_sweep(out).regret.isel(round=-1).notnull().sum("run").values
    return {place: int(there[place]) for place in np.ndindex(*there.shape)}


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    out = tmp_path_factory.mktemp("until") / "decided"
    jb.sweep(spec(), out)
    return out


def test_a_sweep_decides_as_compare_does(decided):
    """The error rate of ``compare`` holds for sweeps: same looks, same p-values. Rejects a correction within environments only."""
    pytest.importorskip("xarray")
    expected = jb.compare(LEARNERS, LOSSES, DELAYS, rounds=40, runs=MOST, seed=0, until="decided", record=1)
    assert expected.reached
    found = jb.compare(jb.open_sweep(decided))
    assert [(one.runs, one.p, one.adjusted, one.low) for one in found.pairs] == [
        (one.runs, one.p, one.adjusted, one.low) for one in expected.pairs
    ]
    assert all(pair.significant for pair in found.pairs)
    assert found.until == "decided"
    assert "confidence sequences" in found.to_markdown()
    each = sorted(runs(decided).values())
    assert each == sorted(one.runs for one in expected.learners)
    assert each[0] < each[-1] < MOST, "easy cells have fewer runs"
    with pytest.raises(ValueError, match="compare that round"):
        jb.compare(jb.open_sweep(decided).isel(round=[0]))


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """Four looks."""
    out = tmp_path_factory.mktemp("until") / "narrow"
    jb.sweep(spec(until=0.1), out)
    return out


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


@pytest.mark.parametrize("before", [True, False])
def test_interrupted_between_looks_it_gives_the_bytes_of_one_process(tmp_path, narrow, monkeypatch, before):
    """Rejects looks that count from the start of the process, and runs that are added twice."""
    add_runs, stops = StoreWriter.add_runs, 0

    def killed(self, more):
        if not before:
            add_runs(self, more)
        raise Killed

    for _ in range(20):
        monkeypatch.setattr(StoreWriter, "add_runs", killed)
        try:
            jb.sweep(spec(until=0.1), tmp_path / "out")
            break
        except Killed:
            stops += 1
        if before:  # a look that is lost is taken again
            monkeypatch.setattr(StoreWriter, "add_runs", add_runs)
            jb.sweep(spec(until=0.1), tmp_path / "out")
            break
    assert stops == 1 if before else stops > 1
    assert digests(tmp_path / "out") == digests(narrow)


def test_interrupted_within_a_look_it_gives_the_bytes_of_one_process(tmp_path, narrow, monkeypatch):
    write, written = StoreWriter.write, []

    def killed(self, *arguments):
        done = write(self, *arguments)
        written.append(done)
        if len(written) in (1, 8, 10):
            raise Killed
        return done

    monkeypatch.setattr(StoreWriter, "write", killed)
    for _ in range(3):
        with pytest.raises(Killed):
            jb.sweep(spec(until=0.1), tmp_path / "out")
    jb.sweep(spec(until=0.1), tmp_path / "out")
    assert digests(tmp_path / "out") == digests(narrow)


def test_a_width_is_reached_cell_by_cell_and_runs_can_be_raised(tmp_path, narrow):
    with pytest.warns(UserWarning, match=r"until=0.1: not reached with runs=700 in . of 6 cells; raise runs"):
        few = jb.sweep(spec(), tmp_path / "out", runs=700, until=0.1)
    assert few.undecided > 0
    assert "undecided" in repr(few)
    assert max(runs(tmp_path / "out").values()) == 700, "the largest number of runs need not be whole blocks"
    more = jb.sweep(spec(), tmp_path / "out", until=0.1)
    assert more.undecided == 0
    counts = runs(narrow)
    assert len(set(counts.values())) > 1
    # Those that 700 runs sufficed for have them; the others have the runs of their last look.
    assert all(count == counts[place] or count == 700 for place, count in runs(tmp_path / "out").items())
    for place, count in counts.items():
        result = Store.open(narrow).result(place)
        direct = jb.simulate(
            list(LEARNERS.values())[place[0]], LOSSES[place[1]], DELAYS[0], rounds=40, runs=MOST, seed=0, until=0.1, record=2
        )
        assert result is not None
        assert np.array_equal(result.regret, direct.regret)
        assert direct.runs == count
    text = "\n".join(status_lines(Store.open(narrow)))
    assert f"{min(counts.values())} to {max(counts.values()):,} runs" in text
    assert "until=0.1" in text


def test_until_and_a_fixed_number_of_runs_follow_each_other(tmp_path, decided):
    out = tmp_path / "out"
    jb.sweep(spec(until=None, runs=600), out)
    assert set(runs(out).values()) == {600}
    jb.sweep(spec(), out)
    assert {place: count for place, count in runs(out).items() if count > 600} == {
        place: count for place, count in runs(decided).items() if count > 600
    }
    with pytest.raises(MismatchError, match="can only be raised"):
        jb.sweep(spec(), out, runs=700)
    most = max(runs(out).values())
    jb.sweep(spec(until=None, runs=most), out)
    assert set(runs(out).values()) == {most}
    assert "until" not in Store.open(out).manifest


def test_parts_are_refused_and_the_way_around_works(tmp_path):
    with pytest.raises(ValueError, match=r"until=decided: part=1/2 cannot look .* merge the parts"):
        jb.sweep(spec(), tmp_path / "out", part=(1, 2))
    assert not (tmp_path / "out").exists()
    for number in (1, 2):
        jb.sweep(spec(until=None, runs=512), tmp_path / "out", part=(number, 2))
    merge(tmp_path / "out")
    jb.sweep(spec(), tmp_path / "out")
    jb.sweep(spec(), tmp_path / "one")
    assert runs(tmp_path / "out") == runs(tmp_path / "one")


def test_cells_that_fail_get_no_more_runs(tmp_path, monkeypatch):
    """Rejects a sweep that waits for a cell without results, and one that tries it again at every look."""
    tried, play = [], batch.simulate_runs

    def broken(learner, *arguments, **options):
        if isinstance(learner, jb.KLUCB):
            tried.append(learner)
            raise RuntimeError("broken")
        return play(learner, *arguments, **options)

    monkeypatch.setattr(batch, "simulate_runs", broken)
    summary = jb.sweep(spec(until=0.1), tmp_path / "out")
    assert len(summary.failed) == 2
    assert len(tried) == 4, "two attempts of each of two units, in the first look only"
    counts = runs(tmp_path / "out")
    assert [counts[1, place, 0] for place in (0, 1)] == [0, 0]
    assert counts[0, 0, 0] > 512


def test_equal_learners_do_not_take_all_runs(tmp_path):
    twice = {"a": jb.DelayedUCB1(), "b": jb.DelayedUCB1(), "uniform": jb.Uniform()}
    summary = jb.sweep(spec(learners=twice, losses=LOSSES[:1]), tmp_path / "out")
    assert summary.undecided == 0
    assert set(runs(tmp_path / "out").values()) == {512}
    assert not jb.compare(jb.open_sweep(tmp_path / "out")).difference("a", "b").significant


def test_rounds_can_be_raised(tmp_path, narrow):
    shutil.copytree(narrow, tmp_path / "out")
    before = runs(narrow)
    jb.sweep(spec(until=0.1), tmp_path / "out", rounds=60)
    after = runs(tmp_path / "out")
    assert all(after[place] >= before[place] for place in before)
    assert sum(after.values()) > sum(before.values())
    limits = Store.open(tmp_path / "out").manifest["until"]["limits"]  # type: ignore[typeddict-item]
    np.testing.assert_allclose(limits, [[0, 36], [0, 2.4]], rtol=1e-6)


def test_a_learner_of_a_user_and_losses_that_change(tmp_path):
    @jb.extend.pytree_dataclass
    class First:
        """Plays arm 0; for one run."""

        batched = False

        def init(self, num_arms):
            return jnp.zeros(num_arms)

        def act(self, state, round):
            return jnp.array([1.0, 0.0]), (), state

        def observe(self, state, seen):
            return state

    losses = [jb.losses.Drifting([0.2, 0.7], [0.7, 0.2], 40)]
    assert jb.sweep(spec(learners=[First(), jb.Uniform()], losses=losses), tmp_path / "out").undecided == 0
    data = jb.open_sweep(tmp_path / "out")
    assert float(data.regret_least[0]) < 0 < float(data.regret_most[0])


@pytest.mark.thorough
def test_report_of_a_sweep_with_until(decided, tmp_path):
    from jaxbandit.sweeps.report import write_report as report

    text = report(decided, out=tmp_path / "report").read_text()
    assert "until=decided" in text
    assert "not finished" not in text
    assert "512 to" in text


def test_wrong_until_names_the_field(tmp_path):
    for wrong in ("soon", 0, -1.0, "0%", True):
        with pytest.raises(SpecError, match="until="):
            jb.sweep(spec(until=wrong), tmp_path / "out")


def test_one_learner_cannot_be_decided(tmp_path):
    with pytest.raises(SpecError, match="until: 'decided' compares learners, and there is one"):
        jb.sweep(spec(learners=[jb.Uniform()]), tmp_path / "out")


@pytest.mark.parametrize(
    "change", [lambda until: until["runs"].popitem(), lambda until: until["limits"].pop(), lambda until: until.update(asked=3)]
)
def test_a_manifest_with_a_wrong_until_is_damaged(tmp_path, decided, change):
    (tmp_path / "out").mkdir()
    for name in ("manifest.json", "manifest.copy.json"):
        (tmp_path / "out" / name).write_bytes((decided / name).read_bytes())
    forge(tmp_path / "out", lambda manifest: change(manifest["until"]))
    with pytest.raises(StoreError, match="damaged"):
        Store.open(tmp_path / "out")


def test_versions_without_until_refuse_the_folder(decided):
    """They would take the largest number of runs for the number of runs of every cell."""
    assert json.loads((decided / "manifest.json").read_text())["manifest"]["format"] == 3


def test_command_line(tmp_path, capsys):
    file = tmp_path / "spec.toml"
    file.write_text(
        'rounds = 40\nruns = 2048\nrecord = 2\nuntil = "decided"\n[[learners]]\nname = "uniform"\n[[learners]]\nname = "ucb1"\n'
        '[[losses]]\nname = "bernoulli"\nmeans = [0.3, 0.9]\n[[delays]]\nname = "fixed"\ndelay = 3\n'
    )
    command = ["sweep", str(file), "--out", str(tmp_path / "out")]
    assert app.call(command) == 0
    assert set(runs(tmp_path / "out").values()) == {512}
    assert app.call([*command, "--until", "0.001", "--runs", "600"]) == 0
    assert "not reached with runs=600 in 2 of 2 cells" in capsys.readouterr().err
    assert app.call([*command, "--until", "soon"]) != 0
    assert "until=" in capsys.readouterr().err
    assert app.call([*command, "--until", "decided", "--part", "1/2"]) != 0
    assert "leave out --part" in capsys.readouterr().err
