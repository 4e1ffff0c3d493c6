"""Processes that are forked (once JAX has started they get an error instead of hanging), and the programs a process keeps."""

import subprocess
import sys

import pytest

FORK = """
import os, signal, sys
import jax, jaxbandit as jb
game = jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2)
if {started}:
    jax.numpy.zeros(3).block_until_ready()
child = os.fork()
if child == 0:
    signal.alarm(60)  # of a child that hangs
    try:
        print(jb.simulate(*game, rounds=10, runs=2, seed=0).runs)
    except RuntimeError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
print("child", os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
@pytest.mark.parametrize(
    ("started", "said"), [(True, "forked after JAX had started"), pytest.param(False, "2\n", marks=pytest.mark.thorough)]
)
def test_a_forked_process(started, said):
    script = FORK.format(started=started)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300)
    assert said in done.stdout
    assert done.stdout.endswith("child 0\n")


MEMORY = """
import gc, jax, jaxbandit as jb
for arms in (2, 3):
    jb.simulate(jb.DelayedUCB1(), jb.losses.Bernoulli([0.3] * arms), jb.delays.Fixed(2), rounds=10, runs=2, seed=0)
before = len(jax.devices()[0].client.live_executables())
jax.clear_caches()
gc.collect()
print(before > 5, len(jax.devices()[0].client.live_executables()) <= 1)
"""


@pytest.mark.thorough
def test_no_program_is_kept_when_jax_drops_its_caches():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", MEMORY], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.thorough
def test_eight_devices_give_the_bits_of_one():
    """Rejects blocks whose shape, and with it the rounding, depends on the number of devices."""
    code = """
import sys, jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import hashlib, numpy as np, jaxbandit as jb
games = [(jb.BestOfBothWorlds(5), jb.delays.Fixed(5)), (jb.DelayedExp3(), jb.delays.Geometric(3.0, bound=15))]
found = [jb.simulate(learner, jb.losses.Bernoulli([0.3, 0.5, 0.5]), delays, rounds=60, runs=700, seed=0).regret for learner, delays in games]
print(jax.local_device_count(), hashlib.sha256(np.concatenate(found).tobytes()).hexdigest())
"""
    said = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, count], capture_output=True, text=True, check=True
        ).stdout.split()
        for count in ("1", "8")
    ]
    assert [int(count) for count, _ in said] == [1, 8]
    assert said[0][1] == said[1][1]
