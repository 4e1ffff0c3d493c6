"""Which statements on Delayed SAPO hold in simulations, and at which constants: ``python -m experiments.sapo --out DIR``.

Writes ``results.json``, ``tables.md`` and ``regret.png``. Statements and numbers of lemmas are those of Schlisselberg, Lancewicki, Auer &
Mansour, *Improved Best-of-Both-Worlds Regret for Bandits with Delayed Feedback*, NeurIPS 2025.
"""

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit.extend import pytree_dataclass
from jaxbandit.plots import ALGORITHMS
from jaxbandit.results.tables import markdown_table

D, L = jb.delays, jb.losses
ARMS, HORIZONS = (2, 4, 10), (4096, 16_384, 65_536)
DELAYS = {"fixed 100": D.Fixed(100), "uniform on 0 … 200": D.UniformRandom(0, 200)}
SCALED = {"separation": 1.0, "phase": 20.0}
STYLES = {  # of jb.plots.ALGORITHMS; the line, where a variant needs another one
    "Delayed SAPO": ("delayed-sapo", None),
    "Delayed SAPO (1, 20)": ("delayed-sapo", "-"),
    "MZS22, constants (1, 1)": ("bobw-1-1", None),
    "ZS20": ("zimmert-seldin", None),
    "Thompson": ("thompson", None),
}


@pytree_dataclass
class Elimination:
    """Rounds in which arms are dropped, and the largest ratio of the widths of two active arms: [C, K, runs] and [C, runs]."""

    def init(self, num_arms, runs_shape):
        none = jnp.zeros((num_arms, *runs_shape), jnp.int32)
        return none, jnp.ones(runs_shape), {"count": none, "errors": none, "level": none, "switched": none[0]}

    def update(self, state, info):
        dropped, ratio, _ = state
        sapo = info.learner_state
        number = sapo.bounds.observed.number()
        # min{1, sqrt(2 log T/n)} with the factor of T cancelled: an upper bound of the ratio where a width is cut off at 1.
        low = jnp.where(sapo.active, number, jnp.inf).min(0)
        high = jnp.where(sapo.active, number, 0).max(0)
        late = low >= 2 * np.log(2)
        ratio = jnp.where(~sapo.fallen & late, jnp.maximum(ratio, jnp.sqrt(high / low)), ratio)
        dropped = jnp.where((dropped == 0) & ~sapo.active & ~sapo.fallen, info.t, dropped)
        end = {
            "count": sapo.bounds.observed.counts, "errors": sapo.watched.errors, "level": sapo.watched.level,
            "switched": sapo.fallen.astype(jnp.int32),
        }  # fmt: skip
        return dropped, ratio, end

    def read(self, state):
        return {"dropped": state[0], "ratio": state[1], **state[2]}


def learners(arms: int, rounds: int, longest: int) -> dict:
    return {
        "Delayed SAPO": jb.DelayedSAPO(rounds),
        "Delayed SAPO (1, 20)": jb.DelayedSAPO(rounds, **SCALED),
        "MZS22, constants (1, 1)": jb.BestOfBothWorlds(longest, linear=1.0, factor=1.0),
        "ZS20": jb.ZimmertSeldin(),
        "Thompson": jb.DelayedThompson(),
    }


def means(arms: int) -> L.Bernoulli:
    return L.Bernoulli([0.2] + [0.7] * (arms - 1))


def regret(learner, losses, delays, rounds: int, runs: int) -> list[float]:
    found = jb.simulate(learner, losses, delays, rounds=rounds, runs=runs, seed=0, record=[rounds]).estimate()
    return [float(found.mean[-1]), float(found.error[-1])]


def against_horizon(runs: int) -> dict:
    """Mean regret and standard error by delays, arms, learner and horizon; a learner that requires the horizon is another one for each."""
    found: dict = {}
    for name, delays in DELAYS.items():
        for arms in ARMS:
            for rounds in HORIZONS:
                for label, learner in learners(arms, rounds, delays.longest()).items():
                    each = found.setdefault(name, {}).setdefault(str(arms), {}).setdefault(label, [])
                    each.append(regret(learner, means(arms), delays, rounds, runs))
            print(name, arms, json.dumps(found[name][str(arms)]), flush=True)
    return found


def cost_of_delay(runs: int, delay: int = 1000, rounds: int = 16_384) -> dict:
    """(regret at the delay - regret without) / (delay x average gap), for each number of arms."""
    found: dict = {}
    for arms in ARMS:
        gap = 0.5 * (arms - 1) / arms
        for label, learner in learners(arms, rounds, delay).items():
            if label != "Delayed SAPO":  # explores uniformly at this horizon, whatever the delay
                ends = [regret(learner, means(arms), D.Fixed(d), rounds, runs) for d in (0, delay)]
                cost, error = ends[1][0] - ends[0][0], np.hypot(ends[0][1], ends[1][1])
                found.setdefault(label, []).append([cost / (delay * gap), error / (delay * gap)])
    return found


INSIDE = {  # name: means, T, learner's constants
    "K = 2, gap 0.8": ([0.1, 0.9], 32_768, {}),
    "K = 4, gap 0.8": ([0.1, 0.9, 0.9, 0.9], 32_768, {}),
    "K = 3, gaps 0.03 and 0.8": ([0.1, 0.13, 0.9], 32_768, {}),
    "K = 3, gaps 0.03 and 0.8, (1, 20)": ([0.1, 0.13, 0.9], 32_768, SCALED),
    "K = 3, gaps 0.03 and 0.8, widths for T = 1.05 (negative control)": (
        [0.1, 0.13, 0.9],
        32_768,
        {"separation": 0.0, "horizon": 1.05},
    ),
}


def inside(runs: int) -> dict:
    """What happens within the algorithm under stochastic losses, fixed delay 100."""
    found = {}
    for name, (mean, rounds, constants) in INSIDE.items():
        gaps, log = np.array(mean) - min(mean), np.log(rounds)
        separation = constants.get("separation", 9.0)
        result = jb.simulate(
            jb.DelayedSAPO(**{"horizon": rounds, **constants}), L.Bernoulli(mean), D.Fixed(100), rounds=rounds, runs=runs, seed=1, record=[rounds],
            measure=[Elimination()],
        )  # fmt: skip
        end = {key: values[-1] for key, values in result.measured.items()}
        dropped, worst = end["dropped"], int(np.argmax(gaps))
        count = end["count"][worst][dropped[worst] > 0]
        width = np.minimum(1, np.sqrt(2 * log / np.maximum(count, 1)))
        order = [  # the arm with the smaller gap was dropped first, with a gap more than 20 times smaller
            (dropped[one] > 0) & ((dropped[other] == 0) | (dropped[one] < dropped[other]))
            for one in range(len(mean)) for other in range(len(mean)) if 0 < 20 * gaps[one] < gaps[other]
        ]  # fmt: skip
        found[name] = {
            "dropped": float((dropped[worst] > 0).mean()),
            "round": float(np.median(dropped[worst][dropped[worst] > 0])) if count.size else None,
            "observations": float((count * gaps[worst] ** 2 / (2 * (1 + separation) ** 2 * log)).mean()) if count.size and "horizon" not in constants else None,
            "gap over 8 widths": [float(np.min(gaps[worst] / (8 * width))), float(np.max(gaps[worst] / (8 * width)))] if count.size else None,
            "best dropped": float((dropped[0] > 0).mean()),
            "wrong order": float(np.any(order, axis=0).mean()) if order else None,
            "width ratio": float(end["ratio"].max()),
            "errors": int(end["errors"].max()),
            "errors allowed": float(3 * log),
            "switched": float(end["switched"].mean()),
            "runs": runs,
        }  # fmt: skip
        print(name, json.dumps(found[name]), flush=True)
    return found


def adversarial(runs: int, delay: int = 100, rounds: int = 16_384) -> dict:
    """Mean regret where losses are not stochastic, and the share of runs in which Delayed SAPO switches to its base."""
    tables = {
        "delay-matched switching": L.DelayMatchedSwitching(delay, 2),
        "arms swapped after T/2": L.Switching([[0.1, 0.9], [0.9, 0.1]], [1, rounds // 2]),
    }
    found: dict = {}
    for name, losses in tables.items():
        for label, learner in learners(2, rounds, delay).items():
            mine = [Elimination()] if isinstance(learner, jb.DelayedSAPO) else []
            result = jb.simulate(learner, losses, D.Fixed(delay), rounds=rounds, runs=runs, seed=2, record=[rounds], measure=mine)
            estimate = result.estimate()
            switched = float(result.measured["switched"][-1].mean()) if mine else None
            found.setdefault(name, {})[label] = [float(estimate.mean[-1]), float(estimate.error[-1]), switched]
        print(name, json.dumps(found[name]), flush=True)
    return found


def literal_check(runs: int = 2000, observations: int = 200, rounds: int = 16_384) -> dict:
    """Line 1 of Procedure 7 as printed, on stochastic losses and uniform play: the share of runs that it makes switch. NumPy, float64."""
    found = {}
    for arms in (2, 3, 4, 10):
        rng, mean = np.random.default_rng(arms), np.array([0.2] + [0.7] * (arms - 1))
        arm = rng.integers(arms, size=(observations, runs))
        loss = (rng.random(arm.shape) < mean[arm]).astype(float)
        seen, total = np.zeros((2, arms, runs))
        low, high, outside = np.full((arms, runs), -np.inf), np.full((arms, runs), np.inf), np.zeros((observations, runs), bool)
        for n in range(observations):
            mine = np.arange(arms)[:, None] == arm[n]
            seen, total = seen + mine, total + mine * loss[n]
            width = np.minimum(1, np.sqrt(2 * np.log(rounds) / np.maximum(seen, 1)))
            average = total / np.maximum(seen, 1)
            low, high = np.maximum(low, average - width), np.minimum(high, average + width)
            wide = min(1, np.sqrt(2 * arms * np.log(rounds) / (n + 1)))
            weighted = arms * total / (n + 1)
            outside[n] = ((weighted < low - wide) | (weighted > high + wide)).any(0)
        found[str(arms)] = {"at the first": float(outside[0].mean()), "within 200": float(outside.any(0).mean())}
    return found


def width_direction() -> dict:
    """width = min{1, sqrt(2 log T / n)} after n = 1 … T pulls, T = 4; and the least T with a prefix that is wider than its extension."""
    each = {T: [min(1, float(np.sqrt(2 * np.log(T) / n))) for n in range(1, T + 1)] for T in range(1, 5)}
    return {"T = 4": each[4], "least T": next(T for T, widths in each.items() if widths[0] > widths[-1])}


def draw(found: dict, path: Path) -> None:
    figure, panels = jb.plots.figure(columns=len(ARMS), rows=len(DELAYS))
    for panel, (name, arms) in zip(panels, [(name, arms) for name in DELAYS for arms in ARMS], strict=True):
        for label, (algorithm, line) in STYLES.items():
            values, style = np.array(found[name][str(arms)][label]), ALGORITHMS[algorithm]
            drawn = dict(color=style.colour, linestyle=line or style.linestyle, marker=style.marker, markersize=5)
            panel.errorbar(
                HORIZONS, values[:, 0], 1.96 * values[:, 1], label=label.replace("Thompson", "Thompson sampling"), **drawn
            )
        uniform = [0.5 * (arms - 1) / arms * T for T in HORIZONS]
        panel.plot(HORIZONS, uniform, color="grey", linewidth=0.8, label="uniform baseline")
        panel.set(
            xscale="log",
            yscale="log",
            title=f"$K = {arms}$, delay {name}",
            xlabel="horizon T (rounds)",
            ylabel="mean pseudo-regret",
        )
        panel.set_xticks(HORIZONS, [f"{T:,}" for T in HORIZONS])
        panel.minorticks_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(
        "Delayed SAPO with its own constants explores uniformly until T is large; with (1, 20) it has low regret for few arms"
    )
    figure.savefig(path, dpi=150)


def tables(found: dict) -> str:
    def cell(value: list[float]) -> str:
        return f"{value[0]:,.0f} ± {value[1]:,.0f}"

    texts = []
    for name, by_arms in found["regret"].items():
        rows = [[label, *(cell(value) for arms in by_arms.values() for value in arms[label])] for label in STYLES]
        head = ["algorithm", *(f"K = {arms}, T = {T:,}" for arms in ARMS for T in HORIZONS)]
        texts.append(f"{name}\n\n{markdown_table(head, rows)}")
    rows = [[label, *(f"{cost:.2f} ± {error:.2f}" for cost, error in each)] for label, each in found["delay"].items()]
    texts.append(markdown_table(["algorithm", *(f"K = {arms}" for arms in ARMS)], rows))
    head = ["setting", "arm dropped", "median round", "observations / predicted", "gap / 8 widths", "best arm dropped", "wrong order",
            "largest width ratio", "most errors (allowed)", "switched"]  # fmt: skip
    rows = []
    for name, one in found["inside"].items():
        gap = one["gap over 8 widths"]
        rows.append([
            name, f"{one['dropped']:.0%}", "–" if one["round"] is None else f"{one['round']:,.0f}",
            "–" if one["observations"] is None else f"{one['observations']:.2f}", "–" if gap is None else f"{gap[0]:.2f} to {gap[1]:.2f}",
            f"{one['best dropped']:.1%}", "–" if one["wrong order"] is None else f"{one['wrong order']:.1%}", f"{one['width ratio']:.2f}",
            f"{one['errors']} ({one['errors allowed']:.0f})", f"{one['switched']:.1%}",
        ])  # fmt: skip
    texts.append(markdown_table(head, rows))
    rows = [
        [label, *(f"{cell(each[label])}" + ("" if each[label][2] is None else f" ({each[label][2]:.0%})") for each in found["adversarial"].values())]
        for label in STYLES
    ]  # fmt: skip
    texts.append(markdown_table(["algorithm", *found["adversarial"]], rows))
    rows = [
        [f"K = {arms}", f"{one['at the first']:.1%}", f"{one['within 200']:.1%}"] for arms, one in found["literal check"].items()
    ]
    texts.append(markdown_table(["arms", "at the first observation", "within 200 observations"], rows))
    return "\n\n".join(texts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for results.json, tables.md and regret.png")
    parser.add_argument(
        "--runs", type=int, default=64, help="runs of each simulation of regret; eight times as many inside the algorithm"
    )
    parser.add_argument("--draw", action="store_true", help="only draw regret.png again, from the results.json in the folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.draw:
        return draw(json.loads((options.out / "results.json").read_text())["regret"], options.out / "regret.png")
    found = {"widths": width_direction(), "literal check": literal_check(), "inside": inside(8 * options.runs)}
    found |= {
        "adversarial": adversarial(options.runs),
        "delay": cost_of_delay(options.runs),
        "regret": against_horizon(options.runs),
    }
    (options.out / "results.json").write_text(
        json.dumps({"runs": options.runs, "jax": jax.__version__, **found}, indent=1) + "\n"
    )
    (options.out / "tables.md").write_text(tables(found))
    draw(found["regret"], options.out / "regret.png")


if __name__ == "__main__":
    main()
