"""What the compilers of TPU and GPU make of the kernel, on a machine that has neither.

    pip install libtpu triton
    python experiments/bench/kernel.py [arms] [name ...]

The tests show that JAX's lowering rules take the kernel. Here the compilers proper have their say, each if it is installed:
that of libtpu for one core of a v5e, and Triton with ptxas for an H100 (sm_90), of which the registers are shown and whether
any had to be spilled to memory. Nothing is run: that takes the hardware.
"""

import os

os.environ.update(
    JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_ACCELERATOR_TYPE="v5litepod-4", TPU_WORKER_HOSTNAMES="localhost"
)

import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit import kernel
from jaxbandit.pytrees import canonical
from jaxbandit.rollout import Game

D, L = jb.delays, jb.losses
TOLD = {"max_delay": 8, "horizon": 1000, "total_delay": 8000, "delay": 8, "beta": 6, "max_missing": 9, "capacity": 8}


def games(arms: int) -> dict[str, tuple]:
    """Every learner with a fixed delay; the paper's learner with every law of delays and losses."""
    coin, fixed, bobw = L.Bernoulli([0.3, *[0.5] * (arms - 1)]), D.Fixed(8), jb.BestOfBothWorlds(8)
    told = {**TOLD, "base": jb.TsallisINF()}
    means = np.linspace(0.3, 0.7, arms)
    learners = {name: cls(**{f: told[f] for f in cls.__dataclass_fields__ if f in told}) for name, cls in jb.REGISTRY.items()}
    delays = {
        "geometric": D.Geometric(3.0, bound=15),
        "geometric, shared": D.Geometric(3.0, bound=15, shared=True),
        "uniform": D.UniformRandom(0, 8),
        "Poisson": D.Poisson(3.0, bound=15),
        "Pareto": D.Pareto(0.7, bound=15),
        "packet loss": D.PacketLoss(0.3, 8),
        "bursts": D.Bursts(8),
        "outlier": D.Outlier(5, 1000),
        "trace": D.Trace(np.arange(100) % 7),
        "arm-dependent": D.ArmDependent([D.Fixed(i % 8) for i in range(arms)]),
    }
    losses = {
        "Beta": L.Beta(means),
        "clipped normal": L.ClippedNormal(means),
        "table": L.Table(np.random.default_rng(0).random((50, arms))),
        "stochastically constrained": L.StochasticallyConstrained(0.2, arms),
        "switching": L.Switching([means, means[::-1]], [1, 20]),
        "corrupted": L.Corrupted(coin, 10),
    }
    return {
        **{f"{name}": (learner, coin, fixed) for name, learner in learners.items()},
        **{f"{name} delays": (bobw, coin, law) for name, law in delays.items()},
        **{f"{name} losses": (bobw, law, fixed) for name, law in losses.items()},
    }


def traced(parts: tuple, platform: str, device=None):
    learner, losses, delays = map(canonical, parts)
    game = Game.set_up(learner, losses, delays, jax.random.key(0), jnp.arange(kernel.SLICE, dtype=jnp.uint32))
    sharding = None if device is None else jax.sharding.SingleDeviceSharding(device)
    arguments = game, jax.eval_shape(lambda game: game.start(), game), jnp.int32(0), jnp.array([5, 10], jnp.int32)
    arguments = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), arguments)
    call = functools.partial(kernel._advance, probabilities=False, platform=platform, interpret=False)
    return jax.jit(call).trace(*arguments)


@functools.cache
def tpu():
    from jax.experimental import topologies

    return topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]


def for_tpu(parts: tuple) -> str:
    traced(parts, "tpu", tpu()).lower().compile()
    return "compiles"


def for_cuda(parts: tuple) -> str:
    import triton
    from triton.backends.compiler import GPUTarget

    text = triton_program(traced(parts, "cuda").lower(lowering_platforms=("cuda",)).compiler_ir().operation)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "kernel.ttir", Path(folder) / "kernel.cubin"
        source.write_text(text)
        made = triton.compile(str(source), target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 1})
        binary.write_bytes(made.asm["cubin"])
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        usage = subprocess.run([tool, "--dump-resource-usage", binary], capture_output=True, text=True, check=True).stdout
    registers, stack = (re.findall(rf"{name}:(\d+)", usage)[-1] for name in ("REG", "STACK"))
    return f"compiles, {registers} registers, {stack} bytes spilled"


def triton_program(operation) -> str:
    """The text of the program that JAX hands to Triton, out of the call of it."""
    from jaxlib.mlir import ir
    from jaxlib.triton import dialect

    found = []

    def visit(operation):
        if operation.name == "stablehlo.custom_call":
            found.append(ir.StringAttr(ir.DictAttr(operation.attributes["mhlo.backend_config"])["ir"]).value_bytes)
        for region in operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    visit(inner.operation)

    visit(operation)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        dialect.register_dialect(context)
        context.load_all_available_dialects()
        text = ir.Module.parse(found[0]).operation.get_asm(enable_debug_info=False)
    return re.sub(r"^.*gpu\.barrier.*$", "gpu.barrier", text, flags=re.MULTILINE)  # of a dialect unknown to this parser


def told(attempt, parts: tuple) -> str:
    try:
        return attempt(parts)
    except Exception as error:  # a compiler may say no in any way it likes
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:100]}"


def main(arms: int = 2, *names: str) -> None:
    print("| game | TPU v5e | H100 |\n|---|---|---|")
    for name, parts in games(arms).items():
        if not names or name in names:
            print(f"| {name} | {told(for_tpu, parts)} | {told(for_cuda, parts)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, *sys.argv[2:])
