"""The store: going on, raising rounds and runs, damage, strangers, two at once, trouble with the disk; and reading it."""

import concurrent.futures
import errno
import hashlib
import os
import random
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli.folders import verify
from jaxbandit.results.result import Result
from jaxbandit.sweeps import Store, StoreError, batch, run
from tests.sweeps.examples import DELAYS, LEARNERS, LOSSES, ROUNDS, RUNS, digests, spec


def test_sweep_is_simulate(whole):
    data = jb.open_sweep(whole)
    assert dict(data.sizes) == {"learner": 2, "losses": 2, "delays": 1, "round": 6, "run": RUNS}
    for i, learner in enumerate((jb.Uniform(), jb.SuccessiveElimination(ROUNDS))):
        for j, losses in enumerate(LOSSES):
            one = jb.simulate(learner, losses, DELAYS[0], rounds=ROUNDS, runs=RUNS, key=jax.random.key(0), record=6)
            cell = data.isel(learner=i, losses=j, delays=0)
            np.testing.assert_array_equal(cell.regret.values, one.regret)
            for name in ("total_delay", "outstanding_max", "lost"):
                np.testing.assert_array_equal(cell[name].values, getattr(one, name))


def test_dataset_reads_only_what_is_asked_for(whole, monkeypatch):
    data = jb.open_sweep(whole)
    read = []
    monkeypatch.setattr(Result, "load", lambda file, load=Result.load: read.append(file) or load(file))
    part = data.regret.isel(learner=1, losses=[1, 0], delays=0, round=slice(None, None, 2), run=[599, 3, 300]).values
    assert len(read) == 6
    np.testing.assert_array_equal(part, data.regret.values[1][[1, 0], 0][:, ::2][..., [599, 3, 300]])


def test_going_on_computes_only_what_is_missing(copy, whole):
    files = sorted(copy.glob("units/*/*.npz"))
    for file in files[::2]:
        file.unlink()
    data = jb.open_sweep(copy)
    assert np.isnan(data.regret.values).any()
    assert jb.sweep(spec(), copy).computed == 6
    assert digests(copy) == digests(whole)
    assert jb.sweep(spec(), copy).computed == 0


def test_twelve_damaged_files_are_found_and_computed_again(copy, whole, capsys):
    """A flipped bit or a lost end in every unit file in turn."""
    chance = random.Random(0)
    files = sorted(copy.glob("units/*/*.npz"))
    assert len(files) == 12
    for number, file in enumerate(files):
        content = bytearray(file.read_bytes())
        if number % 3 == 2:
            content = content[: chance.randrange(len(content))]
        else:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
    assert verify(copy) == 1
    assert "12 unit files checked, 12 damaged" in capsys.readouterr().out
    with pytest.raises(StoreError, match="damaged"):
        jb.open_sweep(copy).regret.load()
    assert jb.sweep(spec(), copy).damaged == 12
    assert digests(copy) == digests(whole)
    assert verify(copy) == 0


@pytest.mark.parametrize("names", [["manifest.json"], ["manifest.copy.json"]])
def test_damaged_manifest_is_made_good_from_the_other(copy, whole, names, capsys):
    for name in names:
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace('"seed": 0', '"seed": 1'))
    assert verify(copy) == 1
    assert jb.sweep(spec(), copy).computed == 0
    assert digests(copy) == digests(whole)


def test_raising_runs_adds_runs(copy):
    before = jb.open_sweep(copy).regret.values
    assert jb.sweep(spec(runs=700), copy).computed == 0, "blocks are always whole"
    assert jb.sweep(spec(), copy, runs=1000).computed == 4
    after = jb.open_sweep(copy)
    assert after.sizes["run"] == 1000
    np.testing.assert_array_equal(after.regret.values[..., :RUNS], before)
    assert not np.isnan(after.regret.values).any()


def test_raising_rounds_goes_on_and_starts_anew_what_knew_the_horizon(copy):
    before = jb.open_sweep(copy)
    with pytest.warns(UserWarning, match=r"2 of 4 cells start over.*successive-elimination"):
        summary = jb.sweep(spec(), copy, rounds=90)
    assert summary.computed == 12
    after = jb.open_sweep(copy)
    assert after.sizes["round"] == 12
    np.testing.assert_array_equal(after.regret.values[0, ..., :6, :], before.regret.values[0])
    for i, learner in enumerate((jb.Uniform(), jb.SuccessiveElimination(90))):
        one = jb.simulate(
            learner, LOSSES[1], DELAYS[0], rounds=90, runs=RUNS, key=jax.random.key(0), record=after["round"].values
        )
        np.testing.assert_array_equal(after.regret.values[i, 1, 0], one.regret)
        np.testing.assert_array_equal(after.total_delay.values[i, 1, 0], one.total_delay)
    gone_on = sorted(copy.glob("units/*/*_60-90_*.npz"))
    assert len(gone_on) == 6, "the learner that is not told the horizon went on from its states"
    state = digests(copy)
    next(gone_on[0].parent.glob("*_0-60_*.npz")).unlink()
    gone_on[-1].unlink()
    assert jb.sweep(spec(), copy, rounds=90).computed == 3, "the state at round 60 was dropped: that block begins at round 1"
    assert digests(copy) == state


def test_raising_rounds_keeps_labels_and_takes_more_rounds_to_record(tmp_path):
    """The labels of grids and of the user stay; what is recorded may grow beyond the old horizon, not within it."""
    table = {
        "rounds": 20,
        "runs": 4,
        "record": [5, 10],
        "learners": [{"name": "delayed-exp3", "grid": {"scale": [1.0, 2.0]}}, {"name": "uniform", "label": "a coin"}],
        "losses": [{"name": "bernoulli", "means": [0.2, 0.6], "label": "easy"}],
        "delays": [{"name": "fixed", "delay": 1}],
    }
    jb.sweep(table, tmp_path)
    before = jb.open_sweep(tmp_path).load()
    jb.sweep(table | {"rounds": 50, "record": [5, 10, 30, 40]}, tmp_path)
    after = jb.open_sweep(tmp_path).load()
    assert before["learner"].values.tolist() == ["delayed-exp3 scale=1", "delayed-exp3 scale=2", "a coin"]
    assert after["learner"].values.tolist() == before["learner"].values.tolist()
    assert after["losses"].values.tolist() == ["easy"]
    assert after["round"].values.tolist() == [5, 10, 20, 30, 40, 50]
    np.testing.assert_array_equal(after.regret.sel(round=[5, 10, 20]), before.regret)
    assert jb.sweep(table | {"rounds": 50, "record": [5, 10, 30, 40]}, tmp_path).computed == 0
    with pytest.raises(StoreError, match=r"record was \[5, 10, 30, 40\], is \[5, 60\]"):
        jb.sweep(table | {"rounds": 60, "record": [5, 60]}, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed was 0, is 1"),
        ({"record": 7}, "record was 6, is 7"),
        ({"learners": LEARNERS[:1]}, "there were 2 learners, there are 1"),
        (
            {"losses": [LOSSES[0], jb.losses.Bernoulli([0.5, 0.4, 0.8])]},
            r"losses\[1\].means was \[0.5, 0.4, 0.9\], is \[0.5, 0.4, 0.8\]",
        ),
        ({"delays": [jb.delays.Fixed(4)]}, r"delays\[0\].delay was 3, is 4"),
        ({"rounds": 50}, "rounds=50: .*has 60 rounds, which can only be raised"),
        ({"runs": 20}, "runs=20: .*has 600 runs, which can only be raised"),
    ],
)
def test_edited_spec(copy, changes, message):
    before = digests(copy)
    with pytest.raises(StoreError, match=message):
        jb.sweep(spec(**changes), copy)
    assert digests(copy) == before


def test_two_sweeps_at_once(copy):
    """The second is refused while the first lives, and let in when its owner is killed."""
    before = digests(copy)
    code = f"import fcntl, time; f = open({str(copy / 'lock')!r}, 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(StoreError, match="another sweep is writing here"):
            jb.sweep(spec(), copy)
        owner.kill()
    assert jb.sweep(spec(), copy).done == 12
    assert digests(copy) == before


def test_full_disk(copy, monkeypatch):
    """Simulated: the third write finds no room. What was there stays whole, and the next sweep finishes."""
    files = sorted(copy.glob("units/*/*.npz"))
    for file in files[:6]:
        file.unlink()
    writes = []

    def fsync(handle, real=os.fsync):
        writes.append(handle)
        if len(writes) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError, match="the disk is full; computed units are safe"):
            jb.sweep(spec(), copy)
    assert not Store.open(copy).damaged()
    assert jb.sweep(spec(), copy).done == 12


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("mount"), reason="needs the right to mount")
@pytest.mark.parametrize("options", ["size=200k", "size=8m,ro"])
def test_small_and_read_only_disks(tmp_path, options):
    """Real ones: a tmpfs that is too small, and one that may not be written."""
    out = tmp_path / "disk"
    out.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(out)], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with pytest.raises(StoreError, match="disk is full" if "ro" not in options else "cannot be written to"):
            jb.sweep(spec(), out)
        assert not (out / "manifest.json").exists() or not Store.open(out).damaged()
    finally:
        subprocess.run(["umount", str(out)], check=True)


def test_folder_of_other_things(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(StoreError, match=r"other things in it \(thesis.tex\)"):
        jb.sweep(spec(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_stores_of_strangers_with_pickles_links_and_bombs(copy, tmp_path):
    import zipfile

    folder = sorted(copy.glob("units/*"))[0]
    victim = sorted(folder.iterdir())[0]

    def plant(write) -> None:
        draft = tmp_path / "draft.npz"
        write(draft)
        victim.unlink(missing_ok=True)
        for old in folder.glob(victim.name[:10] + "*"):
            old.unlink()
        digest = hashlib.sha256(draft.read_bytes()).hexdigest()
        shutil.copy(draft, folder / f"{victim.name[: victim.name.rindex('_')]}_{digest}.npz")

    def bomb(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("regret.npy", b"\0" * 10_000_000)

    plant(bomb)
    with pytest.raises(StoreError, match="not written by a sweep"):
        jb.open_sweep(copy).regret.load()
    plant(lambda path: np.savez(path, regret=np.array([print], dtype=object)))
    with pytest.raises(StoreError, match="not written by a sweep"):
        jb.open_sweep(copy).regret.load()
    target = sorted(folder.iterdir())[1]
    shutil.move(target, tmp_path / "elsewhere")
    target.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        jb.open_sweep(copy)


def test_failed_unit_is_tried_alone_listed_and_the_rest_goes_on(tmp_path, monkeypatch):
    calls = []

    def fails_on_one_block(one, progress, real=batch.play):
        covered = range(one.first_block, one.first_block + one.blocks)
        calls.append((one.cell.at, list(covered)))
        if one.cell.at == (0, 1, 0) and 1 in covered:
            raise MemoryError("no more")
        return real(one)

    monkeypatch.setattr(batch, "play", fails_on_one_block)
    summary = jb.sweep(spec(), tmp_path / "out")
    assert (summary.done, len(summary.failed)) == (11, 1)
    (name, reason) = next(iter(summary.failed.items()))
    assert name.startswith("uniform, bernoulli means=[0.5, 0.4, 0.9], fixed; runs 256-511")
    assert reason == "MemoryError: no more"
    assert calls.count(((0, 1, 0), [1])) == 2
    assert Store.open(tmp_path / "out").failures() == summary.failed
    monkeypatch.undo()
    assert jb.sweep(spec(), tmp_path / "out").done == 12
    assert Store.open(tmp_path / "out").failures() == {}


def test_any_executor(tmp_path, whole):
    with concurrent.futures.ThreadPoolExecutor(3) as executor:
        assert jb.sweep(spec(), tmp_path / "out", executor=executor).computed == 12
    assert digests(tmp_path / "out") == digests(whole)


def test_learner_of_ones_own_and_equal_cells(tmp_path):
    """A learner that is in no registry needs no other file; settings that are equal in a cell share its units."""

    class Mine(jb.Uniform):
        pass

    mine = jb.extend.pytree_dataclass(Mine)()
    learners = [mine, jb.SuccessiveElimination("oracle"), jb.SuccessiveElimination(ROUNDS)]
    summary = jb.sweep(spec(learners=learners, losses=LOSSES[:1], runs=8), tmp_path / "out")
    assert summary.units == 2
    data = jb.open_sweep(tmp_path / "out")
    assert data.learner.values[0].endswith("Mine")
    assert not np.isnan(data.regret.values).any()


def test_memory_budget(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match=r"a single block of Uniform with Geometric delays needs about \d+ MB"):
        jb.sweep(spec(delays=[jb.delays.Geometric(3.0, bound=2**19)]), tmp_path / "a", memory=900 << 20)
    sizes = []
    monkeypatch.setattr(batch, "play", lambda one, progress, real=batch.play: sizes.append(one.blocks) or real(one))
    jb.sweep(spec(runs=256 * 12, losses=LOSSES[:1], learners=LEARNERS[:1]), tmp_path / "b", memory=run.PROGRAM_BYTES + (3 << 20))
    assert max(sizes) <= 3
    assert sum(sizes) == 12


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_export(whole, tmp_path, ending):
    import xarray

    from jaxbandit.sweeps.open import export

    target = export(whole, tmp_path / f"out{ending}")
    with xarray.open_dataset(target) as back:
        assert back.load().equals(jb.open_sweep(whole).load())
    with pytest.raises(StoreError, match="already there"):
        export(whole, target)
    if ending == ".nc":
        import netCDF4

        with netCDF4.Dataset(target) as file:
            assert file["regret"].filters()["fletcher32"]


def test_wrong_calls(tmp_path):
    with pytest.raises(TypeError, match=r"executor=3: give a concurrent.futures.Executor"):
        jb.sweep(spec(), tmp_path / "a", executor=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="memory=-1"):
        jb.sweep(spec(), tmp_path / "a", memory=-1)
    with pytest.raises(TypeError, match="spec=3: give the path of a TOML file"):
        jb.sweep(3, tmp_path / "a")
    with pytest.raises(StoreError, match="there is no such folder"):
        jb.open_sweep(tmp_path / "a")
    with pytest.raises(StoreError, match="not a sweep"):
        jb.open_sweep(tmp_path)
