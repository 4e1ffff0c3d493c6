"""A sweep as a labelled dataset: files are read and checked when their values are accessed."""

import json
import os
import secrets
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit._io.files import checked_path
from jaxbandit._io.optional import need
from jaxbandit.sweeps.labels import SIZES, is_number
from jaxbandit.sweeps.layout import FULL, StoreError, in_plain_words
from jaxbandit.sweeps.spec import AXES
from jaxbandit.sweeps.store import Store
from jaxbandit.sweeps.undecided import limits_of

DIMENSIONS = {"learners": "learner", "losses": "losses", "delays": "delays"}
VARIABLES = {  # name -> whether there is a number for each recorded round, and what it is
    "regret": (True, "pseudo-regret"),
    "outstanding_max": (False, "most plays outstanding at once"),
    "total_delay": (False, "sum of delays, cut off at the horizon"),
    "lost": (False, "plays whose feedback never arrives"),
}
MOST_LISTED_NUMBERS = 8  # of a list in a field that become coordinates
MOST_LISTED_RUNS = 1 << 26  # beyond, runs have no coordinate: it would be half a gigabyte


def open_sweep(path: str | os.PathLike) -> Any:
    """A sweep's results as a lazy ``xarray.Dataset``; runs that are not computed yet are NaN.

    Dimensions ``learner``, ``losses``, ``delays``, ``round`` and ``run``. Variables: ``regret`` (all five), and
    ``outstanding_max``, ``total_delay`` and ``lost`` (without ``round``). Fields that differ along an axis are coordinates, named
    after axis and field, as ``delays_delay``, ``learner_factor``: ``data.sel(delays_delay=10)`` chooses by it,
    ``jb.plots.against(data, x="delay")`` draws regret against it. ``open_sweep(out).to_pandas()`` is the table in pandas.
    While a sweep is extended to more rounds, its earlier rounds are available. Needs the extra ``jaxbandit[data]``.

    >>> import tempfile, jaxbandit as jb
    >>> spec = jb.Spec(rounds=40, runs=8, record=[10, 20, 40], learners=[jb.Uniform()], delays=[jb.delays.Fixed(2)],
    ...                losses=[jb.losses.Bernoulli([0.25, 0.75]), jb.losses.Bernoulli([0.5, 0.5])])
    >>> data = jb.open_sweep(jb.sweep(spec, tempfile.mkdtemp()).out)
    >>> dict(data.sizes)
    {'learner': 1, 'losses': 2, 'delays': 1, 'round': 3, 'run': 8}
    >>> data.regret.mean("run").isel(round=-1).values.ravel()
    array([10.,  0.])
    >>> data.sel(losses_means_1=0.5).regret.max().item()
    0.0
    """
    need("xarray", "data", "open_sweep")
    from jaxbandit.sweeps.data import SweepData, lazy

    store = Store.open(path)
    files = store.to_read()
    data = {}
    for name, (by_round, text) in VARIABLES.items():
        dimensions = [*DIMENSIONS.values(), *(["round"] if by_round else []), "run"]
        data[name] = (dimensions, lazy(store, files, name, by_round), {"long_name": text})
    coordinates: dict[str, Any] = {DIMENSIONS[axis]: store.labels(axis) for axis in AXES}
    swept = _swept_coordinates(store)
    coordinates |= swept | {"round": store.recorded}
    if "until" in store.manifest:
        ends = zip(*limits_of(store), strict=True)
        coordinates |= {
            name: ("losses", list(values)) for name, values in zip(("regret_least", "regret_most"), ends, strict=True)
        }
    if store.runs <= MOST_LISTED_RUNS:
        coordinates["run"] = np.arange(store.runs)
    opened = SweepData(data, coordinates, _attributes(store))
    for name in swept:
        opened = opened.set_xindex(name)  # so that .sel(delays_delay=10) finds it
    return opened


def _swept_coordinates(store: Store) -> dict[str, Any]:
    """The fields that differ along an axis, as coordinates: ``data.delays_delay``; NaN, or "", where a field is absent."""
    found = {}
    for axis in AXES:
        settings = store.manifest["axes"][axis]
        rows = [dict(_flat(setting["about"])) for setting in settings]
        swept = {field for setting in settings for field in setting["swept"]}
        for field in dict.fromkeys(field for row in rows for field in row):
            values = [row.get(field) for row in rows]
            varies = len({repr(value) for value in values if value is not None}) > 1  # among those that have such a field
            if field not in swept and (not varies or field.rpartition("_")[2] in SIZES):
                continue
            if all(value is None or is_number(value) for value in values):
                found[f"{DIMENSIONS[axis]}_{field}"] = [np.nan if value is None else float(value) for value in values]
            elif all(value is None or isinstance(value, str | bool) for value in values):
                found[f"{DIMENSIONS[axis]}_{field}"] = ["" if value is None else str(value) for value in values]
    return {name: (name.partition("_")[0], values) for name, values in found.items()}


def _flat(about: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a learner or model, those of a nested one as ``base_scale``, numbers in a short list as ``means_2``."""
    for name, value in about.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{name}_")
        elif isinstance(value, list) and len(value) <= MOST_LISTED_NUMBERS and all(map(is_number, value)):
            yield from ((f"{path}{name}_{place}", number) for place, number in enumerate(value, 1))
        else:
            yield f"{path}{name}", value


def _attributes(store: Store) -> dict[str, Any]:
    manifest = store.manifest
    return {
        "title": "jaxbandit sweep",
        "rounds": store.rounds,
        "runs": store.runs,
        "seed": manifest["seed"],
        "settings": json.dumps(manifest["axes"]),
        "environments": json.dumps(manifest["environments"]),
    } | ({"until": manifest["until"]["asked"]} if "until" in manifest else {})


def export(path: str | os.PathLike, target: str | os.PathLike, *, force: bool = False) -> Path:
    """Write a sweep as netCDF4 (``.nc``, Fletcher-32 checksums) or zarr (``.zarr``, CRC-32C); whole or not at all.

    An export that is already there is replaced only with ``force``.
    """
    target = checked_path("export(target=…)", target)
    if target.suffix not in (".nc", ".zarr"):
        raise ValueError(f"{target}: the name of an export ends in .nc or .zarr")
    if os.path.lexists(target) and not (force and _is_export(target)):
        remedy = "this is not an export; move it away" if force else "this is already there; replace it (force=True, --force)"
        raise StoreError(f"{target}: {remedy}, or choose another name")
    data = open_sweep(path).load()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with in_plain_words(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        _write_netcdf(data, draft) if target.suffix == ".nc" else _write_zarr(data, draft)
        if target.is_dir():
            os.replace(target, old := draft.with_suffix(".old"))
            os.replace(draft, target)
            shutil.rmtree(old)
        else:
            os.replace(draft, target)
    except ImportError as error:
        raise ImportError("export needs netCDF4 and zarr: pip install 'jaxbandit[data]'") from error
    except (OSError, RuntimeError, ValueError) as error:  # each library reports trouble with the disk in its own way
        if isinstance(error, StoreError):
            raise
        if shutil.disk_usage(target.parent).free < data.nbytes or (isinstance(error, OSError) and error.errno in FULL):
            words = "the disk is full; nothing was written, so make room and run the same command"
            raise StoreError(f"{target}: {words}") from error
        raise StoreError(f"{target}: this cannot be written ({error})") from error
    finally:
        shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)
    return target


def _is_export(target: Path) -> bool:
    return (target / "zarr.json").is_file() if target.suffix == ".zarr" else target.is_file() and not target.is_symlink()


def _write_netcdf(data: Any, path: Path) -> None:
    checked = {"zlib": True, "fletcher32": True}
    data.to_netcdf(path, engine="netcdf4", encoding={name: checked for name in data.data_vars})


def _write_zarr(data: Any, path: Path) -> None:
    from zarr.codecs import Crc32cCodec, ZstdCodec

    with warnings.catch_warnings():
        # Zarr warns of texts, and of one file of metadata for all, which are young in zarr 3; zarr 2 has an older CRC-32C.
        warnings.simplefilter("ignore")
        checked = {"compressors": [ZstdCodec(), Crc32cCodec()]}
        data.to_zarr(path, encoding={name: checked for name in data.data_vars}, zarr_format=3)
