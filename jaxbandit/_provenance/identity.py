"""Digests of everything that determines a run: learner, losses, delays, measurements, key and the user's own code in them.

Results, agents, sweeps and tunings record it and compare it before they resume.
"""

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._core.fields import canonical
from jaxbandit._provenance.user_code import LIBRARY, code_digest

# Classes that had another name when their digests were first stored: a digest is made with the former name.
FORMER_CLASSES = {"IntermediateStates": "ThroughStates", "CompositeFeedback": "Pieces"}
# Registry names in specs and manifests that were written before a rename.
FORMER_NAMES = {"through-states": "intermediate-states", "pieces": "composite-feedback"}

# Classes with a static field that is newer than stored digests: at its default, ``estimator="iw"``, the digest is the former one.
NEWER_FIELD = re.compile(
    r"\b(AsymmetricBestOfBothWorlds|BestOfBothWorlds|DelayedExp3|DelayedExponentialWeights|Exp3|FixedDelayExp3|TaperedFTRL|ZimmertSeldin)"
    r"\[\((True, |False, )?'iw',?\)\]"
)


def fingerprint(learner: Any, losses: Any, delays: Any, key: jax.Array, measure: Sequence[Any] = ()) -> dict[str, str]:
    """Digests of everything that determines a run, independent of how numbers are written.

    ``"learner"`` covers the class and its numbers, ``"learner code"`` the user's own code in it, see :mod:`jaxbandit._provenance.user_code`.
    """

    players = {"learner": canonical(learner), "losses": canonical(losses), "delays": canonical(delays)}
    parts = {**players, "key": jax.random.key_data(key), "measure": canonical(tuple(measure))}
    marks = {name: _mark(part) for name, part in parts.items()}
    own = {"learner": learner, "losses": losses, "delays": delays, "measure": tuple(measure)}
    return marks | {f"{name} code": code_digest(part) or LIBRARY for name, part in own.items()}


def with_key(identity: dict[str, str], key: jax.Array) -> dict[str, str]:
    """The fingerprint of the same game with another key."""
    return identity | {"key": _mark(jax.random.key_data(key))}


def _mark(tree: Any) -> str:
    leaves, structure = jax.tree.flatten(tree)
    # The repr of functions contains their address, which differs between processes; their code is compared elsewhere.
    text = re.sub(r" at 0x[0-9a-f]+", "", str(structure))
    text = NEWER_FIELD.sub(lambda found: f"{found[1]}[({(found[2] or '').rstrip()})]", text)
    digest = hashlib.sha256(re.sub(r"\w+", lambda word: FORMER_CLASSES.get(word[0], word[0]), text).encode())
    for leaf in leaves:
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def _is_same_code(recorded: str | None, here: str) -> bool | None:
    """Whether two digests (or :data:`LIBRARY`) are of the same code; None if unknown.

    Files of earlier versions have no digest (None), and digests of two versions of Python cannot be compared.
    """
    if recorded == here or (recorded is None and here == LIBRARY):
        return True
    if recorded is None or (LIBRARY not in (recorded, here) and recorded.partition(":")[0] != here.partition(":")[0]):
        return None
    return False


def check_identity(what: str, recorded: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise ValueError if two fingerprints differ. Warn where the code of a user's class cannot be compared.

    ``what`` begins the message: the call, and what was recorded.
    """
    for part, mark in here.items():
        is_code = part.endswith(" code")
        same = _is_same_code(recorded.get(part), mark) if is_code else recorded.get(part) == mark
        if same is None:
            why = "an earlier version of jaxbandit" if part not in recorded else "another version of Python or jaxbandit"
            warnings.warn(
                f"{what} was made with {why}, so whether the code of the {part.removesuffix(' code')} is "
                "still the same cannot be checked",
                stacklevel=3,
            )
        elif not same and is_code:
            raise ValueError(
                f"{what} was made with other code of the {part.removesuffix(' code')}; undo the edit, or start from round 1"
            )
        elif not same:
            raise ValueError(f"{what} was made with another {part}; it can only be resumed or joined with the same one")
