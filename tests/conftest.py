"""Every test worker is one process on one core: no thread pool of its own, two CPU devices for the tests that need them."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["PJRT_NPROC"] = "1"

import hypothesis
import jax

jax.config.update("jax_num_cpu_devices", 2)

# The same examples on every machine: a test that fails shall fail for all of us.
hypothesis.settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("fixed")
