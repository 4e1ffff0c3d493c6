"""Manifests of strangers, and what a sweep holds on to when it is gone on with: units, code, environment."""

import dataclasses
import importlib
import json
import os
import re
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._provenance.environment import changed_settings, differences, environment, number_flags, vector_level
from jaxbandit._provenance.user_code import code_digest
from jaxbandit.results.result import Result
from jaxbandit.sweeps import MismatchError, Store, StoreError, writer
from jaxbandit.sweeps.layout import Unit
from tests.sweeps.examples import digests, forge, spec

# A unit file must be the unit of its name, on every read.


def _swap(one, two):
    one.rename(one.with_name("between"))
    two.rename(one)
    one.with_name("between").rename(two)


def _swap_cells(copy):
    cells = sorted(copy.glob("units/*"))
    _swap(cells[0], cells[1])
    return sum(len(list(cell.iterdir())) for cell in cells[:2])


def _swap_blocks(copy):
    """Two files of one cell exchanged, with the checksums in their names."""
    one, two = sorted(sorted(copy.glob("units/*"))[0].glob("*.npz"))[:2]
    digest = [file.name[-68:] for file in (one, two)]
    _swap(one, two)
    one.rename(one.with_name(one.name[:-68] + digest[1]))
    two.rename(two.with_name(two.name[:-68] + digest[0]))
    return 2


def _copy_over_neighbour(copy):
    one, two = sorted(sorted(copy.glob("units/*"))[0].glob("*.npz"))[:2]
    shutil.copy(one, two.with_name(two.name[:-68] + one.name[-68:]))
    two.unlink()
    return 1


def _copy_over_other_cell(copy):
    one, two = (sorted(cell.glob("*.npz"))[0] for cell in sorted(copy.glob("units/*"))[:2])
    shutil.copy(one, two.with_name(one.name))
    two.unlink()
    return 1


def _other_rounds(copy):
    """The right cell and runs, but other rounds: another spec's file, with the name of this one's."""
    file = sorted(copy.glob("units/*/*.npz"))[0]
    result = Result.load(file)
    _replant(file, dataclasses.replace(result, rounds=np.append(result.rounds[:-2] - 0, [59, 60])))
    return 1


def _second_file(copy):
    """A copy of a unit that claims another checksum's name: two files, one unit."""
    file = sorted(copy.glob("units/*/*.npz"))[0]
    result = Result.load(file)
    _replant(file, dataclasses.replace(result, regret=result.regret + 1), keep=True)
    return 1


def _replant(file, result, keep=False):
    import hashlib

    draft = file.parent.parent.parent / "draft"
    result.save(draft)
    digest = hashlib.sha256(draft.read_bytes()).hexdigest()
    draft.rename(file.with_name(f"{file.name[:-68]}{digest}.npz"))
    if not keep:
        file.unlink()


@pytest.mark.parametrize("change", [_swap_cells, _swap_blocks, _copy_over_neighbour, _copy_over_other_cell, _other_rounds])
def test_files_that_are_not_the_units_of_their_names(copy, whole, change):
    wrong = change(copy)
    assert len(Store.open(copy).damaged()) == wrong
    with pytest.raises(StoreError, match=r"belongs to another cell|not those of its name|other rounds"):
        jb.open_sweep(copy).regret.load()
    assert jb.sweep(spec(), copy).damaged == wrong
    assert digests(copy) == digests(whole)


def test_a_second_file_of_a_unit(copy):
    assert _second_file(copy) == len(Store.open(copy).damaged())
    assert jb.sweep(spec(), copy).damaged == 1
    assert not Store.open(copy).damaged()
    assert len(list(copy.glob("units/*/*.npz"))) == 12


def test_going_on_checks_what_it_goes_on_from(copy):
    """Rounds are raised from a state in a file that was exchanged after the sweep had checked all of them."""
    jb.sweep(spec(), copy)
    store = Store.open(copy)
    files = store.files()
    unit = next(unit for unit in files if unit.block == 0)
    with pytest.raises(StoreError, match="not those of its name"):
        store.read(unit, files[Unit(unit.cell, 1, unit.start, unit.stop)])


# The user's own code.

OWN = """
from jaxbandit import Uniform, delays
from jaxbandit._core.fields import pytree_dataclass
import functools, jax
SCALE = 2.0
LAW = delays.Fixed(3)
def helper(x):
    return x * SCALE
@jax.jit
def compiled(x):
    return x + 1
class Base(Uniform):
    def twice(self, x):
        return 2 * x
@pytree_dataclass
class Mine(Base):
    \"\"\"A learner.\"\"\"
    factor: float = 1.0
    KIND = "mine"
    def act(self, state, round):
        \"\"\"Plays.\"\"\"
        # a comment
        probabilities, memo, state = super().act(state, round)
        return probabilities * (helper(1.0) / SCALE), memo, state
    def other(self):
        return [compiled(x) for x in (1, 2)], LAW.bound
    @staticmethod
    def still(x):
        return x
    @property
    def looked_at(self):
        return self.factor
UNUSED = 1
"""

EDITS = [
    ("return x * SCALE", "return x + SCALE", True),
    ("SCALE = 2.0", "SCALE = 3.0", True),
    ("LAW = delays.Fixed(3)", "LAW = delays.Fixed(4)", True),
    ("return x + 1", "return x + 2", True),
    ("return 2 * x", "return 3 * x", True),
    ('KIND = "mine"', 'KIND = "yours"', True),
    ("        return x\n    @property", "        return -x\n    @property", True),
    ("return self.factor", "return 2 * self.factor", True),
    ("probabilities * (", "1 * probabilities * (", True),
    ("(1, 2)", "(1, 3)", True),
    ("# a comment", "# another comment", False),
    ("A learner.", "My learner.", False),
    ("Plays.", "Plays uniformly.", False),
    ("UNUSED = 1", "UNUSED = 2", False),
]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's that can be edited: ``own(text)`` returns it as a new process would import it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text):
        (tmp_path / "own_learner.py").write_text(text)
        sys.modules.pop("own_learner", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_learner")

    yield write
    sys.modules.pop("own_learner", None)


@pytest.mark.parametrize(("old", "new", "counts"), EDITS, ids=[new for _, new, _ in EDITS])
def test_code_mark_sees_edits_of_what_a_class_uses(own, old, new, counts):
    assert old in OWN
    before = code_digest(jb.BOLD(own(OWN).Mine(), 2))
    assert before == code_digest(jb.BOLD(own(OWN).Mine(), 2))
    assert (code_digest(jb.BOLD(own(OWN.replace(old, new)).Mine(), 2)) != before) == counts


def test_code_of_the_package_has_no_mark():
    things = [
        jb.Uniform(),
        jb.BOLD(jb.TsallisINF(), 3),
        jb.losses.Bernoulli([0.5]),
        jb.delays.ArmDependent((jb.delays.Fixed(1),)),
    ]
    assert [code_digest(thing) for thing in things] == [None] * 4


def test_an_edited_learner_is_not_mixed_with_the_old_one(own, tmp_path):
    def make(text):
        return spec(learners=[own(text).Mine()], losses=spec().losses[:1], runs=8)

    out = tmp_path / "out"
    jb.sweep(make(OWN), out)
    before = digests(out)
    assert jb.sweep(make(OWN.replace("UNUSED = 1", "UNUSED = 5")), out).computed == 0
    for runs in (8, 700):
        with pytest.raises(MismatchError, match="the code of 'Mine' is not the one this sweep was begun with"):
            jb.sweep(make(OWN.replace("return x * SCALE", "return 1.0 * x * SCALE")), out, runs=runs)
    assert digests(out) == before
    assert jb.sweep(make(OWN), out, runs=300).computed == 1


def test_a_class_without_code_gets_some(own):
    """The mark of an empty class is not that of no class: it would be taken for a store of before marks were kept."""
    text = "import jaxbandit as jb\n@jb.extend.pytree_dataclass\nclass Mine(jb.Uniform):\n    pass\n"
    before = code_digest(own(text).Mine())
    assert before is not None
    assert before != code_digest(own(text + "    scale = 3\n").Mine())


def test_another_python_cannot_compare_the_code(own, tmp_path):
    made = spec(learners=[own(OWN).Mine()], losses=spec().losses[:1], runs=8)
    jb.sweep(made, tmp_path / "out")
    forge(tmp_path / "out", lambda m: m["axes"]["learners"][0].update(code="2.7:0123"))
    with pytest.raises(MismatchError, match=r"begun with Python 2.7, this is 3.*--mix-environments"):
        jb.sweep(made, tmp_path / "out")
    jb.sweep(made, tmp_path / "out", mix_environments=True)
    jb.sweep(made, tmp_path / "out")


def test_a_store_without_marks_gets_them(own, tmp_path):
    made = spec(learners=[own(OWN).Mine()], losses=spec().losses[:1], runs=8)
    jb.sweep(made, tmp_path / "out")
    before = digests(tmp_path / "out")
    forge(tmp_path / "out", lambda m: m["axes"]["learners"][0].pop("code"))
    jb.sweep(made, tmp_path / "out")
    assert digests(tmp_path / "out") == before


# The environment.


def test_environment_is_recorded_whole(whole):
    (known,) = json.loads((whole / "manifest.json").read_text())["manifest"]["environments"]
    assert known == environment()
    assert known["settings"] == {}
    assert known["jaxbandit"].partition("+")[2] == known["package"][:12], "a checkout has a version of its own for each state"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"jax": "9.9"}, r"jax \S+ then, 9.9 now"),
        ({"package": "0123"}, r"\(package \w{16} then, 0123 now"),
        ({"package": "0123", "jaxbandit": "0.2.0.dev+0123"}, r"\(jaxbandit \S+ then, 0.2.0.dev\+0123 now\)"),
        ({"settings": {"jax_threefry_partitionable": False}}, "settings default then, jax_threefry_partitionable=False now"),
        ({"flags": ["--xla_cpu_max_isa=AVX"]}, "flags none then, --xla_cpu_max_isa=AVX now"),
        ({"cpu": "SSE4_2"}, r"cpu \S+ then, SSE4_2 now"),
        ({"device": "TPU v9"}, "device cpu then, TPU v9 now"),
    ],
)
def test_another_environment(copy, monkeypatch, changes, told):
    before = digests(copy)
    here = environment()
    monkeypatch.setattr(writer, "environment", lambda: {**here, **changes})
    with pytest.raises(MismatchError, match=told + ".*--mix-environments"):
        jb.sweep(spec(), copy)
    assert digests(copy) == before
    jb.sweep(spec(), copy, mix_environments=True)
    assert Store.open(copy).manifest["environments"] == [here, {**here, **changes}]


def test_another_precision_is_never_mixed(copy):
    before = digests(copy)
    with (
        jax.enable_x64(True),
        pytest.raises(MismatchError, match="begun in float32 and this process computes in float64; set jax"),
    ):
        jb.sweep(spec(), copy, mix_environments=True)
    assert digests(copy) == before


def test_versions_that_change_no_bits_are_not_compared():
    here = environment()
    assert not differences(here, {**here, "python": "3.99", "numpy": "9", "system": "other"})


def test_a_store_of_before_these_were_recorded(copy, monkeypatch):
    """It ran with JAX's own settings: those are what it must be gone on with; the processor is filled in."""
    names = ("settings", "flags", "cpu", "device")
    forge(copy, lambda m: [m["environments"][0].pop(name) for name in names])
    here = environment()
    with monkeypatch.context() as patch:
        patch.setattr(writer, "environment", lambda: {**here, "settings": {"jax_threefry_partitionable": False}})
        with pytest.raises(MismatchError, match="jax_threefry_partitionable=False now"):
            jb.sweep(spec(), copy)
    assert jb.sweep(spec(), copy).computed == 0
    assert Store.open(copy).manifest["environments"] == [here]


def test_settings_of_jax_that_are_not_its_own():
    assert changed_settings(jax.config.values) == {}
    assert changed_settings({"jax_threefry_partitionable": True, "jax_enable_x64": True}) == {}
    changed = {"jax_threefry_partitionable": False, "jax_default_matmul_precision": "highest", "jax_random_seed_offset": 3}
    assert changed_settings(changed) == changed


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ("", []),
        ("--xla_force_host_platform_device_count=8 --xla_dump_to=/tmp/x", []),
        ("--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=67108864", []),
        ("--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1,x=2", ["--xla_backend_extra_options=x=2"]),
        ("--xla_cpu_max_isa=SSE4_2  --xla_cpu_enable_fast_math", ["--xla_cpu_enable_fast_math", "--xla_cpu_max_isa=SSE4_2"]),
    ],
)
def test_flags_of_xla_that_may_change_numbers(tmp_path, flags, kept):
    assert number_flags(flags) == kept
    (tmp_path / "flags").write_text(flags)
    assert number_flags(str(tmp_path / "flags")) == kept


def test_vector_level(tmp_path):
    for line, level in (("flags : sse4_2", "SSE4_2"), ("flags : avx2 fma avx", "AVX2"), ("flags: avx512f", "AVX512"), ("", None)):
        (tmp_path / "cpuinfo").write_text(f"processor : 0\n{line}\n")
        assert vector_level(str(tmp_path / "cpuinfo")) == level
    assert vector_level(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("JAX_THREEFRY_PARTITIONABLE", "0", "jax_threefry_partitionable=False now"),
        ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2", "--xla_cpu_max_isa=SSE4_2 now"),
    ],
)
@pytest.mark.thorough
def test_going_on_in_a_process_that_is_set_otherwise(copy, variable, value, told):
    before = digests(copy)
    code = f"from tests.sweeps.examples import spec; import jaxbandit as jb; jb.sweep(spec(), {str(copy)!r}, runs=900)"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, variable: value}, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(told, done.stderr)
    assert digests(copy) == before


# Manifests of strangers.


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["cells"][0].update(id="../../../../etc"),
        lambda m: m["cells"][0].update(since=7),
        lambda m: m["cells"][0].update(since=True),
        lambda m: m["cells"][0].update(block=0.5),
        lambda m: m["cells"][0].update(block=0),
        lambda m: m["cells"][0].update(block="256"),
        lambda m: m["cells"][0].update(at=[0, 0, 1]),
        lambda m: m["cells"].pop(),
        lambda m: m.update(cells=[], axes={axis: [] for axis in m["axes"]}),
        lambda m: m["horizons"].clear(),
        lambda m: m["horizons"][0].update(rounds=1.5),
        lambda m: m["horizons"][0].update(rounds=10**400),
        lambda m: m["horizons"][0].update(record=[]),
        lambda m: m["horizons"][0].update(record=[60, 1]),
        lambda m: m["horizons"].append({"rounds": 10, "record": [10]}),
        lambda m: m.update(runs="all"),
        lambda m: m.update(runs=0),
        lambda m: m.update(runs=2**33),
        lambda m: m.update(runs=600.0),
        lambda m: m.update(seed="<script>alert(1)</script>"),
        lambda m: m.update(seed=True),
        lambda m: m.update(record=["<script>"]),
        lambda m: m.update(record=None),
        lambda m: m.update(control_variates="yes"),
        lambda m: m.pop("axes"),
        lambda m: m.update(axes=3),
        lambda m: m["axes"].update(more=[]),
        lambda m: m["axes"]["learners"][0].update(label=3),
        lambda m: m["axes"]["learners"][0].update(about=[]),
        lambda m: m["axes"]["learners"][0].update(swept="factor"),
        lambda m: m["axes"]["learners"][0].update(code=3),
        lambda m: m["environments"].clear(),
        lambda m: m["environments"][0].update(jax={"<script>": 1}),
        lambda m: m["environments"][0].pop("x64"),
        lambda m: m.update(environments="here"),
    ],
)
def test_manifests_of_strangers(copy, change):
    forge(copy, change)
    for call in (Store.open, jb.open_sweep, lambda out: jb.sweep(spec(), out)):
        with pytest.raises(StoreError, match=r"manifest.json and its copy are damaged"):
            call(copy)


@pytest.mark.parametrize(
    "text", ["", "null", "[]", '{"sha256": 1}', "[" * 100_000, '{"manifest": {}, "sha256": "' + "0" * 64 + '"}', "\x00"]
)
def test_manifests_that_are_none(copy, text):
    for name in ("manifest.json", "manifest.copy.json"):
        (copy / name).write_text(text)
    with pytest.raises(StoreError, match="damaged"):
        Store.open(copy)


def test_a_format_of_the_future(copy):
    forge(copy, lambda m: m.update(format=9))
    with pytest.raises(StoreError, match="format 9 is not known here; this version reads up to format 3"):
        Store.open(copy)


def test_a_manifest_of_four_thousand_million_runs_is_counted_not_listed(copy):
    forge(copy, lambda m: m.update(runs=2**32))
    store = Store.open(copy)
    assert sum(store.unit_counts().values()) == 4 * 2**24
    assert sum(store.done(store.files()).values()) == 12
    assert jb.open_sweep(copy).regret.isel(run=slice(0, 4)).shape == (2, 2, 1, 6, 4)


def test_linear_spacing_is_kept_and_checked(tmp_path):
    """Rejects a sweep that goes on with rounds spaced in another way, and one that forgets the spacing when rounds are raised."""
    parts = {"learners": [jb.Uniform()], "losses": [jb.losses.Bernoulli([0.2, 0.8])], "delays": [jb.delays.Fixed(1)]}
    spec = jb.Spec(rounds=40, runs=2, record=4, spacing="linear", **parts)
    jb.sweep(spec, tmp_path)
    assert jb.open_sweep(tmp_path)["round"].values.tolist() == [10, 20, 30, 40]
    with pytest.raises(MismatchError, match="spacing was linear, is log"):
        jb.sweep(dataclasses.replace(spec, spacing="log"), tmp_path)
    jb.sweep(spec, tmp_path, rounds=60)
    assert jb.open_sweep(tmp_path)["round"].values.tolist() == [10, 20, 30, 40, 45, 50, 55, 60]
    with pytest.raises(jb.sweeps.SpecError, match="spacing: 'even' is not 'log' or 'linear'"):
        jb.sweep(dataclasses.replace(spec, spacing="even"), tmp_path)
