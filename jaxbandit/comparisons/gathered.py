"""Samples of regret from Results and datasets, and whether their runs can be paired."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit.results.comparison import Sample
from jaxbandit.results.result import Result

PAIRED = ("losses", "losses code", "delays", "delays code", "key")  # what runs with one id must have in common
AXES = ("learner", "losses", "delays")  # dimensions of an opened sweep


def gathered(given: object) -> tuple[dict[str, dict[str, Sample]], int, dict[str, dict[str, Result]]]:
    """Samples by environment and learner, the horizon, and the Results if there are any."""
    if _is_dataset(given):
        return *_of_sweep(given), {}
    if not isinstance(given, Mapping) or len(given) < 2:
        raise ValueError(
            f"jb.compare({show(given)}): give two Results or more by name, {{'UCB1': result, …}}, or an opened sweep"
        )
    samples, marks, rounds = {}, {}, {}
    for name, one in given.items():
        if not isinstance(name, str):
            raise TypeError(f"jb.compare({{{show(name)}: …}}): the name of a learner is a text")
        samples[name], marks[name], rounds[name] = _of_result(name, one) if isinstance(one, Result) else _of_dataset(name, one)
    first = next(iter(samples))
    for name in samples:
        _check_paired(first, name, samples, marks, rounds)
    results = {name: one for name, one in given.items() if isinstance(one, Result)}
    return {"": samples}, rounds[first], {"": results} if results else {}


def _is_dataset(given: Any) -> bool:
    # xarray is optional, so that its class cannot be asked for.
    return hasattr(given, "data_vars") and hasattr(given, "sizes")


def _of_result(name: str, result: Result) -> tuple[Sample, Mapping[str, str], int]:
    return Sample.of(result), result.identity, int(result.rounds[-1])


def _of_dataset(name: str, data: Any) -> tuple[Sample, Mapping[str, str], int]:
    if not _is_dataset(data) or "regret" not in data or {*data.regret.dims} != {"round", "run"}:
        raise TypeError(f"jb.compare({{{name!r}: {show(data)}}}): give a Result, or a dataset with regret by round and run")
    if "identity" not in data.attrs:
        raise ValueError(
            f"jb.compare({{{name!r}: …}}): this dataset does not tell its losses, delays and key; make it by Result.to_xarray"
        )
    last = data.regret.transpose("round", "run").isel(round=-1)
    return Sample(*_there(last["run"].values, last.values)), json.loads(data.attrs["identity"]), int(last["round"])


def _there(run_ids: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Runs that are computed, in ascending order: those of a sweep that are not are NaN."""
    order = np.argsort(run_ids)
    ids, values = np.asarray(run_ids)[order], np.asarray(values, np.float64)[order]
    return ids[np.isfinite(values)], values[np.isfinite(values)]


def _check_paired(
    one: str, other: str, samples: Mapping[str, Sample], marks: Mapping[str, Mapping[str, str]], rounds: Mapping[str, int]
) -> None:
    differ = [part.removesuffix(" code") for part in PAIRED if marks[one].get(part) != marks[other].get(part)]
    if differ:
        raise ValueError(
            f"jb.compare: {other!r} has other {' and '.join(dict.fromkeys(differ))} than {one!r}, so that their runs cannot be paired; "
            "simulate both with the same losses, delays and key"
        )
    if rounds[one] != rounds[other]:
        raise ValueError(
            f"jb.compare: {other!r} has {rounds[other]} rounds and {one!r} has {rounds[one]}; compare the same horizon"
        )
    common = np.intersect1d(samples[one].run_ids, samples[other].run_ids).size
    if common < 2:
        raise ValueError(
            f"jb.compare: {other!r} and {one!r} have {common} run{'s' if common != 1 else ''} in common; simulate two or more run ids with both"
        )


def _of_sweep(data: Any) -> tuple[dict[str, dict[str, Sample]], int]:
    """The learners of an opened sweep, also of a part of it that was chosen by ``.sel``, in each pair of losses and delays."""
    if "regret" not in data or "run" not in data.regret.dims or "learner" not in data.regret.dims:
        raise ValueError("jb.compare(dataset): give an opened sweep, whose regret has the dimensions learner and run")
    last = data.regret.isel(round=-1) if "round" in data.regret.dims else data.regret
    others = [name for name in AXES[1:] if name in last.dims]
    extra = {*map(str, last.dims)} - {*AXES, "run"}
    if extra:
        raise ValueError(f"jb.compare(dataset): regret has the dimension {sorted(extra)[0]!r}; choose one of it by .isel")
    labels = [str(label) for label in np.atleast_1d(last["learner"].values)]
    last = last.transpose(*others, "learner", "run").load()
    run_ids = last["run"].values
    found: dict[str, dict[str, Sample]] = {}
    for place in np.ndindex(*last.shape[:-2]):
        name = "; ".join(str(last[axis].values[index]) for axis, index in zip(others, place, strict=True))
        each = {label: Sample(*_there(run_ids, row)) for label, row in zip(labels, last.values[place], strict=True)}
        each = {label: sample for label, sample in each.items() if sample.run_ids.size > 1}
        if len(each) > 1:
            found[name] = each
    if not found:
        raise ValueError("jb.compare(dataset): no environment has two learners with two runs or more")
    return found, int(last["round"]) if "round" in last.coords else 0
