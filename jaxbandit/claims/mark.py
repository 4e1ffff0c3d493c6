"""What the numbers of a claim depend on, in short: its settings, its script, and the modules that decide numbers.

Those modules are found by following imports from :data:`ROOTS`. Pages, figures, sweeps and the command line are not among them:
to change those makes no claim stale.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
# What a script plays with, measures and judges by.
ROOTS = tuple(
    f"jaxbandit.{name}" for name in ("simulation", "learners", "losses", "delays", "measure", "theory", "claims.verdict")
)
# How results are drawn, shown and kept: imported by what computes, but of no influence on its numbers.
SHOWING = tuple(f"jaxbandit.{name}" for name in ("plots", "display", "extras", "files", "progress", "version"))


def mark(script: Path, seed: int, settings: dict[str, Any]) -> str:
    """A digest of everything the outcome of a claim depends on."""
    digest = hashlib.sha256(json.dumps([seed, settings], sort_keys=True).encode())
    digest.update(script.read_bytes())
    digest.update(code_mark().encode())
    return digest.hexdigest()[:16]


@functools.cache
def code_mark(package: Path = PACKAGE) -> str:
    """A digest of the modules that decide numbers."""
    digest = hashlib.sha256()
    for module, file in sorted(number_modules(package).items()):
        digest.update(module.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


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
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # a module, or a name that has no file
