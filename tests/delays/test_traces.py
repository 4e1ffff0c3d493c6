"""The loader of recorded delays against a plain count, and its complaints; the trace that comes with the docs."""

import runpy
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb

FOLDER = Path(__file__).parents[2] / "experiments" / "delay_trace"
NEVER = int(jb.delays.NEVER)


def write(path, rows, header="action_time,feedback_time"):
    path.write_text("\n".join([header, *(f"{a},{'' if f is None else f}" for a, f in rows), ""]))
    return path


def counted(rows):
    """The later actions that could not know the feedback, one by one."""
    rows = sorted(rows, key=lambda row: row[0])
    return [NEVER if f is None else sum(1 for later, _ in rows[i + 1 :] if later <= f) for i, (_, f) in enumerate(rows)]


@pytest.mark.parametrize("seed", range(5))
def test_delays_are_counted_in_later_actions(tmp_path, seed):
    random = np.random.default_rng(seed)
    actions = random.integers(0, 60, 80)  # many at the same time, in no order
    rows = [(int(a), None if random.uniform() < 0.2 else int(a + random.integers(0, 40))) for a in actions]
    trace = jb.load_trace(write(tmp_path / "log.csv", rows))
    assert np.asarray(trace.delays).tolist() == counted(rows)


def test_dates_and_numbers_say_the_same(tmp_path):
    seconds = [(0, 90), (60, None), (61.5, 4000), (100, 100), (5000, 5001)]

    def date(t, zone=""):
        moment = np.datetime64("2026-03-28T23:30:00.000") + np.timedelta64(int(1000 * t), "ms")
        return f"{moment}{zone}"

    numbers = jb.load_trace(write(tmp_path / "numbers.csv", seconds))
    expected = np.asarray(numbers.delays).tolist()
    for zone in ("", "+02:00", "Z"):
        rows = [(date(a, zone), None if f is None else date(f, zone)) for a, f in seconds]
        assert np.asarray(jb.load_trace(write(tmp_path / "dates.csv", rows)).delays).tolist() == expected


def test_times_of_many_digits_are_not_rounded(tmp_path):
    """Float64 holds no nanoseconds since 1970: two actions 100 ns apart would be a tie, and the delay one too many."""
    near = [(1700000000000000000 + a, 1700000000000000000 + f) for a, f in ((0, 50), (100, 150), (200, 250), (256, 256))]
    seconds = [tuple(f"{time // 10**9}.{time % 10**9:09d}" for time in row) for row in near]
    for rows in (near, seconds):
        assert np.asarray(jb.load_trace(write(tmp_path / "log.csv", rows)).delays).tolist() == [0, 0, 0, 0]


def test_time_zones_are_understood(tmp_path):
    rows = [("2026-01-01T12:00:00+00:00", "2026-01-01T14:30:00+01:00"), ("2026-01-01T13:00:00+00:00", None)]
    assert np.asarray(jb.load_trace(write(tmp_path / "zones.csv", rows)).delays).tolist() == [1, NEVER]


def test_other_columns_and_a_byte_order_mark(tmp_path):
    (tmp_path / "log.csv").write_text("\ufeffshown,who,bought\n1,a,5\n2,b,\n3,c,3\n", encoding="utf-8")
    trace = jb.load_trace(tmp_path / "log.csv", action="shown", feedback="bought")
    assert np.asarray(trace.delays).tolist() == [2, NEVER, 0]


WRONG = [  # the file, what must be said
    ("shown,bought\n1,2\n", r"there is no column 'action_time'; name yours with action= \(the log has 'shown', 'bought'\)"),
    ("action_time,bought\n1,2\n", r"there is no column 'feedback_time'; name yours with feedback="),
    ("", r"the file is empty; its first line names the columns"),
    ("action_time,feedback_time\n", r"the log has no rows"),
    ("action_time,feedback_time\n1,2\n,3\n", r"row 2 has no action_time"),
    ("action_time,feedback_time\n1,2\n5,3\n", r"in row 2 feedback_time lies before action_time"),
    ("action_time,feedback_time\nsoon,3\n", r"action_time='soon' in row 1 is not a timestamp; use numbers, ISO 8601"),
    ("action_time,feedback_time\n1,inf\n", r"feedback_time='inf' in row 1 is not a timestamp"),
    ("action_time,feedback_time\n1,2026-01-01\n", r"written in several ways"),
    ("action_time,feedback_time\n2026-01-01,2026-01-02T00:00:00Z\n", r"written in several ways"),
    ("action_time,action_time,feedback_time\n1,1,2\n", r"there are 2 columns 'action_time'; rename all but one"),
    ("action_time,feedback_time\n1,2\n".encode("utf-16"), r"the file is UTF-16; save it as UTF-8"),
    ("action_time,feedback_time,\u00e9\n1,2,3\n".encode("latin-1"), r"is not UTF-8 \(is the file Latin-1\?\); save it as UTF-8"),
    ('action_time,feedback_time\n"1,2\n', r"the file is not CSV"),
    (b"action_time,feedback_time\n1,2\x00\n", r"feedback_time='2.x00' in row 1 is not a timestamp"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_files_are_told_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "log.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as caught:
        jb.load_trace(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_simulator_meets_the_recorded_delays():
    trace = jb.load_trace(FOLDER / "conversions.csv")
    delays = np.asarray(trace.delays).astype(np.int64)
    rounds = 2000
    result = jb.simulate(jb.Uniform(), jb.losses.Bernoulli([0.3, 0.5]), trace, rounds=rounds, runs=1, key=jax.random.key(0))
    waited = np.minimum(delays[:rounds], rounds - np.arange(1, rounds + 1)).sum()
    assert result.total_delay[0] == waited
    assert result.lost[0] == (delays[:rounds] == NEVER).sum()
    assert result.outstanding_max[0] == jb.theory.optimal_skipping.outstanding(delays[:rounds]).max()


def test_the_recorded_trace_is_what_its_script_makes(tmp_path):
    script = shutil.copy(FOLDER / "make_trace.py", tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / "conversions.csv").read_bytes() == (FOLDER / "conversions.csv").read_bytes()
    delays = np.asarray(jb.load_trace(tmp_path / "conversions.csv").delays)
    came = delays[delays != NEVER]
    assert len(delays) == 20_000
    assert 0.05 < 1 - len(came) / len(delays) < 0.15  # lost feedback
    assert came.mean() > 5 * np.median(came)  # a heavy tail
