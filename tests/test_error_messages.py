# pyright: reportArgumentType=false
"""Error messages of Python calls (CALLS) and of the command line (LINES), one row each, sorted by name.

A row has the call, the message that must appear, and for the command line the exit status. Nothing is left in the folder.
"""

import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.fields import pytree_dataclass
from jaxbandit.cli import app
from jaxbandit.sweeps import SpecError
from jaxbandit.sweeps.plan import Plan
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
# name, call, message
CALLS = [
    ("a deviation of 1e39", lambda: simulate(losses=L.ClippedNormal([0.3, 0.5], deviation=1e39)), "deviation must be a number, 100 at"),
    ("a factor of 1e38", lambda: simulate(jb.BestOfBothWorlds(4, factor=1e38)), "factor must be a number, 1000000 at most"),
    ("a field of another", lambda: L.Bernoulli(reward=[0.3]), r"Bernoulli\(reward=\[0.3\]\): .* did you mean 'rewards'"),
    ("a law of one's own with negative delays", lambda: simulate(delays=Backwards()), r"delays=Backwards\(…\): draw.* gives -6; a delay is 0 or more rounds"),
    ("a learner that is not there", lambda: jb.REGISTRY["mzs23"], "there is no such learner; did you mean 'mzs24'"),
    ("a learner too many runs ahead", lambda: rollout(first_run=2**32), r"run ids must stay below 2\*\*32"),
    ("a list for a number", lambda: simulate(jb.BestOfBothWorlds(4, factor=[1.0, 2.0])), NO_NUMBERS),
    ("a matrix for a number", lambda: simulate(jb.BestOfBothWorlds(4, factor=np.zeros((2, 2)))), NO_NUMBERS),
    ("a measurement's class", lambda: simulate(measure=[jb.measure.Pulls]), r"measure=\[Pulls\]: give a measurement, not its class: Pulls\("),
    ("a misspelled field", lambda: jb.BestOfBothWorlds(max_dealy=3), "there is no field 'max_dealy'; did you mean 'max_delay'"),
    ("a name for a learner", lambda: simulate("mzs22"), "learner='mzs22': give a learner such as"),
    ("a scale of 0", lambda: simulate(jb.TsallisINF(scale=0.0)), "scale must be a number, 0.001 or more"),
    ("a start beyond int32", lambda: simulate(losses=L.Switching(MEANS, starts=[1, 2**31])), "1073741824 at most; 2147483648 is not"),
    ("a table of one row", lambda: simulate(losses=L.Table([0.3, 0.5])), "losses must be a table with a row of K numbers for each round"),
    ("a trace in Latin-1", lambda: read_trace("start,end,é\n1,2,3\n".encode("latin-1")), "is not UTF-8"),
    ("a trace in UTF-16", lambda: read_trace("start,end\n1,2\n".encode("utf-16")), "the file is UTF-16; save it as UTF-8"),
    ("a trace with a column twice", lambda: read_trace(b"start,start,end\n1,1,2\n"), "there are 2 columns 'start'; rename all but one"),
    ("an infinite start", lambda: simulate(losses=L.Switching(MEANS, starts=[1, np.inf])), "1073741824 at most; inf is not"),
    ("ArmDependent([])", lambda: simulate(delays=D.ArmDependent([])), "laws must be a list of delay models, one for each arm"),
    ("Bursts([3])", lambda: simulate(delays=D.Bursts([3])), r"every=\[3\]\): every must be a number"),
    ("corruption after 2**32", lambda: simulate(losses=L.Corrupted(GAME["losses"], 1.0, start=2**32)), "start must be a whole number"),
    ("corruption at infinity", lambda: simulate(losses=L.Corrupted(GAME["losses"], 1.0, start=np.inf)), r"start=inf"),
    ("Fixed(10**8)", lambda: simulate(delays=D.Fixed(10**8), rounds=10**8, record=1), "134217728 rounds a block of .* GB of memory"),
    ("gaps of two arms", lambda: simulate(jb.AsymmetricBestOfBothWorlds(4, gaps=[0.0, 0.1])), "2 numbers for 3 arms; give one for"),
    ("hybrid_argmin with inf", lambda: jb.hybrid_argmin([0.0, np.inf], 1.0, 1.0), r"losses=\[0.0, inf\]: the losses are finite numbers"),
    ("hybrid_argmin with NaN", lambda: jb.hybrid_argmin([0.0, np.nan], 1.0, 1.0), r"losses=\[0.0, nan\]"),
    ("hybrid_argmin with tsallis 0", lambda: jb.hybrid_argmin([0.0, 1.0], 0.0, 1.0), "tsallis=0.0: .*above 0"),
    ("negative records", lambda: rollout(rounds=jnp.int32(10), record=[-5, 3]), r"record=\[-5, 3\]: .*ascending"),
    ("None among learners", lambda: sweep(learners=[None]), r"learners\[0\]: learner=None: give a learner such as"),
    ("None for a number", lambda: simulate(jb.BestOfBothWorlds(4, factor=None)), NO_NUMBERS),
    ("one mean", lambda: simulate(losses=L.Bernoulli(0.3)), r"means=0.3\): means must be a list of K numbers"),
    ("only=[]", lambda: tune(only=[]), r"only=\[\]: give a list of hyperparameters"),
    ("ragged means", lambda: simulate(losses=L.Bernoulli([[0.3], [0.5, 0.6]])), "means must be a list of K numbers"),
    ("record=0", lambda: rollout(record=0), "record=0: record 1 to 1,000,000 rounds"),
    ("records past the rounds", lambda: rollout(rounds=jnp.int32(10), record=[1000]), r"record=\[1000\]: .*between 1 and rounds=10"),
    ("Result.load of .npy", lambda: loaded(b"\x93NUMPY\x01\x00" + b"v" * 40), "this is not a file written by Result.save"),
    ("Result.load of an odd header", lambda: loaded(b"PK\x03\x04odd"), "this is not a file written by Result.save"),
    ("Result.save over a folder", saved_over_a_folder, "existing: this is a folder; give the name of a file"),
    ("rounds=100.0", lambda: rollout(rounds=100.0), "rounds=100.0: the number of rounds is a whole number"),
    ("rounds=1e4", lambda: rollout(rounds=1e4), "whole number from 1 to 2\\*\\*30; write 10000$"),
    ("shared='no'", lambda: simulate(delays=D.UniformRandom(0, 3, shared="no")), "shared is True or False"),
    ("simulate in grad", lambda: traced(jax.grad, 2.0), INSIDE),
    ("simulate in jit", lambda: traced(jax.jit, 2.0), INSIDE),
    ("simulate in vmap", lambda: traced(jax.vmap, jnp.ones(2)), INSIDE),
    ("skipping='no'", lambda: simulate(jb.ZimmertSeldin(skipping="no")), "skipping is True or False"),
    ("tune(optimizer='adam')", lambda: tune(optimizer="adam"), "optimizer='adam': give an optimizer of optax, such as optax.adam"),
    ("unsigned records", lambda: simulate(record=np.array([60, 50], np.uint32)), r"record=\[60, 50\]: .*ascending"),
    ("unsorted records", lambda: rollout(rounds=jnp.int32(10), record=[5, 3]), r"record=\[5, 3\]: .*ascending"),
    ("unsorted records, traced", lambda: jax.jit(lambda t: rollout(rounds=t, record=[5, 3]).regret)(9), r"record=\[5, 3\]: .*ascending"),
    ("x64 before resume", resumed_in_float64, "made in float32 and this simulation is in float64; set jax_enable_x64 as it was"),
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


# name, command line, spec, exit status, message
LINES = [
    ("300 nested bases", "sweep spec.toml --out out", edited('name = "uniform"', test_messages.nested(300)), 2, "more than 16 deep"),
    ("a grid value twice", "sweep spec.toml --out out", edited('"uniform"', '"exp3"\ngrid = { scale = [1, 1.0] }'), 2, "twice"),
    ("a header that claims 7 TB", "sweep spec.toml --out out", edited("[0.3, 0.5]", '{ file = "huge.npy" }'), 2, "cannot be read"),
    ("a module that raises", "sweep spec.toml --out out --imports", edited('"uniform"', '"raises:X"'), 2, "the module is unhappy"),
    ("a module without --imports", "run spec.toml", edited('"uniform"', '"right:Right"'), 2, "--imports"),
    ("demo --out FILE", "demo --out file", SPEC, 2, "--out file: .*file is a file; give a folder"),
    ("NUL in a name", "sweep spec.toml --out out", edited("[0.3, 0.5]", r'{ file = "a\u0000.npy" }'), 2, "embedded null"),
    ("rounds that are no whole number", "sweep spec.toml --out out --rounds 20.9", SPEC, 2, "'20.9' is not a whole number"),
    ("run --out .", "run spec.toml --out .", SPEC, 2, "--out .: this is a folder; give the beginning of a file name"),
    ("runs that are no whole number", "sweep spec.toml --out out --runs 1.5", SPEC, 2, "--runs: '1.5' is not a whole number"),
    ("sweep --out FILE", "sweep spec.toml --out file", SPEC, 2, "--out file: .*file is a file; give a folder"),
    ("tune: no such file", "tune nowhere.toml", SPEC, 2, "nowhere.toml.* no such file"),
    ("tune: nothing to tune", "tune spec.toml", edited("runs = 4\n", ""), 2, "it has no hyperparameter"),
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
    """Each of K arms may have d + 1 outstanding observations."""
    (cell,) = Plan.make(jb.Spec(rounds=9, runs=4, learners=[jb.QPMD(jb.TsallisINF(), "oracle")], losses=[GAME["losses"]], delays=[D.Fixed(3)])).cells  # type: ignore[arg-type]  # fmt: skip
    assert cell.learner.capacity == 3 * 4
