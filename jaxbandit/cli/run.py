"""``jaxbandit run``: one simulation."""

import warnings
from pathlib import Path
from typing import Any

from jaxbandit._engine.simulation import simulate
from jaxbandit.cli.errors import CommandError
from jaxbandit.cli.options import Flag, Whole, importable, output_files
from jaxbandit.cli.words import from_words
from jaxbandit.plots.panels import save_png, take_literally
from jaxbandit.sweeps.plan import Plan, measurements
from jaxbandit.sweeps.spec import AXES


def run(
    spec: Path | None = None,
    /,
    *,
    learner: str | None = None,
    losses: str | None = None,
    delays: str | None = None,
    rounds: Whole | None = None,
    runs: Whole | None = None,
    seed: Whole | None = None,
    out: Path = Path("run"),
    force: Flag = False,
    imports: Flag = False,
) -> None:
    """Run one simulation; print a table, write a figure and the result.

    Example: jaxbandit run --learner "bobw(max_delay=10)" --losses "bernoulli([0.3, 0.5])" --delays "fixed(10)"

    Parameters
    ----------
    spec
        TOML file with one learner, one loss model and one delay model; without it, name the three by options.
    learner
        Learner with any of its fields, such as "bobw(max_delay=10)".
    losses
        Loss model, such as "bernoulli(means=[0.3, 0.5, 0.5])".
    delays
        Delay model, such as "fixed(delay=10)" or 'log(file="log.csv", action="shown", feedback="bought", window="7d")'.
    rounds
        Number of rounds (default: that of the spec, or 10000).
    runs
        Number of runs (default: that of the spec, or 256).
    seed
        Random seed (default: 0; a spec has its own).
    out
        Name of the output files without their suffix; OUT.png and OUT.npz are written.
    force
        Replace files that are already there.
    imports
        Allow learners and models of your own as "module:Class"; this runs that module.
    """
    figure, data = output_files(out, ".png", ".npz", force=force)
    if imports:
        importable()
    named = {"learners": learner, "losses": losses, "delays": delays}
    if spec is None:
        source: Any = from_words(named) | {"rounds": 10_000, "runs": 256, "seed": 0 if seed is None else seed}
    else:
        source = spec
        options = {"--learner": learner, "--losses": losses, "--delays": delays, "--seed": seed}
        given = next((option for option, value in options.items() if value is not None), None)
        if given:
            raise CommandError(f"{given}: give a spec or name the learner, losses and delays, not both")
    plan = Plan.make(source, rounds=rounds, runs=runs, imports=imports, folder=Path())
    if len(plan.cells) != 1:
        raise CommandError(f"{spec}: this spec has {len(plan.cells)} cells; `run` simulates one, `sweep` all of them")
    for note in plan.notes:
        warnings.warn(note, stacklevel=1)
    cell = plan.cells[0]
    result = simulate(
        cell.learner,
        cell.losses,
        cell.delays,
        rounds=plan.rounds,
        runs=plan.runs,
        seed=plan.spec.seed,
        record=plan.record(),
        measure=measurements(plan.spec.control_variates),
        progress=True,
    )
    estimate = result.estimate()
    print(", ".join(plan.axes[axis][0].label for axis in AXES) + f"; {plan.runs} runs")
    print(f"{'round':>12} {'regret':>12}   95 % interval")
    for index in sorted({*range(len(estimate.rounds) - 1, -1, -max(1, len(estimate.rounds) // 10))}):
        print(
            f"{estimate.rounds[index]:12d} {estimate.mean[index]:12.2f}   {estimate.low[index]:.2f} to {estimate.high[index]:.2f}"
        )
    result.save(data)
    drawing = result.plot(title=plan.axes["learners"][0].label)
    take_literally(drawing)  # a label may be anything
    save_png(drawing, figure)
    print(f"written: {figure}, {data}")
