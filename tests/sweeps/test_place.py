"""A sweep's folder that is moved, or loses its manifests or its lock, while the sweep writes into it; names of units that are no files."""

import os

import pytest

import jaxbandit as jb
from jaxbandit.cli import app
from jaxbandit.sweeps import Store, StoreError
from jaxbandit.sweeps.writer import StoreWriter
from tests.sweeps.examples import digests, everything, spec


@pytest.fixture
def disturb(monkeypatch):
    """``disturb(action)``: the action happens after the second unit is written."""
    write, count = StoreWriter.write, []

    def install(action):
        def written(self, *arguments):
            done = write(self, *arguments)
            count.append(1)
            if len(count) == 2:
                action()
            return done

        monkeypatch.setattr(StoreWriter, "write", written)

    return install


def test_a_folder_that_is_moved(tmp_path, whole, disturb):
    out, moved = tmp_path / "out", tmp_path / "moved"
    disturb(lambda: out.rename(moved))
    with pytest.raises(StoreError, match=r"out: this folder was moved or deleted while the sweep was writing.*resumes"):
        jb.sweep(spec(), out)
    assert not out.exists(), "nothing is written where the folder was"
    moved.rename(out)
    assert jb.sweep(spec(), out).computed == 10
    assert digests(out) == digests(whole)


def test_a_folder_in_the_place_of_one_that_was_moved(tmp_path, disturb):
    out, moved = tmp_path / "out", tmp_path / "moved"
    disturb(lambda: (out.rename(moved), out.mkdir()))
    with pytest.raises(StoreError, match="the file lock was deleted or replaced"):
        jb.sweep(spec(), out)
    assert everything(out) == {}


def test_manifests_that_are_deleted_are_restored(tmp_path, whole, disturb):
    out = tmp_path / "out"
    disturb(lambda: [(out / name).unlink() for name in ("manifest.json", "manifest.copy.json")])
    assert jb.sweep(spec(), out).done == 12
    assert digests(out) == digests(whole)
    assert jb.sweep(spec(), out).computed == 0


def test_a_lock_that_is_deleted(tmp_path, whole, disturb):
    """Rejects two writers at once: the first one stops as soon as its lock is gone, whether or not a second has begun."""
    out = tmp_path / "out"
    second = []

    def delete():
        (out / "lock").unlink()
        second.append(jb.sweep(spec(), out))

    disturb(delete)
    with pytest.raises(StoreError, match=r"the file lock was deleted or replaced.*another sweep may write here"):
        jb.sweep(spec(), out)
    assert second[0].done == 12
    assert digests(out) == digests(whole)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_unit_that_is_no_file_is_not_missing(copy, capsys, make):
    file = sorted(copy.glob("units/*/*.npz"))[0]
    file.unlink()
    assert jb.open_sweep(copy).regret.isnull().any()  # missing
    make(file)
    said = f"{file.name}: this is a {'folder' if make is os.mkdir else 'pipe'}.* in the place of a unit's file"
    with pytest.raises(StoreError, match=said):
        jb.open_sweep(copy).regret.load()
    assert sum(Store.open(copy).done(Store.open(copy).files()).values()) == 11
    assert app.call(["verify", str(copy)]) == 1
    assert "in the place of a unit's file" in capsys.readouterr().out
    assert app.call(["report", str(copy), "--out", str(copy / "elsewhere")]) == 1
    assert jb.sweep(spec(), copy).damaged == 1
    assert not jb.open_sweep(copy).regret.isnull().any()


def test_a_unit_that_is_deleted_while_it_is_read(copy):
    """The dataset is lazy: the file was there when it was opened."""
    data = jb.open_sweep(copy)
    file = sorted(copy.glob("units/*/*.npz"))[0]
    file.unlink()
    with pytest.raises(StoreError, match=rf"{file.name}: this file was deleted; run the sweep again"):
        data.regret.load()


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


@pytest.mark.parametrize("moment", [2, 3, 5, 9])
def test_killed_between_a_rename_and_its_sync(tmp_path, whole, monkeypatch, moment):
    """A file has its name and the folder is not synced yet: it is whole, or not there after a loss of power."""
    left = [moment]

    def killed(folder):
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("jaxbandit.sweeps.writer.sync_folder", killed)
        patch.setattr("jaxbandit._io.files.sync_folder", killed)
        with pytest.raises(Killed):
            jb.sweep(spec(), tmp_path / "out")
    jb.sweep(spec(), tmp_path / "out")
    assert digests(tmp_path / "out") == digests(whole)


@pytest.mark.parametrize("name", ["all.nc", "all.zarr"])
def test_an_export_replaces_only_exports_and_only_when_forced(copy, tmp_path, name):
    target = tmp_path / name
    assert app.call(["export", str(copy), str(target)]) == 0
    before = everything(tmp_path)
    assert app.call(["export", str(copy), str(target)]) == 1
    assert everything(tmp_path) == before
    assert app.call(["export", str(copy), str(target), "--force"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"copy", name}
    (tmp_path / "mine.zarr").mkdir()
    assert app.call(["export", str(copy), str(tmp_path / "mine.zarr"), "--force"]) == 1


def test_a_report_replaces_nothing_unless_forced(copy, tmp_path, capsys):
    mine = tmp_path / "pages" / "report.html"
    mine.parent.mkdir()
    mine.write_text("mine")
    line = ["report", str(copy), "--out", str(mine.parent)]
    assert app.call(line) == 2
    assert "report.html: this file is already there" in capsys.readouterr().err
    assert [mine.read_text(), len(list(mine.parent.iterdir()))] == ["mine", 1]
    assert app.call([*line, "--force"]) == 0
    for _ in range(2):  # the report in the sweep's own folder is not the user's
        assert app.call(["report", str(copy)]) == 0
