"""A digest of the package's own modules that decide numbers, and a version that distinguishes states of a checkout.

Those modules are found by following imports from :data:`ROOTS`. Pages, figures, sweeps and the command line are not among them:
changes to them do not change numbers.
"""

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from jaxbandit._version import __version__

PACKAGE = Path(__file__).parents[1]
# The modules that simulate and measure.
ROOTS = tuple(
    f"jaxbandit.{name}" for name in ("_engine.simulation", "_engine.rollout", "learners", "losses", "delays", "measure", "theory")
)
# Modules that draw, show, store and identify results: imported by those that compute, but without influence on numbers.
SHOWING = tuple(
    f"jaxbandit.{name}"
    for name in ("plots", "results.summary", "_core.display", "_io", "_version", "_provenance", "_checks.processes")
)


# All imports of this package are absolute. Reading them with ast takes ten times as long.
_IMPORT = re.compile(r"^ *(?:import (jaxbandit[\w.]*)|from (jaxbandit[\w.]*) import (\([^)]*\)|[^\n]*))", re.MULTILINE)


@functools.cache
def package_digest(package: Path = PACKAGE) -> str:
    """A digest of the modules that decide numbers."""
    digest = hashlib.sha256()
    for module, file in sorted(number_modules(package).items()):
        digest.update(module.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def development_version(package: Path = PACKAGE) -> str:
    """The version; of a checkout of the sources, which changes between releases, with the digest of its code."""
    is_checkout = (package.parent / "pyproject.toml").is_file()
    return f"{__version__}+{package_digest(package)[:12]}" if is_checkout else __version__


def own_versions() -> dict[str, str]:
    """The version of this package, and the digest of its code that decides numbers."""
    return {"jaxbandit": development_version(), "package": package_digest()[:16]}


def number_modules(package: Path = PACKAGE) -> dict[str, Path]:
    """``{name: file}`` of all modules that the roots import, directly or through others, also inside functions."""
    found: dict[str, Path] = {}
    waiting = list(ROOTS)
    while waiting:
        module = waiting.pop()
        file = _file(package, module)
        shows = any(f"{module}.".startswith(f"{one}.") for one in SHOWING)
        if file is not None and module not in found and not shows:
            found[module] = file
            waiting.extend(_imported(file))
    return found


def _file(package: Path, module: str) -> Path | None:
    """The file of a module of the package; None for other packages, and for the package itself, which only re-exports."""
    place = package.joinpath(*module.split(".")[1:])
    if not module.startswith("jaxbandit."):
        return None
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _imported(file: Path) -> Iterator[str]:
    for whole, module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        yield whole or module
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))  # a module, or a name that has no file
