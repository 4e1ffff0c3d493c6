"""A digest of everything the numbers of a claim depend on: its settings, its scripts, and the modules that decide numbers."""

import hashlib
import json
from pathlib import Path
from typing import Any

from jaxbandit._provenance.package_code import package_digest

VERDICT = Path(__file__).parent / "verdict.py"


def mark(script: Path, seed: int, settings: dict[str, Any]) -> str:
    """A digest of all inputs of a claim."""
    digest = hashlib.sha256(json.dumps([seed, settings], sort_keys=True).encode())
    for file in [*sorted(script.parent.glob("*.py")), VERDICT]:  # the script and its own modules
        digest.update(file.read_bytes())
    digest.update(package_digest().encode())
    return digest.hexdigest()[:16]
