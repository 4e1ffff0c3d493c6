"""Cells of one shape in one launch, as on a GPU, here played by a CPU that says it is one, with small blocks."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._engine import blocks, packing
from jaxbandit._engine import choose as forms
from jaxbandit.sweeps import MismatchError, Store, batch, plan
from jaxbandit.sweeps.status import status_lines
from jaxbandit.sweeps.writer import StoreWriter
from tests.sweeps.examples import digests

BLOCK, LAUNCH = 8, 64
MEANS = [[0.2, 0.5, 0.5], [0.5, 0.3, 0.6]]
LEARNERS = [jb.BestOfBothWorlds(10, factor=24.0), jb.BestOfBothWorlds(4, factor=2.0)]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(blocks, "platform", lambda: "gpu")
    for module in (forms, packing):
        monkeypatch.setattr(module, "SIZES", (BLOCK, 2 * BLOCK, LAUNCH))
    monkeypatch.setattr(plan, "PACKED_BLOCK", BLOCK)
    monkeypatch.setattr(plan, "SINGLE_BLOCK", 2 * BLOCK)


@pytest.fixture
def launches(monkeypatch):
    """How many settings each launch had."""
    counts, real = [], batch.play_packed
    monkeypatch.setattr(batch, "play_packed", lambda parts, *rest: counts.append(len(parts)) or real(parts, *rest))
    return counts


def spec(learners=LEARNERS, means=MEANS, delays=(1, 9), **options):
    given = {"rounds": 40, "runs": BLOCK, "record": [10, 40], "seed": 5} | options
    losses = [jb.losses.Bernoulli(one) for one in means]
    return jb.Spec(learners=learners, losses=losses, delays=[jb.delays.Fixed(delay) for delay in delays], **given)


def units(out):
    """Cell and block -> digest of the unit's file."""
    return {(path.parent.name, path.name.split("_")[0]): path.name[-68:-4] for path in out.glob("units/*/*")}


@pytest.mark.thorough
def test_two_hundred_settings_take_as_few_launches_as_their_shapes_allow(gpu, launches, tmp_path):
    learners = [jb.TsallisINF(scale=scale) for scale in (0.5, 1.0, 2.0, 4.0, 8.0)]
    means = [[0.5 - gap, 0.5] for gap in (0.05, 0.1, 0.2, 0.3)]
    wanted = spec(learners, means, delays=[*range(1, 6), *range(40, 90, 10)], rounds=5, record=[5])
    assert jb.sweep(wanted, tmp_path / "out").failed == {}
    # Two sizes of ring, 100 settings each, 8 of them in a launch.
    assert sorted(launches) == [4, 4] + [8] * 24
    assert any("26 launches in all, of up to 64 runs" in line for line in status_lines(Store.open(tmp_path / "out")))


@pytest.mark.thorough
def test_the_bits_of_a_unit_do_not_depend_on_what_it_is_packed_with(gpu, launches, tmp_path):
    """Settings that differ in learner, loss and delay numbers: together, and each in a launch of its own."""
    together = spec(runs=2 * BLOCK)
    jb.sweep(together, tmp_path / "together")
    assert launches == [4, 4]
    found, alone = units(tmp_path / "together"), {}
    for learner, means, delay in [(0, 0, 0), (1, 1, 1), (0, 1, 1)]:
        out = tmp_path / f"{learner}{means}{delay}"
        jb.sweep(spec([LEARNERS[learner]], [MEANS[means]], [(1, 9)[delay]], runs=2 * BLOCK), out)
        alone |= units(out)
    assert len(alone) == 6
    assert alone.items() <= found.items()
    result = Store.open(tmp_path / "together").result((1, 1, 1))
    assert result is not None
    assert result.program["packed"]
    assert result.program["block"] == LAUNCH
    with pytest.raises(ValueError, match="no state to go on from: it was read from a sweep"):
        jb.simulate(
            LEARNERS[1], jb.losses.Bernoulli(MEANS[1]), jb.delays.Fixed(9), rounds=50, runs=2 * BLOCK, seed=5, resume=result
        )


@pytest.mark.thorough
def test_packed_cells_are_the_cells(gpu, monkeypatch, tmp_path):
    """Up to rounding, each is what simulate makes of it on arrays."""
    jb.sweep(spec(runs=LAUNCH), tmp_path / "out")
    regret = jb.open_sweep(tmp_path / "out").regret.values
    monkeypatch.setattr(blocks, "platform", lambda: "cpu")
    for at in np.ndindex(2, 2, 2):
        game = LEARNERS[at[0]], jb.losses.Bernoulli(MEANS[at[1]]), jb.delays.Fixed((1, 9)[at[2]])
        one = jb.simulate(*game, rounds=40, runs=LAUNCH, record=[10, 40], seed=5).regret
        assert np.mean(np.abs(regret[at] - one) < 1e-3 * (1 + np.abs(one))) > 0.95


@pytest.mark.thorough
def test_goes_on_after_a_kill_and_with_more_rounds(gpu, launches, monkeypatch, tmp_path):
    jb.sweep(spec(rounds=20, record=[10, 20]), tmp_path / "whole")
    jb.sweep(spec(record=[10, 20, 40]), tmp_path / "whole")
    written, real = [], StoreWriter.write

    def dies(self, unit, result, *options):
        written.append(unit)
        if len(written) == 4:
            raise KeyboardInterrupt
        return real(self, unit, result, *options)

    monkeypatch.setattr(StoreWriter, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        jb.sweep(spec(rounds=20, record=[10, 20]), tmp_path / "killed")
    monkeypatch.setattr(StoreWriter, "write", real)
    assert len(units(tmp_path / "killed")) == 3
    launches.clear()
    assert jb.sweep(spec(rounds=20, record=[10, 20]), tmp_path / "killed").computed == 5
    assert launches == [5]
    jb.sweep(spec(record=[10, 20, 40]), tmp_path / "killed")
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")
    once = tmp_path / "once"
    jb.sweep(spec(record=[10, 20, 40]), once)
    np.testing.assert_array_equal(jb.open_sweep(once).regret.values, jb.open_sweep(tmp_path / "whole").regret.values)


def test_what_cannot_be_packed_is_launched_alone(gpu, launches, monkeypatch, tmp_path):
    """Rounds of 33 arms are not unrolled. There the program depends on how many runs are played at once: always one unit."""
    wanted = spec([jb.Uniform()], [[0.4] + [0.5] * 32], runs=3 * BLOCK, rounds=5, record=[5], delays=[1])
    sizes = []
    monkeypatch.setattr(batch, "play", lambda one, progress, real=batch.play: sizes.append(one.blocks) or real(one))
    jb.sweep(wanted, tmp_path / "out")
    assert (launches, sizes) == ([], [1, 1])
    assert Store.open(tmp_path / "out").launches() is None
    monkeypatch.undo()
    with pytest.raises(MismatchError, match="begun with blocks of another number of runs"):
        jb.sweep(wanted, tmp_path / "out")


@pytest.mark.thorough
def test_other_launches_are_refused(gpu, monkeypatch, tmp_path):
    jb.sweep(spec(LEARNERS[:1], MEANS[:1], [1], rounds=5, record=[5]), tmp_path / "out")
    monkeypatch.setattr(packing, "SIZES", (BLOCK, 2 * BLOCK))
    monkeypatch.setattr(forms, "SIZES", (BLOCK, 2 * BLOCK))
    with pytest.raises(MismatchError, match="begun with other launches"):
        jb.sweep(spec(LEARNERS[:1], MEANS[:1], [1], rounds=5, record=[5], runs=20), tmp_path / "out")
