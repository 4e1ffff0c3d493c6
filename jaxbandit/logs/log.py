"""A log of a live system as losses and delays: the arm and time of each action, and the time of its conversion, if any.

Times are whole nanoseconds, so that no tie is lost or made by rounding.
"""

import dataclasses
import os
import warnings
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxbandit._core.display import number
from jaxbandit._core.fields import show
from jaxbandit.delays import Empirical, EmpiricalByArm, LossDependent, Trace
from jaxbandit.logs.columns import read_columns
from jaxbandit.logs.dependence import Dependence, by_arm, dependence, duration, pooling
from jaxbandit.logs.posterior import Draws, Outcomes, Rates, draw, fit_rates, mean_values
from jaxbandit.logs.times import (
    NO_TIME,
    UNITS,
    TimeFormat,
    Times,
    clock_change,
    read_names,
    read_propensities,
    read_times,
    read_values,
    read_window,
    read_zone,
)
from jaxbandit.losses import Bernoulli

POINTS = 256  # quantiles of the delays of each arm
CUT = 0.05  # share of the rewards that is cut off by the scale, from which a warning is given
LATE, FEW = 0.1, 10  # share and number of the conversions after the window, from which a warning is given
KNOWN = 0.1  # share of the rows whose window closed within the log, below which a warning is given
DEVIATION, LITTLE = 5.0, 0.1  # standard errors between propensities and the log; share of the rows that weights leave


class LogRows(NamedTuple):
    """The rows of a log, in order of time."""

    acted: np.ndarray  # [n] int64, nanoseconds since 1970
    came: np.ndarray  # [n] int64, NO_TIME: no feedback
    losses: np.ndarray  # [n] in [0, 1], of the rows with feedback
    arms: np.ndarray  # [n] names
    weights: np.ndarray  # [n] inverse propensities, 1 where none are logged


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
    """A log read by :func:`load_log`: every row is a round, in order of time."""

    arms: list[str]
    counts: np.ndarray  # [K] rows of each arm whose outcome is known: their window closed within the log
    effective: np.ndarray  # [K] as many equally weighted rows would give the same standard error; without propensities the counts
    means: np.ndarray  # [K] mean loss: posterior means, partially pooled across arms
    errors: np.ndarray  # [K] standard deviations of the posterior
    delays: LossDependent  # recorded delays by outcome, and for conversions by arm; for any number of rounds
    trace: Trace  # the delays as they were, row by row; no conversion: until the window closed
    converted: int  # rows with feedback in time
    late: int  # rows with feedback after the window: they count as no conversion
    unknown: int  # rows without feedback whose window was open when the log ended: they count nowhere but in the trace
    window_rounds: float  # how many later actions fall into a window, in the median
    window: int | None  # nanoseconds; None: all rows have feedback
    dependence: Dependence  # whether the delays of conversions differ by arm
    duplicates: int  # rows that repeat an earlier one in all columns, whether they were dropped or not
    cautions: tuple[str, ...]  # possible problems of the log or of how it is read
    scale: float  # rewards were divided by it
    rates: Rates = dataclasses.field(repr=False)  # the posterior of the conversion rates
    outcomes: Outcomes = dataclasses.field(repr=False)  # the rows whose outcome is known
    rows: LogRows = dataclasses.field(repr=False)

    @property
    def losses(self) -> Bernoulli:
        """Bernoulli losses with the mean losses of the log: a plug-in estimate, whose standard errors are ``errors``."""
        return Bernoulli(self.means)

    @property
    def rounds(self) -> int:
        return int(np.shape(self.trace.delays)[0])

    @property
    def binary(self) -> bool:
        """Whether all rewards are 0 or 1."""
        return bool(np.isin(self.outcomes.rewards, (0.0, 1.0)).all())

    def with_window(self, window: int) -> "Log":
        """The same log with another window, in nanoseconds: later conversions count as failures."""
        return _log(self.rows, window, self.duplicates, self.scale)

    def prior(self, *, weight: float = 1.0, arms: Sequence[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Losses and rewards of each arm, ``[K]`` each, as a prior for ``DelayedThompson(prior_losses, prior_rewards)``.

        .. math:: \\text{losses}_i = w \\, n_i (1 - \\bar r_i), \\quad \\text{rewards}_i = w \\, n_i \\bar r_i

        with :math:`n_i` the rows of arm i whose window closed within the log and :math:`\\bar r_i` their mean reward. With logged
        propensities the mean is weighted by their inverse, and :math:`n_i` is the number of equally weighted rows with the same standard
        error. No pooling across arms takes place.

        Args:
          weight: the number of live decisions that a row of the log is worth, from 0 to 1. 1: the log is as good as the campaign's own
            feedback. 0.1: ten rows count as one decision, for a log that is old or has other visitors. 0: a uniform prior.
          arms: names in the order of the agent's arms; by default ``log.arms``, which are sorted. An arm that the log does not have
            gets 0. Arms of the log that are not listed are left out.

        >>> import jaxbandit as jb
        >>> log = jb.load_log(jb.logs.example(), arm="campaign", action="clicked_at", feedback="converted_at", window="7d")
        >>> losses, rewards = log.prior(weight=0.1, arms=["travel", "garden", "new"])
        >>> rewards.round(1)
        array([5.7, 7.9, 0. ])
        >>> learner = jb.DelayedThompson(losses, rewards)
        """
        if not isinstance(weight, int | float | np.number) or isinstance(weight, bool) or not 0 <= weight <= 1:
            raise ValueError(f"prior(weight={show(weight)}): give a number from 0 to 1, the decisions that a row is worth")
        names = self.arms if arms is None else list(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else []
        known = [name for name in names if name in self.arms]
        if not known or len(set(names)) < len(names):
            raise ValueError(f"prior(arms={show(arms)}): give a list of names, each once, some of them out of {show(self.arms)}")
        which, weights = self.outcomes.which, self.outcomes.weights
        total = np.bincount(which, weights, len(self.arms))
        mean = np.bincount(which, weights * self.outcomes.rewards, len(self.arms)) / np.where(total > 0, total, 1)
        rewards = weight * self.effective * mean
        place = [self.arms.index(name) if name in self.arms else -1 for name in names]
        losses = weight * self.effective - rewards
        return np.append(losses, 0.0)[place], np.append(rewards, 0.0)[place]

    def draw(self, random: np.random.Generator, count: int, points: int = POINTS) -> Draws:
        """``count`` draws of rates, rewards and delays of conversions from their posterior."""
        return draw(self.outcomes, self.rates, random, count, points)

    def summary(self) -> str:
        """The log as a short text: counts, rates and delays of conversions by arm, and cautions."""
        lines = [
            f"{self.rounds} round{'s' * (self.rounds > 1)}, {len(self.arms)} arm{'s' * (len(self.arms) > 1)}; {self.converted} with feedback in time, "
            f"{self.late} too late, {self.unknown} still open at the end",
        ]
        if self.duplicates:
            rows = "row of the source repeats" if self.duplicates == 1 else "rows of the source repeat"
            lines.append(f"{self.duplicates} {rows} an earlier row in every column")
        if self.window is not None:
            lines.append(f"a window of {duration(self.window)} is {number(self.window_rounds)} rounds in the median")
        width = max(len(name) for name in [*self.arms, "arm"])
        lines.append(f"{'arm':<{width}}  {'rows':>9}  {'mean loss':>9}  {'±':>7}  {'median delay':>13}  {'90%':>11}")
        delays = self.dependence
        for index, name in enumerate(self.arms):
            lines.append(
                f"{name:<{width}}  {self.counts[index]:>9}  {self.means[index]:>9.4f}  {1.96 * self.errors[index]:>7.4f}"
                f"  {duration(delays.medians[index]):>13}  {duration(delays.late[index]):>11}"
            )
        return "\n".join([*lines, delays.sentence(), *(f"Caution: {text}." for text in self.cautions)])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Log({self.rounds} rounds, {len(self.arms)} arms, {self.converted} converted)"


def load_log(
    source: Any,
    *,
    arm: str | None = None,
    action: str = "action_time",
    feedback: str = "feedback_time",
    loss: str | None = None,
    reward: str | None = None,
    window: str | float | timedelta | None = None,
    unit: str | None = None,
    time_format: str | None = None,
    timezone: str | None = None,
    propensity: str | None = None,
    duplicates: Literal["keep", "drop"] = "keep",
    scale: float = 1.0,
) -> Log:
    """Read a log of actions and their conversions: no conversion is a loss that is observed when its window closes.

    An empty feedback time does not mean that feedback is missing. It means "no conversion", which a live system knows ``window``
    after the action, and not before. Feedback later than that counts as no conversion. Rows whose window is still open at the
    end of the log do not count towards rates and delays.

    Args:
      source: a CSV file (``.gz`` too), a Parquet file, or a pandas or polars frame.
      arm: the column with what was chosen; None: there is one arm only.
      action: the column with the times of the actions; every row is an action.
      feedback: the column with the times of the feedback, empty where there was none.
      loss, reward: a column with numbers in [0, 1] for the rows with feedback; without one, feedback is a reward of 1.
      scale: rewards such as revenue are divided by it, and those above 1 then count as 1. A scale just above most rewards lets
        learners distinguish arms; a scale equal to the one largest reward of a heavy tail makes all others look alike.
      window: the attribution window of a conversion: ``"7d"``, ``"36h"``, ``"90m"``, a ``timedelta``, or a number in the log's
        unit. Needed if any feedback time is empty.
      unit: of times that are numbers: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; None: guessed from their size as times since
        1970, actions and feedback together, and seconds if they are small. Other times are ISO 8601, with a zone in all rows or none.
      time_format: the format of other dates, for ``datetime.strptime``: ``"%d.%m.%Y %H:%M"``.
      timezone: the zone of dates that have none: ``"UTC"``, ``"Europe/Berlin"``. Needed for local times if clocks changed.
      propensity: a column with the probability with which the arm of each row was drawn. Rates are then weighted by its inverse
        (self-normalised), so that they are those of all visitors and not of the ones that were shown an arm.
      duplicates: ``"drop"`` leaves out rows that repeat an earlier row in every column of the source.

    Raises:
      ValueError: if the log cannot be read, or if no window closes within it.

    >>> import tempfile, jaxbandit as jb
    >>> rows = ["shown,ad,bought", "0,red,30", "60,blue,", "120,red,", "180,blue,200", "240,red,", "900,red,"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.csv").write_text("\\n".join(rows))
    ...     log = jb.load_log(f"{folder}/log.csv", arm="ad", action="shown", feedback="bought", window="5m")
    >>> log.arms, log.counts.tolist(), np.asarray(log.trace.delays).tolist()
    (['blue', 'red'], [2, 3], [0, 3, 2, 0, 0, 0])
    """
    name = f"load_log({show(str(source)) if isinstance(source, str | os.PathLike) else type(source).__name__})"
    if loss is not None and reward is not None:
        raise ValueError(f"{name}: loss={loss!r} and reward={reward!r} are given; give one of the two")
    if unit is not None and unit not in UNITS:
        raise ValueError(f"{name}: unit={unit!r} is not known; use 's', 'ms', 'us' or 'ns'")
    if duplicates not in ("keep", "drop"):
        raise ValueError(f"{name}: duplicates={show(duplicates)} is not known; use 'keep' or 'drop'")
    if not isinstance(scale, int | float) or isinstance(scale, bool) or not 0 < scale < float("inf"):
        raise ValueError(f"{name}: scale={show(scale)} is not a number above 0")
    if scale != 1 and reward is None:
        raise ValueError(f"{name}: scale={show(scale)} divides rewards; name their column with reward=")
    value = loss or reward
    wanted = {"action": action, "feedback": feedback, "arm": arm, "loss" if loss else "reward": value, "propensity": propensity}
    columns, repeated = read_columns(
        name, source, {argument: column for argument, column in wanted.items() if column is not None}
    )
    times = read_times(
        name,
        (action, columns["action"]),
        (feedback, columns["feedback"]),
        TimeFormat(unit, time_format, read_zone(name, timezone)),
    )
    acted, came = times.acted, times.came
    given = np.ones(len(acted)) if value is None else read_values(name, value, columns["loss" if loss else "reward"], came, scale)
    rewards = np.minimum(given, 1)
    names = np.asarray(["all"] * len(acted) if arm is None else read_names(name, arm, columns["arm"]))
    weights = np.ones(len(acted)) if propensity is None else 1 / read_propensities(name, propensity, columns["propensity"])
    length = read_window(name, window, times.scale)
    if length is None and (came == NO_TIME).any():
        raise ValueError(
            f"{name}: {(came == NO_TIME).sum()} of {len(came)} rows have no {feedback}; give window=, as '7d', after which "
            "that means 'no conversion'"
        )
    order = np.argsort(acted, kind="stable")
    if duplicates == "drop":
        order = order[~repeated[order]]
    if length is not None and acted[order[0]] + length > acted[order[-1]]:
        raise ValueError(
            f"{name}: window={show(window)}: no window closes within the log, which lasts {duration(np.ptp(acted))}, so that no "
            "outcome is known; give a longer log or a shorter window="
        )
    rows = LogRows(acted, came, rewards if loss else 1 - rewards, names, weights)
    log = _log(LogRows(*(column[order] for column in rows)), length, int(repeated.sum()), scale)
    found = [*log.cautions, *_about_reading(log, times, duplicates), *_about_scale(given, came)]
    for text in found:
        warnings.warn(f"{name}: {text}", stacklevel=2)
    return dataclasses.replace(log, cautions=tuple(found))


def example() -> Path:
    """The path of an example log: 8,000 clicks on four campaigns in three weeks, with the times of their conversions.

    Its columns are ``campaign``, ``clicked_at`` and ``converted_at``. It is synthetic
    (``experiments/delay_trace/make_clicks.py``); no person's data is in it.

    >>> import jaxbandit as jb
    >>> log = jb.load_log(jb.logs.example(), arm="campaign", action="clicked_at", feedback="converted_at", window="7d")
    >>> log
    Log(8000 rounds, 4 arms, 397 converted)
    """
    return Path(__file__).with_name("clicks.csv")


def _log(rows: LogRows, window: int | None, duplicates: int, scale: float) -> Log:
    acted, came, losses, names, weights = rows
    closes = came if window is None else acted + window
    in_time = came <= closes
    known = np.where(in_time, came, closes)
    losses = np.where(in_time, losses, 1.0)
    numbers = np.arange(1, len(acted) + 1)
    waits = (np.searchsorted(acted, known, side="right") - numbers).astype(np.int32)
    # A row whose window is open may still convert: only early conversions would be seen. Without a window all rows have feedback.
    use = np.ones(len(acted), bool) if window is None else closes <= acted[-1]
    arms, which = np.unique(names, return_inverse=True)
    converted = in_time & (losses < 1)
    lengths = known - acted
    outcomes = Outcomes(*(column[use] for column in (which, waits, lengths, 1 - losses, converted, weights)))
    rates, (values, value_errors) = fit_rates(outcomes, len(arms)), mean_values(outcomes, len(arms))
    windows = np.searchsorted(acted, closes, side="right") - numbers
    labels = [str(one) for one in arms]
    return Log(
        arms=labels,
        counts=np.bincount(which[use], minlength=len(arms)),
        effective=rates.conversions + rates.misses,
        means=1 - rates.mean() * values,
        errors=np.hypot(values * rates.deviation(), rates.mean() * value_errors),
        delays=_delays(outcomes, window, len(arms)),
        trace=Trace(waits),
        converted=int(in_time.sum()),
        late=int((~in_time & (came != NO_TIME)).sum()),
        unknown=int((~in_time & ~use).sum()),
        window_rounds=float(np.median(windows[use])),
        window=window,
        dependence=dependence(labels, which[use & converted], lengths[use & converted]),
        duplicates=duplicates,
        cautions=(*_about_window(labels, which, came, in_time, use), *_about_propensities(labels, which, weights, rates)),
        scale=scale,
        rates=rates,
        outcomes=outcomes,
        rows=rows,
    )


def _delays(outcomes: Outcomes, window: int | None, num_arms: int) -> LossDependent:
    """Delays in rounds by outcome and arm.

    Where no failure is reported before the window closes, their delays do not depend on the arm and are pooled.
    """

    def law(part: np.ndarray, pooled: bool) -> Empirical:
        which, waits, lengths, *_ = (column[part] for column in outcomes)
        if not len(waits):
            return Empirical(outcomes.waits.max(keepdims=True))
        if pooled or num_arms == 1:
            return Empirical(np.sort(waits))
        return EmpiricalByArm(by_arm(which, waits, pooling(which, lengths, num_arms), num_arms, POINTS))

    hit = outcomes.converted
    closing = window is not None and bool((outcomes.lengths[~hit] >= window).all())
    return LossDependent(no_conversion=law(~hit, closing), conversion=law(hit, False), threshold=1.0)


def _about_window(arms: list[str], which: np.ndarray, came: np.ndarray, in_time: np.ndarray, use: np.ndarray) -> Iterator[str]:
    """A caution if few windows close within the log; or if many conversions arrive late, with the arm that would be the best with them."""
    if use.mean() < KNOWN:
        yield f"the window= closes within the log for {use.sum():,} of {len(use):,} rows only; the others say nothing about rates"
    recorded = use & (came != NO_TIME)
    late = recorded & ~in_time
    share = late.sum() / max(recorded.sum(), 1)
    if share < LATE or late.sum() < FEW:
        return
    best, with_late = (
        int(
            np.argmax(np.bincount(which[part], minlength=len(arms)) / np.maximum(np.bincount(which[use], minlength=len(arms)), 1))
        )
        for part in (recorded & in_time, recorded)
    )
    changed = (
        "" if best == with_late else f"; with them {arms[with_late]!r} and not {arms[best]!r} has the highest conversion rate"
    )
    yield f"{share:.0%} of the conversions come after the window= and count as none{changed}; use a longer window="


def _about_propensities(arms: list[str], which: np.ndarray, weights: np.ndarray, rates: Rates) -> Iterator[str]:
    """Cautions about logged propensities: the inverse ones of an arm sum to the number of rows if they are right."""
    if (weights == 1).all():
        return
    total, squares = (np.bincount(which, one, len(arms)) for one in (weights, weights**2))
    apart = np.abs(total - len(which)) / np.sqrt(np.maximum(squares - total, 1))
    worst = int(apart.argmax())
    if apart[worst] > DEVIATION:
        yield (
            f"the inverse propensities of {arms[worst]!r} sum to {total[worst]:,.0f}, but the log has {len(which):,} rows: they are not "
            "the probabilities with which its arms were drawn"
        )
    rows = np.bincount(which, minlength=len(arms))
    effective = total**2 / squares
    least = int((effective / rows).argmin())
    if effective[least] < LITTLE * rows[least]:
        yield f"a few small propensities leave the {rows[least]:,} rows of {arms[least]!r} with the weight of {effective[least]:.2g}"


def _about_scale(given: np.ndarray, came: np.ndarray) -> Iterator[str]:
    """A caution if rewards above the scale lose much of their value."""
    given = given[came != NO_TIME]
    cut = np.maximum(given - 1, 0).sum() / max(given.sum(), 1e-300)
    if cut > CUT:
        yield f"{(given > 1).mean():.1%} of the rewards are above scale= and count as 1, which cuts off {cut:.0%} of their sum"


def _coincidences(rows: LogRows) -> float:
    """The expected number of repeated rows by chance: same arm, same tick of the clock with which the log was written."""
    tick, span = np.gcd.reduce(np.diff(rows.acted)), max(np.ptp(rows.acted), 1)
    return float((np.unique(rows.arms, return_counts=True)[1] ** 2.0).sum() / 2 * tick / span)


def _about_reading(log: Log, times: Times, duplicates: str) -> Iterator[str]:
    if duplicates == "keep" and log.duplicates > 5 + 3 * _coincidences(log.rows):
        yield (
            f"{log.duplicates:,} of {log.rounds:,} rows repeat an earlier row in every column; if these actions were logged twice, "
            "give duplicates='drop'"
        )
    change = clock_change(times) if times.local else None
    if change is not None:
        yield (
            f"the times have no time zone, and the log spans {change}; give timezone='UTC', or the zone of the log, such as "
            "'Europe/Berlin'"
        )
