"""Search moves from one table to a worse one: evolution in the structured family, climbs along the gradient, random edits."""

import numpy as np

from jaxbandit.adversary import family
from jaxbandit.adversary.arena import TABLES, Arena

EACH, ELITE = 16, 8  # runs of each table of a generation, and how many of the tables are kept
CERTAIN = 0.03  # losses closer to 0 or 1 than this are moved away before a climb, where the logit has a slope
STEEPEST = 8.0  # largest logit
LOOK = 5  # steps of a climb between two measurements


def evolved(arena: Arena, rng: np.random.Generator, delay: float, generations: int) -> np.ndarray:
    """The table ``[T, K]`` of the best genome after some generations."""
    rounds, arms = arena.rounds, arena.num_arms
    genomes = family.drawn(rng, TABLES, delay, rounds, arms)
    elite, best = genomes[:0], np.zeros(0)
    for _ in range(generations):
        groups = [genomes[first : first + arena.group] for first in range(0, TABLES, arena.group)]
        found = np.concatenate([arena.regrets(family.rendered(group, rounds, arms), EACH) for group in groups])
        elite, best = np.concatenate([elite, genomes]), np.concatenate([best, found])
        order = np.argsort(-best, kind="stable")[:ELITE]
        elite, best = elite[order], best[order]
        # A quarter of each generation is new, so that one early success does not end the search elsewhere.
        fresh = family.drawn(rng, TABLES // 4, delay, rounds, arms)
        genomes = np.concatenate([family.bred(rng, elite, TABLES - len(fresh), rounds, arms), fresh])
    tables = family.rendered(elite, rounds, arms)  # measured again, with more runs: the best of many is lucky
    return tables[:, int(np.argmax(arena.regrets(tables, EACH)))]


def climbed(arena: Arena, table: np.ndarray, steps: int, piece: int) -> np.ndarray:
    """The best table on a path along the signs of the gradient, in logits of the losses of pieces of ``piece`` rounds.

    The last piece is shorter where ``piece`` does not divide T: every round moves.
    """
    starts = np.arange(0, arena.rounds, piece)
    lengths = np.diff(np.append(starts, arena.rounds))
    means = np.clip(np.add.reduceat(table.astype(np.float64), starts) / lengths[:, None], CERTAIN, 1 - CERTAIN)
    logits = np.log(means / (1 - means))
    best, kept = -np.inf, table
    for step in range(steps):
        at = np.repeat(1 / (1 + np.exp(-logits)), lengths, 0).astype(np.float32)
        slope = np.add.reduceat(arena.gradient(at), starts)
        logits = np.clip(logits + (1 - step / steps) * np.sign(slope), -STEEPEST, STEEPEST)
        if step % LOOK == LOOK - 1 or step == steps - 1:
            soft = np.repeat(1 / (1 + np.exp(-logits)), lengths, 0).astype(np.float32)
            for one in (soft, np.round(soft)):  # also with all losses 0 or 1
                regret = arena.regret(one)[0]
                if regret > best:
                    best, kept = regret, one
    return kept


def mutated(arena: Arena, rng: np.random.Generator, starts: list[np.ndarray], generations: int) -> np.ndarray:
    """The best table after some generations of random edits of segments, from several tables at once."""
    best, kept = max(((arena.regret(table)[0], place) for place, table in enumerate(starts)), key=lambda one: one[0])
    table, parents = starts[kept], np.stack(starts, 1)
    for _ in range(generations):
        chosen = rng.integers(parents.shape[1], size=TABLES)
        tables = np.stack([edited(rng, parents[:, parent]) for parent in chosen], 1)
        order = np.argsort(-arena.regrets(tables, EACH), kind="stable")[: ELITE - 1]
        again = arena.regrets(tables[:, order], EACH)
        candidate = tables[:, order[int(np.argmax(again))]]
        regret = arena.regret(candidate)[0]
        if regret >= best:  # equal regrets count, so that the search can leave a plateau
            best, table = regret, candidate
        parents = np.concatenate([tables[:, order], table[:, None]], 1)
    return table


def edited(rng: np.random.Generator, table: np.ndarray) -> np.ndarray:
    """A table with one to three edits of random segments."""
    table, (rounds, arms) = table.copy(), table.shape
    for _ in range(int(rng.integers(1, 4))):
        length = int(np.exp(rng.uniform(0, np.log(max(rounds / 2, 1.5)))))
        first = int(rng.integers(0, rounds - length + 1))
        part, arm = slice(first, first + length), int(rng.integers(arms))
        kind = rng.choice(["set", "exchange", "copy", "complement", "shift"])
        if kind == "set":
            table[part, arm] = rng.choice([0.0, 0.5, 1.0, rng.random()])
        elif kind == "exchange":
            table[part] = table[part][:, rng.permutation(arms)]
        elif kind == "copy":
            other = int(rng.integers(0, rounds - length + 1))
            table[part] = table[other : other + length].copy()
        elif kind == "complement":
            table[part] = 1 - table[part]
        else:
            table[part] = np.roll(table[part], int(rng.integers(1, length + 1)), 0)
    return table
