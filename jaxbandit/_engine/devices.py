"""Devices and threads: how many there are, which is idle, and how much memory they have."""

import collections
import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import numpy as np

from jaxbandit._core.fields import float_dtype

try:
    from jax import enable_x64
except ImportError:  # before jax 0.8
    from jax.experimental import enable_x64  # type: ignore[no-redef]

T = TypeVar("T")


def platform() -> str:
    """The platform of the simulations: "cpu", "gpu" or "tpu"."""
    return jax.default_backend()


def memory() -> int | None:
    """Bytes that a device may use, None if not reported; on a CPU those of the machine."""
    if platform() != "cpu":
        return (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # systems other than Linux and macOS
        return None


class Threads(ThreadPoolExecutor):
    """A thread pool that inherits the caller's ``enable_x64`` setting.

    ``with jax.enable_x64(True):`` only holds in its own thread. In plain threads a simulation inside it would check its inputs
    in float64 and run in float32.
    """

    def submit(self, function: Callable[..., T], /, *arguments: Any, **options: Any) -> Future[T]:
        x64 = float_dtype() == np.float64

        def work() -> T:
            with enable_x64(x64), jax.numpy_rank_promotion("allow"):  # arrays [K, runs] meet arrays [runs]
                return function(*arguments, **options)

        return super().submit(work)


_in_use: collections.Counter = collections.Counter()  # device -> active calls of play_blocks
_counting = threading.Lock()


@contextlib.contextmanager
def idlest_devices(most: int) -> Iterator[list[Any]]:
    """At most ``most`` slots for blocks that run at the same time: one for each core of a CPU, one for each accelerator.

    The least busy accelerators come first, because several simulations may run at once. All cores serve one CPU device, whose
    programs are compiled once.
    """
    if platform() == "cpu":
        yield [jax.local_devices()[0]] * min(count_cores(), most)
        return
    with _counting:
        devices = sorted(alike_devices(), key=_in_use.__getitem__)[:most]  # stable: a lone simulation begins with the first
        _in_use.update(devices)
    try:
        yield devices
    finally:
        with _counting:
            _in_use.subtract(devices)


def alike_devices() -> list[Any]:
    """The devices of this process of the same kind as the first: other kinds round differently."""
    first, *others = jax.local_devices()
    return [first, *(device for device in others if device.device_kind == first.device_kind)]


def use_all_cores() -> int:
    """Unnecessary: a simulation uses all CPU cores that the process may. Warns, and returns how many these are.

    Earlier versions set process-wide options of XLA here. Programs now carry these options themselves, so that every simulation
    uses all cores, also after JAX has started.

    >>> import jaxbandit as jb
    >>> jb.use_all_cores() >= 1  # doctest: +SKIP
    True
    """
    warnings.warn(
        "jb.use_all_cores() is unnecessary: every simulation uses all cores; delete the call", DeprecationWarning, stacklevel=2
    )
    return count_cores()


def count_cores() -> int:
    """How many CPU cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux reports the cores that a process is bound to
        return os.cpu_count() or 1
