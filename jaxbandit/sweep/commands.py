"""The commands ``run``, ``sweep``, ``status``, ``verify``, ``export`` and ``report``.

Exit status: 0 all is well, 1 something failed or is damaged, 2 the spec or the command line is wrong (nothing was written),
130 interrupted.
"""

import contextlib
import functools
import os
import re
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jaxbandit.simulate import use_all_cores
from jaxbandit.sweep.run import DEVICE_THREAD
from jaxbandit.sweep.spec import AXES, SpecError
from jaxbandit.sweep.store import Store, StoreError

if TYPE_CHECKING:
    from cyclopts import App

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def _speaking(command: Callable[..., int | None]) -> Callable[..., None]:
    """Errors as sentences and exit status, not as tracebacks."""

    @functools.wraps(command)
    def wrapped(*arguments, **options) -> None:
        warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
        try:
            status = command(*arguments, **options) or 0
        except SpecError as error:
            print(error, file=sys.stderr)
            status = 2
        except (StoreError, ImportError, OSError) as error:
            print(error, file=sys.stderr)
            status = 1
        except KeyboardInterrupt:
            print("\nstopped; what is computed is safe, and the same command goes on from here", file=sys.stderr)
            status = 130
        sys.stdout.flush()
        sys.stderr.flush()
        if status and any(thread.name.startswith(DEVICE_THREAD) for thread in threading.enumerate()):
            os._exit(status)  # without waiting for units that are still being computed
        raise SystemExit(status)

    return wrapped


def register(app: "App") -> None:
    """Add the commands to the command line."""
    for command in (run, sweep, status, verify, export, report):
        app.command(_speaking(command), name=command.__name__)


def run(
    spec: Path | None = None,
    /,
    *,
    learner: str | None = None,
    losses: str | None = None,
    delays: str | None = None,
    rounds: int | None = None,
    runs: int | None = None,
    seed: int | None = None,
    out: Path = Path("run"),
) -> int | None:
    """One simulation: prints a table, writes a figure and the result.

    Parameters
    ----------
    spec
        A spec with one learner, one loss law and one delay law; or leave it out and name them:
    learner
        Such as "bobw(max_delay=10)", with any of its fields.
    losses
        Such as "bernoulli(means=[0.3, 0.5, 0.5])".
    delays
        Such as "fixed(delay=10)".
    rounds
        In place of the spec's; without a spec 10000.
    runs
        In place of the spec's; without a spec 256.
    seed
        Of the key, without a spec.
    out
        OUT.png and OUT.npz are written.
    """
    use_all_cores()
    import jax

    from jaxbandit.simulate import simulate
    from jaxbandit.sweep.plan import Plan, measurements

    named = {"learners": learner, "losses": losses, "delays": delays}
    if spec is None:
        source: Any = _from_words(named) | {"rounds": 10_000, "runs": 256, "seed": 0 if seed is None else seed}
    else:
        source = spec
        given = [
            f"--{name}"
            for name, value in zip(("learner", "losses", "delays", "seed"), (*named.values(), seed))
            if value is not None
        ]
        if given:
            raise SpecError(str(spec), [f"{given[0]}: give a spec or name the learner, losses and delays, not both"])
    plan = Plan.make(source, rounds=rounds, runs=runs)
    if len(plan.cells) != 1:
        raise SpecError(str(spec), [f"this spec has {len(plan.cells)} cells; `run` plays one, `sweep` plays them all"])
    for note in plan.notes:
        warnings.warn(note, stacklevel=1)
    cell = plan.cells[0]
    result = simulate(
        cell.learner,
        cell.losses,
        cell.delays,
        rounds=plan.rounds,
        runs=plan.runs,
        key=jax.random.key(plan.spec.seed, impl="threefry2x32"),
        record=plan.record(),
        measure=measurements(plan.spec.control_variates),
        progress=True,
    )
    estimate = result.estimate()
    print(", ".join(plan.axes[axis][0].label for axis in AXES) + f"; {plan.runs} runs")
    print(f"{'round':>12} {'regret':>12}   95 % interval")
    for index in sorted({*range(len(estimate.rounds) - 1, -1, -max(1, len(estimate.rounds) // 10))}):
        print(
            f"{estimate.rounds[index]:12d} {estimate.mean[index]:12.2f}   {estimate.low[index]:.2f} to {estimate.high[index]:.2f}"
        )
    result.save(out.with_suffix(".npz"))
    result.plot(title=plan.axes["learners"][0].label).savefig(out.with_suffix(".png"), dpi=150)
    print(f"written: {out.with_suffix('.png')}, {out.with_suffix('.npz')}")


def _from_words(named: dict[str, str | None]) -> dict[str, Any]:
    """``bobw(max_delay=10)`` as the table it stands for; the fields are TOML, nothing is evaluated."""
    document, problems = {}, []
    for axis, text in named.items():
        option = f"--{axis.removesuffix('s') if axis == 'learners' else axis}"
        match = re.fullmatch(r"\s*([\w+:.-]+)\s*(?:\((.*)\))?\s*", text or "", re.DOTALL)
        if match is None:
            problems.append(f"{option}: {text!r} is not of the form NAME or NAME(FIELD=VALUE, ...), and no spec is given")
            continue
        try:
            table = tomllib.loads(f"fields = {{{match[2] or ''}}}")
            document[axis] = [{**table["fields"], "name": match[1]}]
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{option}: {text!r}: the fields are not FIELD=VALUE, FIELD=VALUE ({error})")
    if problems:
        raise SpecError("run", problems)
    return document


def sweep(
    spec: Path,
    /,
    *,
    out: Path,
    rounds: int | None = None,
    runs: int | None = None,
    memory: str | None = None,
    dask: str | None = None,
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    imports: bool = False,
    mix_environments: bool = False,
) -> int:
    """Compute a sweep into a folder; the same command goes on with one that was stopped.

    Parameters
    ----------
    spec
        A TOML file; see docs/sweeps.md.
    out
        The folder.
    rounds
        In place of the spec's; may be raised later.
    runs
        In place of the spec's; may be raised later.
    memory
        What a process may use, such as 4GB.
    dask
        "local", or the address of a Dask scheduler.
    coordinator
        HOST:PORT of the first process of jax.distributed, or "auto" on a cluster that JAX knows.
    processes
        How many processes of jax.distributed there are.
    process
        The number of this one, from 0.
    imports
        Allow the spec to name learners of your own as "module:Class"; this runs that module.
    mix_environments
        Go on although versions or platform changed since the sweep was begun.
    """
    use_all_cores()
    from jaxbandit.sweep.plan import Plan
    from jaxbandit.sweep.run import sweep

    problems = _command_problems(memory, dask, coordinator, processes, process)
    if problems:
        raise SpecError("sweep", problems)
    if coordinator is not None:
        import jax

        if coordinator == "auto":
            jax.distributed.initialize()
        else:
            jax.distributed.initialize(coordinator, processes, process)
    else:
        Plan.make(spec, rounds=rounds, runs=runs, imports=imports)  # before workers are started
    if imports:
        sys.path.insert(0, str(Path.cwd()))
    with _dask(dask) as (executor, workers):
        summary = sweep(
            spec,
            out,
            rounds=rounds,
            runs=runs,
            executor=executor,
            workers=workers,
            memory=_bytes(memory),
            progress=True,
            imports=imports,
            mix_environments=mix_environments,
        )
    if summary.damaged:
        print(f"{summary.damaged} damaged files were found and computed again")
    print(f"{summary.done} of {summary.units} units are in {out}; {summary.computed} computed now, in {summary.seconds:.0f} s")
    for name, reason in summary.failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return 1 if summary.failed else 0


def _command_problems(memory, dask, coordinator, processes, process) -> list[str]:
    problems = []
    if memory is not None and _bytes(memory) is None:
        problems.append(f"--memory {memory}: an amount of memory is a number and kB, MB or GB, such as 4GB")
    if coordinator is not None and dask is not None:
        problems.append("--dask, --coordinator: use one of the two")
    if (coordinator is None or coordinator == "auto") and (processes is not None or process is not None):
        problems.append("--processes, --process: they go with --coordinator HOST:PORT")
    if coordinator not in (None, "auto"):
        if processes is None or process is None or not 0 <= process < processes:
            problems.append(f"--processes {processes}, --process {process}: give how many there are and which this is, from 0")
        if not re.fullmatch(r"[^:\s]+:\d{1,5}", coordinator):
            problems.append(f"--coordinator {coordinator}: give HOST:PORT, or auto")
    if dask is not None and dask != "local" and "://" not in dask and not re.fullmatch(r"[^:\s]+:\d{1,5}", dask):
        problems.append(f"--dask {dask}: give local, or the address of a scheduler such as tcp://HOST:8786")
    return problems


def _bytes(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", (text or "").strip().lower())
    amount = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    return amount or None


@contextlib.contextmanager
def _dask(address: str | None) -> Iterator[tuple[Any, int | None]]:
    """An executor over a Dask cluster: each worker process is one core."""
    if address is None:
        yield None, None
        return
    try:
        from dask import config  # type: ignore[attr-defined]
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("--dask needs: pip install 'jaxbandit[dask]'") from None
    from jaxbandit.simulate import _cores

    with contextlib.ExitStack() as stack:
        stack.enter_context(config.set({"distributed.scheduler.allowed-failures": 5}))
        scheduler: Any = address
        if address == "local":
            cluster: Any = LocalCluster(_cores(), threads_per_worker=1, dashboard_address="", memory_limit=0)
            scheduler = stack.enter_context(cluster)
        client: Any = stack.enter_context(Client(scheduler, set_as_default=False))
        yield client.get_executor(pure=False, retries=3), max(1, len(client.ncores()))


def status(folder: Path, /) -> None:
    """What is in a sweep's folder, and what is missing."""
    store = Store.open(folder)
    files, units = store.files(), store.units()
    there = sum(unit in files for unit in units)
    counts = [len(store.labels(axis)) for axis in AXES]
    known = store.manifest["environments"]
    print(
        f"{folder}: {there} of {len(units)} units ({there / len(units):.0%}), {sum(f.stat().st_size for f in files.values()) / 1e6:.1f} MB"
    )
    print(f"  {counts[0]} learners x {counts[1]} losses x {counts[2]} delays, {store.runs} runs x {store.rounds} rounds")
    print(
        "  made with " + "; ".join(f"jaxbandit {e['jaxbandit']}, jax {e['jax']}, {e['platform']}, x64 {e['x64']}" for e in known)
    )
    missing: dict[str, int] = {}
    for unit in units:
        if unit not in files:
            missing[unit.cell] = missing.get(unit.cell, 0) + 1
    for cell in store.manifest["cells"]:
        if cell["id"] in missing:
            names = ", ".join(store.labels(axis)[index] for axis, index in zip(AXES, cell["at"], strict=True))
            print(f"  missing {missing.pop(cell['id'])} units: {names}")
    for name, reason in store.failures().items():
        print(f"  failed: {name}: {reason}")


def verify(folder: Path, /) -> int:
    """Check every file of a sweep against its checksum; exit status 1 if one is damaged."""
    store = Store.open(folder)
    bad = [*store.damaged_manifests(), *store.damaged()]
    files, units = store.files(), store.units()
    for file in bad:
        print(f"damaged: {file}")
    missing = sum(unit not in files for unit in units)
    print(f"{len(files)} unit files checked, {len(bad)} damaged" + (f"; {missing} units are not computed yet" if missing else ""))
    if bad:
        print("the next `jaxbandit sweep` computes them again")
    return 1 if bad else 0


def export(folder: Path, target: Path, /) -> int | None:
    """Write a sweep as one labelled file with checksums.

    Parameters
    ----------
    folder
        The sweep.
    target
        NAME.nc (netCDF4) or NAME.zarr.
    """
    from jaxbandit.sweep.open import export as write

    try:
        print(f"written: {write(folder, target)}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def report(folder: Path, /, *, out: Annotated[Path | None, "default: report/ in the sweep's folder"] = None) -> None:
    """Curves, tables and tests of a sweep as one HTML file that needs no network, with PNGs beside it.

    Parameters
    ----------
    folder
        The sweep.
    out
        Folder for report.html and the PNGs; by default FOLDER/report.
    """
    from jaxbandit.report import write_report

    print(f"written: {write_report(folder, out)}")
