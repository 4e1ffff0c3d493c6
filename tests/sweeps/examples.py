"""A small sweep that many tests share, and ways to look at its folder."""

import hashlib
import json
import os
from pathlib import Path

import jaxbandit as jb

RUNS, ROUNDS = 600, 60
LOSSES = [jb.losses.Bernoulli([0.3, 0.5, 0.6]), jb.losses.Bernoulli([0.5, 0.4, 0.9])]
DELAYS = [jb.delays.Fixed(3)]
LEARNERS = [jb.Uniform(), jb.SuccessiveElimination("oracle")]  # type: ignore[arg-type]


def spec(**changes) -> jb.Spec:
    """12 units: four cells of three blocks."""
    given = {"rounds": ROUNDS, "runs": RUNS, "record": 6, "learners": LEARNERS, "losses": LOSSES, "delays": DELAYS}
    return jb.Spec(**{**given, **changes})


def digests(out: Path) -> dict[str, str]:
    """Every file of a store but the lock, by content."""
    files = [path for path in sorted(out.rglob("*")) if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def everything(folder: Path) -> dict[str, str | bytes]:
    """Every name under a folder: what a link leads to, the content of a file, nothing for a folder."""
    found: dict[str, str | bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
    return found


def forge(out: Path, change) -> None:
    """Change the manifest as a stranger would, with a checksum that fits."""
    manifest = json.loads((out / "manifest.json").read_text())["manifest"]
    change(manifest)
    body = json.dumps(manifest, indent=1, sort_keys=True)
    text = json.dumps({"sha256": hashlib.sha256(body.encode()).hexdigest(), "manifest": manifest})
    for name in ("manifest.json", "manifest.copy.json"):
        (out / name).write_text(text)
