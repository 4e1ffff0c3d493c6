"""Compiled programs on disk, for later processes."""

import contextlib
import hashlib
import os
import platform
import sys
from pathlib import Path

import jax

VARIABLE = "JAXBANDIT_CACHE"  # a folder, or one of OFF
OFF = ("0", "off", "no", "false")
SECONDS = 0.1  # programs that take less to compile are not kept


def cache_programs(path: str | os.PathLike | None = None) -> str:
    """Keep compiled programs in a folder, so that later processes load them instead of compiling.

    It switches on JAX's persistent compilation cache, for all programs of this process that take 0.1 s or longer to compile. Results
    are bitwise identical with and without it. A program is reused where its code, the version of JAX, the platform and the compiler's
    options are the same; each kind of processor has a folder of its own within. Nothing is ever deleted: some 100 KB for each kind of
    simulation on a CPU. The folder may be removed at any time.
    The command line does the same by default; the environment variable ``JAXBANDIT_CACHE`` names another folder, and ``off`` prevents it.

    Args:
      path: the folder. By default that of ``JAXBANDIT_CACHE``, else the one that JAX uses already, else ``jaxbandit`` in the user's
        folder for caches.

    Returns:
      The folder.

    >>> import tempfile, jaxbandit as jb
    >>> folder = jb.cache_programs(tempfile.mkdtemp())  # doctest: +SKIP
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    used = jax.config.values["jax_compilation_cache_dir"]
    if path is None and used and (not chosen or chosen.lower() in OFF):
        return str(used)
    folder = Path(path) if path is not None else _default_folder(chosen)
    try:
        folder = folder.expanduser().absolute()
        programs = folder / _processor()
        programs.mkdir(parents=True, exist_ok=True)
        if not os.access(programs, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission to write to {programs}")
    except (OSError, RuntimeError) as error:
        raise OSError(f"cache_programs(path={os.fspath(folder)!r}): compiled programs cannot be kept there: {error}") from error
    if used != str(programs):
        jax.config.update("jax_compilation_cache_dir", str(programs))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        from jax.experimental.compilation_cache import compilation_cache  # imported here: only this function needs it

        compilation_cache.reset_cache()  # JAX reads the options once, at its first compilation
    return str(folder)


def cache_by_default() -> None:
    """:func:`cache_programs` for commands. Never raises, and does nothing if ``JAXBANDIT_CACHE`` is off."""
    if os.environ.get(VARIABLE, "").strip().lower() in OFF:
        return
    with contextlib.suppress(OSError):
        cache_programs()


def _processor() -> str:
    """A name for this kind of processor: programs for another kind may use instructions that crash the process here."""
    kind = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        kind += "".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))
    return f"{platform.machine() or 'any'}-{hashlib.sha256(kind.encode()).hexdigest()[:12]}"


def _default_folder(chosen: str) -> Path:
    if chosen and chosen.lower() not in OFF:
        return Path(chosen)
    if sys.platform == "win32" and "LOCALAPPDATA" in os.environ:
        return Path(os.environ["LOCALAPPDATA"]) / "jaxbandit" / "programs"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/jaxbandit/programs")
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "jaxbandit" / "programs"
