"""Stores, result files, specs, manifests, traces and logs with random damage: told in a sentence or harmless, never silent, never a traceback.

``JAXBANDIT_FUZZ=10000`` sets the number of cases (``make test-slow``); the seeds are fixed.
"""

import contextlib
import copy as copying
import hashlib
import os
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.results.result import Result
from jaxbandit.sweeps import SpecError, Store, StoreError
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.status import status_lines, verify_lines
from jaxbandit.sweeps.writer import StoreWriter
from tests.sweeps.examples import digests, forge, spec

CASES = int(os.environ.get("JAXBANDIT_FUZZ", "10000"))
PARTS = 10  # tests that share the cases of one kind
PATIENCE = 30  # seconds of the processor for one case

pytestmark = pytest.mark.slow


def small() -> jb.Spec:
    """Four units: two cells of two blocks."""
    return spec(losses=spec().losses[:1], runs=300, record=4)


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("fuzz") / "good"
    assert jb.sweep(small(), out).done == 4
    return out


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.make(small())


def chance(kind: str, part: int) -> random.Random:
    return random.Random(f"{kind} {part}")


def damage(content: bytes, rng: random.Random) -> bytes:
    """Flipped bits, a lost end, something added, a hole of zeros, bytes exchanged."""
    changed = bytearray(content)
    kind = rng.choice(["flip", "flip", "flips", "cut", "add", "zeros", "move"])
    at = rng.randrange(len(changed)) if changed else 0
    if not changed or kind == "add":
        changed[at:at] = rng.randbytes(rng.randrange(1, 40))
    elif kind == "cut":
        del changed[at:]
    elif kind == "zeros":
        changed[at : at + 64] = bytes(len(changed[at : at + 64]))
    elif kind == "move":
        other = rng.randrange(len(changed))
        changed[at], changed[other] = changed[other], changed[at]
    else:
        for _ in range(1 if kind == "flip" else rng.randrange(2, 9)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


# Stores.


class Vandal:
    """Does something to a store; remembers what is the user's in it and must survive."""

    def __init__(self, out: Path, rng: random.Random):
        self.out, self.rng = out, rng
        self.mine: dict[Path, bytes] = {}

    def act(self) -> str:
        action = self.rng.choice(
            [self.harm, self.harm, self.swap, self.copy_over, self.move, self.delete, self.replace, self.add, self.rename]
        )
        with contextlib.suppress(IndexError, ValueError):  # nothing left to choose from
            action()
        return action.__name__

    def files(self) -> list[Path]:
        return [path for path in self.paths() if path.is_file()]

    def folders(self) -> list[Path]:
        return [path for path in self.paths() if path.is_dir() and not path.is_symlink()]

    def paths(self) -> list[Path]:
        """All that is the sweep's and has nothing of the user's in it."""
        users = {parent for path in self.mine for parent in (path, *path.parents)}
        return sorted(path for path in self.out.rglob("*") if path not in users)

    def units(self) -> list[Path]:
        return [path for path in self.files() if path.parent.parent.name == "units" and not path.is_symlink()]

    def cells(self) -> list[Path]:
        return [path for path in self.folders() if path.parent.name == "units"]

    def harm(self):
        path = self.rng.choice([path for path in self.files() if not path.is_symlink()])  # else it harms what is the user's
        path.write_bytes(damage(path.read_bytes(), self.rng))

    def swap(self):
        one, two = self.rng.sample(self.rng.choice([self.files(), self.cells()]), 2)
        one.rename(self.out / "between")
        two.rename(one)
        (self.out / "between").rename(two)

    def copy_over(self):
        """A unit over another, with a name whose checksum fits: only what is inside can tell."""
        one, two = self.rng.sample([path for path in self.units() if path.suffix == ".npz"], 2)
        target = two.with_name(two.name[:-68] + one.name[-68:])
        shutil.copy(one, self.out / "between")
        two.unlink()
        (self.out / "between").rename(target)

    def move(self):
        path = self.rng.choice(self.units())
        target = self.rng.choice(self.cells()) / path.name
        if not target.exists():
            path.rename(target)

    def rename(self):
        """A unit's file with other rounds, another block or another checksum in its name."""
        path = self.rng.choice(self.units())
        letters = list(path.name)
        letters[self.rng.randrange(len(letters))] = self.rng.choice("0123456789abcdef_-.")
        path.rename(path.with_name("".join(letters)))

    def delete(self):
        path = self.rng.choice(self.paths())
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def replace(self):
        """A link, a folder, a pipe or an empty file in the place of something."""
        path = self.rng.choice(self.paths())
        elsewhere = self.out.parent / f"elsewhere{len(self.mine)}"
        shutil.move(path, elsewhere)
        self.rng.choice([lambda: path.symlink_to(elsewhere), path.mkdir, path.touch, lambda: os.mkfifo(path)])()
        if elsewhere.is_file():
            self.mine[elsewhere] = elsewhere.read_bytes()
        for inner in elsewhere.rglob("*") if elsewhere.is_dir() else ():
            if inner.is_file():
                self.mine[inner] = inner.read_bytes()

    def add(self):
        folders = [self.out, *self.folders()]
        names = ["thesis.tex", "tmpk3jd82ha", "0000000.npz", "x" * 200, "ünïcode", ".hidden", "draft", "units", "manifest", " "]
        path = self.rng.choice(folders) / self.rng.choice(names)
        if not path.exists() and not path.is_symlink():
            path.write_bytes(self.rng.randbytes(50))
            self.mine[path] = path.read_bytes()


def look(out: Path, expected) -> bool:
    """Every way to read a store: True if all was told to be well; what is read must be what was computed, or missing."""
    try:
        store = Store.open(out)
        whole, _ = verify_lines(store)
        list(status_lines(store))
    except StoreError:
        return False
    with contextlib.suppress(StoreError):
        data = jb.open_sweep(out).load()
        for name in expected.data_vars:
            found, true = data[name].values, expected[name].values
            assert found.shape == true.shape
            assert np.all((found == true) | np.isnan(found)), f"{name} was changed in silence"
            assert not (whole and np.isnan(found).any()), "something is missing, and verify does not say so"
    return whole


@pytest.mark.parametrize("part", range(PARTS))
def test_stores(good, plan, tmp_path, part):
    rng, expected = chance("store", part), jb.open_sweep(good).load()
    told = 0
    for case in range(CASES * 4 // 10 // PARTS):
        out = Path(shutil.copytree(good, tmp_path / "case" / "out"))
        vandal = Vandal(out, rng)
        done = [vandal.act() for _ in range(rng.choice([1, 1, 2]))]
        begun = time.process_time()
        try:
            told += not look(out, expected)
            with contextlib.suppress(StoreError), StoreWriter.begin(out, plan) as store:
                store.remove_damaged()
                assert not store.damaged(), "a damaged file is left"
            for path, content in vandal.mine.items():
                assert path.read_bytes() == content, f"{path} is the user's and was touched"
            if case % 50 == 0:
                repaired(out)
        except Exception as error:
            raise AssertionError(f"case {case} of part {part} ({', '.join(done)}): {type(error).__name__}: {error}") from error
        assert time.process_time() - begun < PATIENCE
        shutil.rmtree(tmp_path / "case")
    assert told > 0


def repaired(out: Path) -> None:
    """The same sweep again: refused, or the same bits as if nothing had happened."""
    with contextlib.suppress(StoreError):
        assert jb.sweep(small(), out).done == 4
        assert not Store.open(out).damaged()


def test_repaired_stores_are_the_same_bits(good, tmp_path):
    """Damaged in any way that the next sweep can mend, they are mended."""
    rng = chance("repair", 0)
    for _ in range(max(3, CASES // 500)):
        out = Path(shutil.copytree(good, tmp_path / "out"))
        vandal = Vandal(out, rng)
        rng.choice([vandal.copy_over, vandal.move])()
        for file in rng.sample(sorted(out.glob("units/*/*")), 2):
            file.write_bytes(damage(file.read_bytes(), rng))
        jb.sweep(small(), out)
        assert digests(out) == digests(good)
        shutil.rmtree(out)


# Unit files that were damaged and have a matching checksum: their numbers may be wrong, but not their shape.


@pytest.mark.parametrize("part", range(PARTS))
def test_forged_units_are_refused_or_have_the_right_shape(good, tmp_path, part):
    rng = chance("stranger", part)
    out = Path(shutil.copytree(good, tmp_path / "out"))
    file = sorted(out.glob("units/*/*.npz"))[0]
    content, right = file.read_bytes(), jb.open_sweep(good).regret
    refused = []
    for _ in range(CASES // 10 // PARTS):
        forged = damage(content, rng)
        planted = file.with_name(f"{file.name[:-68]}{hashlib.sha256(forged).hexdigest()}.npz")
        file.unlink(missing_ok=True)
        planted.write_bytes(forged)
        try:
            verify_lines(Store.open(out))
            found = jb.open_sweep(out).regret.load()
            assert (found.sizes, found.dtype) == (right.sizes, right.dtype)
        except StoreError as error:
            refused.append(str(error))
        planted.unlink()
    assert refused
    assert all(str(out) in text and "\n" not in text for text in refused)


# Result files.


@pytest.mark.parametrize("part", range(PARTS))
def test_result_files(good, tmp_path, part):
    rng = chance("result", part)
    content = sorted(good.glob("units/*/*.npz"))[0].read_bytes()
    (tmp_path / "true").write_bytes(content)
    true = Result.load(tmp_path / "true")
    path = tmp_path / "result.npz"
    told: dict[str, int] = {}
    for case in range(CASES * 3 // 10 // PARTS):
        path.write_bytes(damage(content, rng))
        try:
            found = Result.load(path)
        except ValueError as error:
            told[str(error)] = told.get(str(error), 0) + 1
            continue
        for name, value in vars(true).items():
            same = vars(found)[name]
            pairs = zip(value, same, strict=True) if isinstance(value, list) else [(value, same)]
            assert all(np.array_equal(one, two) for one, two in pairs), f"case {case}: {name} was changed in silence"
    assert told
    assert all(str(path) in text and "\n" not in text for text in told)


# Manifests.


def mutate(node, rng: random.Random):
    """One value somewhere in a tree of JSON replaced by something else."""
    odd = [
        None,
        True,
        -1,
        0,
        0.5,
        1e300,
        2**32,
        2**80,
        "",
        "<script>",
        "x" * 1000,
        [],
        {},
        [[]],
        {"a": {}},
        float("nan"),
        -(2**70),
    ]
    if rng.random() < 0.15 or not isinstance(node, dict | list) or not node:
        return rng.choice(odd)
    key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
    kind = rng.random()
    if kind < 0.1:
        del node[key]
    elif kind < 0.2 and isinstance(node, list):
        node.append(copying.deepcopy(node[key]))
    else:
        node[key] = mutate(node[key], rng)
    return node


@pytest.mark.parametrize("part", range(PARTS))
def test_manifests(good, plan, tmp_path, part):
    rng, expected = chance("manifest", part), Store.open(good).manifest
    out = Path(shutil.copytree(good, tmp_path / "out"))
    texts = {name: (out / name).read_bytes() for name in ("manifest.json", "manifest.copy.json")}
    for case in range(CASES // 10 // PARTS):
        begun = time.process_time()
        forged = rng.random() < 0.6
        if forged:
            forge(out, lambda manifest: mutate(manifest, rng))
        else:
            for name in rng.choice([["manifest.json"], ["manifest.copy.json"], list(texts)]):
                (out / name).write_bytes(damage(texts[name], rng))
        try:
            with contextlib.suppress(StoreError):
                store = Store.open(out)
                assert forged or store.manifest == expected, "another manifest was believed"
                list(status_lines(store))
                verify_lines(store)
                with contextlib.suppress(StoreError):
                    jb.open_sweep(out).regret.isel(run=slice(0, 3)).load()
                with StoreWriter.begin(out, plan):
                    pass
        except Exception as error:
            kept = (out / "manifest.json").read_text()[:3000]
            raise AssertionError(f"case {case} of part {part}: {type(error).__name__}: {error}\n{kept}") from error
        assert time.process_time() - begun < PATIENCE, f"case {case} of part {part} takes for ever"
        for name, text in texts.items():
            (out / name).write_bytes(text)


# Specs.

TEXT = """
rounds = 40
runs = 8
seed = 3
record = [10, 20]
control_variates = true
[[learners]]
name = "bobw"
max_delay = "oracle"
grid = { factor = [24.0, 1.0] }
[[learners]]
name = "bold"
capacity = "oracle"
base = { name = "tsallis-inf", estimator = "rv" }
label = "copies"
[[losses]]
name = "corrupted"
base = { name = "bernoulli", means = [0.3, 0.5] }
budget = 10.0
[[losses]]
name = "bernoulli"
means = { file = "means.csv" }
[[delays]]
name = "arm-dependent"
laws = [{ name = "fixed", delay = 1 }, { name = "geometric", mean = 2.0, bound = 8 }]
[[delays]]
name = "trace"
delays = [1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1]
"""
WORDS = [
    "-1",
    "0",
    "1e9",
    "nan",
    "inf",
    '"oracle"',
    '""',
    "[]",
    "{}",
    "true",
    "[[0.5]]",
    "2024-01-01",
    "1e400",
    '"a:b"',
    "[1, [2]]",
    "999999999",
]


def misspell(text: str, rng: random.Random) -> str:
    """A value, a name or a line replaced, doubled, left out or damaged."""
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    kind = rng.random()
    if kind < 0.45 and "=" in lines[at]:
        lines[at] = f"{lines[at].partition('=')[0]}= {rng.choice(WORDS)}"
    elif kind < 0.55:
        del lines[at]
    elif kind < 0.65:
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif kind < 0.75:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        return damage(text.encode("utf-8", "surrogateescape"), rng).decode("utf-8", "surrogateescape")
    return "\n".join(lines)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_specs(tmp_path, part):
    rng = chance("spec", part)
    (tmp_path / "means.csv").write_text("0.2,0.4")
    path = tmp_path / "spec.toml"
    wrong = 0
    for case in range(CASES // 10 // PARTS):
        text = TEXT
        for _ in range(rng.choice([1, 1, 2])):
            text = misspell(text, rng)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        begun = time.process_time()
        try:
            Plan.make(path)
        except SpecError:
            wrong += 1
        except Exception as error:
            raise AssertionError(f"case {case} of part {part}: {type(error).__name__}: {error}\n{text}") from error
        assert time.process_time() - begun < PATIENCE, text
    assert wrong > 0


# Traces and logs: without a checksum, another number is another trace; but nothing else may happen.

ROWS = "who,shown,bought\n" + "".join(
    f"{'ab'[t % 2]},{1700000000 + 7 * t},{1700000000 + 9 * t if t % 3 else ''}\n" for t in range(40)
)
DATES = "who,shown,bought\n" + "".join(f"a,2026-03-28T23:{t:02d}:00.{t:03d}Z,2026-03-29T01:{t:02d}:00Z\n" for t in range(40))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_traces_and_logs(tmp_path, part):
    rng = chance("trace", part)
    path = tmp_path / "log.csv"
    told = 0
    for case in range(CASES // 10 // PARTS):
        text = rng.choice([ROWS, DATES])
        lines = text.splitlines(keepends=True)
        if rng.random() < 0.3:
            at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        content = damage("".join(lines).encode(), rng)
        path.write_bytes(content)
        for read, options in ((jb.load_trace, {}), (jb.load_log, {"arm": "who", "window": "1h"})):
            said = ""
            try:
                found = read(path, action="shown", feedback="bought", **options)
                delays = np.asarray(found.delays if read is jb.load_trace else found.trace.delays)
                assert (delays >= 0).all(), f"case {case} of part {part}"
            except ValueError as error:
                said = str(error)
            except Exception as error:
                raise AssertionError(f"case {case} of part {part}: {type(error).__name__}: {error}\n{content!r}") from error
            told += bool(said)
            assert not said or (said.startswith(read.__name__) and "\n" not in said), f"case {case} of part {part}: {said}"
    assert told > 0
