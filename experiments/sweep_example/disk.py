"""How much disk a sweep takes, with and without states: python experiments/sweep_example/disk.py FOLDER

Two sweeps: one on a trace that ends at the horizon, one of 210 cells that could go on. Prints what their folders hold.
"""

import sys
from pathlib import Path

import numpy as np

import jaxbandit as jb
from jaxbandit.sweeps.spec import Spec

ROUNDS = 5_000
waits = np.random.default_rng(0).integers(0, ROUNDS // 2, ROUNDS)
trace = {
    "rounds": ROUNDS, "runs": 32, "learners": [jb.DelayedExp3(), jb.TsallisINF(), jb.ZimmertSeldin(), jb.Uniform()],
    "losses": [jb.losses.Bernoulli([0.3, 0.5, 0.5, 0.5])], "delays": [jb.delays.Trace(waits)],
}  # fmt: skip
many = {
    "rounds": 1_000, "runs": 32, "learners": [jb.DelayedExp3(), jb.TsallisINF(), jb.Uniform()],
    "losses": [jb.losses.Bernoulli([0.5 - gap, 0.5, 0.5, 0.5]) for gap in (0.05, 0.1, 0.2, 0.3, 0.4)],
    "delays": [jb.delays.Fixed(wait) for wait in range(50, 64)],
}  # fmt: skip

for name, spec in (("trace of 5,000 rounds, 4 cells", trace), ("210 cells of 1,000 rounds", many)):
    for states in (True, False) if "states" in Spec.__dataclass_fields__ else (None,):
        out = Path(sys.argv[1]) / f"{name[:3]}_{states}"
        jb.sweep(jb.Spec(**spec), out, **({} if states is None else {"states": states}))
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        print(f"{name}, states={states}: {size / 1e6:.1f} MB", flush=True)
