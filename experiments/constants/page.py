"""The tables of docs/constants.md and its appendix, and the figure, from stored results."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from games import ARMS, DELAYS, HORIZONS, REGIMES, TRIALS, Cell, Game
from table import Row

from jaxbandit._io.files import whole_file, write_whole
from jaxbandit.plots import COLOURS, figure

PAGE = Path(__file__).parents[2] / "docs" / "constants.md"
APPENDIX = PAGE.parent / "appendix" / "tuned_constants.md"
JUDGED = tuple(TRIALS)[:2]  # the kinds of cells that the limit is for


def write(rows: dict[str, Row], beside: dict[str, Any], tried: dict[str, Any], limit: float, share: float) -> None:
    """Replace what stands between ``<!-- NAME -->`` and ``<!-- end -->`` on the two pages, and draw the figure."""
    blocks = {
        "rows": (APPENDIX, _rows(rows, beside)),
        "crossed": (PAGE, _crossed(tried["crossed"])),
        "verdict": (APPENDIX, _verdict(tried, limit, share)),
        "trial": (APPENDIX, _trial(tried)),
    }
    for name, (page, block) in blocks.items():
        text, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda m, b=block: f"{m[1]}\n{b}\n\n{m[2]}",
            page.read_text(encoding="utf-8"),
            flags=re.S,
        )
        if count != 1:
            raise ValueError(f"{page}: there must be one place for {name}")
        write_whole(page, text)
    with whole_file(PAGE.with_suffix(".png")) as file:
        _figure(tried, limit).savefig(file, dpi=150)


def _rows(rows: dict[str, Row], beside: dict[str, Any]) -> str:
    lines = ["| K | d | T | " + " | ".join(REGIMES) + " |", "|---" * (3 + len(REGIMES)) + "|"]
    for arms in ARMS:
        for delay in DELAYS:
            for rounds in HORIZONS:
                found = (_entry(Game(regime, arms, delay), rounds, rows, beside) for regime in REGIMES)
                lines.append(f"| {arms} | {delay} | {rounds:,} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def _entry(game: Game, rounds: int, rows: dict[str, Row], beside: dict[str, Any]) -> str:
    """``18, 0.33, 0 (14.5; 91)``: the constants, their regret and that of the paper's."""
    if str(game) not in beside:
        return ""
    (own, _), (paper, _) = beside[str(game)][str(rounds)]
    return ", ".join(f"{one:g}" for one in rows[str(Cell(game, rounds))]) + f" ({_short(own)}; {_short(paper)})"


def _short(regret: float) -> str:
    return f"{regret:.1f}" if regret < 100 else f"{regret:.0f}"


def _crossed(regrets: list[list[list[float]]]) -> str:
    lines = ["| constants | " + " | ".join(REGIMES) + " |", "|---" * (1 + len(REGIMES)) + "|"]
    names = ("of MZS22", *(f"rule for *{regime}*" for regime in REGIMES))
    for name, row in zip(names, regrets, strict=True):
        lines.append(f"| {name} | " + " | ".join(_pair(*one) for one in row) + " |")
    return "\n".join(lines)


def _named(cell: Cell) -> str:
    gap = "" if cell.game.gap == Game.gap else f", gap {cell.game.gap}"
    return f"K = {cell.game.arms}, d = {cell.game.delay}, T = {cell.rounds:,}{gap}"


def _verdict(tried: dict[str, Any], limit: float, share: float) -> str:
    lines = []
    for who in ("table", "rule"):
        for kinds in ((JUDGED[0],), (JUDGED[1],), JUDGED):
            cells = [cell for kind in kinds for cell in TRIALS[kind]]
            ratios = np.array([tried[str(cell)]["ratio"][who][0] for cell in cells])
            strict = np.array([_beside_the_best(tried[str(cell)], who) for cell in cells])
            good = int((ratios <= limit).sum())
            judged = (
                "" if kinds != JUDGED else f": **{'met' if good >= share * len(cells) else 'missed'}** ({share:.0%} required)"
            )
            lines.append(
                f"| {who} | {' and '.join(kinds)} | {good} of {len(cells)}{judged} | {np.median(ratios):.3f} | {ratios.max():.3f} "
                f"| {int((strict <= limit).sum())} of {len(cells)} |"
            )
        beyond = [
            f"{cell.game.regime}, {_named(cell)} ({tried[str(cell)]['ratio'][who][0]:.3f} ± {tried[str(cell)]['ratio'][who][1]:.3f})"
            for kind in JUDGED
            for cell in TRIALS[kind]
            if tried[str(cell)]["ratio"][who][0] > limit
        ]
        lines[-1] += f"\n\nBeyond {limit} with the {who}: {'; '.join(beyond) or 'none'}.\n"
    head = f"| copied from | cells | at most {limit} of tuned | median | largest | at most {limit} of the best of the three |\n|---|---|---|---|---|---|\n"
    return (head + "\n".join(lines[:3]) + "\n" + head + "\n".join(lines[3:])).strip()


def _beside_the_best(one: dict[str, Any], who: str) -> float:
    """The ratio to the lowest of tuned, table and rule."""
    return one["ratio"][who][0] / min(1.0, one["ratio"]["table"][0], one["ratio"]["rule"][0])


def _trial(tried: dict[str, Any]) -> str:
    lines = []
    for kind, cells in TRIALS.items():
        lines += [
            f"\n**{kind}**\n",
            "| losses | environment | paper's constants | table | rule | tuned | table / tuned | rule / tuned |",
        ]
        lines.append("|---" * 8 + "|")
        for cell in cells:
            one = tried[str(cell)]
            regrets = " | ".join(_pair(*one["regret"][who]) for who in ("paper", "table", "rule", "tuned"))
            ratios = " | ".join(f"{one['ratio'][who][0]:.3f} ± {one['ratio'][who][1]:.3f}" for who in ("table", "rule"))
            lines.append(f"| {cell.game.regime} | {_named(cell)} | {regrets} | {ratios} |")
    return "\n".join(lines).strip()


def _pair(mean: float, error: float) -> str:
    return f"{mean:.1f} ± {error:.1f}"


def _figure(tried: dict[str, Any], limit: float) -> Any:
    """Left: regret with the copied constants relative to the paper's. Right: relative to constants tuned for the same environment."""
    cells = [cell for regime in REGIMES for kind in JUDGED for cell in TRIALS[kind] if cell.game.regime == regime]
    made, (left, right) = figure(columns=2)
    made.set_size_inches(11.5, 1.8 + 0.235 * len(cells))
    places = -np.arange(len(cells), dtype=float)
    for place, cell in zip(places, cells, strict=True):
        one = tried[str(cell)]
        colour = COLOURS[REGIMES.index(cell.game.regime)]
        left.barh(place, one["regret"]["table"][0] / one["regret"]["paper"][0], color=colour, height=0.7)
        for who, mark, shift in (("table", "o", 0.15), ("rule", "D", -0.15)):
            ratio, error = one["ratio"][who]
            face = colour if who == "table" else "white"
            right.errorbar(
                ratio, place + shift, xerr=2 * error, fmt=mark, color=colour, markerfacecolor=face, markersize=4.5, linewidth=1
            )
    left.set_yticks(places, [_named(cell) for cell in cells], fontsize=8)
    left.set(
        xlim=(0, 1),
        xlabel="regret relative to the paper's constants (10, 24, 1, 1)",
        title="Copied constants: less than half of the paper's regret",
    )
    right.set_yticks(places, [""] * len(cells))
    right.axvline(limit, color="black", linestyle="--", linewidth=1)
    right.axvline(1, color="grey", linewidth=1)
    right.set(
        xlabel="regret relative to constants tuned for the same environment",
        title="Within 4% of tuned constants (● table, ◇ rule; ± 2 s.e.)",
    )
    for regime, colour in zip(REGIMES, COLOURS, strict=False):
        left.barh(places[0], 0, color=colour, label=regime)
    left.legend(loc="upper right", fontsize=8, framealpha=0.9)
    return made
