"""Wrong sweeps: each row is a call, what must be said, how it ends, and that nothing is left behind or changed."""

import concurrent.futures
import multiprocessing
import os
import re
import shutil
import struct
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._provenance.environment import environment
from jaxbandit.cli import app
from jaxbandit.sweeps import SpecError, Store, StoreError, batch, run
from jaxbandit.sweeps import open as opening
from jaxbandit.sweeps.plan import Plan
from tests.sweeps.examples import digests, everything, forge, spec

TOML = """
rounds = 20
runs = 4
[[learners]]
name = "uniform"
[[losses]]
name = "bernoulli"
means = [0.3, 0.5]
[[delays]]
name = "fixed"
delay = 1
"""
MEANS = "means = [0.3, 0.5]"
UNIFORM = 'name = "uniform"'


def _npy(header: str) -> bytes:
    """A .npy file that is only its header."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


FILES = {
    "huge.npy": _npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
    "objects.npy": _npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n"),
    "odd.npy": b"not an array",
    "empty.npy": b"",
    "odd.csv": b"one,two\nthree",
    "raises.py": b"raise RuntimeError('the module is unhappy')",
    "leaves.py": b"import sys; sys.exit(3)",
    "syntax.py": b"def (",
    "right.py": b"from jaxbandit import Uniform\nfrom jaxbandit._core.fields import pytree_dataclass\nNUMBER = 3\n"
    b"@pytree_dataclass\nclass Right(Uniform):\n    pass\n",
    "hints.py": b"from __future__ import annotations\nfrom jaxbandit import Uniform\nfrom jaxbandit._core.fields import pytree_dataclass\n"
    b"@pytree_dataclass\nclass Hints(Uniform):\n    factor: Nowhere = 1.0\n",
}


def nested(depth: int) -> str:
    return (
        'name = "bold"\ncapacity = 2\nbase = '
        + '{ name = "bold", capacity = 2, base = ' * depth
        + "{ name = 'uniform' }"
        + " }" * depth
    )


# a spec in place of TOML, what must be said
SPECS = [
    (TOML.replace(MEANS, 'means = { file = "huge.npy" }'), r"losses\[0\].means: 'huge.npy' cannot be read"),
    (TOML.replace(MEANS, 'means = { file = "objects.npy" }'), r"losses\[0\].means: 'objects.npy' cannot be read"),
    (TOML.replace(MEANS, 'means = { file = "odd.npy" }'), r"losses\[0\].means: 'odd.npy' cannot be read"),
    (TOML.replace(MEANS, 'means = { file = "empty.npy" }'), r"losses\[0\].means: 'empty.npy' cannot be read"),
    (TOML.replace(MEANS, 'means = { file = "odd.csv" }'), r"losses\[0\].means: 'odd.csv' cannot be read"),
    (TOML.replace(MEANS, r'means = { file = "a\u0000b.npy" }'), r"losses\[0\].means: .* cannot be read: .*embedded null"),
    (TOML.replace(MEANS, f'means = {{ file = "{"a" * 300}.npy" }}'), r"losses\[0\].means: .* cannot be read: .*too long"),
    (TOML.replace(MEANS, "means = { file = 3 }"), r"write \{ file = 'NAME.npy' \}"),
    (TOML.replace(UNIFORM, nested(300)), r"learners or laws are nested more than 16 deep"),
    (TOML.replace(UNIFORM, nested(2000)), r"nested more than 16 deep|not TOML"),
    (TOML.replace(UNIFORM, UNIFORM + '\nlabel = "two\\nlines"'), r"learners\[0\].label: .* is not one line of printable text"),
    (TOML.replace(UNIFORM, UNIFORM + '\nlabel = "\\u001b[2J"'), r"learners\[0\].label: .* is not one line of printable text"),
    (TOML.replace(UNIFORM, UNIFORM + '\nlabel = " "'), r"learners\[0\].label: ' ' is not one line of printable text"),
    (
        TOML.replace(UNIFORM, 'name = "delayed-exp3"\ngrid = { scale = [1, 2.0, 1.0] }'),
        r"learners\[0\].grid.scale\[2\]: 1.0 is in this list twice, also at \[0\]; leave one out",
    ),
    (
        TOML.replace(UNIFORM, f'name = "delayed-exp3"\ngrid = {{ scale = {list(range(1, 10_003))} }}'),
        r"learners\[0\].grid: this grid has more than 10000 points",
    ),
    (
        TOML.replace(UNIFORM, f'name = "delayed-exp3"\ngrid = {{ scale = {list(range(1, 6_003))} }}\n[[learners]]\n')
        + f'[[learners]]\nname = "delayed-exp3"\nlabel = "b"\ngrid = {{ scale = {list(range(1, 6_003))} }}\n',
        r"learners: there are more than 10000 of them; leave some out of the grids",
    ),
    (
        TOML.replace(UNIFORM, f'name = "delayed-exp3"\ngrid = {{ scale = {list(range(1, 400))} }}').replace(
            "delay = 1", f"grid = {{ delay = {list(range(400))} }}"
        ),
        r"399 learners x 1 losses x 400 delays are 159600 cells; a sweep can have 100000, so leave some values out of the grids",
    ),
    (
        TOML.replace("runs = 4", "runs = 4000000000") + '[[delays]]\nname = "fixed"\ndelay = 2\n',
        r"runs: .* more than 10000000 units",
    ),
    ("﻿rounds = ", "not TOML"),
    (
        TOML.replace(UNIFORM, 'name = "raises:Learner"'),
        r"learners\[0\].name: .* cannot be imported: RuntimeError: the module is unhappy",
    ),
    (TOML.replace(UNIFORM, 'name = "leaves:Learner"'), r"learners\[0\].name: .* cannot be imported: SystemExit: 3"),
    (TOML.replace(UNIFORM, 'name = "syntax:Learner"'), r"learners\[0\].name: .* cannot be imported: SyntaxError"),
    (TOML.replace(UNIFORM, 'name = "nowhere:Learner"'), r"learners\[0\].name: .* cannot be imported: ModuleNotFoundError"),
    (TOML.replace(UNIFORM, 'name = ":Learner"'), r"learners\[0\].name: ':Learner' cannot be imported"),
    (TOML.replace(UNIFORM, 'name = "right:Wrong"'), r"learners\[0\].name: .* cannot be imported: right has no 'Wrong'"),
    (TOML.replace(UNIFORM, 'name = "right:NUMBER"'), r"learners\[0\].name: 'right:NUMBER' is not a dataclass"),
    (TOML.replace(UNIFORM, 'name = "hints:Hints"'), r"learners\[0\]: NameError: name 'Nowhere' is not defined"),
    (
        TOML.replace(UNIFORM, 'name = "qpm-d"\ncapacity = "oracle"\nbase = { name = "uniform" }').replace(
            'name = "fixed"\ndelay = 1', 'name = "packet-loss"\nprobability = 0.5'
        ),
        r"learners\[0\]: capacity = 'oracle': under PacketLoss feedback can be lost, so there is no longest delay",
    ),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a spec and files that it may name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    Path("spec.toml").write_text(TOML)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    yield tmp_path
    for name in FILES:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.fixture
def command(folder, capsys):
    def call(words: str) -> tuple[int, str]:
        status = app.call(words.split())
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return status, " ".join((said.out + said.err).split())

    return call


@pytest.mark.parametrize(("text", "message"), SPECS, ids=[re.sub(r"\W+", " ", message)[:60] for _, message in SPECS])
def test_wrong_spec(command, folder, text, message):
    Path("spec.toml").write_text(text)
    before = everything(folder)
    status, said = command("sweep spec.toml --out out --imports")
    assert status == 2
    assert re.search(message, said), said
    assert everything(folder) == before


def test_right_specs(command, folder):
    """What was refused or misread before: a byte order mark, values that print alike, a module in the current folder."""
    text = TOML.replace(
        UNIFORM, 'name = "delayed-exp3"\ngrid = { scale = [0.1234567, 0.1234568, 2] }\n[[learners]]\nname = "right:Right"'
    )
    Path("spec.toml").write_text(text, "utf-8-sig")
    assert command("sweep spec.toml --out out --imports")[0] == 0
    labels = ["delayed-exp3 scale=0.1234567", "delayed-exp3 scale=0.1234568", "delayed-exp3 scale=2", "Right"]
    assert Store.open("out").labels("learners") == labels


def test_labels_of_grids_stay_short_where_they_can():
    entry = jb.Entry("bobw", {"max_delay": 3}, {"factor": [24.0, 0.1 + 0.2]})
    plan = Plan.make(spec(learners=[entry]))
    assert [point.label for point in plan.axes["learners"]] == ["bobw factor=24", "bobw factor=0.3"]
    long = [[0.1] * 30 + [0.2], [0.1] * 30 + [0.3]]
    plan = Plan.make(spec(losses=[jb.Entry("bernoulli", {}, {"means": long})]))
    assert len({point.label for point in plan.axes["losses"]}) == 2


# Python calls: changes of the spec or options of sweep, what must be said
CALLS = [
    ({"learners": [None]}, SpecError, r"learners\[0\]: learner=None: give a learner such as"),
    ({"learners": [3]}, SpecError, r"learners\[0\]: learner=3: give a learner such as"),
    ({"learners": [jb.Uniform]}, SpecError, r"learners\[0\]: learner=Uniform: give a learner, not its class"),
    ({"learners": "uniform"}, SpecError, r"learners: 'uniform' is not a list of learners"),
    ({"learners": None}, SpecError, r"learners: None is not a list of learners"),
    ({"learners": []}, SpecError, r"learners: a sweep needs at least one of its learners"),
    ({"losses": [None]}, SpecError, r"losses\[0\]: losses=None: give a law such as"),
    ({"delays": [None]}, SpecError, r"delays\[0\]: delays=None: give a law such as"),
    ({"delays": [3]}, SpecError, r"delays\[0\]: delays=3: give a law such as"),
    ({"learners": [jb.Entry(3)]}, SpecError, r"learners\[0\].name: a name is needed"),  # type: ignore[arg-type]
    ({"learners": [jb.Entry("uniform", 3)]}, SpecError, r"learners\[0\].fields: 3 is not a dict"),  # type: ignore[arg-type]
    ({"learners": [jb.Entry("uniform", {}, 3)]}, SpecError, r"learners\[0\].grid: 3 is not a table"),  # type: ignore[arg-type]
    ({"learners": [jb.Entry("uniform", {}, {}, 3)]}, SpecError, r"learners\[0\].label: 3 is not a text"),  # type: ignore[arg-type]
    ({"learners": [jb.Entry("uniform", {3: 4})]}, SpecError, r"learners\[0\].3: 'uniform' has no such field"),  # type: ignore[dict-item]
    (
        {"losses": [jb.Entry("bernoulli", {"means": {"file": "a.npy"}})]},
        SpecError,
        r"only be named in a spec that is a file itself",
    ),
    ({"runs": 1.5}, SpecError, r"runs: .*whole number"),
    ({"rounds": np.float64(20.5)}, SpecError, r"rounds: .*whole number"),
    ({"seed": np.int64(-1)}, SpecError, r"seed: -1 is not a seed"),
    ({"record": np.array([60, 50], np.uint32)}, SpecError, r"record: .*ascending"),
    ({"record": True}, SpecError, "record: "),
    ({"control_variates": 1}, SpecError, r"control_variates: 1 is not true or false"),
]


def deep(depth: int):
    learner = jb.Uniform()
    for _ in range(depth):
        learner = jb.BOLD(learner, 2)
    return learner


@pytest.mark.parametrize(("changes", "error", "message"), CALLS, ids=[message[:50] for _, _, message in CALLS])
def test_wrong_python_spec(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        jb.sweep(spec(**changes), tmp_path / "out")
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("depth", [17, 300])
def test_python_objects_nested_deeply(tmp_path, depth):
    with pytest.raises(SpecError, match=r"learners\[0\]: learners or laws are nested more than 16 deep"):
        jb.sweep(spec(learners=[deep(depth)]), tmp_path / "out")
    assert everything(tmp_path) == {}


def test_three_large_grids_are_refused_at_once(tmp_path):
    grid = list(range(1, 10_000))
    changes = {
        "learners": [jb.Entry("delayed-exp3", {}, {"scale": grid})],
        "losses": [jb.Entry("bernoulli", {}, {"means": [[0.5, 1 / t] for t in grid]})],
        "delays": [jb.Entry("fixed", {}, {"delay": grid})],
    }
    with pytest.raises(SpecError, match=r"9999 learners x 9999 losses x 9999 delays are 999700029999 cells"):
        jb.sweep(spec(**changes), tmp_path / "out")
    assert everything(tmp_path) == {}


def test_numbers_of_numpy_are_numbers(tmp_path, whole):
    changes = {"runs": np.int64(600), "rounds": np.uint16(60), "seed": np.int32(0), "record": np.int8(6)}
    assert jb.sweep(spec(**changes, control_variates=np.bool_(False)), tmp_path / "out").done == 12
    assert digests(tmp_path / "out") == digests(whole)
    plan = Plan.make(spec(record=np.array([10, 60])), rounds=np.int64(60), runs=np.int64(3))
    assert (plan.record(), type(plan.rounds), type(plan.runs)) == ([10, 60], int, int)


def test_forked_processes_are_refused(tmp_path):
    fork = multiprocessing.get_context("fork")
    with (
        concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as executor,
        pytest.raises(ValueError, match=r"a forked process hangs.*mp_context=multiprocessing.get_context\('spawn'\)"),
    ):
        jb.sweep(spec(), tmp_path / "out", executor=executor)
    assert everything(tmp_path) == {}


def test_spawned_processes(tmp_path, whole):
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as executor:
        assert jb.sweep(spec(), tmp_path / "out", executor=executor).computed == 12
    assert digests(tmp_path / "out") == digests(whole)


def test_a_worker_that_is_set_otherwise_fails(tmp_path, monkeypatch):
    here = environment()
    monkeypatch.setattr(batch, "environment", lambda: {**here, "x64": True})
    summary = jb.sweep(spec(runs=4, losses=spec().losses[:1], learners=[jb.Uniform()]), tmp_path / "out")
    assert summary.done == 0
    (reason,) = summary.failed.values()
    assert reason == "WorkerError: the worker is not like the process that called sweep (x64 False then, True now)"
    monkeypatch.undo()
    monkeypatch.setattr(run, "code_digest", lambda thing: "3.11:0123")
    (reason,) = jb.sweep(spec(runs=4, losses=spec().losses[:1], learners=[jb.Uniform()]), tmp_path / "out").failed.values()
    assert reason.startswith("WorkerError: the worker has other code of the learner")


class Exploding(jb.Uniform):
    """Its probabilities stop being numbers after round 10."""

    def act(self, state, round):
        probabilities, memo, state = super().act(state, round)
        return jnp.where(round.t > 10, jnp.nan, probabilities), memo, state


def test_results_that_are_not_finite_are_failed_units(tmp_path):
    learners = [jb.extend.pytree_dataclass(Exploding)(), jb.Uniform()]
    summary = jb.sweep(spec(runs=4, losses=spec().losses[:1], learners=learners, record=[5, 20, 60]), tmp_path / "out")
    assert (summary.done, summary.units) == (1, 2)
    ((name, reason),) = summary.failed.items()
    assert "Exploding, bernoulli, fixed; runs 0-255, rounds 1-60" in name
    assert reason.startswith("the regret of run 0 at round 20 is nan; is a hyperparameter")
    assert Store.open(tmp_path / "out").failures() == summary.failed


# The command line on stores: what is done to the store, the command, its exit status, what must be said. All leave it as it is.


def _delete_unit(out):
    sorted(out.glob("units/*/*.npz"))[0].unlink()


def _flip(out):
    file = sorted(out.glob("units/*/*.npz"))[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _swap(out):
    one, two = sorted(out.glob("units/*"))[:2]
    one.rename(out / "units" / "x")
    two.rename(one)
    (out / "units" / "x").rename(two)


def _unit_folder(out):
    file = sorted(out.glob("units/*/*.npz"))[0]
    file.unlink()
    file.mkdir()


def _link(out):
    file = sorted(out.glob("units/*/*.npz"))[0]
    shutil.move(file, out.parent / "moved")
    file.symlink_to(out.parent / "moved")


def _flip_manifest(out):
    text = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(text.replace('"seed": 0', '"seed": 1'))


def _script(out):
    forge(out, lambda m: m.update(seed="<script>alert(1)</script>"))


def _many_runs(out):
    forge(out, lambda m: m.update(runs=2**32))


def _half_block(out):
    forge(out, lambda m: m["cells"][0].update(block=0.5))


STORES = [
    (_delete_unit, "verify copy", 1, "11 unit files checked, 0 damaged 1 unit missing: deleted, or not computed yet the next"),
    (_delete_unit, "status copy", 0, r"copy: 91 % computed \(11 of 12 units, .* 1 unit still to compute; the same"),
    (_flip, "verify copy", 1, "damaged: .*: this file is damaged 12 unit files checked, 1 damaged"),
    (_swap, "verify copy", 1, "this file belongs to another cell .*12 unit files checked, 9 damaged"),
    (
        _swap,
        "export copy all.nc",
        1,
        "this file belongs to another cell; run the sweep again .* to have it recomputed",
    ),
    (
        _swap,
        "report copy",
        1,
        "this file belongs to another cell; run the sweep again .* to have it recomputed",
    ),
    (
        _unit_folder,
        "verify copy",
        1,
        "this is a folder in the place of a unit's file 11 unit files checked, 1 damaged 1 unit missing",
    ),
    (_link, "verify copy", 1, "this is a symbolic link"),
    (_link, "status copy", 1, "this is a symbolic link"),
    (_link, "export copy all.nc", 1, "this is a symbolic link"),
    (_flip_manifest, "verify copy", 1, "manifest.json: this file is damaged; the other copy is whole"),
    (_flip_manifest, "status copy", 0, "100 % computed"),
    (_script, "status copy", 1, "manifest.json and its copy are damaged"),
    (_script, "report copy", 1, "manifest.json and its copy are damaged"),
    (_many_runs, "status copy", 0, r"copy: 0 % computed \(12 of 67,108,864 units"),
    (_many_runs, "verify copy", 1, "67,108,852 units missing"),
    (_half_block, "status copy", 1, "manifest.json and its copy are damaged"),
    (_half_block, "verify copy", 1, "manifest.json and its copy are damaged"),
    (
        None,
        "sweep spec.toml --out copy --rounds 60 --runs 600",
        2,
        r"the spec is not the one this sweep was begun with \(record was 6, is 50\)",
    ),
    (None, "verify copy", 0, "12 unit files checked, 0 damaged"),
    (
        None,
        "status copy",
        0,
        r"copy: 100 % computed \(12 of 12 units, .* 2 learners x 2 losses x 1 delays, 600 runs of 60 rounds each",
    ),
    (None, "export copy copy", 2, "ends in .nc or .zarr"),
    (None, "export copy spec.nc/all.nc", 2, "spec.nc"),
]


@pytest.mark.parametrize(
    ("change", "words", "status", "message"), STORES, ids=[f"{words}, {m[:25]}" for _, words, _, m in STORES]
)
def test_commands_on_stores(command, copy, change, words, status, message):
    Path("spec.nc").write_text("a file")
    if change is not None:
        change(copy)
    before = everything(copy)
    found, said = command(words)
    assert re.search(message, said), said
    assert found == status
    after = everything(copy)
    after.pop("lock", None)
    before.pop("lock", None)
    assert after == before
    assert not [*Path().glob(".*"), *Path().glob("all*")]


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_full_disk_in_export(command, copy, monkeypatch, ending):
    """Whatever library reports it: the disk is full, and nothing half-written stays."""
    import errno

    import xarray

    def full(self, target, **options):
        Path(target).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", full)
    monkeypatch.setattr(xarray.Dataset, "to_zarr", full)
    before = everything(Path.cwd())
    status, said = command(f"export copy all{ending}")
    assert (status, said) == (1, f"all{ending}: the disk is full; nothing was written, so make room and run the same command")
    assert everything(Path.cwd()) == before


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("mount"), reason="needs the right to mount")
@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_export_to_a_small_disk(whole, tmp_path, ending):
    import subprocess

    disk = tmp_path / "disk"
    disk.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if subprocess.run(line, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with pytest.raises(StoreError, match=f"all{ending}: the disk is full; nothing was written"):
            opening.export(whole, disk / f"all{ending}")
        assert everything(disk) == {}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
