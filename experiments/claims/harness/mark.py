"""A digest of everything the numbers of a claim depend on: its settings, its script, and the modules that decide numbers."""

import hashlib
import json
from pathlib import Path
from typing import Any

from jaxbandit._provenance.package_code import package_digest

VERDICT = Path(__file__).parent / "verdict.py"


def mark(script: Path, seed: int, settings: dict[str, Any]) -> str:
    """A digest of all inputs of a claim."""
    digest = hashlib.sha256(json.dumps([seed, settings], sort_keys=True).encode())
    digest.update(script.read_bytes())
    digest.update(VERDICT.read_bytes())
    digest.update(package_digest().encode())
    return digest.hexdigest()[:16]
