"""The GPU's own kernels, played on this CPU, against the library's block: they are what a user with a GPU would start.

A kernel that reads a row of another round, or a run's number after another thread has overwritten it, or a loop of another length gives
other regrets here. Needs the extra ``compilers``.
"""

import ctypes
import fractions
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.accelerators import compilers
from jaxbandit.learners.tsallis import TsallisINF

pytest.importorskip("llvmlite", reason="playing a GPU's kernels needs llvmlite: pip install 'jaxbandit[compilers]'")
sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "accelerators"))
import emulate
import kernels

FIXED, GEOMETRIC = "fixed(10)", "geometric(mean=10.0, bound=127)"
# With the factors of their papers the first and the third play nearly uniformly for far longer than here.
LEARNERS = [
    "bobw(max_delay=10, factor=1.0)",
    "tsallis-inf(estimator='rv')",
    "robust-bobw(factor=0.1)",
    "delayed-exp3",
    "ucb1",
    "thompson",
]
WINDOW = "sliding-window-ucb(window=200)"  # overwrites a row of its memory in every round
CERTAIN = {"ucb1", "thompson", WINDOW}  # these play one arm for certain: rounding decides nothing
# This one plays nearly uniformly: probabilities are a unit or two in their last place apart, and a draw may still fall into that gap
# (T4, ten arms, fixed delays: run 227 in round 481, 4e-8 from the end of an arm's cell; 0.07 such runs were to be expected).
UNIFORM, UNITS = "bobw(max_delay=10)", 5e-7
# Two programs in float32 drift apart: estimates of the size of 1,000 are rounded to 6e-5 in each of 1,000 additions, and a probability
# moves by some 0.05 of that.
APART, TYPICAL = 5e-4, 5e-5  # probabilities, in any run and in half of them
# Ten arms take the compiler several times as long as four.
CASES = [(target, learner, 4, delays) for target in ("t4", "h100") for learner in LEARNERS for delays in (FIXED, GEOMETRIC)]
CASES += [("t4", "bobw(max_delay=10)", 10, FIXED), ("h100", "bobw(max_delay=10)", 10, GEOMETRIC)]
CASES += [("t4", WINDOW, 4, FIXED), ("t4", WINDOW, 4, GEOMETRIC)]
ONE = ("t4", LEARNERS[0], 4, FIXED)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.thorough if case == ONE else pytest.mark.slow) for case in CASES]
)
def test_the_gpus_kernels_play_the_librarys_runs(case):
    target, learner, arms, delays = case
    if message := compilers.missing(target):
        pytest.skip(message)
    try:
        found = emulate.compare(target, learner, delays, arms=arms, rounds=1000, runs=512)
    except emulate.NoTexts as reason:
        pytest.skip(str(reason))
    assert found.kernels > 3 * 1000
    assert found.library.std() > 0  # runs differ: agreement says something
    assert np.median(found.differences) < 1e-5
    assert found.drift.max() < APART
    assert np.median(found.drift) < TYPICAL
    # Every run is within 0.1 %, or rounding decided for it: a number was on either side of its threshold, and close to it.
    parted = {one.run: one for one in found.partings}
    assert set(np.flatnonzero(found.differences >= 1e-3)) <= set(parted)
    assert all(one.either_side and one.distance < APART for one in found.partings)
    # As many runs draw another arm as chance will have it, given how far the two cells are apart: not more.
    assert sum(one.decided == "arm" for one in found.partings) <= found.chance + 5 * found.chance**0.5
    if learner in CERTAIN:
        assert not parted
    if learner == UNIFORM:
        assert found.drift.max() < UNITS
        assert found.differences.max() < 1e-3  # every run


def test_where_runs_part_and_whether_rounding_decided():
    """Two arms, four runs: one never parts; one is drawn in a gap of rounding; one is not; one takes an arm for a common one."""
    x = np.full((40, 2, 4), 0.5)
    y = x + 1e-6 * np.array([1, -1])[None, :, None]
    arm, baseline, uniform = np.zeros((40, 4), int), np.full((40, 2, 4), 0.5), np.full((40, 4), 0.4)
    there, other = arm.copy(), baseline.copy()
    uniform[29, 1], there[29:, 1] = 0.5 + 5e-7, 1  # the arms' cells end at 0.5 and at 0.500001
    uniform[9, 2], there[9, 2] = 0.49, 1
    x[31, 1, 3], y[31, 1, 3], other[31:, 1, 3] = 0.5, 0.499999, 0
    ours, theirs = ({"probabilities": p, "arm": a, "baseline": b} for p, a, b in ((x, arm, baseline), (y, there, other)))
    found, drift, chance = emulate.find_partings(TsallisINF("rv"), ours, theirs, uniform)
    assert [(one.run, one.round, one.decided, one.either_side) for one in found] == [
        (1, 30, "arm", True),
        (2, 10, "arm", False),
        (3, 32, "baseline", True),  # 16/32 is between the two
    ]
    assert [round(1e6 * one.distance, 2) for one in found] == [0.5, 10001.0, 1.0]
    np.testing.assert_allclose(drift, 1e-6)
    np.testing.assert_allclose(chance, 1e-6 * (40 + 30 + 10 + 32), rtol=0.01)


SUM = """
define ptx_kernel void @sum(ptr %in, ptr %out) {
  %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %b, 64
  %place = add i32 %first, %t
  %from = getelementptr float, ptr %in, i32 %place
  %s0 = load float, ptr %from
STEPS
  %to = getelementptr float, ptr %out, i32 %place
  store float %s5, ptr %to
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32) #1
attributes #1 = { nounwind }
"""


def play(text: str, name: str, *arrays: np.ndarray, blocks: int, threads: int) -> None:
    kernels.Kernel(text, name)([array.ctypes.data for array in arrays], blocks, threads)


def test_threads_that_ask_each_other_for_numbers():
    steps = [
        f"  %o{i} = tail call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %s{i}, i32 {16 >> i}, i32 31)\n  %s{i + 1} = fadd float %s{i}, %o{i}"
        for i in range(5)
    ]
    numbers, out = np.arange(192, dtype=np.float32) ** 2, np.zeros(192, np.float32)
    play(SUM.replace("STEPS", "\n".join(steps)), "sum", numbers, out, blocks=3, threads=64)
    assert np.array_equal(out[::32], numbers.reshape(-1, 32).sum(1))  # a warp's first thread has the sum; all exact in float32


ROUND = """
define ptx_kernel void @round(ptr %in, ptr %out) {
  %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p0 = getelementptr [3 x float], ptr %in, i32 %t, i32 0
  %p1 = getelementptr [3 x float], ptr %in, i32 %t, i32 1
  %p2 = getelementptr [3 x float], ptr %in, i32 %t, i32 2
  %a = load float, ptr %p0
  %b = load float, ptr %p1
  %c = load float, ptr %p2
  %down = tail call float @llvm.nvvm.fma.rm.f(float %a, float %b, float %c)
  %zero = tail call float @llvm.nvvm.add.rz.f(float %a, float %c)
  %inside = tail call float @llvm.nvvm.saturate.f(float %c)
  %q0 = getelementptr [3 x float], ptr %out, i32 %t, i32 0
  %q1 = getelementptr [3 x float], ptr %out, i32 %t, i32 1
  %q2 = getelementptr [3 x float], ptr %out, i32 %t, i32 2
  store float %down, ptr %q0
  store float %zero, ptr %q1
  store float %inside, ptr %q2
  ret void
}
"""


def test_the_gpus_roundings():
    draw = np.random.default_rng(0)
    given = (draw.normal(size=(200, 3)) * 10.0 ** draw.integers(-3, 4, (200, 3))).astype(np.float32)
    out = np.zeros_like(given)
    play(ROUND, "round", given, out, blocks=1, threads=200)
    up, fraction = np.float32(np.inf), lambda x: fractions.Fraction(float(x))
    for (a, b, c), (down, zero, inside) in zip(given, out, strict=True):
        exact = fraction(a) * fraction(b) + fraction(c)
        assert fraction(down) <= exact < fraction(np.nextafter(down, up))
        exact = fraction(a) + fraction(c)
        away = np.nextafter(zero, up if zero > 0 else -up)
        assert abs(fraction(zero)) <= abs(exact) < abs(fraction(away))
        assert inside == min(max(c, 0), 1)


def test_what_is_not_played_is_said():
    with pytest.raises(kernels.NoEmulation, match=r"a kernel calls nvvm\.vote\.all"):
        kernels.for_this_cpu("define ptx_kernel void @k() {\n  %x = call i1 @llvm.nvvm.vote.all(i1 true)\n  ret void\n}")
    with pytest.raises(kernels.NoEmulation, match="double"):
        kernels.for_this_cpu("define ptx_kernel void @k(double %x) {\n  ret void\n}")


def test_numbers_of_the_newer_notation():
    text = "define ptx_kernel void @k(ptr %out) {\n  store float VALUE, ptr %out\n  ret void\n}"
    for written, value in {"f0x3FC00000": 1.5, "-inf": -np.inf, "1.000000e-01": np.float32(0.1), "f0xBE055027": None}.items():
        out = np.zeros(1, np.float32)
        play(text.replace("VALUE", written), "k", out, blocks=1, threads=1)
        assert out[0] == (ctypes.c_float.from_buffer_copy(bytes.fromhex("BE055027")[::-1]).value if value is None else value)
    bits = np.zeros(1, np.uint32)
    for written, expected in {"-nan(0x3FFFFF)": 0xFFFFFFFF, "+nan(0x1)": 0x7FC00001}.items():
        play(text.replace("VALUE", written), "k", bits, blocks=1, threads=1)
        assert bits[0] == expected
