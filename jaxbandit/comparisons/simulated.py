"""Learners simulated in the same environments: compiled and run in threads, with runs added until they suffice."""

import dataclasses
import itertools
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from jaxbandit._core.display import one_line
from jaxbandit._core.fields import show
from jaxbandit._engine.devices import Threads, count_cores
from jaxbandit._engine.set_up import checked_game
from jaxbandit._engine.simulation import simulate_runs
from jaxbandit._engine.until import check_more_runs, check_same_runs, look_every, regret_limits
from jaxbandit._io.progress import Progress
from jaxbandit._provenance.identity import fingerprint
from jaxbandit.results.comparison import Comparison, Sample, paired_differences, until_met
from jaxbandit.results.result import Result
from jaxbandit.results.sequential import looks
from jaxbandit.results.stopping import Until, stopping

Place = tuple[str, str]  # environment, learner


@dataclasses.dataclass(frozen=True)
class Game:
    """One learner in one environment."""

    learner: Any
    losses: Any
    delays: Any


def labelled(axis: str, given: object) -> dict[str, Any]:
    """``{name: object}`` of one object, a list or a dict."""
    if isinstance(given, Mapping):
        found = dict(given)
    else:
        things = list(given) if isinstance(given, list | tuple) else [given]
        names = [one_line(one) if dataclasses.is_dataclass(one) else type(one).__name__ for one in things]
        found = {
            name if names.count(name) == 1 else f"{name} [{place}]": one
            for place, (name, one) in enumerate(zip(names, things, strict=True))
        }
    if not found or not all(isinstance(name, str) for name in found):
        raise ValueError(f"jb.compare({axis}={show(given)}): give {axis} in a list, or by name: {{'name': …}}")
    return found


def games_of(learners: object, losses: object, delays: object) -> dict[Place, Game]:
    """Every learner in every environment, which is named after the losses and delays if there are several of them."""
    by_name = labelled("learners", learners)
    if len(by_name) < 2:
        raise ValueError(f"jb.compare(learners={show(learners)}): give two learners or more")
    axes = [labelled("losses", losses), labelled("delays", delays)]
    found = {}
    for (loss_name, loss), (delay_name, delay) in itertools.product(*(axis.items() for axis in axes)):
        name = "; ".join(name for name, axis in zip((loss_name, delay_name), axes, strict=True) if len(axis) > 1)
        found |= {(name, label): Game(learner, loss, delay) for label, learner in by_name.items()}
    return found


class _Bar(Progress):
    """A progress bar that stops its simulations once the caller was interrupted, or one of them failed."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.stopped = threading.Event()

    def update(self, rounds: int, text: str | None = None) -> None:
        if self.stopped.is_set():
            raise CancelledError
        super().update(rounds, text)


@dataclasses.dataclass
class Simulations:
    """The runs of all games so far."""

    games: dict[Place, Game]
    runs: int  # the most of each game
    first_run: int
    options: dict[str, Any]  # of simulate_runs
    results: dict[Place, Result] = dataclasses.field(default_factory=dict)

    def extend(self, places: Sequence[Place], runs: int, bar: _Bar) -> None:
        """Simulate the games of ``places`` up to ``runs`` runs, several at the same time."""

        def more(place: Place) -> Result:
            game, done = self.games[place], self.done(place)
            new = simulate_runs(
                game.learner, game.losses, game.delays, runs=runs - done, first_run=self.first_run + done,
                within=(self.first_run, self.runs), progress=bar, **self.options,
            )  # fmt: skip
            return Result.concat_runs([self.results[place], new]) if done else new

        # XLA compiles in the calling thread, so that as many programs are compiled at once as there are threads.
        threads = Threads(min(len(places), max(count_cores(), 2)), "jaxbandit-compare")
        try:
            futures = {place: threads.submit(more, place) for place in places}
            self.results |= {place: future.result() for place, future in futures.items()}
        except BaseException:
            bar.stopped.set()
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def done(self, place: Place) -> int:
        return self.results[place].runs if place in self.results else 0

    def samples(self, most: int) -> dict[str, dict[str, Sample]]:
        """At most ``most`` runs of each game, by environment and learner."""
        found: dict[str, dict[str, Sample]] = {}
        for (name, label), result in self.results.items():
            sample = Sample.of(result)
            found.setdefault(name, {})[label] = Sample(sample.run_ids[:most], sample.regret[:most])
        return found

    def by_environment(self) -> dict[str, dict[str, Result]]:
        found: dict[str, dict[str, Result]] = {}
        for (name, label), result in self.results.items():
            found.setdefault(name, {})[label] = result
        return found


def simulated(
    games: dict[Place, Game],
    until: object,
    *,
    runs: int,
    first_run: int,
    resume: Comparison | None,
    progress: bool,
    **options: Any,
) -> Comparison:
    """Simulate all games and compare them."""
    wanted = None if until is None else Until.read(until, decided=True)
    for game in games.values():  # in this thread, whose warnings name the user's line
        checked_game(
            *vars(game).values(), **{name: options[name] for name in ("rounds", "key", "measure")}, runs=runs, first_run=first_run,
            values_per_run=True,
        )  # fmt: skip
    simulations = Simulations(games, runs, first_run, options)
    if resume is not None:
        simulations.results = _resumed(games, resume, wanted, runs, first_run, options)
    with _Bar(progress, len(games) * runs * options["rounds"], f"{len(games)} games x {runs} runs") as bar:
        if wanted is None:
            simulations.extend(list(games), runs, bar)
            return Comparison.of(simulations.samples(runs), options["rounds"], simulations.by_environment())
        return _simulated_until(simulations, wanted, bar)


def _simulated_until(simulations: Simulations, until: Until, bar: _Bar) -> Comparison:
    games, runs, rounds = simulations.games, simulations.runs, simulations.options["rounds"]
    check_same_runs(*(part for game in games.values() for part in vars(game).values()))
    limits = {name: regret_limits(game.losses, rounds) for (name, _), game in games.items()}
    met = None if until.kind == "decided" else until.met
    active, samples, open_pairs = list(games), {}, []
    for wanted in looks(runs, max(look_every(game.losses.num_arms) for game in games.values())):
        behind = [place for place in active if simulations.done(place) < wanted]
        if behind:
            simulations.extend(behind, wanted, bar)
        samples = simulations.samples(wanted)
        open_pairs = [pair for pair in paired_differences(samples, limits) if not until_met(met, samples, pair)]
        active = list(dict.fromkeys((pair.environment, label) for pair in open_pairs for label in (pair.one, pair.other)))
        if not active:
            break
    for (name, label), result in simulations.results.items():
        open_here = any(pair.environment == name and label in (pair.one, pair.other) for pair in open_pairs)
        found = dataclasses.replace(stopping(until, result.regret[-1], limits[name]), reached=not open_here)
        simulations.results[name, label] = dataclasses.replace(result, stopping=found)
    return Comparison.of(samples, rounds, simulations.by_environment(), limits, until=str(until), reached=not open_pairs)


def _resumed(
    games: dict[Place, Game], resume: Any, until: Until | None, runs: int, first_run: int, options: Mapping[str, Any]
) -> dict[Place, Result]:
    """The Results of an earlier comparison to which runs are added."""
    if not isinstance(resume, Comparison) or not resume.results:
        raise TypeError(f"resume={show(resume)}: go on from a Comparison that jb.compare has simulated")
    if until is None:
        raise ValueError("resume=…: a comparison is resumed with until=, which says how long; give until='decided'")
    found = {}
    for (name, label), game in games.items():
        result = resume.results.get(name, {}).get(label)
        if result is not None:
            identity = fingerprint(game.learner, game.losses, game.delays, options["key"], options["measure"])
            check_more_runs(f"resume.results[{name!r}][{label!r}]", result, identity, options["rounds"], runs, first_run)
            found[name, label] = result
    return found
