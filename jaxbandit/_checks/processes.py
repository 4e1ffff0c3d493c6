"""Detecting a process that was forked after JAX had started: there XLA's threads are missing, and every computation hangs."""

import os

import jax

_forked_after_start = False


def _has_started() -> bool:
    """Whether JAX has started, without starting it: the number of devices can only be set before."""
    devices = jax.config.values["jax_num_cpu_devices"]
    try:
        jax.config.update("jax_num_cpu_devices", devices + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", devices)
    return False


def _after_fork() -> None:
    global _forked_after_start
    _forked_after_start = _forked_after_start or _has_started()


if os.name == "posix":
    os.register_at_fork(after_in_child=_after_fork)


def check_not_forked() -> None:
    """Raise RuntimeError in a process that was forked after JAX had started."""
    if _forked_after_start:
        raise RuntimeError(
            "this process was forked after JAX had started, where computations hang; start workers with "
            "multiprocessing.get_context('spawn'), or fork before anything uses JAX"
        )
