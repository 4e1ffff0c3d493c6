"""Many small arrays in few buffers.

The overhead of a call of a compiled program grows with the number of its buffers. On a CPU, XLA starts no other threads for a
program if none of its buffers has more than 512 bytes.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.fields import PyTree

PAGE = 128  # words of 4 bytes
WORDS = (np.float32, np.int32, np.uint32, np.bool_)  # dtypes that are written as words


class Place(NamedTuple):
    """The place of a leaf."""

    page: int
    start: int  # its words on that page
    stop: int
    shape: tuple[int, ...]
    dtype: Any
    apart: bool  # in a separate buffer, not as words


@dataclasses.dataclass(frozen=True)
class Pages:
    """How the leaves of a tree are laid out: as words on common pages, or apart if they are large or of other than 4 bytes a number."""

    structure: Any
    places: tuple[Place, ...]  # of the leaves

    @classmethod
    def of(cls, tree: PyTree) -> "Pages":
        """For trees of these shapes and dtypes."""
        leaves: list[Any]
        leaves, structure = jax.tree.flatten(tree)
        apart = [math.prod(leaf.shape) > PAGE or leaf.dtype not in WORDS for leaf in leaves]
        places: list[Place] = []
        page, used, alone = sum(apart), 0, 0  # separate leaves come first
        for leaf, own in zip(leaves, apart, strict=True):
            size = math.prod(leaf.shape)
            if own:
                places.append(Place(alone, 0, size, leaf.shape, leaf.dtype, own))
                alone += 1
                continue
            if used + size > PAGE:
                page, used = page + 1, 0
            places.append(Place(page, used, used + size, leaf.shape, leaf.dtype, own))
            used += size
        return cls(structure, tuple(places))

    def blank(self) -> tuple[list[np.ndarray], Any]:
        """New pages, and a tree of arrays on them, to be filled (booleans as words)."""
        pages: dict[int, np.ndarray] = {}
        for page, _, stop, shape, dtype, apart in self.places:
            pages[page] = np.zeros(shape, dtype) if apart else np.zeros(stop, np.uint32)
        leaves = [
            pages[page] if apart else pages[page][start:stop].view(_kind(dtype)).reshape(shape)
            for page, start, stop, shape, dtype, apart in self.places
        ]
        return [pages[page] for page in sorted(pages)], jax.tree.unflatten(self.structure, leaves)

    def write(self, tree: PyTree) -> list[Any]:
        """The pages of a tree of traced arrays."""
        pages: dict[int, list[Any]] = {}
        for place, leaf in zip(self.places, jax.tree.leaves(tree), strict=True):
            pages.setdefault(place.page, []).append(leaf if place.apart else _to_words(leaf))
        return [page[0] if len(page) == 1 else jnp.concatenate(page) for _, page in sorted(pages.items())]

    def read(self, pages: Sequence[Any]) -> Any:
        """The tree on these pages, which are traced or NumPy arrays."""
        leaves = [
            pages[page] if apart else _from_words(pages[page][start:stop], dtype).reshape(shape)
            for page, start, stop, shape, dtype, apart in self.places
        ]
        return jax.tree.unflatten(self.structure, leaves)


def _kind(dtype: Any) -> Any:
    return np.uint32 if dtype == np.bool_ else dtype


def _to_words(leaf: Any) -> Any:
    flat = jnp.ravel(leaf)
    return flat.astype(np.uint32) if leaf.dtype == np.bool_ else lax.bitcast_convert_type(flat, np.uint32)


def _from_words(words: Any, dtype: Any) -> Any:
    if dtype == np.bool_:
        return words != 0
    return words.view(dtype) if isinstance(words, np.ndarray) else lax.bitcast_convert_type(words, dtype)
