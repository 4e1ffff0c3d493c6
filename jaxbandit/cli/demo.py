"""``jaxbandit demo``: stochastic and adversarial losses in one figure."""

import time
import warnings
from pathlib import Path
from typing import Any

import jax

import jaxbandit as jb
from jaxbandit import plots
from jaxbandit.cli.options import Flag, Whole, check_folder, check_new
from jaxbandit.plots.panels import save_png

DELAY, ARMS, ROUNDS, RUNS, RECORDED = 50, 4, 20_000, 512, 50


def learners() -> dict[str, Any]:
    return {
        "MZS22 (10, 24)": jb.BestOfBothWorlds(max_delay=DELAY),
        "MZS22 (1, 1)": jb.BestOfBothWorlds(max_delay=DELAY, linear=1.0, factor=1.0),
        "Tsallis-INF": jb.TsallisINF(),
        "Thompson sampling": jb.DelayedThompson(),
    }


def environments() -> dict[str, Any]:
    """Stochastic losses, and an oblivious adversary matched to the delay."""
    return {
        "Stochastic losses": jb.losses.Bernoulli([0.3, *[0.5] * (ARMS - 1)]),
        "Delay-matched switching": jb.losses.DelayMatchedSwitching(DELAY, ARMS),
    }


def demo(*, out: Path = Path(), seed: Whole = 0, force: Flag = False) -> None:
    """Simulate four algorithms under stochastic and adversarial losses and draw demo.png (under a minute).

    Example: jaxbandit demo --out figures

    Parameters
    ----------
    out
        Folder for the figure.
    seed
        Random seed; run i of every algorithm meets the same losses.
    force
        Replace files that are already there.
    """
    check_folder(out)
    check_new([out / "demo.png"], force)
    print(
        f"{RUNS} runs of {ROUNDS:,} rounds, {ARMS} arms, every loss delayed by {DELAY} rounds; {jax.local_device_count()} device(s)"
    )
    seconds = {"compilation": 0.0, "simulation": 0.0}
    results = {title: _simulated(title, losses, seed, seconds) for title, losses in environments().items()}
    figure = drawn(results)
    save_png(figure, out / "demo.png")
    rounds = len(learners()) * len(environments()) * RUNS * ROUNDS
    print(
        f"\n{rounds:,} rounds simulated, {rounds / seconds['simulation'] / 1e6:,.1f} million rounds/s without compilation; "
        f"compilation took {seconds['compilation']:.1f} s."
        "\nThompson sampling and Tsallis-INF have no regret bound for adversarial losses under delay; docs/choosing.md shows the environments"
        "\nin which each of them fails, and the price of the bound of MZS22."
        f"\nNext: look at the figure, {out / 'demo.png'}. Then `jaxbandit run --help`, or in Python:"
        "\n  import jaxbandit as jb"
        "\n  result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(50), rounds=10_000, runs=256, seed=0)"
        "\n  result.plot().savefig('mine.png')"
    )


def _simulated(title: str, losses: Any, seed: int, seconds: dict[str, float]) -> dict[str, jb.Result]:
    """Results of all algorithms; ``seconds`` grows by the time of compilation and of simulation."""
    print(f"\n{title}\n  {'algorithm':20}{'regret':>8}   95% CI")
    results = {}
    for name, learner in learners().items():

        def simulate(rounds: int, progress: bool, learner: Any = learner) -> tuple[jb.Result, float]:
            begun = time.perf_counter()
            delays, key = jb.delays.Fixed(DELAY), jax.random.key(seed)
            result = jb.simulate(learner, losses, delays, rounds=rounds, runs=RUNS, key=key, record=RECORDED, progress=progress)
            return result, time.perf_counter() - begun

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that MZS22 with its constants is in its burn-in is what the demo shows
            compiling = simulate(RECORDED, progress=False)[1]  # the number of rounds is not part of the program
            results[name], simulating = simulate(ROUNDS, progress=True)
        seconds["compilation"] += compiling
        seconds["simulation"] += simulating
        estimate = results[name].estimate()
        print(f"  {name:20}{estimate.mean[-1]:8.0f}   {estimate.low[-1]:.0f} to {estimate.high[-1]:.0f}", flush=True)
    return results


def drawn(results: dict[str, dict[str, jb.Result]]) -> Any:
    """One panel per environment with a common logarithmic axis; the titles state the result."""
    figure, panels = plots.figure(columns=2)
    ends = [float(result.estimate().mean[-1]) for of in results.values() for result in of.values()]
    for panel, (title, of) in zip(panels, results.items(), strict=True):
        plots.regret(of, ax=panel, log="both", title=f"{title}:\n{headline(of)}")
        panel.title.set_fontsize(11)
        panel.set_ylim(min(ends) / 20, 1.6 * max(ends))
        panel.set_xlim(left=20)
        plots.label_logarithms(panel)
        plots.label_curves(panel)
    panels[1].set_ylabel("")
    return figure


def headline(results: dict[str, jb.Result]) -> str:
    """Which algorithms have the lowest and the highest regret."""
    means = {name: float(result.estimate().mean[-1]) for name, result in results.items()}
    order = sorted(means, key=means.__getitem__)
    return f"lowest {order[0]},\nhighest {order[-1]}, {means[order[-1]] / means[order[0]]:,.0f} times as much"
