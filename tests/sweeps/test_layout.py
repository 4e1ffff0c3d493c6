"""Nothing of the user's is deleted, overwritten or written through, whatever lies in the folder that is named."""

import os
import shutil
import stat

import pytest

import jaxbandit as jb
from jaxbandit.sweeps import MismatchError, Store, StoreError
from jaxbandit.sweeps.report import write_report
from tests.sweeps.examples import digests, everything, spec

THESIS = "ten years of work"


def _folder(path, **files):
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_text(content)
    return path


@pytest.mark.parametrize("name", ["thesis.tex", "tmpk3jd82ha", "jaxbandit.draft", "draft.npz", "0000000_0-60.part"])
def test_a_new_folder_with_an_incoming_of_the_users_own_is_refused(tmp_path, name):
    _folder(tmp_path / "out" / "incoming", **{name: THESIS})
    before = everything(tmp_path)
    with pytest.raises(MismatchError, match=rf"other things in it \(incoming/{name}\)"):
        jb.sweep(spec(), tmp_path / "out")
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["thesis.tex", "tmpk3jd82ha"])
def test_going_on_leaves_what_is_not_its_own_in_incoming(copy, whole, name):
    (copy / "incoming" / name).write_text(THESIS)
    (copy / "incoming" / "sub").mkdir()
    drafts = [".jaxbandit-0123456789abcdef.draft", "0123456789abcdef_3_0-60", "0123456789abcdef_3_0-60a1b2c3d4.part"]
    for draft in drafts:
        (copy / "incoming" / draft).write_text("half a fi")
    jb.sweep(spec(), copy)
    assert sorted(os.listdir(copy / "incoming")) == sorted([name, "sub"])
    assert (copy / "incoming" / name).read_text() == THESIS


@pytest.mark.parametrize("name", ["incoming", "units", "report", "lock", "manifest.json", "manifest.copy.json", "failures.json"])
@pytest.mark.parametrize("store", [True, False])
def test_symbolic_links_are_refused(whole, tmp_path, name, store):
    """Into a folder that is a store already, and into a new one; what the link leads to stays as it is."""
    out = tmp_path / "out"
    _folder(tmp_path / "mine", **{"thesis.tex": THESIS, ".jaxbandit-0123456789abcdef.draft": THESIS})
    if store:
        shutil.copytree(whole, out)
        (out / "report").mkdir()
        (out / "failures.json").write_text("{}")
        target = shutil.move(out / name, tmp_path / "moved") if name != "lock" else tmp_path / "mine" / "thesis.tex"
        (out / name).unlink(missing_ok=True)
    else:
        out.mkdir()
        target = tmp_path / "mine" if name in ("incoming", "units", "report") else tmp_path / "mine" / "thesis.tex"
    (out / name).symlink_to(target)
    before = everything(tmp_path)
    calls = [lambda: jb.sweep(spec(), out), lambda: jb.open_sweep(out), lambda: write_report(out), lambda: Store.open(out)]
    for call in calls:
        with pytest.raises(StoreError, match=rf"{name}: this is a symbolic link, and a sweep's folder must hold none"):
            call()
    assert everything(tmp_path) == before


@pytest.mark.parametrize("depth", [1, 2])
def test_links_among_the_units_are_refused(copy, tmp_path, depth):
    victim = sorted(copy.glob("/".join(["units", *["*"] * depth])))[0]
    shutil.move(victim, tmp_path / "elsewhere")
    victim.symlink_to(tmp_path / "elsewhere")
    before = everything(tmp_path)
    for call in (lambda: jb.sweep(spec(), copy), lambda: jb.open_sweep(copy), lambda: Store.open(copy).damaged()):
        with pytest.raises(StoreError, match="symbolic link"):
            call()
    assert everything(tmp_path) == before


def test_the_folder_itself_may_be_a_link(tmp_path, whole):
    """A link that the user names is meant: to another disk, say."""
    shutil.copytree(whole, tmp_path / "disk")
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    assert jb.sweep(spec(), tmp_path / "out").done == 12


@pytest.mark.parametrize("content", [b"notes on locks", b"\xff\xfe\x00", b"process 12 on host\nand my own notes"])
@pytest.mark.parametrize("store", [True, False])
def test_a_file_called_lock_that_is_not_ours_stays(whole, tmp_path, content, store):
    out = shutil.copytree(whole, tmp_path / "out") if store else _folder(tmp_path / "out")
    (out / "lock").write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(MismatchError, match=r"not a sweep's lock|other things in it \(lock\)"):
        jb.sweep(spec(), out)
    assert everything(tmp_path) == before


def test_what_a_kill_at_the_first_moment_leaves_is_no_obstacle(tmp_path, whole):
    _folder(tmp_path / "out" / "incoming", **{".jaxbandit-0123456789abcdef.draft": "half a fi"})
    (tmp_path / "out" / "lock").write_text("process 12 on host")
    assert jb.sweep(spec(), tmp_path / "out").done == 12
    assert digests(tmp_path / "out") == digests(whole)


@pytest.mark.parametrize(
    ("name", "make"), [("units", "file"), ("manifest.json", "folder"), ("lock", "pipe"), ("incoming", "file")]
)
def test_other_things_under_the_names_of_a_store(copy, name, make):
    path = copy / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    {"file": lambda: path.write_text(THESIS), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}[make]()
    for call in (lambda: jb.sweep(spec(), copy), lambda: jb.open_sweep(copy)):
        with pytest.raises(StoreError, match=rf"{name}: a sweep has a (file|folder) of this name; move the existing one away"):
            call()


def test_a_folder_in_the_place_of_a_unit(copy, whole):
    """An empty one is replaced; one with something in it is not ours to remove."""
    victim = sorted(copy.glob("units/*/*.npz"))[0]
    victim.unlink()
    victim.mkdir()
    assert Store.open(copy).damaged() == {victim: "this is a folder in the place of a unit's file"}
    (victim / "thesis.tex").write_text(THESIS)
    with pytest.raises(StoreError, match="this is a folder in the place of a unit's file; move it away"):
        jb.sweep(spec(), copy)
    assert (victim / "thesis.tex").read_text() == THESIS
    (victim / "thesis.tex").unlink()
    assert jb.sweep(spec(), copy).damaged == 1
    assert digests(copy) == digests(whole)


def test_a_file_in_the_place_of_a_cell(copy):
    cell = sorted(copy.glob("units/*"))[0]
    shutil.rmtree(cell)
    cell.write_text(THESIS)
    with pytest.raises(StoreError, match=f"{cell.name}: a sweep has a folder of this name"):
        jb.sweep(spec(), copy)
    assert cell.read_text() == THESIS


def test_out_is_a_file(tmp_path):
    (tmp_path / "thesis.tex").write_text(THESIS)
    for out in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "out"):
        with pytest.raises(MismatchError, match=r"this is not a folder; choose another folder \(out=, --out\)"):
            jb.sweep(spec(), out)
    assert everything(tmp_path) == {"thesis.tex": THESIS.encode()}


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o002])
def test_permissions_follow_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        jb.sweep(spec(runs=4, losses=spec().losses[:1], learners=spec().learners[:1]), tmp_path / "out")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert modes == {0o666 & ~mask}
