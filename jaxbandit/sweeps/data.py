"""The dataset that ``open_sweep`` returns. Imports xarray, so it is itself imported only when a sweep is opened."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing

from jaxbandit._core.fields import show, suggest
from jaxbandit.plots.table import AXES
from jaxbandit.sweeps.layout import Unit
from jaxbandit.sweeps.store import Store


class SweepData(xarray.Dataset):
    """An ``xarray.Dataset`` whose table in pandas has a row for each cell, recorded round and run, also with five dimensions."""

    __slots__ = ()

    def _plain(self) -> "SweepData":
        """Without the indexes that are no dimensions: xarray forgets them in a table, and takes them along wrongly in swap_dims."""
        return self.drop_indexes([name for name in self.xindexes if name not in self.dims])

    def sel(self, indexers: Any = None, method: Any = None, tolerance: Any = None, drop: bool = False, **by: Any) -> Any:
        """As that of xarray; a number of an axis also by its field, ``delay=10``, and by the axis alone if no other varies, ``delays=10``."""
        chosen = {self._coordinate(name, value): value for name, value in {**(indexers or {}), **by}.items()}
        try:
            return super().sel(chosen, method, tolerance, drop)
        except KeyError:
            for name, value in chosen.items():
                self._explain(name, value)
            raise

    def _coordinate(self, name: Any, value: Any) -> Any:
        """The coordinate that a user means."""
        numbers = [str(one) for one in self.xindexes if one not in self.dims and self[one].dtype.kind in "if"]
        if name in self.xindexes and name not in AXES:
            return name
        parts = [value.start, value.stop] if isinstance(value, slice) else np.ravel(value).tolist()
        by_number = not any(isinstance(part, str) for part in parts)
        mine = [one for one in numbers if one.partition("_")[0 if name in AXES else 2] == name]
        return mine[0] if len(mine) == 1 and by_number else name

    def _explain(self, name: Any, value: Any) -> None:
        """Raise KeyError if there is no such coordinate, or it has no such value."""
        known = [str(one) for one in self.xindexes]
        if name not in known:
            raise KeyError(f".sel({name}={show(value)}): there is no such coordinate; {suggest(str(name), known)}")
        there = self[name].values.tolist()
        if not isinstance(value, slice) and not set(np.ravel(value).tolist()) <= {*np.ravel(there)}:
            raise KeyError(f".sel({name}={show(value)}): there is {show(there)}") from None

    def swap_dims(self, dims_dict: Any = None, **dims: Any) -> Any:
        """As that of xarray: ``swap_dims(delays="delays_delay")``."""
        return xarray.Dataset.swap_dims(self._plain(), dims_dict, **dims)

    def to_dataframe(self, dim_order: Any = None) -> Any:
        """As that of xarray, with a column for every coordinate, also for those that one can choose by."""
        return xarray.Dataset.to_dataframe(self._plain(), dim_order)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: columns ``learner``, ``losses``, ``delays``, ``round``, ``run``, every coordinate, every variable."""
        return self.to_dataframe().reset_index()


def lazy(store: Store, files: dict[Unit, Path], name: str, by_round: bool) -> Any:
    """A variable of a sweep, for a dataset: its unit files are read when values are accessed."""
    return indexing.LazilyIndexedArray(_Variable(store, files, name, by_round))


class _Variable(BackendArray):
    """``[learner, losses, delays, (round,) run]`` over the unit files; NaN for values that are not computed yet."""

    def __init__(self, store: Store, files: dict[Unit, Path], name: str, by_round: bool):
        self.store, self.files, self.name, self.by_round = store, files, name, by_round
        self.shape = (*store.shape, *([len(store.recorded)] if by_round else []), store.runs)
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        wanted = [_positions(size, index) for size, index in zip(self.shape, key, strict=True)]
        lists = [np.atleast_1d(index) for index in wanted]
        values = np.full([len(index) for index in lists], np.nan)
        runs = lists[-1]
        for place in np.ndindex(*values.shape[:3]):
            at = [int(index[i]) for index, i in zip(lists, place, strict=False)]
            cell = self.store.cell_at(at)
            size, known = cell["block"], runs < self.store.runs_of(cell)
            for block in np.unique(runs[known] // size):
                columns = np.flatnonzero(known & (runs // size == block))
                whole = self._block(at, int(block))
                if whole is not None:
                    part = whole[..., runs[columns] % size]
                    values[(*place, ..., columns)] = part[lists[3]].T if self.by_round else part
        return values.reshape([len(index) for index in wanted if np.ndim(index)])

    def _block(self, at: Sequence[int], block: int) -> np.ndarray | None:
        """``[C, block]`` or ``[block]``: of one cell and block; NaN for rounds that are not computed yet, None if none is."""
        cell = self.store.cell_at(at)
        parts = self.store.segments(cell)
        units = [Unit(cell["id"], block, part.start, part.stop) for part in parts]
        if not self.by_round:
            return self._of(units[-1]) if units[-1] in self.files else None
        played = list(itertools.takewhile(self.files.__contains__, units))
        if not played:
            return None
        values = [self._of(unit) for unit in played]
        missing = sum(len(part.record) for part in parts[len(played) :])
        return np.concatenate([*values, np.full((missing, values[0].shape[1]), np.nan)])

    def _of(self, unit: Unit) -> np.ndarray:
        return vars(self.store.read(unit, self.files[unit]))[self.name]


def _positions(size: int, index: Any) -> np.ndarray:
    """The positions along an axis that an index selects; the axis itself may be too long to be listed."""
    return np.arange(*index.indices(size)) if isinstance(index, slice) else np.asarray(index)
