"""Compiled programs on disk, for later processes."""

import contextlib
import os
import sys
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "JAXBANDIT_CACHE"  # a folder, or one of OFF
OFF = ("0", "off", "no", "false")
SECONDS = 0.1  # programs that take less to compile are not kept


def cache_programs(path: str | os.PathLike | None = None) -> str:
    """Keep compiled programs in a folder, so that later processes load them instead of compiling.

    It switches on JAX's persistent compilation cache, for all programs of this process that take 0.1 s or longer to compile. Results
    are bitwise identical with and without it. A program is reused where its code, the version of JAX, the platform and the compiler's
    options are the same. Nothing is ever deleted: some 100 KB for each kind of simulation on a CPU. The folder may be removed at any time.
    The command line does the same by default; the environment variable ``JAXBANDIT_CACHE`` names another folder, and ``off`` prevents it.

    Args:
      path: the folder. By default that of ``JAXBANDIT_CACHE``, else the one that JAX uses already, else ``jaxbandit`` in the user's
        folder for caches.

    Returns:
      The folder.

    >>> import tempfile, jaxbandit as jb
    >>> folder = jb.cache_programs(tempfile.mkdtemp())  # doctest: +SKIP
    """
    folder = Path(path) if path is not None else _default_folder()
    try:
        folder = folder.expanduser().absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission to write to {folder}")
    except (OSError, RuntimeError) as error:
        raise OSError(f"cache_programs(path={os.fspath(folder)!r}): compiled programs cannot be kept there: {error}") from error
    if jax.config.values["jax_compilation_cache_dir"] != str(folder):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        compilation_cache.reset_cache()  # JAX looks at the options once, when it compiles for the first time
    return str(folder)


def cache_by_default() -> None:
    """:func:`cache_programs` for commands: never an error, and not at all where ``JAXBANDIT_CACHE`` says so."""
    if os.environ.get(VARIABLE, "").strip().lower() in OFF:
        return
    with contextlib.suppress(OSError):
        cache_programs()


def _default_folder() -> Path:
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen and chosen.lower() not in OFF:
        return Path(chosen)
    if jax.config.values["jax_compilation_cache_dir"]:
        return Path(jax.config.values["jax_compilation_cache_dir"])
    if sys.platform == "win32" and "LOCALAPPDATA" in os.environ:
        return Path(os.environ["LOCALAPPDATA"]) / "jaxbandit" / "programs"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/jaxbandit/programs")
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "jaxbandit" / "programs"
