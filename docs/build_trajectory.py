"""Draws docs/trajectory.png: one run with its feedback in flight."""

from pathlib import Path

import jaxbandit as jb
from jaxbandit.plots.panels import save_png

result = jb.simulate(
    jb.DelayedUCB1(),
    jb.losses.Bernoulli([0.2, 0.5, 0.8]),
    jb.delays.Geometric(10),
    rounds=100,
    runs=512,
    seed=0,
    measure=[jb.measure.Trajectory(runs=[3])],
)
save_png(
    jb.plots.trajectory(result, run=3, title="While feedback is in flight, UCB1 repeats an arm"),
    Path(__file__).parent / "trajectory.png",
)
