"""``jb.compare``: learners side by side."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit._checks.inputs import check_outside_transformations, check_rounds, check_runs, check_switch, given_key
from jaxbandit._checks.warn import caller
from jaxbandit.comparisons.gathered import gathered
from jaxbandit.comparisons.simulated import games_of, simulated
from jaxbandit.delays import Delays
from jaxbandit.learners.base import LearnerLike
from jaxbandit.losses import Losses
from jaxbandit.results.comparison import Comparison


def compare(
    learners: LearnerLike | Mapping[str, object] | object,
    losses: Losses | Mapping[str, Losses] | Sequence[Losses] | None = None,
    delays: Delays | Mapping[str, Delays] | Sequence[Delays] | None = None,
    *,
    rounds: int | None = None,
    runs: int | None = None,
    key: jax.Array | None = None,
    seed: int | None = None,
    until: float | str | None = None,
    resume: Comparison | None = None,
    record: int | Sequence[int] | np.ndarray = 50,
    spacing: str = "log",
    first_run: int = 0,
    probabilities: bool = False,
    measure: Sequence[Any] = (),
    progress: bool = False,
) -> Comparison:
    """Compare the regret of learners at the horizon, run by run: differences with intervals and corrected tests.

    ``compare({"name": result, …})`` compares Results, or datasets that :meth:`jaxbandit.Result.to_xarray` made. ``compare(data)``
    compares the learners of a sweep that :func:`jaxbandit.open_sweep` opened, as with ``until`` if the sweep had it. ``compare(learners, losses, delays, rounds=…, runs=…)``
    simulates every learner in every environment first, several at the same time.

    Runs with the same id face the same losses and delays, so that differences are paired. Results of different losses, delays
    or keys raise an error. P-values are corrected by Holm for all pairs in all environments.

    With a fixed number of runs, intervals and p-values are Student's. With ``until``, also of Results, they are those of confidence sequences
    (:mod:`jaxbandit.results.sequential`): they hold for any distribution of the regret and any number of looks, and
    the intervals hold for all pairs at once.

    Args:
      learners: Results by name or an opened sweep; or learners to simulate, in a list or by name.
      losses, delays: one loss model and one delay model, or several in a list or by name: every pair is an environment.
      rounds, runs, key, seed, record, spacing, first_run, probabilities, measure, progress: as in :func:`jaxbandit.simulate`.
      until: ``"decided"`` adds runs until every pair is significantly different, a number or share (``0.5``, ``"2%"``) until half
        of each interval is so small (a share of the smaller mean regret). ``runs`` is then the largest number of runs of a
        learner. Only learners with a pair that is still open get more runs.
      resume: an earlier comparison with ``until``, to which runs are added.

    Returns:
      A :class:`Comparison`.

    >>> import jaxbandit as jb
    >>> found = jb.compare({"UCB1": jb.DelayedUCB1(), "uniform": jb.Uniform()}, jb.losses.Bernoulli([0.3, 0.7]),
    ...                    jb.delays.Fixed(5), rounds=500, runs=5000, seed=0, until="decided")
    >>> found.difference("UCB1", "uniform").significant, found.learners[0].learner, found.learners[0].runs
    (True, 'UCB1', 512)
    """
    if losses is None and delays is None:
        given = {"rounds": rounds, "runs": runs, "key": key, "seed": seed, "until": until, "resume": resume}
        extra = next((name for name, value in given.items() if value is not None), None)
        if extra is not None:
            raise ValueError(
                f"jb.compare({extra}=…): this is for a simulation; give learners, losses and delays, or Results alone"
            )
        return gathered(learners)
    check_outside_transformations("compare", learners, losses, delays, rounds, runs, first_run, key, seed)
    check_rounds(rounds)
    check_runs(runs, first_run)
    check_switch("progress", progress)
    assert rounds is not None
    assert runs is not None
    if runs < 2:
        raise ValueError(f"runs={runs}: a comparison needs 2 runs or more")
    options: dict[str, Any] = {"rounds": int(rounds), "key": given_key(key, seed), "record": record, "spacing": spacing}
    options |= {"probabilities": probabilities, "measure": measure}
    games = games_of(learners, losses, delays)
    found = simulated(games, until, runs=int(runs), first_run=int(first_run), resume=resume, progress=progress, **options)
    if found.reached is False:
        warnings.warn(f"until={found.until}: not reached with runs={runs}; resume with more runs", stacklevel=caller())
    return found
