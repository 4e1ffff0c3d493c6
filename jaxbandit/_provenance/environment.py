"""The environment that decides rounding: recorded when a sweep is started, compared before it is resumed."""

import contextlib
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit._core.fields import float_dtype
from jaxbandit._provenance.package_code import own_versions

# Options of JAX that change numbers, with their defaults.
SETTINGS: dict[str, Any] = {
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
    "jax_default_matmul_precision": None,
    "jax_high_dynamic_range_gumbel": False,
    "jax_disable_jit": False,
    "jax_disable_most_optimizations": False,
    "jax_optimization_level": "UNKNOWN",
    "jax_exec_time_optimization_effort": 0.0,
}
# Flags of XLA for output folders or the number of devices, and those of use_all_cores: results are bitwise identical. Any other
# flag may change numbers.
HARMLESS_FLAGS = (
    "--xla_force_host_platform_device_count",
    "--xla_dump_",
    "--xla_gpu_cuda_data_dir",
    "--xla_cpu_prefer_vector_width",
)
LOOP_OPTION = "xla_cpu_small_while_loop_byte_threshold"  # set by use_all_cores as well

COMPARED = ("jaxbandit", "package", "jax", "jaxlib", "platform", "machine", "x64", "key", "settings", "flags", "cpu", "device")


def environment() -> dict[str, Any]:
    """Versions, platform and settings of this process, as JSON can hold them."""
    return {
        **own_versions(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": jax.default_backend(),
        "machine": platform.machine(),
        "system": sys.platform,
        "x64": float_dtype() == np.float64,
        "key": "threefry2x32",
        "settings": changed_settings(jax.config.values),
        "flags": number_flags(os.environ.get("XLA_FLAGS", "")),
        "cpu": vector_level(),
        "device": jax.local_devices()[0].device_kind,
    }


def changed_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of JAX that change numbers and differ from their defaults."""
    found = {name: _plain(values[name]) for name in SETTINGS if name in values}
    return {name: value for name, value in found.items() if value != SETTINGS[name]}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float) else str(value).rpartition(".")[2]


def number_flags(text: str) -> list[str]:
    """The flags of ``XLA_FLAGS`` that may change numbers; the variable may also name a file that holds them."""
    if text.strip() and not text.strip().startswith("-"):
        with contextlib.suppress(OSError, ValueError):  # XLA reports it
            text = Path(text.strip()).read_text()
    kept = []
    for flag in text.split():
        name, equals, value = flag.partition("=")
        if name == "--xla_backend_extra_options":
            value = ",".join(option for option in value.split(",") if not option.startswith(LOOP_OPTION))
            if not value:
                continue
        if not name.startswith(HARMLESS_FLAGS):
            kept.append(f"{name}{equals}{value}")
    return sorted(kept)


def vector_level(file: str = "/proc/cpuinfo") -> str | None:
    """The widest vector instructions XLA can use here, which decide how sums round; None if unknown."""
    try:
        lines = Path(file).read_text().splitlines()
    except (OSError, ValueError):
        return None
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    if "avx512f" in flags:
        return "AVX512"
    if "avx2" in flags and "fma" in flags:
        return "AVX2"
    return next((name for name, flag in (("AVX", "avx"), ("SSE4_2", "sse4_2")) if flag in flags), None)


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differences between two environments that may change rounding, each as ``jax 0.9 then, 0.10 now``.

    Sweeps begun before a field was recorded are assumed to have run with JAX's defaults, on an unknown processor.
    """
    unknown = {"settings": {}, "flags": [], "cpu": now["cpu"], "device": now["device"], "package": now["package"]}
    before = {**unknown, **then}
    other = [name for name in COMPARED if before[name] != now[name]]
    if "jaxbandit" in other and "package" in other:
        other.remove("package")  # a difference in version implies it
    return [f"{name} {_show(before[name])} then, {_show(now[name])} now" for name in other]


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={setting}" for name, setting in value.items()) or "default"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "unknown" if value is None else str(value)
