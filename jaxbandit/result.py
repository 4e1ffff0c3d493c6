"""What a simulation returns: arrays on the host, with the means to save, go on, label and draw them."""

import dataclasses
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandit.projection import Warm
from jaxbandit.rollout import State

FORMAT = 2


def fingerprint(learner, losses, delays, key, measure=()) -> dict[str, str]:
    """A short mark of each of the things a run is a function of."""

    def mark(tree):
        leaves, structure = jax.tree.flatten(tree)
        digest = hashlib.sha256(str(structure).encode())
        for leaf in leaves:
            array = np.asarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        return digest.hexdigest()[:16]

    parts = {"learner": learner, "losses": losses, "delays": delays, "key": jax.random.key_data(key), "measure": measure}
    return {name: mark(part) for name, part in parts.items()}


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """A mean over runs with its 95 % interval, for each recorded round."""

    rounds: np.ndarray  # [C]
    mean: np.ndarray  # [C]
    error: np.ndarray  # [C] standard error of the mean
    low: np.ndarray  # [C]
    high: np.ndarray  # [C]


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """The outcome of :func:`jaxbandit.simulate`: NumPy arrays, C recorded rounds, runs on the last axis.

    >>> import jax, jaxbandit as jb
    >>> result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.25, 0.75]), jb.delays.Fixed(3), rounds=100, runs=4,
    ...                      key=jax.random.key(0))
    >>> float(result.estimate().mean[-1]), result.total_delay
    (25.0, array([294, 294, 294, 294]))
    """

    rounds: np.ndarray  # [C] int64, the recorded rounds, the last one is the horizon
    regret: np.ndarray  # [C, runs] pseudo-regret: x_t in place of the sampled arm, best arm in hindsight
    outstanding_max: np.ndarray  # [runs] int32, σ_max
    total_delay: np.ndarray  # [runs] int64, Σ_s min(d_s, T - s), exact
    lost: np.ndarray  # [runs] int32, plays whose feedback never arrives
    residual: float  # the worst |Σx - 1| the projection left, before scaling; 0 for learners without one
    state: list[np.ndarray]  # leaves of the final state, runs last where a leaf has them
    first_run: int
    identity: dict[str, str]
    per_run: list[bool]  # which leaves of the state have the runs as last axis
    probabilities: np.ndarray | None = None  # [C, K, runs], if asked for
    measured: dict[str, np.ndarray] = dataclasses.field(
        default_factory=dict
    )  # name -> [C, ..., runs], what ``measure`` asked for

    @property
    def run_ids(self) -> np.ndarray:
        """``[runs]`` the id of each run."""
        return np.arange(self.first_run, self.first_run + self.regret.shape[1])

    @classmethod
    def assemble(cls, recorded, blocks, *, game, runs, first_run, identity) -> "Result":
        """Join what the blocks of runs brought back; what belongs to padding is dropped."""

        records = [jax.tree.map(lambda *parts: np.concatenate(parts), *parts) for parts, _ in blocks]
        records = jax.tree.map(lambda *parts: np.concatenate(parts, -1)[..., :runs], *records)
        leaves, structure = zip(*(jax.tree.flatten(state) for _, state in blocks), strict=True)
        per_run = _has_runs(game, leaves[0])
        joined = [
            np.concatenate([block_leaves[i] for block_leaves in leaves], -1)[..., :runs] if has else leaves[0][i]
            for i, has in enumerate(per_run)
        ]
        state: State = jax.tree.unflatten(structure[0], joined)
        if hasattr(game.learner, "check_state"):
            game.learner.check_state(state.learner)
        warm = [leaf for leaf in jax.tree.leaves(state, is_leaf=lambda leaf: isinstance(leaf, Warm)) if isinstance(leaf, Warm)]

        def for_each_run(value):
            return np.broadcast_to(value, (runs,)).copy()

        return cls(
            rounds=np.asarray(recorded, np.int64),
            regret=records.regret,
            outstanding_max=for_each_run(state.pending.outstanding_max),
            total_delay=for_each_run(state.pending.total_outstanding.exact()),
            lost=for_each_run(state.pending.lost),
            residual=max((float(np.max(leaf.residual)) for leaf in warm), default=0.0),
            state=joined,
            first_run=first_run,
            identity=identity,
            per_run=per_run,
            probabilities=records.probabilities,
            measured=records.measured,
        )

    def block_state(self, like: State, start: int, block: int) -> State:
        """The state of the runs ``start … start + block - 1``, in the structure of ``like``; padding repeats a run."""
        columns = np.minimum(np.arange(start, start + block), self.regret.shape[1] - 1)
        leaves, structure = jax.tree.flatten(like)
        mine = [leaf[..., columns] if has else leaf for leaf, has in zip(self.state, self.per_run, strict=True)]
        if [(leaf.shape, leaf.dtype) for leaf in mine] != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError(
                "resume: the saved state has other shapes or precision than this simulation (is jax_enable_x64 set differently?)"
            )
        return jax.tree.unflatten(structure, mine)

    def estimate(self, control_variates: bool = True) -> Estimate:
        """Mean regret and its 95 % interval at each recorded round (Student's t over runs).

        With ``measure=[jb.ControlVariates()]`` recorded, the mean is the intercept of a least squares fit of the regret on
        quantities F whose mean is known to be 0: regret = mean + <c, F> + noise. The error is that of the intercept. With
        few runs fewer F are used (at most one for every ten runs), with fewer than 10 K runs none.
        ``control_variates=False`` gives the plain mean.
        """
        regret = self.regret.astype(np.float64)
        features = self.measured.get("control_variates") if control_variates else None
        rows = [
            _intercept(regret[c], None if features is None else _increments(features[: c + 1], self.rounds[: c + 1]))
            for c in range(len(regret))
        ]
        mean, error, freedom = (np.array(column) for column in zip(*rows, strict=True))
        half = np.array([_student(int(f)) for f in freedom]) * error
        return Estimate(self.rounds, mean, error, mean - half, mean + half)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; :meth:`load` reads it back (no pickle)."""
        path = Path(path)
        arrays = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self) if isinstance(getattr(self, f.name), np.ndarray)
        }
        arrays |= {f"state_{i}": leaf for i, leaf in enumerate(self.state)}
        arrays |= {f"measured_{name}": array for name, array in self.measured.items()}
        about = {
            "format": FORMAT,
            "residual": self.residual,
            "first_run": self.first_run,
            "identity": self.identity,
            "per_run": self.per_run,
            "versions": {"jax": jax.__version__, "numpy": np.__version__},
        }
        arrays["about"] = np.array(json.dumps(about))
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".part", delete=False) as file:
            try:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                os.unlink(file.name)
                raise
        os.replace(file.name, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Result":
        """Read a file written by :meth:`save`."""
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                arrays = {name: file[name] for name in file.files if name != "about"}
        except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise ValueError(f"Result.load({str(path)!r}): this is not a file written by Result.save") from error
        if about.get("format") != FORMAT:
            raise ValueError(
                f"Result.load({str(path)!r}): format {about.get('format')} is not known here; this version reads format {FORMAT}"
            )
        state = [arrays.pop(f"state_{i}") for i in range(len(about["per_run"]))]
        measured = {name: arrays.pop(f"measured_{name}") for name in [n[9:] for n in arrays if n.startswith("measured_")]}
        kept = {name: about[name] for name in ("residual", "first_run", "identity", "per_run")}
        return cls(**arrays, **kept, state=state, measured=measured)

    def to_xarray(self):
        """A labelled ``xarray.Dataset`` with dimensions ``round``, ``run`` (and ``arm``). Needs the extra ``jaxbandit[data]``."""
        try:
            import xarray
        except ImportError as error:
            raise ImportError("to_xarray needs xarray: pip install 'jaxbandit[data]'") from error
        variables: dict[str, Any] = {"regret": (("round", "run"), self.regret)}
        for name in ("outstanding_max", "total_delay", "lost"):
            variables[name] = ("run", getattr(self, name))
        if self.probabilities is not None:
            variables["probability"] = (("round", "arm", "run"), self.probabilities)
        for name, array in self.measured.items():
            between = [f"{name}_{axis}" for axis in range(1, array.ndim - 1)]
            variables[name] = (("round", *between, "run"), array)
        data = xarray.Dataset(variables, {"round": self.rounds, "run": self.run_ids}, {"residual": self.residual})
        data.regret.attrs["long_name"] = "pseudo-regret"
        return data

    def plot(self, **options):
        """Regret with its 95 % interval as a ``matplotlib.figure.Figure``; options as in :func:`jaxbandit.plots.regret`."""
        from jaxbandit import plots

        return plots.regret({"regret": self}, **options)


BINS = 8  # of log-time, for the control variates of one recorded round
RUNS_PER_FEATURE = 10


def _increments(features: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """``[p, runs]``: how much each of ``features [c, K, runs]`` grew within stretches of rounds, evenly spaced in log-time."""
    count, num_arms, runs = features.shape
    bins = min(BINS, count, runs // (RUNS_PER_FEATURE * num_arms))
    if bins == 0:
        return np.empty((0, runs))
    wanted = np.geomspace(rounds[0], rounds[-1], bins + 1)[1:]
    ends = np.unique([*np.searchsorted(rounds, wanted[:-1] * (1 - 1e-9)), count - 1])
    return np.diff(features[ends], axis=0, prepend=np.float64(0)).reshape(-1, runs)


def _intercept(values: np.ndarray, features: np.ndarray | None) -> tuple[float, float, int]:
    """The mean of ``values [runs]`` given that ``features [p, runs]`` have mean 0: with its standard error and freedom."""
    used = 0 if features is None else len(features)
    mean, error = _intercepts(values[None], features)
    return float(mean[0]), float(error[0]), max(len(values) - 1 - used, 0)


def _intercepts(values: np.ndarray, features: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """:func:`_intercept` of every row of ``values [n, runs]``: one fit serves them all."""
    runs = values.shape[1]
    mean = values.mean(1)
    deviations = values - mean[:, None]
    left = np.einsum("nr,nr->n", deviations, deviations)
    shift, leverage, used = 0.0, 0.0, 0
    if features is not None and len(features):
        # Normal equations of standardised features: they are nearly independent, so squaring their condition costs nothing.
        centre = features.mean(1)
        gram = features @ features.T - runs * np.outer(centre, centre)
        scale = np.sqrt(np.maximum(np.diag(gram), 0))
        scale = np.where(scale > 0, scale, np.inf)  # a feature that never moves takes no part
        gram, weights = gram / np.outer(scale, scale) + 1e-12 * np.eye(len(gram)), centre / scale
        along = (features @ deviations.T) / scale[:, None]  # [p, n]
        solved = np.linalg.solve(gram, np.column_stack([along, weights]))
        coefficients, leverage = solved[:, :-1], float(weights @ solved[:, -1])
        shift, used = coefficients.T @ weights, len(features)
        left = np.maximum(left - np.einsum("pn,pn->n", coefficients, along), 0)
    freedom = runs - 1 - used
    if freedom < 1:
        return mean, np.full(len(mean), np.nan)
    return mean - shift, np.sqrt(left / freedom * (1 / runs + leverage))


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t (Hill's expansion of it around the normal's; 1e-3 from 3 degrees on)."""
    if freedom < 1:
        return float("nan")
    if freedom == 1:
        return 12.706
    if freedom == 2:
        return 4.303
    z = 1.959963984540054
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return sum(term / freedom**power for power, term in enumerate(terms))


def _has_runs(game, leaves: Sequence[np.ndarray]) -> list[bool]:
    """Which leaves of the state have the runs as last axis: those whose shape is another with one run more."""
    more = dataclasses.replace(game, runs=jax.ShapeDtypeStruct((game.runs.shape[0] + 1,), np.uint32))
    others = jax.tree.leaves(jax.eval_shape(_start, more))
    return [leaf.shape != other.shape for leaf, other in zip(leaves, others, strict=True)]


def _start(game) -> State:
    return game.start()
