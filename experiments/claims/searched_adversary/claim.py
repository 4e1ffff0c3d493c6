"""For each learner the loss table that hurts it most: of a family with eight parameters, by evolution; then free, by its gradient."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbandit as jb
from experiments.claims.harness.verdict import mean_of, regret_of
from experiments.claims.no_oracle.learner import SkippingMZS22
from jaxbandit import theory
from jaxbandit._core.fields import canonical
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit.extend import Losses, number, pick, pytree_dataclass, static, whole_number
from jaxbandit.gradients.jump import JumpTangent

TABLES, EACH = 64, 8  # tables of a generation, and runs of each: one block
ELITE = 8
PIECE, CLIMBING = 25, 64  # rounds that share their losses while a table climbs, and runs that tell it where to
CLIMBED = ("MZS22", "ZS20", "Delayed Exp3")


@pytree_dataclass
class Blocks(Losses):
    """Losses that stay as they are for a block of rounds; every number may differ from run to run."""

    block: Any = number(low=1.0)  # rounds
    amplitude: Any = number(high=1.0)
    chance: Any = number(high=1.0)  # of a block whose pattern is random and not the arms' turns
    gap: Any = number(high=1.0)  # by which arm 0 is better from round `begin` on
    begin: Any = number()
    reversed_gap: Any = number(high=1.0)  # by which it is worse before
    rise: Any = number(high=1.0)  # of all losses, at the same round
    pattern: Any = whole_number()
    arms: int = static(low=2)

    @property
    def num_arms(self):
        return self.arms

    def expected(self, t):
        at = jnp.floor((t - 1) / jnp.asarray(self.block)).astype(jnp.uint32)
        arm = jnp.arange(self.arms, dtype=jnp.uint32).reshape(self.arms, *(1,) * at.ndim)
        turn = ((at + arm) % 2).astype(jnp.float32)
        own = _hash(at, arm, jnp.asarray(self.pattern).astype(jnp.uint32))
        coin = (own & 1).astype(jnp.float32)
        random = _hash(at, jnp.uint32(977), jnp.asarray(self.pattern).astype(jnp.uint32)) / jnp.float32(2**32) < self.chance
        up = jnp.where(random, coin, turn)
        late = t >= self.begin
        mean = 0.5 * (1 - self.rise) + jnp.where(late, self.rise, 0) + self.amplitude * (up - 0.5)
        mean = mean + jnp.where(arm == 0, 0.0, jnp.where(late, self.gap, -self.reversed_gap))
        return jnp.clip(mean, 0, 1)

    def sample(self, t, arm, noise):
        return pick(self.expected(t), arm)


def _hash(one, two, three):
    """Well mixed bits of three whole numbers, the same on every machine."""
    bits = one * jnp.uint32(0x9E3779B1) + two * jnp.uint32(0x85EBCA77) + three * jnp.uint32(0xC2B2AE3D)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    return bits ^ (bits >> 16)


NAMES = ("block", "amplitude", "chance", "gap", "begin", "reversed_gap", "rise", "pattern")


def fresh(rng, count, delay, rounds):
    """Tables at random, [count, 8]; some are of the kinds known to hurt."""
    tables = np.stack(
        [
            np.exp(rng.uniform(0, np.log(rounds / 4), count)),
            rng.choice([1.0, 0.5, 0.0], count, p=[0.6, 0.2, 0.2]),
            rng.choice([0.0, 1.0, 0.5], count),
            rng.choice([0.0, 0.02, 0.1, 0.5], count),
            rng.choice([1.0, 0.25, 0.5], count) * rounds,
            rng.choice([0.0, 0.1, 0.5], count),
            rng.choice([0.0, 0.5], count, p=[0.7, 0.3]),
            rng.integers(1 << 20, size=count),
        ],
        1,
    )
    tables[:, 4] = np.where(tables[:, 4] == rounds, 1, tables[:, 4])
    tables[: count // 4, 0] = (delay + 1) * rng.uniform(1, 8, count // 4)
    return tables


def bred(rng, elite, count, rounds):
    """Children: numbers of two parents each, some changed a little, some redrawn."""
    parents = elite[rng.integers(len(elite), size=(2, count))]
    tables = np.where(rng.random((count, 8)) < 0.5, *parents)
    changed = rng.random((count, 8)) < 0.4
    step = rng.normal(size=(count, 8))
    scaled = tables.copy()
    scaled[:, 0] *= np.exp(0.3 * step[:, 0])
    scaled[:, [1, 2, 3, 5, 6]] += 0.1 * step[:, [1, 2, 3, 5, 6]]
    scaled[:, 4] += 0.1 * rounds * step[:, 4]
    scaled[:, 7] = rng.integers(1 << 20, size=count)
    tables = np.where(changed, scaled, tables)
    tables[:, 0] = np.clip(tables[:, 0], 1, rounds)
    tables[:, [1, 2, 3, 5, 6]] = np.clip(tables[:, [1, 2, 3, 5, 6]], 0, 1)
    tables[:, 4] = np.clip(tables[:, 4], 1, rounds)
    return tables


def law(tables, each, arms):
    columns = [np.repeat(column, each) if each else column for column in np.asarray(tables, np.float32).T]
    columns[-1] = columns[-1].astype(np.int32)
    return Blocks(*columns, arms)


@jax.jit
def slope(logits, learner, delays, key, ids):
    """The gradient, in the logits of the losses of each piece, of the regret: reverse mode, jump tangent."""
    rounds = len(logits) * PIECE
    stretch = math.isqrt(rounds)

    def regret(logits):
        losses = jb.losses.Table(jnp.repeat(jax.nn.sigmoid(logits), PIECE, 0))
        game, player = Game.set_up(learner, losses, delays, key, ids), Player(hook=JumpTangent())

        def one_round(state, t):
            return player.step(game, state, t, loop="cond")[0], None

        @jax.checkpoint
        def one_stretch(state, first):
            return lax.scan(one_round, state, first + jnp.arange(stretch, dtype=jnp.int32))[0], None

        state, _ = lax.scan(one_stretch, player.start(game), jnp.arange(1, stretch**2 + 1, stretch, dtype=jnp.int32))
        return game.regret(state).mean()

    return jax.grad(regret)(logits)


def climbed(learner, table, delays, steps):
    """The table ``[T, K]`` after some steps along the signs of its gradient, in pieces of PIECE rounds."""
    means = np.clip(table.reshape(-1, PIECE, table.shape[1]).mean(1), 0.02, 0.98)
    logits = jnp.asarray(np.log(means / (1 - means)), jnp.float32)
    for step in range(steps):
        ids = jnp.arange(step * CLIMBING, (step + 1) * CLIMBING, dtype=jnp.uint32)
        up = slope(logits, canonical(learner), canonical(delays), jax.random.key(7), ids)
        logits = logits + (1 - step / steps) * jnp.sign(up)
    return np.repeat(np.asarray(jax.nn.sigmoid(logits)), PIECE, 0)


def learners(delay, rounds):
    total = delay * rounds - delay * (delay + 1) // 2
    return {
        "MZS22": jb.BestOfBothWorlds(delay),
        "MZS22, constants 1 and 1": jb.BestOfBothWorlds(delay, linear=1.0, factor=1.0),
        "ZS20": jb.ZimmertSeldin(),
        "ZS20, skipping": jb.ZimmertSeldin(skipping=True),
        "MZS22, constants 1 and 1, threshold for d_max": SkippingMZS22(skipping=True),
        "MZS24": jb.RobustBestOfBothWorlds(),
        "MZS24, factor 1": jb.RobustBestOfBothWorlds(factor=1.0),
        "Delayed Exp3": jb.DelayedExp3(),
        "DEW": jb.DelayedExponentialWeights(rounds, total, delay),
        "Tsallis-INF": jb.TsallisINF(),
        "Tsallis-INF rv": jb.TsallisINF("rv"),
        "UCB1": jb.DelayedUCB1(),
        "Thompson sampling": jb.DelayedThompson(),
    }


def bounds(arms, delay, rounds):
    """What the papers prove for these learners in this game."""
    delays = np.minimum(np.full(rounds, delay), rounds - np.arange(1, rounds + 1))
    proved = {
        "MZS22": theory.bounds.adversarial(theory.bounds.mzs22_rates(delays, arms), delays, arms),
        "ZS20": theory.bounds.zs20_simple(delays, arms),
        "ZS20, skipping": theory.bounds.zs20_skipping(delays, arms),
        "DEW": theory.bounds.dew(delays, arms),
        "Delayed Exp3": theory.bounds.delayed_exp3(delays, arms),
    }
    return {name: float(np.ravel(bound.total)[-1]) for name, bound in proved.items()}


def run(experiment):
    s = experiment.settings
    panels = experiment.panels(len(s.arms))
    waits = jb.delays.Fixed(s.delay)
    found: dict[tuple[str, int], float] = {}
    growth = {}
    for panel, arms in zip(panels, s.arms, strict=True):
        unit = np.sqrt(s.delay * s.rounds * np.log(arms))
        both = unit + np.sqrt(arms * s.rounds)
        proved = bounds(arms, s.delay, s.rounds)
        for name, learner in learners(s.delay, s.rounds).items():
            if s.learners and name not in s.learners:
                continue
            rng = np.random.default_rng(143)
            tables = fresh(rng, TABLES, s.delay, s.rounds)
            known: list[tuple[float, np.ndarray]] = []
            for generation in range(s.generations):
                result = jb.simulate(
                    learner,
                    law(tables, EACH, arms),
                    waits,
                    rounds=s.rounds,
                    runs=TABLES * EACH,
                    seed=generation,
                    record=[s.rounds],
                )
                experiment.played += s.rounds * TABLES * EACH
                means = result.regret[-1].reshape(TABLES, EACH).mean(1)
                known = sorted([*known, *zip(means, tables, strict=True)], key=lambda one: -one[0])[:ELITE]
                tables = bred(rng, np.array([table for _, table in known]), TABLES, s.rounds)
            # The best of many is lucky: the elite is measured again, and the winner once more, on keys of their own.
            elite = np.array([table for _, table in known])
            runs = TABLES * EACH // ELITE
            again = jb.simulate(
                learner, law(elite, runs, arms), waits, rounds=s.rounds, runs=runs * ELITE, seed=99, record=[s.rounds]
            )
            experiment.played += s.rounds * runs * ELITE
            winner = elite[np.argmax(again.regret[-1].reshape(ELITE, runs).mean(1))]
            last = experiment.simulate(
                learner, law(winner, 0, arms), waits, rounds=4 * s.rounds, runs=s.runs, record=[s.rounds, 4 * s.rounds]
            )
            regret, longer = mean_of(last, last.regret[0]), mean_of(last, last.regret[1])
            evolved = regret.value
            if name in CLIMBED and s.steps:
                table = np.asarray(jax.vmap(law(winner, 0, arms).expected)(jnp.arange(1, s.rounds + 1)))
                free = jb.losses.Table(climbed(learner, table, waits, s.steps))
                after = regret_of(experiment.simulate(learner, free, waits, rounds=s.rounds, runs=s.runs))
                experiment.number(f"K = {arms}, {name}: regret by evolution", regret)
                experiment.number(f"K = {arms}, {name}: regret after {s.steps} steps along the gradient of the table", after)
                regret = max(regret, after, key=lambda one: one.value)
            found[name, arms] = regret.value
            if name != "DEW":  # which was told the shorter horizon
                growth[name, arms] = longer.value / evolved
                experiment.number(f"K = {arms}, {name}: regret at 4T over that at T", growth[name, arms])
            experiment.number(f"K = {arms}, {name}: regret over √(KT) + √(dT log K)", regret / both)
            experiment.number(f"K = {arms}, {name}: regret over √(dT log K)", regret / unit)
            experiment.number(f"K = {arms}, {name}: block length found", float(winner[0]))
            if name in proved:
                label = f"K = {arms}, {name}: largest regret found"
                experiment.check(label, regret, "at most", proved[name])
                experiment.mutant("√(dT log K)/4 as a bound", label, bound=unit / 4)
        ranked = sorted((name for name, k in found if k == arms), key=lambda name: found[name, arms])
        panel.barh(range(len(ranked)), [found[name, arms] / both for name in ranked])
        panel.set_yticks(range(len(ranked)), ranked, fontsize=7)
        panel.set(xlabel="largest regret found/(√(KT) + √(dT log K))", title=f"K = {arms}, d = {s.delay}, T = {s.rounds}")
        experiment.say(
            f"K = {arms}, largest regret found over √(dT log K) (and over √(KT) + √(dT log K)): "
            + ", ".join(f"{name} {found[name, arms] / unit:.2f} ({found[name, arms] / both:.2f})" for name in ranked[::-1])
            + "."
        )
    fast = [f"{name} (K = {arms}: {ratio:.1f})" for (name, arms), ratio in growth.items() if ratio > s.square_root]
    experiment.say(
        f"Regret at 4T over that at T, above {s.square_root:g}, on the table found for it: {', '.join(fast) or 'nobody'}."
    )
