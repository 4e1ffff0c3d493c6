"""The dataset that ``open_sweep`` returns. Imports xarray, so it is itself imported only when a sweep is opened."""

from typing import Any

import xarray


class SweepData(xarray.Dataset):
    """An ``xarray.Dataset`` whose table in pandas has a row for each cell, recorded round and run, also with five dimensions."""

    __slots__ = ()

    def _plain(self) -> "SweepData":
        """Without the indexes that are no dimensions: xarray forgets them in a table, and takes them along wrongly in swap_dims."""
        return self.drop_indexes([name for name in self.xindexes if name not in self.dims])

    def swap_dims(self, dims_dict: Any = None, **dims: Any) -> Any:
        """As that of xarray: ``swap_dims(delays="delays_delay")``."""
        return xarray.Dataset.swap_dims(self._plain(), dims_dict, **dims)

    def to_dataframe(self, dim_order: Any = None) -> Any:
        """As that of xarray, with a column for every coordinate, also for those that one can choose by."""
        return xarray.Dataset.to_dataframe(self._plain(), dim_order)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: columns ``learner``, ``losses``, ``delays``, ``round``, ``run``, every coordinate, every variable."""
        return self.to_dataframe().reset_index()
