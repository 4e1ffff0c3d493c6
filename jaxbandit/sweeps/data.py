"""The dataset that ``open_sweep`` returns. Imports xarray, so it is itself imported only when a sweep is opened."""

from typing import Any

import numpy as np
import xarray

from jaxbandit.plots.table import AXES
from jaxbandit.pytrees import show, suggest


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
        """KeyError in a sentence: there is no such coordinate, or it has no such value."""
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
