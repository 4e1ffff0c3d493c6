"""Published regrets under delay, and ours beside them."""

import importlib.util
from pathlib import Path

from jaxbandit.claims.figures import draw_measured
from jaxbandit.claims.verdict import Measured

GAMES = Path(__file__).parents[2] / "shapes" / "published.py"


def run(experiment):
    s = experiment.settings
    spec = importlib.util.spec_from_file_location("published", GAMES)
    assert spec is not None
    assert spec.loader is not None
    published = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(published)
    (panel,) = experiment.panels(1)
    options = {"trial": {"runs": s.runs}, "pike-burke": {"runs": s.conversions_runs, "only": "DUCB"}}
    rows = [(title, *row) for title in s.sets for row in published.SETS[title](**options[title])]
    for title, learner, delay, t, value, mean, error in rows:
        label = f"{title}: {learner}, delay {delay}, T = {t}: ours over theirs"
        experiment.check(label, Measured(mean / value, error / value), "equals", 1.0, s.within, kind="open")
        experiment.number(f"{title}: {learner}, delay {delay}, T = {t}: theirs {value:.1f}, ours", Measured(mean, error))
    ratios = [Measured(mean / value, error / value) for *_, value, mean, error in rows]
    draw_measured(panel, [value for *_, value, _, _ in rows], ratios, fmt="o")
    panel.axhline(1, color="black", linewidth=1)
    panel.set(xscale="log", xlabel="published regret", ylabel="ours over theirs")
    # What the same learner pays when nothing is late.
    late, at_once = (next(row for row in rows if row[1] == name) for name in ("QPM-D(Thompson Beta(1,1))", "Thompson Beta(1,1)"))
    label = f"{late[0]}: {late[1]}, delay {late[2]}, T = {late[3]}: ours over theirs"
    experiment.mutant("the trial without its delays", label, Measured(at_once[5] / late[4], at_once[6] / late[4]))
    furthest = max(rows, key=lambda row: abs(row[5] / row[4] - 1))
    experiment.say(
        f"{len(rows)} published values; ours are between {min(one.value for one in ratios):.3f} and {max(one.value for one in ratios):.3f} of them. "
        f"The furthest: {furthest[1]}, delay {furthest[2]}, T = {furthest[3]}, theirs {furthest[4]:.1f}, ours {furthest[5]:.1f} ± {furthest[6]:.1f}."
    )
