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
@pytest.mark.parametrize(("started", "said"), [(True, "forked after JAX had started"), (False, "2\n")])
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


def test_no_program_is_kept_when_jax_drops_its_caches():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", MEMORY], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True True\n", done.stderr
