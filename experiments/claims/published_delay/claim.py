"""Published regrets under delay, and ours beside them."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np

from experiments.claims.harness.figures import draw_legend, draw_measured
from experiments.claims.harness.verdict import Check, Measured, width

GAMES = Path(__file__).parents[2] / "shapes" / "published.py"
READING = 0.01  # of a value that is read off a figure


def games():
    spec = importlib.util.spec_from_file_location("published", GAMES)
    assert spec is not None
    assert spec.loader is not None
    published = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(published)
    return published


def play(published, s):
    """(set, learner, delay, round, published, ours, error of ours, error of theirs)."""
    told, options = published.VALUES, {"seed": s.runs_seed}
    if "trial" in s.sets:
        theirs = {row["learner"]: row["se"] for row in told["trial"]["values"]}
        for learner, *row, both in published.trial(s.runs, **options):
            yield "trial", learner, *row, np.sqrt(both**2 - theirs[learner] ** 2), theirs[learner]
    for name, runs in (("DUCB", s.conversions_runs), ("QPM-D(UCB1)", s.queue_runs)):
        if name in s.sets:
            for *row, value, mean, error in published.pike_burke(runs, name, **options):
                chance = error * np.sqrt(runs / told["pike-burke"]["runs"])
                yield "pike-burke", *row, value, mean, error, np.hypot(chance, READING * value)
    if "states" in s.sets:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "DelayedExponentialWeights")  # it has another rate than its own here
            each = published.RUNS_EACH
            for *row, both in published.states(**options):
                yield "states", *row, both * np.sqrt(1 / (1 + each)), both * np.sqrt(each / (1 + each))


def run(experiment):
    s = experiment.settings
    (panel,) = experiment.panels(1)
    rows = list(play(games(), s))
    last = {row[:3]: row[3] for row in rows}  # of each curve, which is in the order of rounds
    judged, undecidable, ratios = [], [], {}
    for one in rows:
        title, learner, delay, t, value, mean, error, theirs = one
        ratio = Measured(float(mean / value), float(np.hypot(error, theirs) / value))
        ratios.setdefault(title, []).append(ratio)
        game = f"{title}: {learner}, delay {delay}, T = {t}"
        label = f"{game}: ours over theirs"
        experiment.number(f"{game}: theirs {value:.1f} ± {theirs:.1f}, ours", Measured(mean, error))
        if t == last[one[:3]]:
            judged.append((Check(label, ratio, "equals", 1.0, s.within, kind="open"), theirs / value))
        else:
            experiment.number(label, ratio)
    z = width([check for check, _ in judged])
    for check, theirs in judged:
        if z * theirs > s.within:
            undecidable.append(check.label)
            experiment.number(f"{check.label} (their error alone is too large to judge by)", check.measured)
        else:
            experiment.checks.append(check)
    first = 1
    for index, (title, points) in enumerate(ratios.items()):
        draw_measured(panel, range(first, first + len(points)), points, index, title, fmt="o")
        first += len(points)
    panel.axhline(1, color="black", linewidth=1)
    panel.set(
        xlabel="published value, by study",
        ylabel="regret here / published regret",
        title="Published regrets are reproduced within 15%",
    )
    draw_legend(panel)
    # What the same learner pays when nothing is late.
    late, at_once = (next(row for row in rows if row[1] == name) for name in ("QPM-D(Thompson Beta(1,1))", "Thompson Beta(1,1)"))
    label = f"trial: {late[1]}, delay {late[2]}, T = {late[3]}: ours over theirs"
    if label not in undecidable:
        error = np.hypot(at_once[6], late[7])
        experiment.mutant("the trial without its delays", label, Measured(float(at_once[5] / late[4]), float(error / late[4])))
    _, learner, delay, t, value, mean, error, _ = max(rows, key=lambda row: abs(row[5] / row[4] - 1))
    all_ratios = [ratio.value for points in ratios.values() for _, ratio in points]
    experiment.say(
        f"{len(rows)} published values; ours are between {min(all_ratios):.3f} and {max(all_ratios):.3f} of them. The furthest: "
        f"{learner}, delay {delay}, T = {t}, theirs {value:.1f}, ours {mean:.1f} ± {error:.1f}. Cannot be decided, because of the "
        f"published error alone: {'; '.join(undecidable) or 'none'}."
    )
