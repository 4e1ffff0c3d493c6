"""The layout of the package, in the order in which it is built up: what the drawing shows and what the tests demand.

A module may import those of its own line and of the lines before it. ``""`` is ``jaxbandit/__init__.py``.
"""

LAYERS: list[tuple[str, tuple[str, ...], str]] = [
    # what the line is for, its modules, in a few words
    (
        "tools",
        ("version", "extras", "files", "display", "progress", "pytrees"),
        "files whole or not there; dataclasses as pytrees",
    ),
    (
        "numbers",
        ("arms", "rows", "counting", "elementary", "randomness", "projection"),
        "sums over arms, exact sums, words by (round, run), FTRL's argmin",
    ),
    (
        "who plays whom",
        ("losses", "delays", "logs", "learners", "extend"),
        "base.py declares what may be asked; one file a family; a registry",
    ),
    (
        "the round",
        ("pending", "slots", "measure", "trial", "cautions", "validation", "settings", "derivatives", "rounds", "game"),
        "plays that wait, one round, the loop, rollout()",
    ),
    (
        "accelerators",
        ("vectors", "arithmetic", "evaluator", "flat", "forms", "compilers"),
        "the round for GPU and TPU, block sizes, what compilers make of it",
    ),
    (
        "many runs",
        ("statistics", "result", "blocks", "simulation", "packing", "conformance"),
        "blocks of runs on devices, simulate(), Result, intervals",
    ),
    ("theory", ("theory",), "bounds, measurements of the analysis, lower-bound games"),
    ("figures", ("plots", "webpage"), "matplotlib, and what all HTML pages share"),
    ("live", ("agent", "advice"), "one decision at a time, feedback whenever it comes; which learner for a log"),
    ("gradients", ("gradients",), "the expected regret's derivative; tune()"),
    ("sweeps", ("sweeps",), "spec, plan, store, run, open, report"),
    ("public names", ("",), "import jaxbandit as jb: re-exports, nothing else"),
    ("claims", ("claims",), "the paper's statements: run, judged, written as pages"),
    ("command line", ("cli", "__main__"), "one file a command"),
]
