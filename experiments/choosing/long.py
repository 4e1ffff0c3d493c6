"""Regret after ten million rounds: a table of docs/appendix/regret_tables.md.

Fixed delay 10. The two environments of the demo: stochastic losses (means 0.3 and 0.5) and delay-matched switching (two arms
alternate every 20 rounds, the others have mean 0.9); four arms and two.

    python experiments/choosing/long.py --out FOLDER              # about five minutes of one core; resumes after an interruption
    python experiments/choosing/long.py --out FOLDER --float64    # the same in float64, in a folder of its own
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

import jaxbandit as jb

DELAY, HORIZONS = 10, (10_000, 100_000, 1_000_000, 10_000_000)
LEARNERS = {
    "MZS22": jb.BestOfBothWorlds(DELAY),
    "ZS20": jb.ZimmertSeldin(),
    "MZS24": jb.RobustBestOfBothWorlds(),
    "Tsallis-INF": jb.TsallisINF(),
    "Tsallis-INF, RV": jb.TsallisINF("rv"),
    "Delayed Exp3": jb.DelayedExp3(),
}


def games():
    return {
        (arms, name): losses
        for arms in (4, 2)
        for name, losses in (
            ("stochastic losses", jb.losses.Bernoulli([0.3, *[0.5] * (arms - 1)])),
            ("delay-matched switching", jb.losses.DelayMatchedSwitching(DELAY, arms)),
        )
    }


def play(learner, losses, runs):
    """The regret at the horizons, ``[4, runs]``. A rollout: `simulate` would fill few runs up to a block of 256 or 512."""

    def regret(rounds):
        waits = jb.delays.Fixed(DELAY)
        return jb.rollout(learner, losses, waits, rounds=rounds, runs=runs, seed=0, record=list(HORIZONS)).regret

    return np.asarray(jax.jit(regret)(jnp.int32(HORIZONS[-1])), np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder with a file for each cell")
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS), help="some of them")
    parser.add_argument("--float64", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.float64)
    options.out.mkdir(parents=True, exist_ok=True)
    cells = [(arms, game, name) for arms, game in games() for name in options.learners]
    for arms, game, name in tqdm(cells, unit=" cells"):
        file = options.out / f"{arms}_{game}_{name}_{options.runs}.npy".replace(" ", "_")
        if not file.exists():
            found = play(LEARNERS[name], games()[arms, game], options.runs)
            np.save(half := file.with_suffix(".half.npy"), found)
            half.rename(file)
    for arms, game in games():
        print(f"\n**{arms} arms, {game}**\n")
        print("| algorithm | " + " | ".join(f"T = {horizon:,}" for horizon in HORIZONS) + " |")
        print("|---" * (1 + len(HORIZONS)) + "|")
        for name in options.learners:
            regret = np.load(options.out / f"{arms}_{game}_{name}_{options.runs}.npy".replace(" ", "_"))
            errors = regret.std(1, ddof=1) / np.sqrt(options.runs)
            row = [f"{mean:.0f} ± {error:.0f}" for mean, error in zip(regret.mean(1), errors, strict=True)]
            print(f"| {name} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
