"""The GPU's own program on this CPU: a block as XLA compiles it for a T4 or H100, kernel by kernel, beside the library's block.

    python experiments/accelerators/emulate.py t4 'bobw(max_delay=10)' 'fixed(10)'
    python experiments/accelerators/emulate.py h100 thompson 'geometric(mean=10.0, bound=127)' --rounds 1000

Compiles the program that ``jb.simulate`` would start on the GPU, reads from the compiler's dump in which order it starts which
kernel on which memory, and does that with the kernels' LLVM IR (``kernels.py``). Both programs round, each in its way, and where a
rule jumps (which arm is drawn; whether its probability is above a threshold) rounding may decide it: runs that go another way are
listed, with the number that decided. Needs the compilers and llvmlite (``make compilers``).
"""

import argparse
import dataclasses
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from kernels import Kernel, NoEmulation

from experiments.accelerators import compilers
from jaxbandit._core import randomness
from jaxbandit._core.fields import float_dtype, pytree_dataclass
from jaxbandit._engine import blocks
from jaxbandit._engine.choose import choose_execution, fitted
from jaxbandit._engine.game import Game
from jaxbandit.cli.doctor import game_of
from jaxbandit.learners.base import Learner
from jaxbandit.learners.tsallis import TsallisINF
from jaxbandit.measure import RoundInfo

DTYPES = {"pred": np.bool_, "s32": np.int32, "u32": np.uint32, "f32": np.float32}
ALIGNED = 256  # bytes
ROUNDED = 2.0**-22  # how far a cumulative sum near 1 may be rounded off: four units in the last place
Step = Callable[[], None]
Place = tuple[str, tuple[int, ...]]  # an instruction, and which part of what it makes


class NoTexts(NoEmulation):
    """The compiler's dump has no kernels."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """How an instruction is started: ``kernel`` is empty where it is not one."""

    kind: str
    kernel: str
    blocks: int
    threads: int


class Emulation:
    """A program that was compiled for a GPU into the folder ``dump``, with memory of its own."""

    def __init__(self, dump: Path):
        self.program = compilers.Program(_only(dump, "*_gpu_after_optimizations.txt").read_text())
        self.instructions = {name: one for place in self.program.computations.values() for name, one in place.items()}
        self.callers = {
            called: one
            for one in self.instructions.values()
            for called in re.findall(r"(?:condition|body)=%?([\w.\-]+)", one.rest)
            if one.operation == "while"
        }
        self.home = {name: place for place, body in self.program.computations.items() for name in body}
        self.launches = _launches(dump)
        self.places, sizes = _memory(_only(dump, "*-buffer-assignment.txt").read_text())
        self.memory = {number: _aligned(size) for number, size in sizes.items()}
        self.texts = {
            name: text
            for text in (file.read_text() for file in dump.glob("*.ir-with-opt.ll"))
            for name in re.findall(r"define ptx_kernel void @([\w.]+)\(", text)
        }
        if not self.texts:  # jax 0.12
            raise NoTexts(f"the compiler of jax {jax.__version__} leaves no text of its kernels")
        self.kernels: dict[str, Kernel] = {}
        self.started = 0
        self.steps = self._steps(self.program.entry)

    def run(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the program returns."""
        entry = self.program.computations[self.program.entry]
        for one in entry.values():
            if one.operation == "parameter":
                self._array(one.name, ())[...] = arguments[int(one.given)]
        for name, one in self.instructions.items():
            if one.operation == "constant" and (name, ()) in self.places:
                self._array(name, ())[...] = _constant(one)
        for step in self.steps:
            step()
        (root,) = (one for one in entry.values() if one.is_root)
        count = len(_shapes(root.shape))
        return [self._array(root.name, (index,) if root.shape.startswith("(") else ()).copy() for index in range(count)]

    def _bytes(self, name: str, index: tuple[int, ...]) -> np.ndarray:
        """The memory of one part of what an instruction makes."""
        place = self._defined(name, index)
        number, offset, size = self.places[place]
        return self.memory[number][offset : offset + size]

    def _defined(self, name: str, index: tuple[int, ...]) -> Place:
        """Where the compiler says what memory a value has: at the instruction that makes it."""
        while (name, index) not in self.places:
            one = self.instructions[name]
            if one.operation == "get-tuple-element":
                found = re.search(r"index=(\d+)", one.rest)
                assert found is not None
                name, index = one.operands[0], (int(found[1]), *index)
            elif one.operation == "tuple":
                name, index = one.operands[index[0]], index[1:]
            elif one.operation in ("bitcast", "while"):  # a loop that leaves a value as it is
                name = one.operands[0]
            elif one.operation == "parameter" and self.home[name] in self.callers:
                name = self.callers[self.home[name]].operands[0]
            else:
                raise NoEmulation(f"the compiler's text does not say where {name}{list(index)} is in memory")
        return name, index

    def _array(self, name: str, index: tuple[int, ...]) -> np.ndarray:
        dtype, shape = _shapes(self.instructions[name].shape)[index[0] if index else 0]
        return self._bytes(name, index).view(dtype).reshape(shape)

    def _steps(self, computation: str) -> list[Step]:
        """What a computation does, in its order."""
        return [self._step(one) for one in self.program.computations[computation].values() if one.operation not in compilers.FREE]

    def _step(self, one: compilers.Instruction) -> Step:
        if one.operation == "while":
            return self._loop(one)
        launch = self.launches.get(one.name)
        if launch is None:
            raise NoEmulation(f"{one.operation} {one.name}: the compiler's text does not say how it is started")
        if launch.kernel:
            return self._launch(one, launch)
        if launch.kind == "kCopy" and len(one.operands) == 1:
            source, made = self._copied(one), self._array(one.name, ())
            return lambda: np.copyto(made, source.reshape(made.shape))
        raise NoEmulation(f"{one.operation} {one.name}: a step of the kind {launch.kind}")

    def _copied(self, one: compilers.Instruction) -> np.ndarray:
        """The memory that a copy copies: all of its operand, or a slice of it."""
        source, body = self._array(one.operands[0], ()), self.program.computations.get(one.called() or "", {})
        done = {each.operation for each in body.values()} - compilers.FREE
        if one.operation == "copy" or done == {"copy"}:
            return source
        if done != {"slice"}:
            raise NoEmulation(f"{one.name}: a copy with {', '.join(sorted(done))}")
        (cut,) = (each for each in body.values() if each.operation == "slice")
        ((_, shape),) = _shapes(body[cut.operands[0]].shape)
        found = re.search(r"slice=\{(.*?)\}", cut.rest)
        assert found is not None
        ends = [tuple(map(int, axis.split(":"))) for axis in re.findall(r"\[([\d:]+)\]", found[1])]
        return source.reshape(shape)[tuple(slice(*axis) for axis in ends)]

    def _loop(self, one: compilers.Instruction) -> Step:
        test, body = (self._steps(one.called(which) or "") for which in ("condition", "body"))
        (root,) = (each for each in self.program.computations[one.called("condition") or ""].values() if each.is_root)
        goes_on = self._bytes(root.name, ())

        def loop() -> None:
            while True:
                for step in test:
                    step()
                if not goes_on[0]:
                    return
                for step in body:
                    step()

        return loop

    def _launch(self, one: compilers.Instruction, launch: Launch) -> Step:
        if launch.kernel not in self.kernels:
            self.kernels[launch.kernel] = Kernel(self.texts[launch.kernel], launch.kernel)
        kernel, count = self.kernels[launch.kernel], len(_shapes(one.shape))
        made: list[tuple[int, ...]] = [(index,) for index in range(count)] if one.shape.startswith("(") else [()]
        memory = [*(self._bytes(name, ()) for name in one.operands), *(self._bytes(one.name, index) for index in made)]
        addresses = [part.ctypes.data for part in memory]

        def start() -> None:
            self.started += 1
            kernel(addresses, launch.blocks, launch.threads)

        return start


def _only(folder: Path, pattern: str) -> Path:
    """The largest of the files, if programs besides the one that matters were compiled."""
    return max(folder.glob(pattern), key=lambda file: file.stat().st_size)


def _aligned(size: int) -> np.ndarray:
    raw = np.zeros(size + ALIGNED, np.uint8)
    start = -raw.ctypes.data % ALIGNED
    return raw[start : start + size]


def _shapes(text: str) -> list[tuple[Any, tuple[int, ...]]]:
    found = re.findall(r"\b(pred|[suf]\d+|bf16)\[([\d,]*)\]", text)
    unknown = {dtype for dtype, _ in found} - DTYPES.keys()
    if unknown:
        raise NoEmulation(f"numbers of the type {', '.join(sorted(unknown))}")
    return [(DTYPES[dtype], tuple(int(length) for length in dims.split(",") if length)) for dtype, dims in found]


def _constant(one: compilers.Instruction) -> np.ndarray:
    ((dtype, shape),) = _shapes(one.shape)
    if "..." in one.given:
        raise NoEmulation(f"{one.name}: a constant that the compiler's text leaves out")
    words = re.findall(r"[^\s{},]+", one.given)
    named = {"true": True, "false": False}
    return np.array([named[word] if word in named else float(word) for word in words]).astype(dtype).reshape(shape)


def _launches(dump: Path) -> dict[str, Launch]:
    """How each instruction is started, by its name."""
    started = {}
    for number, kind, rest in re.findall(
        r"^\s*(\d+): (k\w+)\s+\[.*?\] ?(.*)$", _only(dump, "*thunk_sequence.txt").read_text(), re.M
    ):
        kernel = re.match(r"(\S+) grid: \[(\d+), 1, 1\] threads: \[(\d+), 1, 1\]", rest)
        started[int(number)] = Launch(kind, kernel[1], int(kernel[2]), int(kernel[3])) if kernel else Launch(kind, "", 0, 0)
    named = re.findall(r'profile_annotation: "([^"]+)"\s+thunk_id: (\d+)', _only(dump, "*thunk_metadata.txt").read_text())
    return {name: started[int(number)] for name, number in named if int(number) in started}


def _memory(text: str) -> tuple[dict[Place, tuple[int, int, int]], dict[int, int]]:
    """Where each value is: number of the allocation, first byte, bytes; and how large allocations are."""
    places: dict[Place, tuple[int, int, int]] = {}
    sizes: dict[int, int] = {}
    number = -1
    for line in text.splitlines():
        if head := re.match(r"allocation (\d+): size (\d+)", line):
            number = int(head[1])
            sizes[number] = int(head[2])
        elif value := re.match(r" value: <\d+ ([\w.\-]+)(?:\{([\d,]*)\})?(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\)", line):
            name, index, size, offset = value.groups()
            # A tuple's own memory, a list of pointers, is marked {} like nothing else: kernels do not read it.
            if index != "":
                places[name, tuple(map(int, index.split(","))) if index else ()] = number, int(offset), int(size)
    return places, sizes


@pytree_dataclass
class Decisions:
    """A measurement: what decided, in the last round, which way a run goes; and from which probabilities."""

    learner: Learner

    def init(self, num_arms: int, runs_shape: tuple[int, ...]) -> dict[str, jax.Array]:
        none = jnp.zeros((num_arms, *runs_shape), float_dtype())
        return {"arm": jnp.zeros(runs_shape, jnp.int32), "probabilities": none, "baseline": none}

    def update(self, state: dict[str, jax.Array], info: RoundInfo) -> dict[str, jax.Array]:
        x = info.probabilities
        return {"arm": info.arm, "probabilities": x, "baseline": self.learner.baseline(info.round, x)}

    def read(self, state: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return state


@dataclasses.dataclass(frozen=True)
class Parting:
    """Where a run took another way in one program than in the other."""

    run: int
    round: int
    decided: str  # "arm": which one was drawn; "baseline": whether the learner took an arm for a common one
    distance: float  # of what was compared from its threshold: in the two programs, the larger
    either_side: bool  # of the threshold, in the two programs; as far as float32 can tell


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The same runs, played by the GPU's kernels and by the library on this CPU."""

    emulated: np.ndarray  # [runs], regret
    library: np.ndarray
    partings: list[Parting]
    drift: np.ndarray  # [runs], the largest difference of two probabilities of a run before it parted, if it did
    chance: float  # how many runs were to be expected to draw another arm: how far apart the two cells of the arms are
    kernels: int  # started
    seconds: float  # that the emulation took

    @property
    def differences(self) -> np.ndarray:
        """Of each run's regret, relative."""
        return np.abs(self.emulated - self.library) / (1 + np.abs(self.library))


def find_partings(learner: Learner, ours: Any, theirs: Any, uniform: np.ndarray) -> tuple[list[Parting], np.ndarray, float]:
    """Where runs parted, how far their probabilities were apart before, and how many were to be expected to part in a draw.

    ``ours`` and ``theirs`` are readings of :class:`Decisions` for every round, ``uniform [T, runs]`` the numbers that draw arms.
    """
    other_arm = ours["arm"] != theirs["arm"]
    other_baseline = ours["baseline"] != theirs["baseline"]
    differs = other_arm | other_baseline.any(1)
    x, y = (readings["probabilities"].astype(np.float64) for readings in (ours, theirs))
    together = np.cumsum(differs, 0) - differs == 0  # up to and with the round in which a run parts
    drift = np.where(together, np.abs(x - y).max(1), 0).max(0)
    cells = [np.cumsum(each, 1) / each.sum(1, keepdims=True) for each in (x, y)]
    chance = np.where(together, np.abs(cells[0] - cells[1]).sum(1), 0).sum()
    found = []
    for run in np.flatnonzero(differs.any(0)):
        index = int(differs[:, run].argmax())
        if other_arm[index, run]:
            # The arm that is less was drawn where the number is below the end of its cell, the other one where it is not.
            arm = min(ours["arm"][index, run], theirs["arm"][index, run])
            decided, gaps = "arm", [uniform[index, run] - each[index, arm, run] for each in cells]
        else:
            assert isinstance(learner, TsallisINF)
            arm = other_baseline[index, :, run].argmax()
            decided, gaps = "baseline", [each[index, arm, run] - float(learner.threshold) / (index + 1) for each in (x, y)]
        low, high = sorted(gaps)
        either_side = bool(low <= ROUNDED and high >= -ROUNDED)
        found.append(Parting(int(run), index + 1, decided, max(abs(low), abs(high)), either_side))
    return found, drift, float(chance)


def compare(target: str, learner: str, delays: str, *, arms: int = 10, rounds: int = 1000, runs: int = 512) -> Agreement:
    """Both ways of a game of coins, for so many rounds; ``runs`` are filled up to the GPU's smallest block."""
    game, it = game_of(learner, arms, delays, runs), compilers.TARGETS[target]
    game = dataclasses.replace(game, measure=(Decisions(game.learner),))
    execution = choose_execution(game, it.platform, it.memory)
    player, there = fitted(game, execution)
    there: Game = dataclasses.replace(there, runs=np.arange(execution.block, dtype=np.uint32))

    def program(game: Game, state: Any, done: jax.Array, record: jax.Array):
        return player.advance(game, state, done, record)

    arguments = (there, blocks.start(player, there), np.int32(0), np.array([rounds], np.int32))
    tree = jax.tree.structure(jax.eval_shape(program, *arguments))
    with tempfile.TemporaryDirectory() as dump:
        # Parameters that are not used stay, so that the numbers of parameters are those of the leaves.
        made = jax.jit(program, keep_unused=True)
        compilers.compile_for(target, made, arguments, dump)
        emulation = Emulation(Path(dump))

    def played(state: Any, done: int, last: int) -> Any:
        given = (there, state, np.int32(done), np.array([last], np.int32))
        return jax.tree.unflatten(tree, emulation.run([np.asarray(leaf) for leaf in jax.tree.leaves(given)]))

    begun = time.perf_counter()
    whole = played(arguments[1], 0, rounds)[1].regret[0, :runs]  # in chunks, as a user plays them
    seconds, kernels = time.perf_counter() - begun, emulation.started
    state, readings, regret = arguments[1], [], whole
    for done in range(rounds):  # and once more with a stop after every round, to see where runs part
        state, records = played(state, done, done + 1)
        regret = records.regret[0, :runs]
        readings.append({name: value[0, ..., :runs] for name, value in records.measured.items()})
    if not np.array_equal(regret, whole):
        raise NoEmulation("a stop after every round changes the bits: what is traced is not what was played")
    each = np.arange(1, rounds + 1, dtype=np.int32)
    own = choose_execution(game, "cpu")
    own_player, own_game = fitted(game, dataclasses.replace(own, one_function=False))
    assert runs % own.block == 0
    library = []
    for first in range(0, runs, own.block):
        here = dataclasses.replace(own_game, runs=np.arange(first, first + own.block, dtype=np.uint32))
        begin = blocks.start(own_player, here)
        library.append(blocks.advance(own_player, here, begin, np.int32(0), each, probabilities=False)[1])
    beside = jax.tree.map(lambda *parts: np.concatenate(parts, -1), *library)
    ours = {name: np.stack([one[name] for one in readings]) for name in readings[0]}
    keys = randomness.fold(game.streams[randomness.PLAY], each[:, None])
    uniform = randomness.uniform(randomness.fold(keys, np.arange(runs, dtype=np.uint32)[None]).first, game.grain)
    parted = find_partings(game.learner, ours, beside.measured, np.asarray(uniform, np.float64))
    return Agreement(whole, beside.regret[-1], *parted, kernels, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[name for name, one in compilers.TARGETS.items() if one.platform == "gpu"])
    parser.add_argument("learner")
    parser.add_argument("delays")
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=512)
    given = parser.parse_args()
    if message := compilers.missing(given.target):
        parser.exit(1, message + "\n")
    found = compare(given.target, given.learner, given.delays, arms=given.arms, rounds=given.rounds, runs=given.runs)
    print(
        f"{given.target}, {given.learner}, {given.delays}: {given.rounds} rounds of {given.runs} runs, {found.kernels} kernels, {found.seconds:.1f} s"
    )
    print(f"mean regret {found.emulated.mean():.4f} by the GPU's kernels, {found.library.mean():.4f} by the library")
    outside = found.differences >= 1e-3
    print(f"runs within 0.1 %: {np.sum(~outside)}; largest difference {found.differences.max():.3g}")
    print(
        f"probabilities, until a run parts: {np.median(found.drift):.2g} apart at most in half of the runs, {found.drift.max():.2g} in all"
    )
    print(f"{len(found.partings)} runs part; {found.chance:.1f} were to be expected to in drawing an arm")
    for one in found.partings:
        sides = "on either side of" if one.either_side else "NOT on either side of"
        print(f"  run {one.run} in round {one.round}: {one.decided}, {sides} the threshold, {one.distance:.2g} from it")


if __name__ == "__main__":
    main()
