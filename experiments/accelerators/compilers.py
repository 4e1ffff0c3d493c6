"""What the compilers for GPUs and TPUs make of a program, without the hardware: kernels, bytes, loops, an estimate of the time.

The compilers come as packages (:data:`PACKAGES`) and run on any computer. The program is compiled for a device that is described
and not there, and its text is read: an instruction of a loop's body is a kernel that is started in every turn, unless it only
names or groups what is there already.
"""

import dataclasses
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax

PACKAGES = "pip install 'jaxbandit[compilers]'"
SYNC = 20e-6  # seconds; a loop whose number of turns the host must ask for, each time
SMALL, LARGE = 2e-6, 1.2e-6  # seconds; a kernel that waits for another, on a few numbers or on vectors of runs
BANDWIDTH = 0.8  # of the memory's bandwidth that kernels reach
PASSES = 8  # turns that a loop over what arrives takes: the most plays that reach one of the runs in a round


@dataclasses.dataclass(frozen=True)
class Target:
    """A device to compile for."""

    name: str  # as the maker calls it
    platform: str  # "gpu" or "tpu"
    bandwidth: float  # bytes/s of its memory
    memory: int  # bytes
    clock: float  # Hz
    capability: tuple[int, int] = (0, 0)
    cores: int = 0
    fpus: int = 0  # per core
    threads: int = 0  # per core
    shared: int = 0  # bytes per core
    shared_block: int = 0  # bytes that a block may ask for
    cache: int = 0  # bytes


TARGETS = {
    "t4": Target("Tesla T4", "gpu", 320064e6, 15843721216, 1.59e9, (7, 5), 40, 64, 1024, 65536, 65536, 4 << 20),
    "a100": Target(
        "NVIDIA A100-SXM4-40GB", "gpu", 1555200e6, 42314694656, 1.41e9, (8, 0), 108, 64, 2048, 167936, 166912, 40 << 20
    ),
    "h100": Target(
        "NVIDIA H100 80GB HBM3", "gpu", 3352320e6, 84929347584, 1.98e9, (9, 0), 132, 128, 2048, 233472, 232448, 50 << 20
    ),
    "tpu": Target("TPU v5e", "tpu", 819e9, 16 << 30, 1.5e9),
}


class MissingCompiler(RuntimeError):
    """The compiler for a target is not installed."""


def missing(target: str) -> str | None:
    """What to install before one can compile for ``target``, as a message; None if all is there."""
    platform = TARGETS[target].platform
    if platform == "tpu":
        found = _is_installed("libtpu")
    else:
        found = _is_installed("jax_plugins") and any(_is_installed(f"jax_plugins.xla_cuda{cuda}") for cuda in (12, 13))
    if found:
        return None
    return f"compiling for {TARGETS[target].name} needs its compiler: {PACKAGES}"


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def device(target: str) -> Any:
    """A device to compile for; it cannot compute."""
    from jax.experimental import topologies

    message = missing(target)
    if message:
        raise MissingCompiler(message)
    it = TARGETS[target]
    if it.platform == "tpu":
        # libtpu asks the cloud's metadata server which machine this is, unless it is told; and lets one process alone have the TPU,
        # though several may compile.
        machine = {"SKIP_MDS_QUERY": "1", "ACCELERATOR_TYPE": "v5litepod-4", "WORKER_HOSTNAMES": "localhost"}
        for name, value in (
            {f"TPU_{key}": value for key, value in machine.items()} | {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
        ).items():
            os.environ.setdefault(name, value)
        return topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]
    return topologies.get_topology_desc(platform="cuda", target_config=_description(it), topology="1x1x1").devices[0]


def _description(it: Target) -> str:
    """A GPU as XLA's compiler wants it described (``GpuTargetConfigProto``)."""
    # Without versions of driver and runtime the compiler silently leaves some of its passes out.
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: {it.shared}
  threads_per_core_limit: {it.threads} core_count: {it.cores} fpus_per_core: {it.fpus}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {it.bandwidth:.0f} l2_cache_size: {it.cache} clock_rate_ghz: {it.clock / 1e9} device_memory_size: {it.memory}
  shared_memory_per_block_optin: {it.shared_block}
  cuda_compute_capability {{ major: {it.capability[0]} minor: {it.capability[1]} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 driver_version: "12.9.0" runtime_version: "12.9.0"
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
device_description_str: "{it.name}"
"""


def compile_for(target: str, program: Any, arguments: Any, dump: str | None = None, **static: Any) -> str:
    """The text of a program (made by ``jax.jit``) compiled for ``target``; ``dump`` is a folder for the compiler's own texts."""
    sharding = jax.sharding.SingleDeviceSharding(device(target))
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), arguments)
    options = {"xla_dump_to": dump, "xla_dump_hlo_as_text": True, "xla_dump_large_constants": True} if dump else None
    return program.lower(*shapes, **static).compile(options).as_text()


@dataclasses.dataclass(frozen=True)
class Registers:
    """What the kernels of a program take of a GPU's registers: of each number, that of the kernel with the most."""

    most: int  # for each thread
    spilled: int  # bytes of a thread that found no register and go to memory


def assembler() -> str | None:
    """NVIDIA's assembler ``ptxas``: that of the installed packages, or else the one on the path."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    found = [str(file) for folder in folders or () for file in sorted(Path(folder).glob("*/bin/ptxas"))]
    return found[0] if found else shutil.which("ptxas")


def read_registers(dump: str) -> Registers | None:
    """What the assembler says of all kernels in a folder that :func:`compile_for` dumped to; None without assembler or kernels."""
    program, files = assembler(), sorted(Path(dump).glob("*.ptx"))
    if program is None or not files:
        return None
    said = ""
    for file in files:
        architecture = re.search(r"^\.target (\w+)", file.read_text(), re.M)
        name = architecture.group(1) if architecture else "sm_75"
        done = subprocess.run(
            [program, "-v", "-O3", f"--gpu-name={name}", str(file), "-o", os.devnull], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{file}: the assembler refuses it: {done.stderr.strip()}")
        said += done.stderr
    registers, spilled = (map(int, re.findall(what, said)) for what in (r"Used (\d+) registers", r"(\d+) bytes spill stores"))
    return Registers(max(registers, default=0), max(spilled, default=0))


# Reading the text of a compiled program.

BYTES = {
    "pred": 1,
    "s8": 1,
    "u8": 1,
    "s16": 2,
    "u16": 2,
    "bf16": 2,
    "f16": 2,
    "s32": 4,
    "u32": 4,
    "f32": 4,
    "s64": 8,
    "u64": 8,
    "f64": 8,
}
FREE = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "partition-id", "replica-id"}
IN_PLACE = {"dynamic-update-slice": 1, "scatter": 2}  # the operand that holds what is written
_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")


@dataclasses.dataclass(frozen=True)
class Instruction:
    name: str
    shape: str
    operation: str
    operands: list[str]
    given: str  # between the parentheses: the operands, or a constant's value, or a parameter's number
    rest: str  # attributes
    is_root: bool

    def called(self, attribute: str = "calls") -> str | None:
        found = re.search(attribute + r"=%?([\w.\-]+)", self.rest)
        return found.group(1) if found else None

    @property
    def turns(self) -> int | None:
        """How many turns a loop takes, if the compiler knows."""
        found = re.search(r'known_trip_count":\{"n":"(\d+)"', self.rest)
        return int(found.group(1)) if found else None

    @property
    def depth(self) -> int:
        """How many loops there are from the outermost to this one, by the name that JAX gave it."""
        found = re.search(r'op_name="([^"]*)"', self.rest)
        return found.group(1).split("/").count("while") if found else 0

    @property
    def cycles(self) -> int:
        """The compiler's own estimate, which only that for TPUs gives."""
        found = re.search(r'"estimated_cycles":"(\d+)"', self.rest)
        return int(found.group(1)) if found else 0


def size_of(shape: str) -> int:
    """Bytes of a shape such as ``(f32[10,256]{1,0}, s32[])``."""
    total = 0
    for dtype, dims in re.findall(r"\b(pred|[suf]\d+|bf16)\[([\d,]*)\]", shape):
        count = BYTES[dtype]
        for length in filter(None, dims.split(",")):
            count *= int(length)
        total += count
    return total


class Program:
    """The computations of a compiled program, by name."""

    def __init__(self, text: str):
        text = re.sub(r"/\*.*?\*/", "", text)
        entry = re.search(r"^ENTRY %?([\w.\-]+)", text, re.M)
        self.entry = entry.group(1) if entry else ""
        self.computations: dict[str, dict[str, Instruction]] = {}
        for name, body in re.findall(r"^(?:ENTRY )?%?([\w.\-]+) \(.*?\) -> .*? \{\n(.*?)^\}", text, re.S | re.M):
            self.computations[name] = {one.name: one for one in map(_instruction, body.splitlines()) if one}

    def loops(self, within: str | None = None) -> list[Instruction]:
        """All loops, or those directly in one computation."""
        places: Iterable = self.computations.values() if within is None else [self.computations[within]]
        return [one for place in places for one in place.values() if one.operation == "while"]

    def traffic(self, place: dict[str, Instruction], one: Instruction) -> int:
        """Bytes that a kernel reads and writes. Of memory that it changes in place, only what it touches."""
        called = one.called()
        if one.operation != "fusion" or called is None:
            if one.operation in IN_PLACE:
                return 2 * size_of(place[one.operands[IN_PLACE[one.operation]]].shape)
            return 2 * size_of(one.shape)
        body = self.computations[called]
        total = sum(self._read(body, parameter) for parameter in body.values() if parameter.operation == "parameter")
        for root in _roots(body):
            written = body[root.operands[IN_PLACE[root.operation]]] if root.operation in IN_PLACE else root
            total += size_of(written.shape)
        return total

    def _read(self, body: dict[str, Instruction], parameter: Instruction) -> int:
        full, total = size_of(parameter.shape), 0
        for user, operand in _users(body, parameter):
            if operand == 0 and user.operation in ("dynamic-slice", "gather", "slice"):
                total += size_of(user.shape)
            elif not (operand == 0 and user.operation in IN_PLACE):
                return full
        return min(total, full)


def _instruction(line: str) -> Instruction | None:
    found = _LINE.match(line)
    if not found:
        return None
    root, name, shape, operation, rest = found.groups()
    depth, end = 1, 0
    while end < len(rest) and depth:
        depth += (rest[end] in "([{") - (rest[end] in ")]}")
        end += 1
    return Instruction(name, shape, operation, re.findall(r"%([\w.\-]+)", rest[:end]), rest[: end - 1], rest[end:], bool(root))


def _roots(body: dict[str, Instruction]) -> list[Instruction]:
    (root,) = (one for one in body.values() if one.is_root)
    roots = [body[name] for name in root.operands] if root.operation == "tuple" else [root]
    return [_behind(body, one) for one in roots]


def _behind(body: dict[str, Instruction], one: Instruction) -> Instruction:
    while one.operation == "bitcast":
        one = body[one.operands[0]]
    return one


def _users(body: dict[str, Instruction], one: Instruction) -> Iterable[tuple[Instruction, int]]:
    """Who uses a value, and as which operand; looking through what only changes its type or shape."""
    for user in body.values():
        for operand, name in enumerate(user.operands):
            if name == one.name:
                same = user.operation in ("bitcast", "reshape", "copy") and size_of(user.shape) == size_of(one.shape)
                yield from _users(body, user) if same else [(user, operand)]


@dataclasses.dataclass(frozen=True)
class Round:
    """What one round costs, as read from the loop that plays a chunk of them."""

    kernels: int  # started in a round; a loop with an unknown number of turns counts once
    bytes: int  # read and written in a round
    unknown_loops: int  # loops within the round whose number of turns only the device knows
    copies: int  # of memory larger than a few vectors of runs
    cycles: int  # the compiler's estimate, TPU only
    seconds: float  # estimated


def read_round(text: str, target: str, chunk: int, runs: int) -> Round:
    """The cost of a round in a program whose rounds are in a loop of ``chunk`` turns."""
    program = Program(text)
    # The compiler for TPUs, where loops need no host, leaves out how many turns they take: there the name tells, which has a
    # "while" for each loop around: records, chunks, rounds.
    chunks = [loop for loop in program.loops() if loop.turns == chunk] or [loop for loop in program.loops() if loop.depth == 3]
    if not chunks:
        raise ValueError(f"no loop of {chunk} turns in the program that was compiled")
    cost = max((_cost(program, loop.called("body") or "", runs) for loop in chunks), key=lambda one: one.bytes)
    it = TARGETS[target]
    seconds = cost.cycles / it.clock if cost.cycles else cost.seconds + cost.bytes / (BANDWIDTH * it.bandwidth)
    return dataclasses.replace(cost, seconds=seconds)


def _cost(program: Program, name: str, runs: int) -> Round:
    """The cost of one turn of a loop; its seconds are those that starting kernels takes, without moving bytes."""
    place = program.computations[name]
    done: dict[str, float] = {}  # when each value is there, if every kernel took only the time it takes to start
    total = Round(0, 0, 0, 0, 0, 0.0)
    for one in place.values():
        begun = max((done.get(operand, 0.0) for operand in one.operands), default=0.0)
        done[one.name] = begun
        if one.operation in FREE:
            continue
        if one.operation == "while":
            inner = _cost(program, one.called("body") or "", runs)
            turns = one.turns or PASSES
            known = inner if one.turns is None else dataclasses.replace(inner, kernels=inner.kernels * turns)
            total = dataclasses.replace(
                total,
                kernels=total.kernels + known.kernels,
                bytes=total.bytes + inner.bytes * turns,
                unknown_loops=total.unknown_loops + inner.unknown_loops + (one.turns is None),
                copies=total.copies + inner.copies,
                cycles=total.cycles + inner.cycles * turns,
                # Loops come one after the other: the host waits for each.
                seconds=total.seconds + turns * (inner.seconds + (SYNC if one.turns is None else 0)),
            )
            continue
        traffic = program.traffic(place, one)
        done[one.name] = begun + (LARGE if traffic >= runs else SMALL)
        total = dataclasses.replace(
            total,
            kernels=total.kernels + 1,
            bytes=total.bytes + traffic,
            copies=total.copies + (_is_copy(program, one) and _copied(one) > 8 * runs),
            cycles=total.cycles + one.cycles,
        )
    return dataclasses.replace(total, seconds=total.seconds + max(done.values()))


def _copied(one: Instruction) -> int:
    """Bytes that a copy makes; that of a TPU between its memories names what it copies beside the copy."""
    return size_of(one.shape) // (2 if one.operation == "copy-start" else 1)


def _is_copy(program: Program, one: Instruction) -> bool:
    """Whether an instruction copies its operand, alone or as a kernel of nothing else."""
    if one.operation in ("copy", "copy-start"):
        return True
    called = one.called() if one.operation == "fusion" else None
    return called is not None and all(root.operation == "copy" for root in _roots(program.computations[called]))
