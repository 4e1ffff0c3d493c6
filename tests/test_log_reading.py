"""Logs that are easy to misread: units, duplicates, windows, local times, other date formats, propensities."""

import warnings

import numpy as np
import pytest

import jaxbandit as jb

COLUMNS = dict(arm="ad", action="shown", feedback="bought")


def load(path, text, **options):
    path.write_text(text)
    return jb.load_log(path, **{**COLUMNS, **options})


def table(rows, header="ad,shown,bought"):
    return "\n".join([header, *(",".join("" if one is None else str(one) for one in row) for row in rows), ""])


def test_one_unit_for_actions_feedback_and_window(tmp_path):
    """Actions below and feedback above the threshold between seconds and milliseconds: all are milliseconds, as is the window."""
    start = 10**11 - 2000
    rows = [("a", start + 100 * i, start + 100 * i + 50 if i % 2 else None) for i in range(20)]
    rows[1] = ("a", start + 100, 10**11 + 5000)
    log = load(tmp_path / "log.csv", table(rows), window=200)
    assert log.window == 200 * 10**6
    assert log.unknown == 1  # of the last two rows, whose windows are open, one has feedback
    assert (log.converted, log.late) == (9, 1)


def test_duplicates_are_reported_and_dropped_on_request(tmp_path):
    rows = [("ab"[i % 2], 60 * i + i % 7, 60 * i + 30 if i % 5 == 0 else None) for i in range(400)]
    text = table(rows + rows[:40])
    with pytest.warns(UserWarning, match=r"40 of 440 rows repeat an earlier row in every column.*duplicates='drop'"):
        log = load(tmp_path / "log.csv", text, window="5m")
    assert (log.rounds, log.duplicates) == (440, 40)
    assert "40 rows of the source repeat an earlier row" in str(log)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropped = load(tmp_path / "log.csv", text, window="5m", duplicates="drop")
        once = load(tmp_path / "log.csv", table(rows), window="5m")
    assert (dropped.rounds, dropped.duplicates, once.duplicates) == (400, 40, 0)
    np.testing.assert_array_equal(dropped.means, once.means)
    numbered = table([(*row, i) for i, row in enumerate(rows + rows[:40])], "ad,shown,bought,id")
    assert load(tmp_path / "log.csv", numbered, window="5m").duplicates == 0  # other ids: other actions
    with pytest.raises(ValueError, match=r"duplicates='remove' is not known; use 'keep' or 'drop'"):
        load(tmp_path / "log.csv", text, window="5m", duplicates="remove")


def test_a_few_equal_rows_may_be_chance(tmp_path):
    """Many actions in each second: rows that agree are to be expected."""
    random = np.random.default_rng(0)
    rows = [("ab"[random.integers(2)], int(second), None) for second in np.sort(random.integers(0, 500, 2000))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(tmp_path / "log.csv", table(rows), window="1m").duplicates > 500


def test_a_window_longer_than_the_log_is_refused(tmp_path):
    rows = [("a", 60 * i, 60 * i + 30 if i % 3 == 0 else None) for i in range(50)]
    with pytest.raises(ValueError, match=r"window='2h': no window closes within the log, which lasts 49 minutes"):
        load(tmp_path / "log.csv", table(rows), window="2h")


def test_rows_with_feedback_need_no_window(tmp_path):
    """All rows have feedback, the last ones after the last action: all outcomes are known."""
    rows = [("a", 60 * i, 60 * i + 600, i % 2) for i in range(20)]
    log = load(tmp_path / "log.csv", table(rows, "ad,shown,bought,value"), reward="value")
    assert log.counts.tolist() == [20]


def test_a_window_that_cuts_off_conversions(tmp_path):
    """The better arm converts late: within an hour it seems the worse one."""
    rows = []
    for i in range(1000):
        ad = ("slow", "fast")[i % 2]
        converts = i // 2 % 10 < (3 if ad == "slow" else 2)
        rows.append((ad, 60 * i, 60 * i + (7200 if ad == "slow" and i // 2 % 10 else 300) if converts else None))
    with pytest.warns(UserWarning, match=r"40% of the conversions come after the window=.*'slow' and not 'fast'.*longer window="):
        log = load(tmp_path / "log.csv", table(rows), window="1h")
    assert "Caution: 40% of the conversions" in log.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "log.csv", table(rows), window="3h")


BACK = [  # the clocks of Berlin are set back from 3:00 to 2:00 on 25 October 2026
    ("a", "2026-10-25 01:50:00", None),
    ("a", "2026-10-25 02:55:00", "2026-10-25 02:05:00"),  # ten minutes later
    ("a", "2026-10-25 03:10:00", "2026-10-25 03:20:00"),
    ("a", "2026-10-25 06:00:00", None),
]


def test_local_times_need_a_time_zone(tmp_path):
    with pytest.raises(ValueError, match=r"in row 2 bought lies before shown.*were clocks set back\? give timezone="):
        load(tmp_path / "log.csv", table(BACK), window="1h")
    log = load(tmp_path / "log.csv", table(BACK), window="1h", timezone="Europe/Berlin")
    assert np.diff(log.rows.acted)[:2].tolist() == [65 * 60 * 10**9, 75 * 60 * 10**9]
    assert (log.rows.came - log.rows.acted)[1] == 10 * 60 * 10**9
    without = [row for row in BACK if row[1] != "2026-10-25 02:55:00"]
    with pytest.warns(UserWarning, match=r"no time zone, and the log spans 2026-10-25.*Europe.*timezone='UTC'"):
        load(tmp_path / "log.csv", table(without), window="1h")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "log.csv", table(without), window="1h", timezone="UTC")


@pytest.mark.parametrize(
    ("time", "options", "message"),
    [
        ("2026-03-29 02:30:00", {"timezone": "Europe/Berlin"}, r"does not exist in Europe/Berlin.*is timezone= right\?"),
        ("2026-03-29 02:30:00", {"timezone": "Berlin"}, r"timezone='Berlin' is not a known time zone"),
        ("2026-03-29T02:30:00Z", {"timezone": "UTC"}, r"timezone='UTC': the times are dates with a zone"),
        (
            "2026-03-29",
            {"time_format": "%d.%m.%Y"},
            r"shown='2026-03-29' in row 1 is not a timestamp; use times as in '%d.%m.%Y'",
        ),
        ("29.03.2026", {}, "is not a timestamp; use numbers, ISO 8601 .* or load_log with time_format="),
        ("1", {"propensity": "p"}, r"p='1.5' in row 1 is not a probability above 0 and at most 1"),
    ],
)
def test_wrong_times(tmp_path, time, options, message):
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "log.csv", table([("a", time, None, 1.5)], "ad,shown,bought,p"), window="1h", **options)


def test_other_date_formats(tmp_path):
    rows = [("a", f"{day:02d}.03.2026 09:30", f"{day:02d}.03.2026 10:00" if day % 2 else None) for day in range(1, 20)]
    log = load(tmp_path / "log.csv", table(rows), window="1d", time_format="%d.%m.%Y %H:%M", timezone="UTC")
    assert np.unique(np.diff(log.rows.acted)).tolist() == [86400 * 10**9]
    assert log.converted == 10


def test_propensities_weigh_the_rates(tmp_path):
    """Two groups of visitors; arm a was mostly shown to the one that converts more. Weighted, both arms have the same rate."""
    random, rows = np.random.default_rng(0), []
    for i in range(20_000):
        eager = random.uniform() < 0.5
        chance = 0.8 if eager else 0.2  # of arm a
        ad = "a" if random.uniform() < chance else "b"
        bought = i + 1 if random.uniform() < (0.6 if eager else 0.2) else None
        rows.append((ad, i, bought, chance if ad == "a" else 1 - chance))
    plain = load(tmp_path / "log.csv", table(rows, "ad,shown,bought,p"), window="5s")
    weighted = load(tmp_path / "log.csv", table(rows, "ad,shown,bought,p"), window="5s", propensity="p")
    assert np.ptp(plain.means) > 0.2
    np.testing.assert_allclose(weighted.means, 0.6, atol=5 * weighted.errors.max())
    assert (weighted.effective < weighted.counts).all()


def test_the_summary_has_delays_by_arm_with_their_unit(tmp_path):
    rows = [("ab"[i % 2], 3600 * i, 3600 * i + (7200 if i % 2 else 2 * 86400) if i % 3 == 0 else None) for i in range(400)]
    text = str(load(tmp_path / "log.csv", table(rows), window="3d"))
    assert "2 days" in text
    assert "2 hours" in text
    assert "a window of 3 days is 72 rounds" in text


def test_propensities_that_do_not_match_the_log(tmp_path):
    """Arms drawn evenly: probabilities of 1/2 pass; 0.9 and 0.1 cannot be right; one of 1e-9 leaves an arm a single row."""
    random = np.random.default_rng(0)
    rows = [("ab"[random.integers(2)], 60 * i, 60 * i + 30 if i % 5 == 0 else None) for i in range(1000)]

    def cautions(propensity):
        text = table([(*row, propensity(*row[:2])) for row in rows], "ad,shown,bought,chance")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load(tmp_path / "log.csv", text, window="5m", propensity="chance").cautions

    assert cautions(lambda arm, _: 0.5) == ()
    (swapped,) = cautions(lambda arm, _: 0.9 if arm == "a" else 0.1)
    assert "but the log has 1,000 rows" in swapped
    (*_, tiny) = cautions(lambda arm, time: 1e-9 if time == 60 * 7 else 0.5)
    assert "with the weight of 1" in tiny


def test_a_window_nearly_as_long_as_the_log(tmp_path):
    rows = [("ab"[i % 2], 60 * i, 60 * i + 30 if i % 5 == 0 else None) for i in range(400)]
    with pytest.warns(UserWarning, match="closes within the log for 20 of 400 rows only"):
        log = load(tmp_path / "log.csv", table(rows), window=f"{380 * 60}s")
    assert log.unknown > 300


def test_rewards_of_zero_are_no_basis_for_advice(tmp_path):
    rows = [("ab"[i % 2], 60 * i, 60 * i + 30 if i % 5 == 0 else None, 0) for i in range(400)]
    log = load(tmp_path / "log.csv", table(rows, "ad,shown,bought,paid"), window="5m", reward="paid")
    with pytest.raises(ValueError, match="no row whose window closed within the log has a reward"):
        jb.advise(log)
    with pytest.raises(ValueError, match="paid='-1' in row 1 is not a number of 0 or more"):
        load(tmp_path / "log.csv", table([("a", 0, 1, -1)], "ad,shown,bought,paid"), window="5m", reward="paid", scale=2)
