"""Parts of a sweep: any order, any kill and any mistake give the folder of one process, or a sentence."""

import errno
import itertools
import os
import random
import shutil

import pytest

import jaxbandit as jb
from jaxbandit._provenance.environment import environment
from jaxbandit.cli import app
from jaxbandit.sweeps import MismatchError, Store, StoreError, batch, merge, part_writer
from jaxbandit.sweeps.part_writer import PartWriter
from jaxbandit.sweeps.parts import SweepPart, dealt, marks
from jaxbandit.sweeps.writer import StoreWriter
from tests.sweeps.examples import LOSSES, digests, everything, spec


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


def compute(out, *numbers, of=3, changes=None, **options):
    return [jb.sweep(spec(**(changes or {})), out, part=(number, of), **options) for number in numbers]


@pytest.fixture
def in_midst(monkeypatch):
    """``in_midst(action)``: the action happens after the next unit is written."""
    write = StoreWriter.write

    def install(action):
        waiting = [action]

        def written(self, *arguments):
            done = write(self, *arguments)
            if waiting:
                waiting.pop()()
            return done

        monkeypatch.setattr(StoreWriter, "write", written)

    return install


@pytest.mark.parametrize("of", [1, 2, 5, 12, 17])
def test_parts_are_disjoint_and_make_up_the_sweep(whole, of):
    """Rejects parts by units instead of blocks, which would tear a block from the states that it goes on from."""
    store = Store.open(whole)
    shares = [SweepPart(number, of).share(store.units()) for number in range(1, of + 1)]
    assert set().union(*shares) == {unit[:2] for unit in store.units()}
    assert sum(map(len, shares)) == 12, "no block is in two parts"
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert [number for _, number in dealt(store.units(), of)][:3] == [0, 1 % of, 2 % of]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6))])
def test_any_order_and_any_interruption_give_the_bytes_of_one_process(tmp_path, whole, monkeypatch, seed):
    """16 parts; every second attempt is stopped at a random file operation. Rejects marks before settings, or units before states."""
    chance, out, stops = random.Random(seed), tmp_path / "out", 0
    order = list(range(1, 17))
    chance.shuffle(order)
    while order:
        left = [chance.randrange(1, 14) if stops < 12 else 10**9]
        with monkeypatch.context() as patch:
            _kill_at(patch, left)
            try:
                compute(out, order[0], of=16)
                order.pop(0)
            except Killed:
                stops += 1
                order.append(order.pop(0))
    assert stops == 12
    while True:
        left = [stops - 8 if stops < 30 else 10**9]
        with monkeypatch.context() as patch:
            _kill_at(patch, left)
            try:
                merge(out)
                break
            except Killed:
                stops += 1
                assert jb.open_sweep(out).regret.notnull().all(), "readable at any moment of a merge"
    assert digests(out) == digests(whole)
    assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}
    assert merge(out).parts == 0
    assert compute(out, 2, of=16)[0].computed == 0
    assert digests(out) == digests(whole), "a part that comes too late leaves nothing"


def _kill_at(patch, left):
    """Raise Killed at the n-th rename, removal or sync of a folder."""

    def wrapped(real):
        def step(*arguments, **options):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return real(*arguments, **options)

        return step

    for name in ("os.replace", "os.fsync", "pathlib.Path.unlink", "pathlib.Path.mkdir"):
        module, _, function = name.rpartition(".")
        holder = __import__("os") if module == "os" else __import__("pathlib").Path
        patch.setattr(holder, function, wrapped(vars(holder)[function]))


def test_a_part_that_two_processes_compute_at_once(tmp_path, whole, monkeypatch):
    """The second one runs from its first file to its last while the first is about to rename a draft. Rejects drafts of a common name."""
    second, out, real = [], tmp_path / "out", os.replace

    def replace(draft, path):
        if path.suffix == ".npz" and not second:
            second.append(None)
            second.extend(compute(out, 1))
        real(draft, path)

    monkeypatch.setattr(os, "replace", replace)
    first = compute(out, 1)
    assert (first[0].done, second[1].done) == (4, 4)
    compute(out, 3, 2)
    assert merge(out).units == 12
    assert digests(out) == digests(whole)


def test_a_part_that_two_processes_extend_at_once(tmp_path, in_midst):
    """The second one is done before the first goes on from its states. Rejects parts that remove states."""
    out, one = tmp_path / "out", tmp_path / "one"
    jb.sweep(spec(), one)
    jb.sweep(spec(), one, rounds=90)
    jb.sweep(spec(), out)
    in_midst(lambda: compute(out, 1, of=1, rounds=90))
    assert compute(out, 1, of=1, rounds=90)[0].computed == 12
    merge(out)
    assert digests(out) == digests(one)


def test_without_locks(tmp_path, whole, monkeypatch):
    """A shared folder whose file system has none. Rejects any program that needs flock or lockf."""

    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    monkeypatch.setattr("fcntl.lockf", refused)
    with pytest.raises(StoreError, match=r"this file system has no locks \(No locks available\).*--part 1/1"):
        jb.sweep(spec(), tmp_path / "out")
    for out, numbers in ((tmp_path / "out", [1]), (tmp_path / "three", [2, 3, 1])):
        compute(out, *numbers, of=len(numbers))
        merge(out)
        assert digests(out) == digests(whole)


def test_leftovers_of_dead_processes_stop_nobody(tmp_path, whole, capsys):
    """Their mark and drafts are in the folder; only a merge removes them, since another process may be writing."""
    out = tmp_path / "out"
    compute(out, 1)
    mark = marks(out)[0]
    (out / "parts" / mark.file_name).write_text("process 999999 on a-host-that-is-gone\n")
    draft = out / "parts" / "incoming" / ".jaxbandit-0123456789abcdef.draft"
    draft.write_text("half")
    sorted(out.glob("units/*/*.npz"))[0].unlink()
    assert app.call(["status", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 of 3 parts begun, 0 complete" in said
    assert "part 1/3: 3 of 4 units, last begun by process 999999 on a-host-that-is-gone" in said
    assert "part 2/3: 0 of 4 units, not begun" in said
    compute(out, 1, 2, 3)
    assert draft.exists()
    app.call(["status", str(out)])
    assert f"all units are there; `jaxbandit merge {out}`" in capsys.readouterr().out
    assert app.call(["merge", str(out)]) == 0
    assert capsys.readouterr().out == f"3 parts merged: all 12 units are in {out}\n"
    assert digests(out) == digests(whole)


@pytest.mark.parametrize("kind", ["settings", "environment"])
@pytest.mark.parametrize("damage", ["torn", "empty", "gone", "forged"])
def test_a_damaged_file_of_the_parts(tmp_path, whole, kind, damage):
    out = tmp_path / "out"
    compute(out, 1, 2)
    file = next((out / "parts").glob(f"{kind}_*.json"))
    content = file.read_text()
    broken = {"torn": content[: len(content) // 2], "empty": "", "gone": None, "forged": content.replace('"', '"x', 1)}[damage]
    file.unlink() if broken is None else file.write_text(broken)
    before = everything(out)
    for call in (lambda: merge(out), lambda: Store.open(out), lambda: jb.sweep(spec(), out)):
        with pytest.raises(StoreError, match=rf"{file.name}: this file is damaged or missing; start part 1/3 again"):
            call()
    assert {name: text for name, text in everything(out).items() if name not in ("lock", "incoming")} == before
    compute(out, 3)
    assert file.read_text() == content
    merge(out)
    assert digests(out) == digests(whole)


@pytest.mark.parametrize("suffix", ["npz", "state"])
def test_a_damaged_unit_is_replaced_by_its_part_alone(tmp_path, whole, suffix):
    out = tmp_path / "out"
    compute(out, 1, 2, 3)
    file = sorted(out.glob(f"units/*/*.{suffix}"))[1]
    number = next(i for u, i in dealt(Store.open(out).units(), 3) if u.cell == file.parent.name and u.block == int(file.name[:7]))
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(StoreError, match=rf"1 of 12 units are missing or damaged .*run part {number + 1}/3 again"):
        merge(out)
    assert [summary.computed for summary in compute(out, *({1, 2, 3} - {number + 1}))] == [0, 0]
    summary = compute(out, number + 1)[0]
    assert (summary.computed, summary.damaged, summary.done) == (1, 1 if suffix == "npz" else 2, 4)
    merge(out)
    assert digests(out) == digests(whole)


def test_a_merge_of_some_parts_changes_nothing(tmp_path):
    out = tmp_path / "out"
    compute(out, 1, 3)
    before = digests(out)
    with pytest.raises(StoreError, match=r"4 of 12 units are missing; run part 2/3 again, or the same sweep without part="):
        merge(out)
    assert digests(out) == before


def test_a_sweep_without_a_part_merges_and_computes_the_rest(tmp_path, whole):
    out = tmp_path / "out"
    compute(out, 2)
    assert jb.open_sweep(out).regret.isnull().any()
    assert jb.sweep(spec(), out).computed == 8
    assert digests(out) == digests(whole)


def test_more_rounds_and_runs_in_parts(tmp_path):
    """Rejects parts that remove states which others still need, and merges that leave those that nobody needs."""
    one, out = tmp_path / "one", tmp_path / "out"
    for more in ({}, {"rounds": 90}, {"rounds": 90, "runs": 900}):
        jb.sweep(spec(), one, **more)
        for number, of in [(2, 2), (1, 3), (1, 2)]:  # parts of two kinds beside each other
            compute(out, number, of=of, **more)
        merge(out)
        assert digests(out) == digests(one)


@pytest.mark.parametrize(
    ("changes", "options", "told"),
    [
        ({"seed": 1}, {}, "seed was 0, is 1"),
        ({"losses": LOSSES[:1]}, {}, "there were 2 losses, there are 1"),
        ({}, {"runs": 900}, "part 1/3 was begun with other settings .runs 600 and 900.*jaxbandit merge"),
        ({}, {"rounds": 90}, "part 1/3 was begun with other settings .rounds 60 and 90"),
        ({"title": "x"}, {}, "title or text"),
    ],
)
def test_a_part_with_other_settings(tmp_path, changes, options, told):
    out = tmp_path / "out"
    compute(out, 1)
    before = everything(out)
    with pytest.raises(MismatchError, match=told):
        compute(out, 2, changes=changes, **options)
    assert everything(out) == before


def test_two_parts_with_other_settings_that_begin_at_once(tmp_path, monkeypatch):
    """Neither sees the other before it leaves its mark. Rejects a check before the mark alone."""
    out, real = tmp_path / "out", PartWriter._publish

    def publish(self, *arguments):
        monkeypatch.setattr(PartWriter, "_publish", real)
        compute(out, 2, changes={"seed": 1})
        real(self, *arguments)

    monkeypatch.setattr(PartWriter, "_publish", publish)
    with pytest.raises(MismatchError, match=r"parts 1/3 and 2/3 compute different sweeps .seed was"):
        compute(out, 1)
    assert [mark.part for mark in marks(out)] == [(2, 3)]
    assert len(compute(out, 1, 3, changes={"seed": 1})) == 2
    assert merge(out).units == 12


@pytest.fixture
def elsewhere(monkeypatch):
    """``elsewhere(cpu=…)``: what follows runs in another environment."""
    here = environment()
    return lambda **changes: monkeypatch.setattr(part_writer, "environment", lambda: {**here, **changes})


def test_parts_in_different_environments(tmp_path, elsewhere, capsys):
    out = tmp_path / "out"
    compute(out, 3)
    elsewhere(cpu="SSE4_2", python="3.99")
    before = everything(out)
    with pytest.raises(MismatchError, match=r"cpu \S+ then, SSE4_2 now.*--mix-environments"):
        compute(out, 1)
    assert everything(out) == before
    compute(out, 1, 2, mix_environments=True)
    assert app.call(["merge", str(out)]) == 2
    assert "cpu SSE4_2 in part 1/3, AVX" in capsys.readouterr().err
    with pytest.raises(MismatchError, match="different environments"):
        jb.sweep(spec(), out)
    assert app.call(["merge", str(out), "--mix-environments"]) == 0
    assert [known["cpu"] for known in Store.open(out).manifest["environments"]] == ["SSE4_2", environment()["cpu"]]


def test_a_python_that_changes_no_number(tmp_path, whole, elsewhere):
    out = tmp_path / "out"
    compute(out, 1, 2)
    elsewhere(python="3.99")
    compute(out, 3)
    merge(out)
    assert digests(out) == digests(whole)


def test_folders_from_different_places(tmp_path, whole, capsys):
    folders = [tmp_path / name for name in "abc"]
    for number, folder in enumerate(folders, 1):
        compute(folder, number)
    before, out = [everything(folder) for folder in folders], tmp_path / "out"
    with pytest.raises(ValueError, match=r"merge\(3 folders, out=None\): give the folder for the merged sweep"):
        merge(folders)
    assert app.call(["merge", *map(str, folders)]) == 2
    with pytest.raises(StoreError, match="4 of 12 units are missing; run part 3/3 again"):
        merge(folders[:2], out)
    assert not out.exists()
    assert app.call(["merge", *map(str, folders), "--out", str(out)]) == 0
    assert f"3 parts merged: all 12 units are in {out}" in capsys.readouterr().out
    assert digests(out) == digests(whole)
    assert [everything(folder) for folder in folders] == before
    assert merge(folders, out).copied == 0, "again"
    assert digests(out) == digests(whole)


def test_whole_sweeps_and_foreign_folders_in_a_merge(tmp_path, whole):
    compute(tmp_path / "a", 1)
    assert merge([tmp_path / "a", whole], tmp_path / "out").copied > 0
    assert digests(tmp_path / "out") == digests(whole)
    compute(tmp_path / "other", 1, of=1, changes={"seed": 1})
    with pytest.raises(MismatchError, match=r"other: this is not a part of the sweep in .*seed was 0, is 1"):
        merge([whole, tmp_path / "other"], tmp_path / "new")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(MismatchError, match="other things in it"):
        merge([whole, tmp_path / "a"], tmp_path / "mine")
    assert sorted(everything(tmp_path / "mine")) == ["thesis.tex"]
    with pytest.raises(StoreError, match="there is no such folder"):
        merge(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="is not a path"):
        merge([3])  # type: ignore[list-item]


def test_two_files_of_one_unit_with_different_numbers(tmp_path, monkeypatch):
    """Computed in two environments by mistake. Rejects a merge that takes either."""
    out = tmp_path / "out"
    compute(out, 1, 2)
    real = batch.play

    def otherwise(one, progress):
        results = real(one, progress)
        for result in results:
            result.regret[:] += 1
        return results

    shutil.copytree(out, tmp_path / "b")
    compute(out, 3)
    monkeypatch.setattr(batch, "play", otherwise)
    compute(tmp_path / "b", 3)
    with pytest.raises(StoreError, match="two files of one unit with different numbers"):
        merge([out, tmp_path / "b"], tmp_path / "c")


def test_a_folder_that_is_moved_or_merged_in_the_midst(tmp_path, whole, in_midst):
    out = tmp_path / "out"
    in_midst(lambda: out.rename(tmp_path / "moved"))
    with pytest.raises(StoreError, match=r"out: this folder was moved or deleted while part 1/3 was writing"):
        compute(out, 1)
    (tmp_path / "moved").rename(out)
    in_midst(lambda: jb.sweep(spec(), out))
    with pytest.raises(StoreError, match="the parts were merged or deleted while part 2/3 was running"):
        compute(out, 2)
    assert merge(out).units == 12
    assert digests(out) == digests(whole)


def test_a_unit_that_fails(tmp_path, monkeypatch, whole):
    def fails(one, progress, real=batch.play):
        if one.cell.at == (0, 1, 0) and 1 in range(one.first_block, one.first_block + one.blocks):
            raise MemoryError("no more")
        return real(one, progress)

    out = tmp_path / "out"
    monkeypatch.setattr(batch, "play", fails)
    failed = [len(summary.failed) for summary in compute(out, 1, 2, 3)]
    assert sorted(failed) == [0, 0, 1]
    assert list(Store.open(out).failures().values()) == ["MemoryError: no more"]
    with pytest.raises(StoreError, match=r"1 of 12 units are missing; .*\(failed: .*MemoryError: no more"):
        merge(out)
    monkeypatch.undo()
    compute(out, failed.index(1) + 1)
    assert Store.open(out).failures() == {}
    merge(out)
    assert digests(out) == digests(whole)


def test_an_interrupt_keeps_what_is_computed(tmp_path, whole, in_midst, monkeypatch, capsys):
    out = tmp_path / "out"

    def interrupt():
        raise KeyboardInterrupt

    in_midst(interrupt)
    with pytest.raises(KeyboardInterrupt):
        compute(out, 1)
    assert len(list(out.glob("units/*/*.npz"))) >= 1
    assert sum(summary.computed for summary in compute(out, 1, 2, 3)) < 12
    with monkeypatch.context() as patch:
        patch.setattr("jaxbandit.sweeps.merging.remove_parts", lambda _: interrupt())
        assert app.call(["merge", str(out)]) == 130
    assert "run the same command to resume" in capsys.readouterr().err
    merge(out)
    assert digests(out) == digests(whole)


def test_files_of_others_stay(tmp_path):
    out = tmp_path / "out"
    compute(out, 1, of=1)
    (out / "parts" / "notes.txt").write_text("mine")
    merge(out)
    assert [path.name for path in (out / "parts").iterdir()] == ["notes.txt"]
    assert jb.sweep(spec(), out).computed == 0
    (tmp_path / "new" / "parts").mkdir(parents=True)
    (tmp_path / "new" / "parts" / "notes.txt").write_text("mine")
    with pytest.raises(MismatchError, match=r"other things in it \(parts/notes.txt\)"):
        compute(tmp_path / "new", 1)


@pytest.mark.parametrize("part", [3, "3/16", (0, 16), (17, 16), (1, 0), (1.0, 2), (True, 2), (1, 2, 3), (1, 10**7)])
def test_wrong_parts(tmp_path, part):
    with pytest.raises(ValueError, match=r"part=.*: a part is two whole numbers, such as part=\(3, 16\).*count from 1"):
        jb.sweep(spec(), tmp_path / "out", part=part)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        *[
            (["--part", text], f"--part {text}: a part is a number and how many")
            for text in ("0/16", "17/16", "3", "3/", "a/b", "1/9999999")
        ],
        (["--part", "1/2", "--coordinator", "auto"], "--part, --coordinator: use one of the two"),
    ],
)
def test_wrong_words(tmp_path, capsys, words, told):
    (tmp_path / "spec.toml").write_text("")
    assert app.call(["sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), *words]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_more_parts_than_units(tmp_path, whole):
    out = tmp_path / "out"
    done = [summary.units for summary in compute(out, *range(1, 20), of=19)]
    assert sorted(done) == [0] * 7 + [1] * 12
    assert list(itertools.accumulate(done))[-1] == merge(out).units
    assert digests(out) == digests(whole)


def test_a_sweep_that_was_begun_as_a_whole_is_finished_in_parts(tmp_path, whole, in_midst):
    out = tmp_path / "out"

    def stop():
        raise Killed

    in_midst(stop)
    with pytest.raises(Killed):
        jb.sweep(spec(), out)
    (out / "incoming" / ".jaxbandit-0123456789abcdef.draft").write_text("half")
    assert sum(summary.computed for summary in compute(out, 3, 2, 1)) < 12
    merge(out)
    assert digests(out) == digests(whole)


@pytest.mark.parametrize("into", ["out", "a"])
def test_folders_are_merged_however_often_that_is_stopped(tmp_path, whole, monkeypatch, into):
    compute(tmp_path / "a", 1)
    compute(tmp_path / "b", 2, 3)
    before = everything(tmp_path / "b")
    for step in itertools.count(1, 3):
        with monkeypatch.context() as patch:
            _kill_at(patch, [step])
            try:
                merge([tmp_path / "a", tmp_path / "b"], tmp_path / into)
                break
            except Killed:
                pass
    assert step > 10
    assert digests(tmp_path / into) == digests(whole)
    assert everything(tmp_path / "b") == before


@pytest.mark.parametrize("name", ["incoming", "settings_0123456789abcdef.json"])
def test_links_among_the_parts(tmp_path, name):
    """Rejects a merge that removes files through a link."""
    out, mine = tmp_path / "out", tmp_path / "mine"
    compute(out, 1, of=1)
    mine.mkdir()
    (mine / ".jaxbandit-0123456789abcdef.draft").write_text("mine")
    if name == "incoming":
        (out / "parts" / name).rmdir()
    (out / "parts" / name).symlink_to(mine)
    for call in (lambda: merge(out), lambda: compute(out, 1, of=1), lambda: jb.sweep(spec(), out)):
        with pytest.raises(StoreError, match="this is a symbolic link"):
            call()
    assert len(list(mine.iterdir())) == 1


def test_edited_code_of_a_learner_of_ones_own(tmp_path):
    def learner(scale):
        class Mine(jb.Uniform):
            def act(self, state, round):
                probabilities, memo, state = super().act(state, round)
                return probabilities * scale / scale, memo, state

        return jb.extend.pytree_dataclass(Mine)()

    few = {"losses": LOSSES[:1], "runs": 300}
    compute(tmp_path / "out", 1, of=2, changes={**few, "learners": [learner(1.0)]})
    with pytest.raises(MismatchError, match="is not the one this sweep was begun with"):
        compute(tmp_path / "out", 2, of=2, changes={**few, "learners": [learner(2.0)]})
    compute(tmp_path / "b", 2, of=2, changes={**few, "learners": [learner(2.0)]})
    with pytest.raises(MismatchError, match="the code of a learner or law was edited"):
        merge([tmp_path / "out", tmp_path / "b"], tmp_path / "c")
