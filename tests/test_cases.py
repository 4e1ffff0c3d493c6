# pyright: reportArgumentType=false
"""The cases that a hostile tester brought, one row each, by number: what is called, what must be said, and that nothing is left behind.

Rows of CALLS are Python, rows of LINES the command line (with exit status). What needs more of a stage, such as a store that is damaged
first, has a test of its own, which ELSEWHERE names. Further tables: see :func:`test_there_are_enough`.
"""

import ast
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli import app
from jaxbandit.pytrees import pytree_dataclass
from jaxbandit.sweeps import SpecError
from jaxbandit.sweeps.plan import Plan
from tests import test_bad_input, test_logs
from tests.cli import test_commands, test_tune
from tests.delays import test_traces
from tests.sweeps import test_messages
from tests.sweeps.examples import everything

D, L, KEY = jb.delays, jb.losses, jax.random.key(0)
GAME = {"losses": L.Bernoulli([0.3, 0.5, 0.6]), "delays": D.Fixed(3), "rounds": 60, "key": KEY}
MEANS = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]


def simulate(learner=None, **changes):
    return jb.simulate(learner or jb.Uniform(), **{**GAME, "runs": 4, **changes})


def rollout(**changes):
    return jb.rollout(jb.Uniform(), **{**GAME, **changes})


def tune(**changes):
    return jb.tune(jb.BestOfBothWorlds(3), **{**GAME, "rounds": 20, "runs": 8, "steps": 1, "fresh_runs": 8, **changes})


def sweep(**changes):
    spec = {"rounds": 9, "runs": 4, "learners": [jb.Uniform()], "losses": [GAME["losses"]], "delays": [GAME["delays"]], **changes}
    return jb.sweep(jb.Spec(**spec), "out")


def traced(transform, *arguments):
    """``simulate`` with a number that JAX traces."""
    return transform(lambda factor: simulate(jb.BestOfBothWorlds(3, factor=factor)).regret[-1].mean())(*arguments)


def resumed_in_float64():
    first = simulate()
    with jax.enable_x64(True):
        return simulate(rounds=80, resume=first)


def loaded(content: bytes):
    Path("file.npz").write_bytes(content)
    try:
        jb.Result.load("file.npz")
    finally:
        Path("file.npz").unlink()


def read_trace(content: bytes):
    Path("trace.csv").write_bytes(content)
    try:
        jb.load_trace("trace.csv", action="start", feedback="end")
    finally:
        Path("trace.csv").unlink()


def saved_over_a_folder():
    Path("existing").mkdir()
    try:
        result = jb.Result.load(Path(__file__).parent / "data" / "result_format_2.npz")
        result.save("existing")
    finally:
        Path("existing").rmdir()


NO_NUMBERS = r"factor=.*\): factor must be a number"
INSIDE = "simulate cannot be called inside jit, vmap or grad.*use jb.rollout"
# the case, the call, what must be said
CALLS = [
    ("5 a start beyond int32", lambda: simulate(losses=L.Switching(MEANS, starts=[1, 2**31])), "1073741824 at most; 2147483648 is not"),
    ("5 an infinite start", lambda: simulate(losses=L.Switching(MEANS, starts=[1, np.inf])), "1073741824 at most; inf is not"),
    ("5 corruption after 2**32", lambda: simulate(losses=L.Corrupted(GAME["losses"], 1.0, start=2**32)), "start must be a whole number"),
    ("5 corruption at infinity", lambda: simulate(losses=L.Corrupted(GAME["losses"], 1.0, start=np.inf)), r"start=inf"),
    ("5 unsigned records", lambda: simulate(record=np.array([60, 50], np.uint32)), r"record=\[60, 50\]: .*ascending"),
    ("8 a factor of 1e38", lambda: simulate(jb.BestOfBothWorlds(4, factor=1e38)), "factor must be a number, 1000000 at most"),
    ("8 a scale of 0", lambda: simulate(jb.TsallisINF(scale=0.0)), "scale must be a number, 0.001 or more"),
    ("8 a deviation of 1e39", lambda: simulate(losses=L.ClippedNormal([0.3, 0.5], deviation=1e39)), "deviation must be a number, 100 at"),
    ("9 records past the rounds", lambda: rollout(rounds=jnp.int32(10), record=[1000]), r"record=\[1000\]: .*between 1 and rounds=10"),
    ("9 unsorted records", lambda: rollout(rounds=jnp.int32(10), record=[5, 3]), r"record=\[5, 3\]: .*ascending"),
    ("9 negative records", lambda: rollout(rounds=jnp.int32(10), record=[-5, 3]), r"record=\[-5, 3\]: .*ascending"),
    ("9 unsorted records, traced", lambda: jax.jit(lambda t: rollout(rounds=t, record=[5, 3]).regret)(9), r"record=\[5, 3\]: .*ascending"),
    ("9 a law of one's own with negative delays", lambda: simulate(delays=Backwards()), r"delays=Backwards\(…\): draw.* gives -6; a delay is 0 or more rounds"),
    ("10 None among learners", lambda: sweep(learners=[None]), r"learners\[0\]: learner=None: give a learner such as"),
    ("10 a learner too many runs ahead", lambda: rollout(first_run=2**32), r"run ids must stay below 2\*\*32"),
    ("12 one mean", lambda: simulate(losses=L.Bernoulli(0.3)), r"means=0.3\): means must be a list of K numbers"),
    ("12 a table of one row", lambda: simulate(losses=L.Table([0.3, 0.5])), "losses must be a table with a row of K numbers for each round"),
    ("12 ragged means", lambda: simulate(losses=L.Bernoulli([[0.3], [0.5, 0.6]])), "means must be a list of K numbers"),
    ("12 simulate in jit", lambda: traced(jax.jit, 2.0), INSIDE),
    ("12 simulate in vmap", lambda: traced(jax.vmap, jnp.ones(2)), INSIDE),
    ("12 simulate in grad", lambda: traced(jax.grad, 2.0), INSIDE),
    ("12 a list for a number", lambda: simulate(jb.BestOfBothWorlds(4, factor=[1.0, 2.0])), NO_NUMBERS),
    ("12 None for a number", lambda: simulate(jb.BestOfBothWorlds(4, factor=None)), NO_NUMBERS),
    ("12 a matrix for a number", lambda: simulate(jb.BestOfBothWorlds(4, factor=np.zeros((2, 2)))), NO_NUMBERS),
    ("12 gaps of two arms", lambda: simulate(jb.AsymmetricBestOfBothWorlds(4, gaps=[0.0, 0.1])), "2 numbers for 3 arms; give one for"),
    ("12 rounds=100.0", lambda: rollout(rounds=100.0), "rounds=100.0: the number of rounds is a whole number"),
    ("12 rounds=1e4", lambda: rollout(rounds=1e4), "whole number from 1 to 2\\*\\*30; write 10000$"),
    ("12 a misspelled field", lambda: jb.BestOfBothWorlds(max_dealy=3), "there is no field 'max_dealy'; did you mean 'max_delay'"),
    ("12 a field of another", lambda: L.Bernoulli(reward=[0.3]), r"Bernoulli\(reward=\[0.3\]\): .* did you mean 'rewards'"),
    ("12 a name for a learner", lambda: simulate("mzs22"), "learner='mzs22': give a learner such as"),
    ("12 a learner that is not there", lambda: jb.REGISTRY["mzs23"], "there is no such learner; did you mean 'mzs24'"),
    ("12 a measurement's class", lambda: simulate(measure=[jb.measure.Pulls]), r"measure=\[Pulls\]: give a measurement, not its class: Pulls\("),
    ("12 record=0", lambda: rollout(record=0), "record=0: record at least 1 round"),
    ("12 x64 before resume", resumed_in_float64, "made in float32 and this simulation is in float64; set jax_enable_x64 as it was"),
    ("12 Result.load of .npy", lambda: loaded(b"\x93NUMPY\x01\x00" + b"v" * 40), "this is not a file written by Result.save"),
    ("12 Result.load of an odd header", lambda: loaded(b"PK\x03\x04odd"), "this is not a file written by Result.save"),
    ("12 Result.save over a folder", saved_over_a_folder, "existing: this is a folder; give the name of a file"),
    ("12 skipping='no'", lambda: simulate(jb.ZimmertSeldin(skipping="no")), "skipping is True or False"),
    ("12 shared='no'", lambda: simulate(delays=D.UniformRandom(0, 3, shared="no")), "shared is True or False"),
    ("12 hybrid_argmin with inf", lambda: jb.hybrid_argmin([0.0, np.inf], 1.0, 1.0), r"losses=\[0.0, inf\]: the losses are finite numbers"),
    ("12 hybrid_argmin with NaN", lambda: jb.hybrid_argmin([0.0, np.nan], 1.0, 1.0), r"losses=\[0.0, nan\]"),
    ("12 hybrid_argmin with tsallis 0", lambda: jb.hybrid_argmin([0.0, 1.0], 0.0, 1.0), "tsallis=0.0: .*above 0"),
    ("12 Fixed(10**8)", lambda: simulate(delays=D.Fixed(10**8)), "wait 134217728 rounds a block of .* GB of memory"),
    ("12 ArmDependent([])", lambda: simulate(delays=D.ArmDependent([])), "laws must be a list of delay laws, one for each arm"),
    ("12 Bursts([3])", lambda: simulate(delays=D.Bursts([3])), r"every=\[3\]\): every must be a number"),
    ("12 tune(optimizer='adam')", lambda: tune(optimizer="adam"), "optimizer='adam': give an optimizer of optax, such as optax.adam"),
    ("12 only=[]", lambda: tune(only=[]), r"only=\[\]: give a list of hyperparameters"),
    ("12 a trace in UTF-16", lambda: read_trace("start,end\n1,2\n".encode("utf-16")), "the file is UTF-16; save it as UTF-8"),
    ("12 a trace in Latin-1", lambda: read_trace("start,end,é\n1,2,3\n".encode("latin-1")), "is not UTF-8"),
    ("12 a trace with a column twice", lambda: read_trace(b"start,start,end\n1,1,2\n"), "there are 2 columns 'start'; rename all but one"),
]  # fmt: skip


@pytree_dataclass
class Backwards(jb.delays.Delays):
    """Its feedback comes before the play."""

    bound = 5

    def draw(self, t, arm, loss, noise):
        return (noise * 8).astype(jnp.int32) - 6


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("call", "said"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_calls(folder, call, said):
    with pytest.raises((ValueError, TypeError, KeyError, OSError), match=said) as caught:
        call()
    assert len(str(caught.value).strip().splitlines()) <= 1 + isinstance(caught.value, SpecError)
    assert everything(folder) == {}


SPEC = test_messages.TOML


def edited(old: str, new: str) -> str:
    assert old in SPEC
    return SPEC.replace(old, new)


# the case, the words, the spec, exit status, what must be said
LINES = [
    ("7 runs that are no whole number", "sweep spec.toml --out out --runs 1.5", SPEC, 2, "--runs: '1.5' is not a whole number"),
    ("7 rounds that are no whole number", "sweep spec.toml --out out --rounds 20.9", SPEC, 2, "'20.9' is not a whole number"),
    ("10 a module without --imports", "run spec.toml", edited('"uniform"', '"right:Right"'), 2, "--imports"),
    ("10 tune: no such file", "tune nowhere.toml", SPEC, 2, "nowhere.toml.* no such file"),
    ("10 tune: nothing to tune", "tune spec.toml", edited("runs = 4\n", ""), 2, "it has no hyperparameter"),
    ("10 demo --out FILE", "demo --out file", SPEC, 2, "--out file: .*file is a file; give a folder"),
    ("10 bench --out FILE", "bench --out file", SPEC, 2, "--out file: .*file is a file; give a folder"),
    ("11 a header that claims 7 TB", "sweep spec.toml --out out", edited("[0.3, 0.5]", '{ file = "huge.npy" }'), 2, "cannot be read"),
    ("11 NUL in a name", "sweep spec.toml --out out", edited("[0.3, 0.5]", r'{ file = "a\u0000.npy" }'), 2, "embedded null"),
    ("11 300 nested bases", "sweep spec.toml --out out", edited('name = "uniform"', test_messages.nested(300)), 2, "more than 16 deep"),
    ("12 run --out .", "run spec.toml --out .", SPEC, 2, "--out .: this is a folder; give the beginning of a file name"),
    ("12 a grid value twice", "sweep spec.toml --out out", edited('"uniform"', '"exp3"\ngrid = { scale = [1, 1.0] }'), 2, "twice"),
    ("12 a module that raises", "sweep spec.toml --out out --imports", edited('"uniform"', '"raises:X"'), 2, "the module is unhappy"),
    ("12 sweep --out FILE", "sweep spec.toml --out file", SPEC, 2, "--out file: .*file is a file; give a folder"),
    ("12 claims --only nope", "claims --out out --only nope", SPEC, 2, "--only nope: no such statement; there are .*key_lemma"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "spec", "status", "said"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_lines(folder, capsys, monkeypatch, words, spec, status, said):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Path("spec.toml").write_text(spec)
    Path("file").write_text("mine")
    for name in ("huge.npy", "raises.py", "right.py"):
        Path(name).write_bytes(test_messages.FILES[name])
    before = everything(folder)
    assert app.call(words.split()) == status
    told = capsys.readouterr()
    assert re.search(said, " ".join((told.out + told.err).split())), told
    assert "Traceback" not in told.out + told.err
    assert everything(folder) == before


def test_the_capacity_that_qpm_d_needs():
    """Case 10: plays of each of K arms may wait d + 1 rounds at once."""
    (cell,) = Plan.make(jb.Spec(rounds=9, runs=4, learners=[jb.QPMD(jb.TsallisINF(), "oracle")], losses=[GAME["losses"]], delays=[D.Fixed(3)])).cells  # type: ignore[arg-type]  # fmt: skip
    assert cell.learner.capacity == 3 * 4


# the case, and the test that shows it
ELSEWHERE = {
    "1 foreign files in incoming": "sweeps/test_layout.py::test_a_new_folder_with_an_incoming_of_the_users_own_is_refused",
    "1 a symbolic link as lock, units or report": "sweeps/test_layout.py::test_symbolic_links_are_refused",
    "2 units swapped or copied over each other": "sweeps/test_messages.py::test_commands_on_stores",
    "3 a learner edited between two calls": "sweeps/test_manifest.py::test_an_edited_learner_is_not_mixed_with_the_old_one",
    "3 an empty class that gets code": "sweeps/test_manifest.py::test_a_class_without_code_gets_some",
    "4 KL-UCB next to 0": "learners/test_precision.py::test_float32_and_float64",
    "6 another environment": "sweeps/test_manifest.py::test_another_environment",
    "6 another precision": "sweeps/test_manifest.py::test_another_precision_is_never_mixed",
    "9 runs=1 has no error": "gradients/test_estimators.py::test_one_run_tells_no_error",
    "9 Poisson(50000)": "delays/test_delays.py::test_poisson_with_a_large_mean",
    "7 dots in a name": "cli/test_commands.py::test_dots_in_a_name_stay",
    "8 results that are not finite": "sweeps/test_messages.py::test_results_that_are_not_finite_are_failed_units",
    "10 run --imports": "cli/test_commands.py::test_run_imports_what_lies_in_the_current_folder",
    "10 forked processes": "sweeps/test_messages.py::test_forked_processes_are_refused",
    "10 numbers of NumPy in a Spec": "sweeps/test_messages.py::test_numbers_of_numpy_are_numbers",
    "10 three grids of 9,999": "sweeps/test_messages.py::test_three_large_grids_are_refused_at_once",
    "10 Ctrl-C": "cli/test_commands.py::test_interrupted",
    "11 a script in a manifest": "sweeps/test_report.py::test_nothing_of_a_manifest_is_believed",
    "11 manifests of 2**32 runs and of half blocks": "sweeps/test_messages.py::test_commands_on_stores",
    "11 a small file that asks for much memory": "test_files.py::test_a_small_file_does_not_ask_for_much_memory",
    "11 permissions": "test_disks.py::test_permissions_are_those_of_any_new_file",
    "12 a byte order mark and values that print alike": "sweeps/test_messages.py::test_right_specs",
    "12 epoch nanoseconds": "delays/test_traces.py::test_times_of_many_digits_are_not_rounded",
    "12 a full disk in export": "test_disks.py::test_a_full_disk",
    "12 a platform that is not there": "cli/test_commands.py::test_a_platform_that_is_not_there",
    "12 verify after a deleted unit; a folder in place of one": "sweeps/test_messages.py::test_commands_on_stores",
    "12 an edited spec": "sweeps/test_store.py::test_edited_spec",
    "12 bit flips in a result": "test_result.py::test_damaged_files_end_in_one_sentence",
}


def test_the_tests_that_are_named_are_there():
    for case, place in ELSEWHERE.items():
        file, _, name = place.partition("::")
        tree = ast.parse((Path(__file__).parent / file).read_text())
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert name in names, (case, place)


def test_there_are_enough():
    tables = [
        CALLS,
        LINES,
        test_bad_input.WRONG,
        test_bad_input.ARGMIN,
        test_messages.SPECS,
        test_messages.CALLS,
        test_messages.STORES,
        test_commands.WRONG,
        test_commands.FAULTS,
        test_tune.WRONG,
        test_logs.WRONG_LOGS,
        test_traces.WRONG,
    ]
    assert sum(map(len, tables)) >= 300
