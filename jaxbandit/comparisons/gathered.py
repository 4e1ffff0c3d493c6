"""Samples of regret from Results and datasets, and whether their runs can be paired."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxbandit._core.fields import show
from jaxbandit.results.comparison import Comparison, Sample
from jaxbandit.results.result import Result

PAIRED = ("losses", "losses code", "delays", "delays code", "key")  # must be equal for runs to be paired by id
AXES = ("learner", "losses", "delays")  # dimensions of an opened sweep


def gathered(given: object) -> Comparison:
    """Compare Results, datasets or an opened sweep."""
    if _is_dataset(given):
        return _of_sweep(given)
    if not isinstance(given, Mapping) or len(given) < 2:
        raise ValueError(
            f"jb.compare({show(given)}): give two Results or more by name, {{'UCB1': result, …}}, or an opened sweep"
        )
    samples, marks, rounds = {}, {}, {}
    for name, one in given.items():
        if not isinstance(name, str):
            raise TypeError(f"jb.compare({{{show(name)}: …}}): the name of a learner is a text")
        samples[name], marks[name], rounds[name] = _of_result(name, one) if isinstance(one, Result) else _of_dataset(name, one)
    first, *others = samples
    for name in others:
        _check_paired(first, name, samples, marks, rounds)
    results = {name: one for name, one in given.items() if isinstance(one, Result)}
    by_environment = {"": results} if results else {}
    stopped = [one.stopping for one in results.values() if one.stopping is not None]
    if not stopped:
        return Comparison.of({"": samples}, rounds[first], by_environment)
    # The numbers of runs were chosen by looking at the regrets, for which Student's test does not hold.
    limits = {"": (stopped[0].least, stopped[0].most)}
    return Comparison.of({"": samples}, rounds[first], by_environment, limits, until=stopped[0].until)


def _is_dataset(given: Any) -> bool:
    # xarray is optional, so that isinstance cannot be used.
    return hasattr(given, "data_vars") and hasattr(given, "sizes")


def _of_result(name: str, result: Result) -> tuple[Sample, Mapping[str, str], int]:
    sample = Sample.of(result)
    _check_finite(name, sample)
    return sample, result.identity, int(result.rounds[-1])


def _of_dataset(name: str, data: Any) -> tuple[Sample, Mapping[str, str], int]:
    if not _is_dataset(data) or "regret" not in data or {*data.regret.dims} != {"round", "run"}:
        raise TypeError(f"jb.compare({{{name!r}: {show(data)}}}): give a Result, or a dataset with regret by round and run")
    if "identity" not in data.attrs:
        raise ValueError(
            f"jb.compare({{{name!r}: …}}): this dataset does not contain its losses, delays and key; make it by Result.to_xarray"
        )
    last = data.regret.transpose("round", "run").isel(round=-1)
    sample = Sample(*_in_order(last["run"].values, last.values))
    _check_finite(name, sample)
    return sample, json.loads(data.attrs["identity"]), int(last["round"])


def _check_finite(name: str, sample: Sample) -> None:
    """Raise if a regret is not finite: leaving out runs because of their regret would bias the sample."""
    bad = np.flatnonzero(~np.isfinite(sample.regret))
    if bad.size:
        raise ValueError(
            f"jb.compare: the regret of {name!r} is {sample.regret[bad[0]]} in run {sample.run_ids[bad[0]]} ({bad.size} of "
            f"{len(sample.regret)} runs); find the cause, a comparison without these runs would be biased"
        )


def _in_order(run_ids: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Run ids in ascending order, each once, and their regrets."""
    order = np.argsort(run_ids, kind="stable")
    ids = np.asarray(run_ids)[order]
    twice = ids[1:][ids[1:] == ids[:-1]]
    if twice.size:
        raise ValueError(
            f"jb.compare: run {twice[0]} is there twice; give each run once, for example with .drop_duplicates('run')"
        )
    return ids, np.asarray(values, np.float64)[order]


def _there(run_ids: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The computed runs in ascending order: missing runs of a sweep are NaN."""
    ids, values = _in_order(run_ids, values)
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


def _of_sweep(data: Any) -> Comparison:
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
    limits: dict[str, tuple[float, float]] = {}
    for place in np.ndindex(*last.shape[:-2]):
        name = "; ".join(str(last[axis].values[index]) for axis, index in zip(others, place, strict=True))
        each = {label: Sample(*_there(run_ids, row)) for label, row in zip(labels, last.values[place], strict=True)}
        each = {label: sample for label, sample in each.items() if sample.run_ids.size > 1}
        if len(each) > 1:
            found[name] = each
            if "until" in data.attrs:
                at = dict(zip(others, place, strict=True)).get("losses", 0)
                low, high = (float(np.atleast_1d(last[end].values)[at]) for end in ("regret_least", "regret_most"))
                limits[name] = low, high
    if not found:
        raise ValueError("jb.compare(dataset): no environment has two learners with two runs or more")
    rounds = int(last["round"]) if "round" in last.coords else 0
    if not limits:
        return Comparison.of(found, rounds)
    if rounds != data.attrs["rounds"]:
        raise ValueError(
            f"jb.compare(dataset): runs were added until their regrets at round {data.attrs['rounds']} were known, and these are of round "
            f"{rounds}; compare that round"
        )
    return Comparison.of(found, rounds, None, limits, until=data.attrs["until"])
