"""``jaxbandit demo``: both regimes of the paper's title in one figure."""

import time
from pathlib import Path

import jax

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.cli.options import Whole, check_folder, check_new
from jaxbandit.plots.panels import save_png

DELAY, ARMS, ROUNDS, RUNS = 50, 4, 20_000, 512


def learners() -> dict[str, object]:
    return {
        "MZS22 (paper's constants)": jb.BestOfBothWorlds(max_delay=DELAY),
        "MZS22 (constants 1 and 1)": jb.BestOfBothWorlds(max_delay=DELAY, linear=1.0, factor=1.0),
        "Tsallis-INF (ignores delay)": jb.TsallisINF(),
        "uniform play": jb.Uniform(),
    }


def regimes() -> dict[str, object]:
    """Stochastic losses, and an oblivious adversary matched to the delay."""
    return {
        "stochastic losses: one arm is better by 0.2": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "adversarial losses: delay-matched switching": jb.losses.DelayMatchedSwitching(DELAY, ARMS),
    }


def demo(*, out: Path = Path(), seed: Whole = 0, force: bool = False) -> None:
    """Both regimes of the paper's title in one figure, demo.png: under a minute.

    Parameters
    ----------
    out
        Folder for the figure.
    seed
        Seed of the key; run i of every learner meets the same losses.
    force
        Replace files that are already there.
    """
    check_folder(out)
    check_new([out / "demo.png"], force)
    start = time.perf_counter()
    print(
        f"{RUNS} runs x {ROUNDS} rounds, {ARMS} arms, every loss is seen {DELAY} rounds late; {jax.local_device_count()} device(s)"
    )
    figure, panels = plots.figure(columns=2)
    for panel, (title, losses) in zip(panels, regimes().items(), strict=True):
        results = {}
        print(f"\n{title}\n  {'learner':30}{'regret':>8}   95 % interval")
        for name, learner in learners().items():
            results[name] = jb.simulate(
                learner, losses, jb.delays.Fixed(DELAY), rounds=ROUNDS, runs=RUNS, key=jax.random.key(seed), progress=True
            )
            estimate = results[name].estimate()
            print(f"  {name:30}{estimate.mean[-1]:8.0f}   {estimate.low[-1]:.0f} to {estimate.high[-1]:.0f}", flush=True)
        plots.draw_regret(panel, results, title=title)
    save_png(figure, out / "demo.png")
    print(
        f"\nThe figure is {out / 'demo.png'} ({time.perf_counter() - start:.0f} s)."
        "\nRegret is what a learner loses to the best single arm. The guarantee of the paper holds in both regimes;"
        "\nits constants 10 and 24 serve the proof, and cost a long start of near-uniform play."
        "\n\nTry next, in Python:"
        "\n  import jax, jaxbandit as jb"
        "\n  result = jb.simulate(jb.BestOfBothWorlds(max_delay=10), jb.losses.Bernoulli([0.3, 0.5, 0.5]),"
        "\n                       jb.delays.Geometric(mean=3.0, bound=10), rounds=10_000, runs=256, key=jax.random.key(0))"
        "\n  result.plot().savefig('mine.png')"
    )
