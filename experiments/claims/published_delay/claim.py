"""Published regrets under delay, and ours beside them."""

import importlib.util
from pathlib import Path

import numpy as np

from jaxbandit.claims.figures import draw_measured
from jaxbandit.claims.verdict import Check, Measured, width

GAMES = Path(__file__).parents[2] / "shapes" / "published.py"
READING = 0.01  # of a value that is read off a figure


def run(experiment):
    s = experiment.settings
    spec = importlib.util.spec_from_file_location("published", GAMES)
    assert spec is not None
    assert spec.loader is not None
    published = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(published)
    (panel,) = experiment.panels(1)
    options = {"trial": {"runs": s.runs}, "pike-burke": {"runs": s.conversions_runs, "only": "DUCB"}}
    rows = [(title, *row) for title in s.sets for row in published.SETS[title](seed=s.runs_seed, **options[title])]

    def errors(title, learner, value, error):
        """Of both together, and theirs alone."""
        told = published.VALUES[title]
        if title == "trial":  # whose error is in ours
            return error, next(row["se"] for row in told["values"] if row["learner"] == learner)
        theirs = np.hypot(error * np.sqrt(s.conversions_runs / told["runs"]), READING * value)
        return float(np.hypot(error, theirs)), float(theirs)

    last = max(row[3] for row in rows)
    ratios, judged, undecidable = [], [], []
    for title, learner, delay, t, value, mean, error in rows:
        both, theirs = errors(title, learner, value, error)
        label = f"{title}: {learner}, delay {delay}, T = {t}: ours over theirs"
        ratios.append(Measured(mean / value, both / value))
        experiment.number(
            f"{title}: {learner}, delay {delay}, T = {t}: theirs {value:.1f} ± {theirs:.1f}, ours", Measured(mean, error)
        )
        if title == "trial" or t == last:
            judged.append((Check(label, ratios[-1], "equals", 1.0, s.within, kind="open"), theirs / value))
        else:
            experiment.number(label, ratios[-1])
    z = width([check for check, _ in judged])
    for check, theirs in judged:
        if z * theirs > s.within:
            undecidable.append(check.label)
            experiment.number(f"{check.label} (their error alone is too large to judge by)", check.measured)
        else:
            experiment.checks.append(check)
    draw_measured(panel, [row[4] for row in rows], ratios, fmt="o")
    panel.axhline(1, color="black", linewidth=1)
    panel.set(xscale="log", xlabel="published regret", ylabel="ours over theirs")
    # What the same learner pays when nothing is late.
    late, at_once = (next(row for row in rows if row[1] == name) for name in ("QPM-D(Thompson Beta(1,1))", "Thompson Beta(1,1)"))
    label = f"{late[0]}: {late[1]}, delay {late[2]}, T = {late[3]}: ours over theirs"
    if label not in undecidable:
        experiment.mutant("the trial without its delays", label, Measured(at_once[5] / late[4], at_once[6] / late[4]))
    _, learner, delay, t, value, mean, error = max(rows, key=lambda row: abs(row[5] / row[4] - 1))
    experiment.say(
        f"{len(rows)} published values; ours are between {min(one.value for one in ratios):.3f} and "
        f"{max(one.value for one in ratios):.3f} of them. The furthest: {learner}, delay {delay}, T = {t}, theirs {value:.1f}, "
        f"ours {mean:.1f} ± {error:.1f}. Cannot be decided, because of the published error alone: "
        f"{'; '.join(undecidable) or 'none'}."
    )
