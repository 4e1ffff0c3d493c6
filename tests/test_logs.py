"""Logs against plain counting, the laws they give against a law written by hand, and everything that can be wrong with them."""

import bisect
import csv
import gzip
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.cli.run import from_words
from jaxbandit.sweeps import SpecError
from jaxbandit.sweeps.plan import Plan

TRACE = Path(__file__).parents[1] / "experiments" / "delay_trace" / "conversions.csv"
COLUMNS = dict(arm="ad", action="shown", feedback="bought")
ROWS = [("red", 0, 30), ("blue", 60, None), ("red", 120, 900), ("blue", 180, 200), ("red", 240, None), ("red", 2000, None)]


def write(path, rows=ROWS, header="ad,shown,bought", show=str):
    lines = [f"{ad},{show(start)},{'' if end is None else show(end)}" for ad, start, end in rows]
    path.write_text("\n".join([header, *lines, ""]))
    return path


def load(path, **options):
    return jb.load_log(path, **{**COLUMNS, "window": "5m", **options})


def same(one, two):
    assert one.arms == two.arms
    np.testing.assert_array_equal(one.trace.delays, two.trace.delays)
    np.testing.assert_array_equal(one.means, two.means)


def test_what_it_says(tmp_path):
    log = load(write(tmp_path / "log.csv"))
    assert log.arms == ["blue", "red"]
    # 60 + 300: after 3 more. 900 is after the window of 120 + 300: after 2 more. The last window never closes.
    assert np.asarray(log.trace.delays).tolist() == [0, 3, 2, 0, 0, 0]
    assert (log.converted, log.late, log.unknown, log.rounds) == (2, 1, 1, 6)
    assert log.counts.tolist() == [2, 3]
    assert log.rates.conversions.tolist() == [1, 1]
    assert log.rates.misses.tolist() == [1, 2]
    assert not np.asarray(log.delays.conversion.delays).any()
    assert np.asarray(log.delays.conversion.delays).shape[0] == 2
    assert np.asarray(log.delays.no_conversion.delays).tolist() == [0, 2, 3]
    assert "2 with feedback in time, 1 too late, 1 still open" in str(log)
    result = jb.simulate(jb.DelayedThompson(), log.losses, log.delays, rounds=50, runs=4, seed=0)
    assert np.isfinite(result.regret).all()


def test_a_prior_from_a_log(tmp_path):
    """By hand; rejects sorted names in place of the agent's order, open windows that count, and unweighted propensities."""
    log = load(write(tmp_path / "log.csv"))
    losses, rewards = log.prior()
    assert (losses.tolist(), rewards.tolist()) == ([1, 2], [1, 1])
    losses, rewards = log.prior(weight=0.5, arms=["red", "green", "blue"])
    assert (losses.tolist(), rewards.tolist()) == ([1, 0, 0.5], [0.5, 0, 0.5])
    agent = jb.Agent(jb.DelayedThompson(losses, rewards), ["red", "green", "blue"], seed=0)
    assert agent.act().arm in ("red", "green", "blue")
    assert np.all(np.stack(log.prior(weight=0)) == 0)
    for wrong in (dict(weight=2), dict(weight=-0.1), dict(weight="all"), dict(weight=True), dict(weight=float("nan"))):
        with pytest.raises(ValueError, match=r"prior\(weight="):
            log.prior(**wrong)
    for arms in ("red", ["green"], ["red", "red"], []):
        with pytest.raises(ValueError, match=r"prior\(arms="):
            log.prior(arms=arms)


def test_a_prior_of_weighted_revenue(tmp_path):
    """Rows of arm a: rewards 0.5, 0, 0.25 with propensities 0.5, 0.25, 0.25: weights 2, 4, 4, mean 0.2, 100/36 effective rows."""
    rows = [
        "ad,shown,bought,value,p",
        "a,0,10,5,0.5",
        "b,20,30,10,0.5",
        "a,40,,,0.25",
        "b,60,,,0.5",
        "a,80,90,2.5,0.25",
        "b,900,,,0.5",
    ]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    log = load(tmp_path / "log.csv", reward="value", scale=10.0, propensity="p", window="100s")
    losses, rewards = log.prior()
    np.testing.assert_allclose(rewards, [0.2 * 100 / 36, 1.0])
    np.testing.assert_allclose(losses, [0.8 * 100 / 36, 1.0])


@pytest.mark.parametrize("seed", range(3))
def test_delays_by_counting(tmp_path, seed):
    """Many ties, no order: each row's delay is the number of later rows that acted before it was known."""
    random = np.random.default_rng(seed)
    start = random.integers(0, 300, 200)
    rows = [("a", int(s), None if random.uniform() < 0.5 else int(s + random.integers(0, 60))) for s in start]
    log = load(write(tmp_path / "log.csv", rows), window="40s")
    rows.sort(key=lambda row: row[1])
    known = [end if end is not None and end <= begin + 40 else begin + 40 for _, begin, end in rows]
    counted = [sum(1 for _, later, _ in rows[i + 1 :] if later <= when) for i, when in enumerate(known)]
    assert np.asarray(log.trace.delays).tolist() == counted


def test_every_way_to_write_a_time(tmp_path):
    log = load(write(tmp_path / "log.csv"))
    start = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    ways = {
        "zone": lambda s: (start + timedelta(seconds=s)).isoformat(),
        "Z": lambda s: (start + timedelta(seconds=s)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "naive": lambda s: str(start.replace(tzinfo=None) + timedelta(seconds=s)),
        "seconds": lambda s: str(1774740600 + s),
        "milliseconds": lambda s: str(1774740600_000 + 1000 * s),
        "microseconds": lambda s: str(1774740600_000_000 + 10**6 * s),
        "nanoseconds": lambda s: str(1774740600_000_000_000 + 10**9 * s),
    }
    for name, show in ways.items():
        same(load(write(tmp_path / f"{name}.csv", show=show)), log)
    same(load(write(tmp_path / "named.csv", show=lambda s: str(1000 * s)), unit="ms"), log)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    same(load(tmp_path / "log.csv.gz"), log)
    same(load(tmp_path / "log.csv", window=300), log)
    same(load(tmp_path / "log.csv", window=timedelta(minutes=5)), log)


def test_nanoseconds_are_not_rounded(tmp_path):
    """Floats would make these three times one."""
    base = 1774740600_123_456_789
    rows = [("a", base, base + 1), ("a", base + 1, base + 1), ("a", base + 2, base + 2)]
    assert np.asarray(load(write(tmp_path / "log.csv", rows), window=None).trace.delays).tolist() == [1, 0, 0]

    def date(nanoseconds):
        return f"2026-03-28T23:30:00.{nanoseconds % 10**9:09d}Z"

    log = load(write(tmp_path / "dates.csv", rows, show=date), window=None)
    assert np.asarray(log.trace.delays).tolist() == [1, 0, 0]


def test_losses_and_rewards_of_the_log(tmp_path):
    (tmp_path / "log.csv").write_text("ad,shown,bought,value\na,0,1,0.25\na,10,,\na,20,21,1\nb,30,31,0\nb,5000,5001,0.5\n")
    log = load(tmp_path / "log.csv", reward="value")
    np.testing.assert_allclose(log.outcomes.rewards, [0.25, 0, 1, 0])  # the last row's window is open
    assert log.outcomes.converted.tolist() == [True, False, True, False]
    log = load(tmp_path / "log.csv", loss="value")
    np.testing.assert_allclose(log.outcomes.rewards, [0.75, 0, 0, 1])
    assert log.delays.threshold == 1


def test_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    log = load(write(tmp_path / "log.csv"))
    frame = pandas.read_csv(tmp_path / "log.csv")
    same(load(frame), log)
    for zone in (None, "Europe/Berlin"):
        dates = frame.assign(**{c: pandas.to_datetime(frame[c], unit="s", utc=zone is not None) for c in ("shown", "bought")})
        if zone:
            dates = dates.assign(**{c: dates[c].dt.tz_convert(zone) for c in ("shown", "bought")})
        same(load(dates), log)


def test_polars_frames(tmp_path):
    polars = pytest.importorskip("polars")
    same(load(polars.read_csv(write(tmp_path / "log.csv"))), load(tmp_path / "log.csv"))


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.read_csv(write(tmp_path / "log.csv")).to_parquet(tmp_path / "log.parquet")
    same(load(tmp_path / "log.parquet"), load(tmp_path / "log.csv"))


class ByHand(jb.delays.Delays):
    """The law of the recorded log, written down without the library: bisection in Python lists, day by day."""

    oblivious = False

    def __init__(self, path, window):
        with open(path) as file:
            rows = [(int(r["action_time"]), int(r["feedback_time"] or 10**12)) for r in csv.DictReader(file)]
        times = sorted(start for start, _ in rows)
        rows.sort(key=lambda row: row[0])
        conversions, closings = [], []
        for index, (start, end) in enumerate(rows):
            if start + window > times[-1]:
                break
            known = min(end, start + window)
            wait = bisect.bisect_right(times, known) - index - 1
            (conversions if end <= start + window else closings).append(wait)
        self.conversions, self.closings = jnp.array(conversions), jnp.array(closings)
        self.bound = max(max(conversions), max(closings))

    def draw(self, t: Any, arm: Any, loss: Any, noise: Any) -> Any:
        def pick(table):
            return table[jnp.clip((noise * len(table)).astype(jnp.int32), 0, len(table) - 1)].astype(jnp.int32)

        return jnp.where(loss > 0.5, pick(self.closings), pick(self.conversions))


jax.tree_util.register_static(ByHand)


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(4000, id="short", marks=pytest.mark.thorough), pytest.param(20_000, id="whole", marks=pytest.mark.slow)],
)
def test_a_day_of_waiting_as_by_hand(rounds):
    """The recorded log with a window of one day: the regrets of a law written by hand; other ones if empties are taken as lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = jb.load_trace(TRACE)
    log, losses = jb.load_log(TRACE, window="1d"), jb.losses.Bernoulli([0.85, 0.9, 0.9])
    assert log.rounds == 20_000 == recorded.length
    final = {}
    for name, learner in {"thompson": jb.DelayedThompson(), "rv": jb.TsallisINF("rv"), "uniform": jb.Uniform()}.items():
        for law, delays in {"log": log.delays, "by hand": ByHand(TRACE, 86400)}.items():
            # Other words for the two, so that equal laws do not give equal paths.
            result = jb.simulate(learner, losses, delays, rounds=rounds, runs=256, seed=len(law), record=1)
            estimate = result.estimate()
            final[name, law] = estimate.mean[-1], estimate.error[-1]
        (mine, error), (theirs, other) = final[name, "log"], final[name, "by hand"]
        assert abs(mine - theirs) <= 5 * np.hypot(error, other) + 1e-3
    assert final["thompson", "log"][0] < final["uniform", "log"][0]
    if rounds == log.rounds:  # bad news that waits for the window costs Thompson sampling more than feedback that is lost
        lost = jb.simulate(jb.DelayedThompson(), losses, recorded, rounds=rounds, runs=256, seed=0, record=1).estimate()
        assert final["thompson", "log"][0] - lost.mean[-1] > 5 * np.hypot(final["thompson", "log"][1], lost.error[-1])


def test_load_trace_warns_where_a_window_is_missing(tmp_path):
    rows = [("a", second, None if second % 3 else second) for second in range(9)]
    path = write(tmp_path / "log.csv", rows)
    with pytest.warns(UserWarning, match=r"6 of 9 rows never get feedback.*load_log\(…, window='7d'\)"):
        jb.load_trace(path, action="shown", feedback="bought")


def test_loss_dependent_draws():
    inner = jb.delays.LossDependent(jb.delays.Fixed(7), jb.delays.Fixed(2), threshold=0.25)
    law = jb.delays.LossDependent(jb.delays.Fixed(20), inner)
    drawn = law.draw(1, jnp.zeros(5, jnp.int32), jnp.array([0.0, 0.2, 0.25, 0.5, 1.0]), jnp.full(5, 0.5))
    assert drawn.tolist() == [2, 2, 7, 20, 20]
    assert (law.bound, float(law.longest()), law.may_lose) == (32, 20.0, False)


def test_loss_dependent_in_a_simulation():
    """Total delay is exact: every loss of 1 waits 20 rounds, every other 3, cut at the horizon."""
    table = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)
    table[:, 1] = table[:, 0]  # the same for both arms, so that the delays are known
    law = jb.delays.LossDependent(jb.delays.Fixed(20), jb.delays.Fixed(3))
    result = jb.simulate(jb.TsallisINF(), jb.losses.Table(table), law, rounds=200, runs=3, seed=0)
    expected = np.minimum(np.where(table[:, 0] == 1, 20, 3), 200 - np.arange(1, 201)).sum()
    assert result.total_delay.tolist() == [expected] * 3


def test_empirical_draws_what_was_recorded():
    noise = (jnp.arange(4000) + 0.5) / 4000
    drawn = jb.delays.Empirical([5, 0, 5, 9]).draw(1, 0, 0.0, noise)
    assert np.bincount(np.asarray(drawn)).tolist() == [1000, 0, 0, 0, 0, 2000, 0, 0, 0, 1000]


def test_in_a_sweep(tmp_path):
    (tmp_path / "spec.toml").write_text(
        """
rounds = 50
runs = 4
[[learners]]
name = "uniform"
[[losses]]
name = "bernoulli"
means = [0.3, 0.5]
[[delays]]
name = "loss-dependent"
no_conversion = { name = "fixed", delay = 9 }
conversion = { name = "empirical", delays = [0, 1, 4] }
"""
    )
    jb.sweep(str(tmp_path / "spec.toml"), tmp_path / "out")
    assert jb.open_sweep(tmp_path / "out").regret.shape[-1] == 4


LOG_ENTRY = dict(name="log", file="log.csv", arm="ad", action="shown", feedback="bought", window="5m")


def test_a_log_in_a_spec(tmp_path):
    """By its file name and columns: the very laws of load_log, a grid over windows, and words on the command line."""
    log, short = load(write(tmp_path / "log.csv")), load(tmp_path / "log.csv", window="1m")
    fields = "\n".join(f'{name} = "{value}"' for name, value in LOG_ENTRY.items())
    without = "\n".join(line for line in fields.splitlines() if not line.startswith("window"))
    (tmp_path / "spec.toml").write_text(
        f'rounds = 50\nruns = 4\n[[learners]]\nname = "uniform"\n[[losses]]\n{fields}\n'
        f'[[delays]]\n{without}\ngrid = {{ window = ["5m", "1m"] }}\n'
    )
    plan = Plan.make(tmp_path / "spec.toml")
    assert [cell.delays.bound for cell in plan.cells] == [log.delays.bound, short.delays.bound]
    np.testing.assert_array_equal(plan.cells[0].losses.means, log.means)
    for cell, law in zip(plan.cells, (log.delays, short.delays), strict=True):
        np.testing.assert_array_equal(cell.delays.no_conversion.delays, law.no_conversion.delays)
    assert [point.label for point in plan.axes["delays"]] == ["log window=5m", "log window=1m"]
    words = "log(" + ", ".join(f'{name}="{value}"' for name, value in LOG_ENTRY.items() if name != "name") + ")"
    document = from_words({"learners": "uniform", "losses": words, "delays": "fixed(3)"}) | {"rounds": 9, "runs": 2}
    np.testing.assert_array_equal(Plan.make(document, folder=tmp_path).cells[0].losses.means, log.means)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "other.csv"}, r"delays\[0\]: 'other.csv' cannot be read"),
        ({"file": "../log.csv"}, "leads out of the spec's folder"),
        ({"file": 3}, r"delays\[0\].file: 3 is not the name of a file"),
        ({"arm": "campaign"}, "there is no column 'campaign'; name yours with arm="),
        ({"window": "soon"}, "window='soon' is not a length of time"),
        ({"window": None}, "give window=, as '7d'"),
        ({"colour": "red"}, r"delays\[0\].colour: 'log' has no such field"),
        ({"action": 3}, "action = 3 is not a text"),
    ],
)
def test_a_wrong_log_in_a_spec(tmp_path, change, message):
    write(tmp_path / "log.csv")
    entry = {name: value for name, value in {**LOG_ENTRY, **change}.items() if value is not None}
    losses = [{"name": "bernoulli", "means": [0.3, 0.5]}]
    document = {"rounds": 9, "runs": 2, "learners": [{"name": "uniform"}], "losses": losses, "delays": [entry]}
    with pytest.raises(SpecError, match=message):
        Plan.make(document, folder=tmp_path)


TEXT = "ad,shown,bought\na,1,2\n"
WRONG_LOGS = {  # content (or None: no file), options, the sentence
    "empty file": (b"", {}, "the file is empty"),
    "only a header": (b"ad,shown,bought\n", {}, "the log has no rows"),
    "no such column": (TEXT, {"action": "when"}, r"there is no column 'when'; name yours with action= \(the log has 'ad'"),
    "no such arm": (TEXT, {"arm": "campaign"}, "there is no column 'campaign'; name yours with arm="),
    "no such loss": (TEXT, {"loss": "value"}, "there is no column 'value'; name yours with loss="),
    "no such reward": (TEXT, {"reward": "value"}, "there is no column 'value'; name yours with reward="),
    "two columns of a name": (b"ad,shown,shown,bought\na,1,1,2\n", {}, "there are 2 columns 'shown'; rename all but one"),
    "UTF-16": (TEXT.encode("utf-16"), {}, "the file is UTF-16; save it as UTF-8"),
    "Latin-1": ("ad,shown,bought\ncafé,1,2\n".encode("latin-1"), {}, "is not UTF-8"),
    "semicolons": (b"ad;shown;bought\na;1;2\n", {}, "the columns are not separated by commas"),
    "tabs": (b"ad\tshown\tbought\na\t1\t2\n", {}, "the columns are not separated by commas"),
    "a short row": (b"ad,shown,bought\na,1\n", {}, "row 1 has 2 fields, but there are 3 columns"),
    "a long row": (b"ad,shown,bought\na,1,2\na,1,2,3\n", {}, "row 2 has 4 fields"),
    "an open quote": (b'ad,shown,bought\n"a,1,2\n', {}, "the file is not CSV"),
    "broken gzip": (gzip.compress(TEXT.encode() * 99)[:-9], {}, "its gzip data ends early"),
    "Parquet by another name": (b"PAR1abcdPAR1", {}, "this is a Parquet file"),
    "no action time": (b"ad,shown,bought\na,,2\n", {}, "row 1 has no shown"),
    "no arm": (b"ad,shown,bought\n,1,2\n", {}, "row 1 has no ad"),
    "not a time": (b"ad,shown,bought\na,soon,2\n", {}, "shown='soon' in row 1 is not a timestamp"),
    "not a feedback time": (b"ad,shown,bought\na,1,later\n", {}, "bought='later' in row 1 is not a timestamp"),
    "the 30th of February": (b"ad,shown,bought\na,2026-02-30,\n", {}, "shown='2026-02-30' in row 1 is not a timestamp"),
    "infinite time": (b"ad,shown,bought\na,inf,2\n", {}, "shown='inf' in row 1 is not a timestamp"),
    "feedback before the action": (b"ad,shown,bought\na,5,2\n", {}, "in row 1 bought lies before shown"),
    "numbers and dates": (b"ad,shown,bought\na,1,2026-01-01\n", {}, "the times are written in several ways"),
    "zones in some rows": (
        b"ad,shown,bought\na,2026-01-01T00:00:00Z,\na,2026-01-01T00:00:01,\n",
        {},
        "the times are written in several ways",
    ),
    "a huge number": (b"ad,shown,bought\na,1e30,\n", {}, "is too far from 1970"),
    "the wrong unit": (b"ad,shown,bought\na,1774740600000,\n", {"unit": "s"}, "is too far from 1970; give unit="),
    "unknown unit": (TEXT, {"unit": "minutes"}, "unit='minutes' is not known"),
    "no window": (b"ad,shown,bought\na,1,\n", {"window": None}, "1 of 1 rows have no bought; give window="),
    "a window without unit": (TEXT, {"window": "7"}, "window='7' is not a length of time"),
    "a window of an unknown unit": (TEXT, {"window": "7 moons"}, "window='7 moons' is not a length of time"),
    "a negative window": (TEXT, {"window": "-1d"}, "window='-1d' is not a length of time"),
    "a negative number as window": (TEXT, {"window": -1}, "window=-1 is not a length of time"),
    "NaN as window": (TEXT, {"window": float("nan")}, "window=nan is not a length of time"),
    "a list as window": (TEXT, {"window": [1]}, r"window=\[1\] is not a length of time"),
    "a number as window of dates": (b"ad,shown,bought\na,2026-01-01,\n", {"window": 7}, "the times are dates"),
    "loss and reward": (TEXT, {"loss": "ad", "reward": "ad"}, "loss='ad' and reward='ad' are given"),
    "loss above 1": (b"ad,shown,bought,v\na,1,2,1.5\n", {"loss": "v"}, "v='1.5' in row 1 is not a number between 0 and 1"),
    "reward is text": (b"ad,shown,bought,v\na,1,2,yes\n", {"reward": "v"}, "v='yes' in row 1 is not a number between 0 and 1"),
    "reward is missing": (b"ad,shown,bought,v\na,1,2,\n", {"reward": "v"}, "v='' in row 1 is not a number between 0 and 1"),
}


def test_there_are_forty():
    assert len(WRONG_LOGS) >= 40


@pytest.mark.parametrize("name", WRONG_LOGS)
def test_a_wrong_log_is_one_sentence(tmp_path, name):
    content, options, message = WRONG_LOGS[name]
    path = tmp_path / "log.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=message) as error:
        load(path, **options)
    assert "\n" not in str(error.value)


def test_what_is_no_log_at_all(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.csv")
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        load(tmp_path)
    with pytest.raises(TypeError, match="give the name of a CSV or Parquet file, or a pandas or polars frame"):
        load(17)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        load(tmp_path / "missing.parquet")


@pytest.mark.parametrize(
    ("delays", "message"),
    [
        (jb.delays.LossDependent(3, jb.delays.Fixed(1)), r"LossDependent\(no_conversion=3\)"),
        (jb.delays.LossDependent(jb.delays.Fixed(1), jb.delays.Fixed(-1)), "delay=-1"),
        (jb.delays.LossDependent(jb.delays.Fixed(1), jb.delays.Fixed(1), threshold=2.0), "threshold=2.0"),
        (jb.delays.LossDependent(jb.delays.Outlier(9), jb.delays.Fixed(1)), "outliers apply to all rounds or none"),
        (jb.delays.Empirical([]), "a list of N numbers, one for each recorded play"),
        (jb.delays.Empirical([1, -2]), "-2 is not"),
        (jb.delays.Empirical([1, 9], bound=4), "above bound=4"),
    ],
)
def test_wrong_laws(delays, message):
    with pytest.raises(ValueError, match=message):
        jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), delays, rounds=5, runs=1, seed=0)
