"""A Result is cut, joined, saved and read as a whole: every field, by the axes it declares."""

import dataclasses
import os
import random
import stat
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._io import files
from jaxbandit.results.result import Result

KEY = jax.random.key(0)
GAME = (jb.BestOfBothWorlds(7), jb.losses.Bernoulli([0.25, 0.5, 0.75]), jb.delays.Geometric(2.0, bound=7))
OLD = Path(__file__).parent / "data" / "result_format_2.npz"  # 3 runs, 20 rounds of the game below, by version 0.1.0 in format 2
OLD_GAME = (jb.BestOfBothWorlds(3), *GAME[1:])


def simulate(runs=4, first_run=0, rounds=20, record=(10, 20), game=GAME, **options):
    options = {"probabilities": True, "measure": [jb.ControlVariates()], **options}
    return jb.simulate(*game, rounds=rounds, runs=runs, first_run=first_run, key=KEY, record=list(record), **options)


def assert_same(one: Result, other: Result):
    for field in dataclasses.fields(Result):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        jax.tree.map(np.testing.assert_array_equal, mine, theirs)
        assert jax.tree.structure(mine) == jax.tree.structure(theirs), field.name


SHARED = (jb.BestOfBothWorlds(7), jb.losses.StochasticallyConstrained(0.2, 3), jb.delays.Geometric(2.0, bound=7, shared=True))


@pytest.mark.parametrize(
    "game", [pytest.param(GAME, id="own delays"), pytest.param(SHARED, id="shared delays", marks=pytest.mark.thorough)]
)
def test_cut_and_joined_runs_are_those_played_so(game):
    whole = simulate(4, game=game)
    parts = [simulate(2, game=game), simulate(2, first_run=2, game=game)]
    assert_same(Result.concat_runs(parts), whole)
    for start, part in zip((0, 2), parts, strict=True):
        assert_same(whole.take_runs(start, start + 2), part)
    assert Result.concat_runs(parts).probabilities.shape == (2, 3, 4)


def test_joined_runs_go_on():
    """Also past the end of a block, and from a state that was cut out of a larger one."""
    whole = simulate(300, rounds=30, record=(25, 30))
    parts = [simulate(120), simulate(180, first_run=120)]
    rest = simulate(300, rounds=30, record=(25, 30), resume=Result.concat_runs(parts))
    assert_same(rest, whole)
    some = simulate(100, first_run=200, rounds=30, record=(25, 30), resume=simulate(300).take_runs(200, 300))
    assert_same(some, whole.take_runs(200, 300))


def test_joined_rounds():
    first = simulate()
    rest = simulate(rounds=30, record=(25, 30), resume=first)
    assert_same(Result.concat_rounds([first, rest]), simulate(rounds=30, record=(10, 20, 25, 30)))


@pytest.mark.thorough
def test_residual_of_each_run():
    whole = simulate(256, rounds=200, record=[200])
    assert whole.residual == whole.residuals.max() > 0
    assert whole.residuals.min() < whole.residuals.max()
    least = int(whole.residuals.argmin())
    assert whole.take_runs(least, least + 1).residual == whole.residuals[least]
    assert jb.simulate(jb.Uniform(), *GAME[1:], rounds=5, runs=3, key=KEY).residuals.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("join", "message"),
    [
        (lambda: Result.concat_runs([simulate(2), simulate(2, first_run=3)]), "do not go on after"),
        (lambda: Result.concat_runs([simulate(2), simulate(2, first_run=2, record=[20])]), "do not go on after"),
        (lambda: Result.concat_runs([simulate(2), simulate(2, first_run=2, game=OLD_GAME)]), "another learner"),
        (lambda: Result.concat_runs([simulate(2), simulate(2, first_run=2, probabilities=False)]), "another lacks"),
        (lambda: Result.concat_runs([]), "at least one"),
        (lambda: Result.concat_rounds([simulate(2), simulate(2)]), "do not go on after"),
        (
            lambda: simulate(4).take_runs(2, 5),
            r"take_runs\(2, 5\): give whole numbers, 0 <= start < stop <= 4, the number of runs",
        ),
        (lambda: simulate(4).take_runs(2, 2), "take_runs"),
    ],
)
def test_what_does_not_fit_is_refused(join, message):
    with pytest.raises(ValueError, match=message):
        join()


def test_saved_and_read(tmp_path):
    result = simulate(game=SHARED)
    result.save(tmp_path / "a.npz")
    assert_same(Result.load(tmp_path / "a.npz"), result)


def test_files_of_format_2():
    """They open, join with new ones and go on; their one residual stands for every run."""
    old = Result.load(OLD)
    new = simulate(3, game=OLD_GAME)
    assert old.identity.items() <= new.identity.items()  # digests of code came later
    assert old.residuals.tolist() == [old.residual] * 3
    np.testing.assert_allclose(old.regret, new.regret, rtol=1e-6)
    rest = simulate(3, rounds=30, record=(25, 30), game=OLD_GAME, resume=old)
    np.testing.assert_allclose(rest.regret, simulate(3, rounds=30, record=(25, 30), game=OLD_GAME).regret, rtol=1e-6)
    joined = Result.concat_runs([old, simulate(2, first_run=3, game=OLD_GAME)])
    assert joined.residuals.shape == (5,)


def test_saving_over_a_folder_leaves_nothing(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        simulate().save(tmp_path / "there")
    assert os.listdir(tmp_path) == ["there"]


def test_others_may_read_a_saved_result(tmp_path):
    before = os.umask(0o022)
    try:
        simulate().save(tmp_path / "a.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.npz").stat().st_mode) == 0o644


def damaged(content: bytes, draw: random.Random) -> bytes:
    kind = draw.randrange(3)
    if kind == 0:
        return content[: draw.randrange(len(content))]
    flipped = bytearray(content)
    for _ in range(kind):
        flipped[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(flipped)


def test_damaged_files_end_in_one_sentence(tmp_path):
    """Truncated anywhere, or one or two bits flipped: the sentence, or the same numbers (a flip in a date of the archive)."""
    result, path = simulate(2), tmp_path / "a.npz"
    result.save(path)
    content, draw = path.read_bytes(), random.Random(0)
    refused = []
    for _ in range(1500):
        path.write_bytes(damaged(content, draw))
        try:
            found = Result.load(path)
        except ValueError as error:
            refused.append(str(error))
        else:
            assert_same(found, result)
    assert len(refused) > 1200
    assert set(refused) == {f"Result.load({str(path)!r}): this is not a file written by Result.save"}


def resaved(path, **changes):
    """The file with some arrays replaced: whole, but not what ``save`` writes."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"regret": np.zeros((2, 5))},
        {"regret": np.zeros((0, 0))},
        {"regret": None},
        {"lost": np.zeros(3, int)},
        {"lost": np.zeros(())},
        {"rounds": np.array([20, 10])},
        {"rounds": np.array([0.5, 1.5])},
        {"state_0": np.zeros(1)},
        {"measured_control_variates": np.zeros((3, 2))},
        {"extra": np.zeros(3)},
        {"about": np.array("[]")},
        {"about": np.array("{")},
        {"about": np.array("{" * 10_000)},
        {"about": np.array('{"format": 3}')},
        {"about": np.array(3.0)},
        {"about": None},
    ],
    ids=str,
)
def test_whole_files_of_something_else(tmp_path, changes):
    path = tmp_path / "a.npz"
    simulate().save(path)
    resaved(path, **changes)
    with pytest.raises(ValueError, match="this is not a file written by"):
        Result.load(path)


def test_other_files(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    (tmp_path / "text").write_text("regret")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("a.npy", "text", "empty"):
        with pytest.raises(ValueError, match="this is not a file written by"):
            Result.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "none")


def test_a_format_of_the_future(tmp_path):
    simulate().save(tmp_path / "a.npz")
    about = str(files.read_arrays(tmp_path / "a.npz")["about"]).replace('"format": 3', '"format": 9')
    resaved(tmp_path / "a.npz", about=np.array(about))
    with pytest.raises(ValueError, match="format 9 is not known here"):
        Result.load(tmp_path / "a.npz")


def test_going_on_in_another_precision():
    first = simulate()
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"made in float32 .* jax_enable_x64"):
        simulate(rounds=30, record=[30], resume=first)
