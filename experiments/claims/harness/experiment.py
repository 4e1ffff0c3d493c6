"""What a claim's script works with: its settings, simulations that survive an interruption, and the page it fills."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import jax

from experiments.claims.harness.verdict import Check, Kind, Measured, Mutant, width
from jaxbandit import plots
from jaxbandit._checks.warn import burn_in
from jaxbandit._engine.choose import block_size
from jaxbandit._engine.simulation import simulate
from jaxbandit._provenance.identity import fingerprint
from jaxbandit._provenance.package_code import package_digest
from jaxbandit.measure import ControlVariates
from jaxbandit.results.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIECE = 1_000_000_000  # run-rounds between two saves of a long simulation
KEPT = 20_000_000  # run-rounds, about a second: a simulation of that many is kept until its statement is done
RECORD = 25


class Experiment:
    """One run of a claim.

    Args:
      settings: of the full or the quick run.
      seed: of the key.
      folder: where long simulations, or pieces of them, wait until the claim is done.
      progress: show a bar for each simulation.
      mark: of the claim; what was kept under another is not used.
    """

    def __init__(self, settings: dict[str, Any], seed: int, folder: Path, progress: bool = False, mark: str = ""):
        self.settings = SimpleNamespace(**settings)
        self.key = jax.random.key(seed)
        self.checks: list[Check] = []
        self.mutants: list[Mutant] = []
        self.numbers: list[tuple[str, Measured]] = []
        self.sentences: list[str] = []
        self.played = 0  # run-rounds
        self.kept = 0  # of them, by an earlier call
        self.figure: Figure | None = None
        self._folder = folder
        self._progress = progress
        self._mark = mark

    def simulate(
        self,
        learner: Any,
        losses: Any,
        delays: Any,
        *,
        rounds: int,
        runs: int,
        measure: Sequence[Any] = (),
        burning_in: bool = False,
        **options: Any,
    ) -> Result:
        """:func:`jaxbandit.simulate` with the claim's key and control variates; long ones in pieces that are kept.

        A game that ends before the learner's burn-in does is refused, for its regret says nothing about the bounds, unless
        ``burning_in`` says that the burn-in is meant.
        """
        longest = burn_in(learner, losses)
        if longest is not None and longest > rounds and not burning_in:
            raise ValueError(
                f"rounds={rounds}: {type(learner).__name__} plays nearly uniformly for about {longest:.0f} rounds here, so its "
                "regret would be that of its burn-in; play more rounds, shorter delays or larger gaps, or say burning_in=True"
            )
        self.played += rounds * runs
        game = (learner, losses, delays)
        options = {"rounds": rounds, "record": RECORD, "measure": [ControlVariates(), *measure], **options}
        block = block_size(losses.num_arms)
        size = max(PIECE // rounds // block, 1) * block
        if rounds * runs < min(KEPT, PIECE):
            return simulate(*game, runs=runs, key=self.key, progress=self._progress, **options)
        return Result.concat_runs(
            [self._piece(game, first, min(size, runs - first), options) for first in range(0, runs, size)],
        )

    def _piece(self, game: tuple[Any, Any, Any], first: int, count: int, options: dict[str, Any]) -> Result:
        """Some runs of a long simulation, from a file if an earlier call played them."""
        identity = fingerprint(*game, self.key, options["measure"])
        shape = (first, count, {name: value for name, value in options.items() if name != "measure"})
        name = hashlib.sha256(repr((identity, shape, package_digest(), self._mark)).encode()).hexdigest()[:16]
        path = self._folder / f"{name}.npz"
        if path.exists():
            self.kept += count * options["rounds"]
            return Result.load(path)
        result = simulate(*game, runs=count, first_run=first, key=self.key, progress=self._progress, **options)
        result.save(path)
        return result

    def forget_pieces(self) -> None:
        """Remove what was kept, also under earlier marks: the claim is done."""
        for path in self._folder.glob("*.npz"):
            path.unlink(missing_ok=True)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def panels(self, count: int) -> "list[Axes]":
        """The panels of the claim's figure, one below the other: side by side a page would shrink them until nothing is legible."""
        self.figure, panels = plots.figure(rows=count)
        return panels

    def check(
        self,
        label: str,
        measured: Measured | float,
        relation: Literal["at most", "at least", "equals"],
        bound: float,
        resolution: float = 0.0,
        kind: Kind = "proved",
    ) -> None:
        """Compare; a plain number is exact (or the worst of all paths)."""
        self.checks.append(Check(label, _measured(measured), relation, float(bound), resolution, kind))

    def mutant(self, wrong: str, label: str, measured: Measured | float | None = None, bound: float | None = None) -> None:
        """Put a wrong learner (its ``measured``) or a wrong ``bound`` to the check ``label``, which was made before.

        Relation, resolution and what is not given are the check's own. A statement that does not reject it is "not shown".
        """
        check = next((one for one in self.checks if one.label == label), None)
        if check is None or (measured is None) == (bound is None):
            labels = ", ".join(repr(one.label) for one in self.checks)
            raise ValueError(f"mutant({wrong!r}, {label!r}): give measured or bound, and the label of a check: {labels}")
        change = {"measured": _measured(measured)} if measured is not None else {"bound": float(bound)}  # type: ignore[arg-type]
        self.mutants.append(Mutant(wrong, dataclasses.replace(check, **change)))

    def number(self, label: str, measured: Measured | float) -> None:
        """A number for the page that decides nothing."""
        self.numbers.append((label, _measured(measured)))

    def say(self, sentence: str) -> None:
        """A plain sentence for the page."""
        self.sentences.append(sentence)

    def found(self) -> dict[str, Any]:
        """Checks, numbers and sentences, as they go into claim.json."""
        z = width(self.checks)
        return {
            "checks": [
                {
                    "label": check.label,
                    "value": check.measured.value,
                    "low": check.measured.interval(z)[0],
                    "high": check.measured.interval(z)[1],
                    "relation": check.relation,
                    "bound": check.bound,
                    "resolution": check.resolution,
                    "kind": check.kind,
                    "slack": check.slack(z),
                    "outcome": check.outcome(z),
                }
                for check in self.checks
            ],
            "mutants": [
                {
                    "wrong": mutant.wrong,
                    "label": mutant.check.label,
                    "value": mutant.check.measured.value,
                    "low": mutant.check.measured.interval(z)[0],
                    "high": mutant.check.measured.interval(z)[1],
                    "relation": mutant.check.relation,
                    "bound": mutant.check.bound,
                    "resolution": mutant.check.resolution,
                    "rejected": mutant.check.rejects(z),
                }
                for mutant in self.mutants
            ],
            "numbers": [
                {"label": label, "value": measured.value, "low": measured.interval()[0], "high": measured.interval()[1]}
                for label, measured in self.numbers
            ],
            "sentences": self.sentences,
            "interval_width": z,
            "settings": vars(self.settings),
            "run_rounds": self.played,
            "kept_run_rounds": self.kept,
        }


def _measured(number: Measured | float) -> Measured:
    return number if isinstance(number, Measured) else Measured(float(number))
