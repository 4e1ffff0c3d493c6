"""simulator.c, compiled on first use: the regrets of simulator.py about ten times as fast, for many environments.

The two programs have the same definitions and different random numbers; ``python experiments/advice_validation/compiled.py`` compares
their means for every learner.
"""

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import simulator

KINDS = ["uniform", "thompson", "ucb1", "kl-ucb", "tsallis-inf rv", "censored-thompson", "censored-kl-ucb"]  # as in simulator.c


class _Environment(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ("arms", "rounds", "choices")),
        *((name, ctypes.c_void_p) for name in ("rates", "medians", "spreads", "failures", "values")),
        *((name, ctypes.c_double) for name in ("window", "horizon")),
        ("means", ctypes.c_void_p),
    ]


@functools.cache
def _library():
    source = Path(__file__).with_name("simulator.c")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "simulator.so")
        subprocess.run(["cc", "-Ofast", "-march=native", "-shared", "-fPIC", "-o", file, source, "-lm"], check=True)
        return ctypes.CDLL(str(file))


def regrets(environment, label, window, runs, seed):
    """As ``simulator.regrets``: text of the constants -> regret ``[runs]``; ``window`` is in rounds."""
    constants, _ = simulator.LEARNERS[label]
    kind = KINDS.index("thompson" if label == "discounted-thompson" else label)
    failures = np.where(np.isfinite(environment.failures), environment.failures, -1.0)
    columns = [environment.rates, environment.medians, environment.spreads, failures, environment.values]
    arrays = [np.ascontiguousarray(one, np.float64) for one in [*columns, simulator.true_means(environment)]]
    *places, means = (one.ctypes.data for one in arrays)
    given = _Environment(
        len(environment.rates),
        environment.rounds,
        environment.values.shape[1],
        *places,
        environment.window,
        environment.horizon,
        means,
    )
    edges, found = np.ascontiguousarray(simulator.age_edges(window), np.int32), {}
    for number, (text, constant) in enumerate(constants.items()):
        start = int(np.random.default_rng((*seed, number)).integers(2**63))
        found[text] = np.empty(runs)
        _library().regrets(
            ctypes.byref(given),
            ctypes.c_int(kind),
            ctypes.c_double(1.0 if constant is None else constant),
            ctypes.c_int(len(edges) - 1),
            edges.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int(runs),
            ctypes.c_uint64(start),
            found[text].ctypes.data_as(ctypes.c_void_p),
        )
    return found


def differences(environment, window, runs, seed):
    """Learner and constants -> means of the two programs, and their difference in standard errors."""
    found = {}
    for label in simulator.LEARNERS:
        ours, theirs = (one(environment, label, window, runs, seed) for one in (regrets, simulator.regrets))
        for text in ours:
            error = np.sqrt((ours[text].var(ddof=1) + theirs[text].var(ddof=1)) / runs)
            means = float(ours[text].mean()), float(theirs[text].mean())
            found[f"{label}|{text}"] = (*means, float((means[0] - means[1]) / error))
    return found


if __name__ == "__main__":
    from validate import environment as draw

    for index in range(6):
        one = draw(np.random.default_rng((2026, index)))
        for name, (ours, theirs, errors) in differences(one, 256 if one.window < 200 else 1024, 128, (index,)).items():
            print(
                f"{index:3d} {len(one.rates):3d} arms  {name:42} C {ours:8.2f}  NumPy {theirs:8.2f}  {errors:+5.1f} standard errors"
            )
