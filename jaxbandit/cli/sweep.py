"""``jaxbandit sweep``: a grid of simulations into a folder, started or resumed."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import jax
from cyclopts import Parameter

from jaxbandit import sweeps
from jaxbandit.cli.errors import FAILED
from jaxbandit.cli.options import Flag, Whole, check_folder, importable
from jaxbandit.sweeps.parts import MOST_PARTS, SweepPart
from jaxbandit.sweeps.plan import Plan
from jaxbandit.sweeps.spec import SpecError

_ADDRESS = re.compile(r"[^:\s]+:\d{1,5}")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def sweep(
    spec: Path,
    /,
    *,
    out: Path,
    rounds: Whole | None = None,
    runs: Whole | None = None,
    memory: str | None = None,
    states: Annotated[bool | None, Parameter(negative="--no-states")] = None,
    dask: str | None = None,
    coordinator: str | None = None,
    processes: Whole | None = None,
    process: Whole | None = None,
    imports: Flag = False,
    mix_environments: Flag = False,
    part: str | None = None,
    until: str | None = None,
) -> int:
    """Run all simulations of a spec into a folder; the same command resumes a sweep that was stopped.

    Example: jaxbandit sweep spec.toml --out results

    Parameters
    ----------
    spec
        TOML file with rounds, runs, learners, losses and delays; see docs/sweeps.md.
    out
        Folder of the sweep.
    rounds
        Number of rounds, in place of that of the spec; may be raised later.
    runs
        Number of runs, in place of that of the spec; may be raised later.
    memory
        Memory that each process may use, such as 4GB.
    states
        Keep the states of all runs, so that rounds can be raised later; --no-states saves disk space.
    dask
        Dask scheduler to use: "local", or its address.
    coordinator
        Address HOST:PORT of the first process of jax.distributed, or "auto" on a cluster that JAX knows.
    processes
        Number of processes of jax.distributed.
    process
        Number of this process, from 0.
    imports
        Allow the spec to name learners of your own as "module:Class"; this runs that module.
    mix_environments
        Resume although versions or platform have changed since the sweep was started.
    part
        Part of the sweep to run, such as 3/16, for array jobs on a shared folder; `jaxbandit merge` puts parts together.
    until
        Add runs only where they are needed: "decided", half the width of the interval of a mean regret such as 0.5, or a share of it such as 2%; runs is then the largest number of runs.
    """
    problems = _command_problems(memory, dask, coordinator, processes, process) + _part_problems(part, coordinator)
    if until is not None and (part is not None or coordinator is not None):
        problems.append("--until: it needs all runs in one process; leave out --part and --coordinator (--dask is possible)")
    wanted = _number_or_text(until)
    if problems:
        raise SpecError("sweep", problems)
    check_folder(out)
    if imports:
        importable()
    if coordinator is None:
        Plan.make(
            spec, rounds=rounds, runs=runs, until=wanted, imports=imports
        )  # wrong specs end here, before workers are started
    elif coordinator == "auto":
        jax.distributed.initialize()
    else:
        jax.distributed.initialize(coordinator, processes, process)
    with _dask(dask) as (executor, workers):
        summary = sweeps.sweep(
            spec,
            out,
            rounds=rounds,
            runs=runs,
            executor=executor,
            workers=workers,
            memory=_bytes(memory),
            states=states,
            progress=True,
            imports=imports,
            mix_environments=mix_environments,
            part=_part(part),
            until=wanted,
        )
    if summary.damaged:
        print(f"{summary.damaged} damaged files were found and computed again")
    units = f"units of part {part}" if part else "units"
    print(f"{summary.done} of {summary.units} {units} are in {out}; {summary.computed} computed now, in {summary.seconds:.0f} s")
    for name, reason in summary.failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return FAILED if summary.failed else 0


def _command_problems(
    memory: str | None, dask: str | None, coordinator: str | None, processes: int | None, process: int | None
) -> list[str]:
    problems = []
    if memory is not None and _bytes(memory) is None:
        problems.append(f"--memory {memory}: an amount of memory is a number and kB, MB or GB, such as 4GB")
    if coordinator is not None and dask is not None:
        problems.append("--dask, --coordinator: use one of the two")
    if (coordinator is None or coordinator == "auto") and (processes is not None or process is not None):
        problems.append("--processes, --process: they go with --coordinator HOST:PORT")
    if coordinator is not None and coordinator != "auto":
        if processes is None or process is None or not 0 <= process < processes:
            problems.append(f"--processes {processes}, --process {process}: give how many there are and which this is, from 0")
        if not _ADDRESS.fullmatch(coordinator):
            problems.append(f"--coordinator {coordinator}: give HOST:PORT, or auto")
    if dask is not None and dask != "local" and "://" not in dask and not _ADDRESS.fullmatch(dask):
        problems.append(f"--dask {dask}: give local, or the address of a scheduler such as tcp://HOST:8786")
    return problems


def _part(text: str | None) -> SweepPart | None:
    match = re.fullmatch(r"\s*(\d{1,7})\s*/\s*(\d{1,7})\s*", text or "")
    return SweepPart.checked((int(match[1]), int(match[2]))) if match else None


def _part_problems(part: str | None, coordinator: str | None) -> list[str]:
    if part is not None and coordinator is not None:
        return ["--part, --coordinator: use one of the two"]
    try:
        if part is None or _part(part):
            return []
    except ValueError:
        pass
    return [f"--part {part}: a part is a number and how many there are, such as 3/16; parts count from 1 to at most {MOST_PARTS}"]


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


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
    from jaxbandit._engine.devices import count_cores

    with contextlib.ExitStack() as stack:
        stack.enter_context(config.set({"distributed.scheduler.allowed-failures": 5}))
        scheduler: Any = address
        if address == "local":
            cluster: Any = LocalCluster(count_cores(), threads_per_worker=1, dashboard_address="", memory_limit=0)
            scheduler = stack.enter_context(cluster)
        client: Any = stack.enter_context(Client(scheduler, set_as_default=False))
        yield client.get_executor(pure=False, retries=3), max(1, len(client.ncores()))
