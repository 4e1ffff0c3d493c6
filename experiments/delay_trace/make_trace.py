"""The recorded delay trace of the docs: an advertisement is shown, and the purchase is reported later, or never.

    python experiments/delay_trace/make_trace.py

writes ``conversions.csv`` (seconds since midnight of the first day) and ``conversions.png``. It is made up by us, after what logs of
conversions look like; no person's data is in it:

- visitors come by day: the rate is a sine over 24 hours, almost 0 at four in the morning;
- half of the reports come within the visit (exponential, 4 minutes), a third the same day (log-normal, median 2 hours), the
  rest has a heavy tail (Pareto, index 0.7, from 6 hours on);
- one report in five that falls into the night waits for a batch at 7 in the morning;
- what takes longer than 3 days is not counted any more, 4 % is lost, and so is all of a broken afternoon on the fifth day.
"""

from pathlib import Path

import numpy as np

import jaxbandit as jb

HERE = Path(__file__).parent
HOUR, DAY = 3600, 86400
ACTIONS, DAYS, WINDOW = 20_000, 14, 3 * DAY


def visits(random: np.random.Generator) -> np.ndarray:
    """Times of the actions, by rejection from the rate of the day."""
    times = random.uniform(0, DAYS * DAY, 4 * ACTIONS)
    rate = 0.5 * (1 - 0.95 * np.cos(2 * np.pi * (times / DAY - 4 / 24)))
    return np.sort(times[random.uniform(size=len(times)) < rate][:ACTIONS]).astype(int)


def reports(random: np.random.Generator, acted: np.ndarray) -> np.ndarray:
    """Times of the feedback, NaN where it never comes."""
    laws = [
        random.exponential(4 * 60, len(acted)),
        2 * HOUR * np.exp(random.normal(0, 0.8, len(acted))),
        6 * HOUR * (1 + random.pareto(0.7, len(acted))),
    ]
    wait = np.choose(random.choice(3, len(acted), p=[0.5, 0.33, 0.17]), laws)
    came = acted + wait
    night = (came % DAY < 7 * HOUR) & (random.uniform(size=len(acted)) < 0.2)
    came = np.where(night, came - came % DAY + 7 * HOUR, came)
    broken = (acted >= 4 * DAY + 13 * HOUR) & (acted < 4 * DAY + 18 * HOUR)
    lost = (came - acted > WINDOW) | (random.uniform(size=len(acted)) < 0.04) | broken
    return np.where(lost, np.nan, np.floor(came))


def main() -> None:
    random = np.random.default_rng(20260301)
    acted = visits(random)
    lines = [f"{when},{'' if np.isnan(then) else int(then)}" for when, then in zip(acted, reports(random, acted), strict=True)]
    (HERE / "conversions.csv").write_text("\n".join(["action_time,feedback_time", *lines, ""]))

    trace = jb.load_trace(HERE / "conversions.csv")
    delays = np.asarray(trace.delays)
    came = delays[delays != jb.delays.NEVER]
    print(f"{len(delays)} rounds in {DAYS} days; {1 - len(came) / len(delays):.1%} of the feedback never comes")
    print("delay in rounds, of what comes: " + ", ".join(f"{q} % by {np.percentile(came, q):.0f}" for q in (25, 50, 75, 90, 99)))
    print(f"longest {came.max()}, most outstanding at once {jb.theory.optimal_skipping.outstanding(delays).max()}")
    figure, (left, right) = jb.plots.figure(columns=2)
    jb.plots.delay_histogram(trace, ax=left, title="Most feedback arrives within 1,000 rounds; 9% is missing")
    jb.plots.outstanding({"trace": trace}, ax=right, title="Missing feedback accumulates; an outage adds 500")
    figure.savefig(HERE / "conversions.png", dpi=200)


if __name__ == "__main__":
    main()
