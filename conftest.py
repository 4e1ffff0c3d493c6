"""Every test worker is one process on one core: no thread pool of its own, two CPU devices for the tests that need them."""

import ctypes
import gc
import os
import signal
import sys
import tempfile
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["PJRT_NPROC"] = "1"

# Most of a test's time goes into compiling. The workers of one session, and the programs that they start, find in this folder what
# one of them has compiled already. It goes when the session ends; a folder set from outside is kept.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    compiled = tempfile.TemporaryDirectory(prefix="jaxbandit-tests-", ignore_cleanup_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"

import hypothesis
import jax
import jax.experimental
import pytest

# A shell starts jobs in the background with Ctrl-C ignored, and what they start ignores it too: the tests that interrupt need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
jax.config.update("jax_num_cpu_devices", 2)
if not hasattr(jax, "enable_x64"):  # jax 0.7
    jax.enable_x64 = jax.experimental.enable_x64

STATM = Path("/proc/self/statm")  # the pages of this process, on Linux

# The same examples on every machine: a test that fails shall fail for all of us.
hypothesis.settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("fixed")


# Examples in docstrings of what `make test` tests anyway, each of which compiles a program of its own: `make test-all` runs them.
THOROUGH_EXAMPLES = tuple(
    f"jaxbandit/{name}"
    for name in (
        "learners/",
        "losses/",
        "plots/",
        "theory/measurements",
        "theory/games",
        "gradients/",
        "measure.py",
        "testing.py",
    )
)


LONG = {*(Path(__file__).parent / "tests" / "long_tests.txt").read_text(encoding="utf-8").splitlines()}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        example = isinstance(item, pytest.DoctestItem) and item.nodeid.startswith(THOROUGH_EXAMPLES)
        if example or item.nodeid in LONG:
            item.add_marker(pytest.mark.thorough)


LARGEST = 900e6  # bytes of a worker; above, what was compiled goes. To do that after each module took an eighth of the time of all tests


@pytest.fixture(autouse=True)
def programs_end_when_they_are_many():
    yield
    if STATM.exists() and int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > LARGEST:
        let_go()


def let_go() -> None:
    """Drop what was compiled, which a process otherwise keeps to its end: workers grew to 5 GB."""
    jax.clear_caches()
    gc.collect()
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):  # glibc: what is free goes back to the system
            library.malloc_trim(0)
