"""The log that comes with the package, ``jaxbandit/logs/clicks.csv``: clicks on four campaigns, and which of them converted when.

    python experiments/delay_trace/make_clicks.py

It is made up by us, after what logs of conversions look like; no person's data is in it:

- 8,000 clicks in three weeks, most of them in the evening;
- the logging system gave the campaign ``spring`` two clicks of five, by chance, and the others one of five each;
- a click converts with probability 7.5, 5, 6 or 4 %; half of the conversions come within the visit (exponential, 10 minutes), a
  third within a day (log-normal, median 8 hours), the rest days later (exponential, 3 days).
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from jaxbandit._io.files import write_whole

OUT = Path(__file__).parents[2] / "jaxbandit" / "logs" / "clicks.csv"
HOUR, DAY = 3600, 86400
CLICKS, DAYS = 8_000, 21
CAMPAIGNS = {"garden": (0.2, 0.075), "spring": (0.4, 0.05), "travel": (0.2, 0.06), "winter": (0.2, 0.04)}  # share, rate
START = datetime(2026, 3, 2, tzinfo=UTC)


def main() -> None:
    random = np.random.default_rng(20260302)
    shares, rates = (np.array(column) for column in zip(*CAMPAIGNS.values(), strict=True))
    times = random.uniform(0, DAYS * DAY, 5 * CLICKS)
    busy = 0.5 * (1 - 0.95 * np.cos(2 * np.pi * (times / DAY - 8 / 24)))
    clicked = np.sort(random.permutation(times[random.uniform(size=len(times)) < busy])[:CLICKS]).astype(int)
    campaign = random.choice(len(rates), CLICKS, p=shares)
    laws = [
        random.exponential(600, CLICKS),
        8 * HOUR * np.exp(random.normal(0, 0.6, CLICKS)),
        random.exponential(3 * DAY, CLICKS),
    ]
    wait = np.choose(random.choice(3, CLICKS, p=[0.5, 0.33, 0.17]), laws).astype(int)
    converts = random.uniform(size=CLICKS) < rates[campaign]
    seen = converts & (clicked + wait < DAYS * DAY)  # the log ends with its last day

    def date(seconds: int) -> str:
        return (START + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")

    names = list(CAMPAIGNS)
    lines = [
        f"{names[i]},{date(at)},{date(at + w) if s else ''}" for i, at, w, s in zip(campaign, clicked, wait, seen, strict=True)
    ]
    write_whole(OUT, "\n".join(["campaign,clicked_at,converted_at", *lines, ""]))


if __name__ == "__main__":
    main()
