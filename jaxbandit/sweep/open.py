"""A sweep as a labelled dataset: files are read when their values are asked for, and checked as they are read."""

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit.sweep.spec import AXES
from jaxbandit.sweep.store import Store, StoreError, Unit

DIMENSIONS = {"learners": "learner", "losses": "losses", "delays": "delays"}


def open_sweep(path: str | os.PathLike) -> Any:
    """A sweep's results as a lazy ``xarray.Dataset``; runs that are not computed yet are NaN.

    Dimensions ``learner``, ``losses``, ``delays``, ``round`` and ``run``. Variables: ``regret`` (all five), and
    ``outstanding_max``, ``total_delay`` and ``lost`` (without ``round``). Needs the extra ``jaxbandit[data]``.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=40, runs=8, record=[10, 20, 40], learners=[jb.Uniform()], delays=[jb.delays.Fixed(2)],
    ...                losses=[jb.losses.Bernoulli([0.25, 0.75]), jb.losses.Bernoulli([0.5, 0.5])])
    >>> data = jb.open_sweep(jb.sweep(spec, tempfile.mkdtemp()).out)
    >>> dict(data.sizes)
    {'learner': 1, 'losses': 2, 'delays': 1, 'round': 3, 'run': 8}
    >>> data.regret.mean("run").isel(round=-1).values.ravel()
    array([10.,  0.])
    """
    try:
        import xarray
        from xarray.core import indexing
    except ImportError as error:
        raise ImportError("open_sweep needs xarray: pip install 'jaxbandit[data]'") from error
    from xarray.backends import BackendArray

    store = Store.open(path)
    files = store.files()
    shape = [len(store.labels(axis)) for axis in AXES]
    recorded = store.recorded

    class Lazy(BackendArray):
        """One variable over the unit files."""

        def __init__(self, name: str, by_round: bool):
            self.name, self.by_round, self.dtype = name, by_round, np.dtype(np.float64)
            self.shape = (*shape, *([len(recorded)] if by_round else []), store.runs)

        def __getitem__(self, key):
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

        def _read(self, key):
            wanted = [np.arange(size)[index] for size, index in zip(self.shape, key, strict=True)]
            lists = [np.atleast_1d(index) for index in wanted]
            values = np.full([len(index) for index in lists], np.nan)
            runs = lists[-1]
            for place in np.ndindex(*values.shape[:3]):
                at = [int(index[i]) for index, i in zip(lists, place, strict=False)]
                size = store.cell_at(at)["block"]
                for block in np.unique(runs // size):
                    columns = np.flatnonzero(runs // size == block)
                    whole = _block(store, files, at, int(block), self.name, self.by_round)
                    if whole is not None:
                        part = whole[..., runs[columns] % size]
                        values[(*place, ..., columns)] = part[lists[3]].T if self.by_round else part
            return values.reshape([len(index) for index in wanted if np.ndim(index)])

    variables = {"regret": (True, "pseudo-regret"), "outstanding_max": (False, "most plays outstanding at once")}
    variables |= {
        "total_delay": (False, "sum of delays, cut off at the horizon"),
        "lost": (False, "plays whose feedback never arrives"),
    }
    places = list(DIMENSIONS.values())
    data = {}
    for name, (by_round, text) in variables.items():
        lazy = indexing.LazilyIndexedArray(Lazy(name, by_round))
        data[name] = ([*places, *(["round"] if by_round else []), "run"], lazy, {"long_name": text})
    coordinates: dict[str, Any] = {DIMENSIONS[axis]: store.labels(axis) for axis in AXES}
    coordinates |= _swept_coordinates(store) | {"round": recorded, "run": np.arange(store.runs)}
    return xarray.Dataset(data, coordinates, _attributes(store))


def _block(store: Store, files: dict[Unit, Path], at, block: int, name: str, by_round: bool) -> np.ndarray | None:
    """``[C, block]`` or ``[block]``: a variable of one cell and block, None if it is not all there."""
    cell = store.cell_at(at)
    units = [Unit(cell["id"], block, part.start, part.stop) for part in store.stretches(cell)]
    if not all(unit in files for unit in units):
        return None
    results = [store.read(files[unit]) for unit in (units if by_round else units[-1:])]
    return np.concatenate([getattr(result, name) for result in results])


def _swept_coordinates(store: Store) -> dict[str, Any]:
    """The numbers that grids vary, as coordinates along their axis: ``data.sel(...)`` by label, ``data.factor`` by value."""
    found = {}
    for axis in AXES:
        settings = store.manifest["axes"][axis]
        for field in dict.fromkeys(field for setting in settings for field in setting["swept"]):
            values = [setting["about"].get(field) for setting in settings]
            if all(value is None or isinstance(value, int | float) for value in values):
                numbers = [np.nan if value is None else float(value) for value in values]
                found[f"{DIMENSIONS[axis]}_{field}"] = (DIMENSIONS[axis], numbers)
    return found


def _attributes(store: Store) -> dict[str, Any]:
    manifest = store.manifest
    return {
        "title": "jaxbandit sweep",
        "rounds": store.rounds,
        "runs": store.runs,
        "seed": manifest["seed"],
        "settings": json.dumps(manifest["axes"]),
        "environments": json.dumps(manifest["environments"]),
    }


def export(path: str | os.PathLike, target: str | os.PathLike) -> Path:
    """Write a sweep as netCDF4 (``.nc``, Fletcher-32 checksums) or zarr (``.zarr``, CRC-32C); whole or not at all."""
    target = Path(target)
    if target.suffix not in (".nc", ".zarr"):
        raise ValueError(f"{target}: the name of an export ends in .nc or .zarr")
    if target.exists():
        raise StoreError(f"{target}: this is already there; remove it or choose another name")
    data = open_sweep(path).load()
    draft = target.with_name(f".{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if target.suffix == ".nc":
            data.to_netcdf(
                draft, engine="netcdf4", encoding={name: {"zlib": True, "fletcher32": True} for name in data.data_vars}
            )
        else:
            from zarr.codecs import Crc32cCodec, ZstdCodec

            checked = {"compressors": [ZstdCodec(), Crc32cCodec()]}
            with warnings.catch_warnings():  # texts and one file of metadata for all are young in zarr 3
                warnings.simplefilter("ignore")
                data.to_zarr(draft, encoding={name: checked for name in data.data_vars}, zarr_format=3)
        os.replace(draft, target)
    except ImportError as error:
        raise ImportError("export needs netCDF4 and zarr: pip install 'jaxbandit[data]'") from error
    finally:
        shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)
    return target
