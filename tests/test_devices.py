"""Several accelerators of one process, here eight CPU devices that are said to be GPUs, and two processes of ``jax.distributed``."""

import json
import os
import socket
import subprocess
import sys

import pytest

# A game in blocks of 64 runs: the regret of all runs, how often XLA compiled, which devices held results, and what was warned of.
PLAYED = """
import hashlib, json, sys, warnings
import jax
from jax import monitoring
count = int(sys.argv[1])
jax.config.update("jax_num_cpu_devices", count)
jax.config.update("jax_enable_compilation_cache", False)
import numpy as np, jaxbandit as jb
from jaxbandit._engine import blocks, choose, devices
for module in (blocks, devices):
    module.platform = lambda: "gpu"
choose.ACCELERATOR_BLOCKS = ((32, 64),)
compiled, used = [], set()
monitoring.register_event_duration_secs_listener(lambda name, _, **about: compiled.append(name) if "backend_compile" in name else None)
place = blocks.Block.put
blocks.Block.put = lambda self, tree: used.add(self.device.id) or place(self, tree)
game = jb.BestOfBothWorlds(5), jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Geometric(3.0, bound=15)
options = dict(rounds=70, seed=0, record=[10, 70])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = jb.simulate(*game, runs=570, **options)
made = len(compiled)
longer = jb.simulate(*game, runs=570, **(options | {"rounds": 90, "record": [90]}), resume=result)
fewer = jb.simulate(*game, runs=100, **options)
said = [str(one.message) for one in caught if "compiles by itself" in str(one.message)]
digest = hashlib.sha256(np.concatenate([result.regret, longer.regret]).tobytes()).hexdigest()
print(json.dumps({"devices": len(used), "compiled": made, "again": len(compiled) - made, "digest": digest, "said": said,
                  "fewer": bool((fewer.regret == result.regret[:, :100]).all()), "block": result.program["block"]}))
"""


def played(count: int) -> dict:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, str(count)], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
def test_any_number_of_devices_gives_the_same_bits_with_one_compilation():
    """Rejects blocks that depend on devices or runs, and programs that every device compiles for itself."""
    found = {count: played(count) for count in (1, 2, 3, 8)}
    assert [one["devices"] for one in found.values()] == [1, 2, 3, 8]
    assert len({one["digest"] for one in found.values()}) == 1
    assert len({one["compiled"] for one in found.values()}) == 1, "as many programs as one device compiles"
    for one in found.values():
        assert (one["said"], one["fewer"], one["block"]) == ([], True, 64)


DISTRIBUTED = """
import hashlib, json, sys
import jax
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import jaxbandit as jb
from jaxbandit._engine import blocks, choose, devices
for module in (blocks, devices):
    module.platform = lambda: "gpu"
choose.ACCELERATOR_BLOCKS = ((32, 64),)
used, place = set(), blocks.Block.put
blocks.Block.put = lambda self, tree: used.add(self.device) or place(self, tree)
result = jb.simulate(jb.Exp3(), jb.losses.Bernoulli([0.3, 0.5, 0.5]), jb.delays.Fixed(3), rounds=20, runs=200, seed=0)
mine = all(device.process_index == jax.process_index() for device in used)
print(json.dumps([len(jax.devices()), len(used), mine, hashlib.sha256(result.regret.tobytes()).hexdigest()]))
"""


@pytest.mark.thorough
def test_each_process_of_jax_distributed_simulates_on_its_own_devices():
    """``simulate`` in every process plays all runs there; a sweep shares them out (``tests/sweeps/test_faults.py``)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", DISTRIBUTED, address, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(2)
    ]
    said = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    first, second = (json.loads(out.splitlines()[-1]) for out, _ in said)
    assert first == second
    assert first[:3] == [4, 2, True]
