"""All commands as one program: their names, what is said when they are stopped, and how the words are read."""

import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError

import jaxbandit
from jaxbandit.cli import advise, bench, claims, demo, doctor, export, map, report, run, status, sweep, tune, verify
from jaxbandit.cli.speaking import WRONG_COMMAND, speak

RESUMABLE = "what is computed is safe, and the same command goes on from here"
ALL_OR_NOTHING = "nothing was written"
RESUMABLE_WITH_OUT = "with --out the steps made are safe, and the same command goes on from here"

# Each function's docstring is the help of its command; the sentence is said after Ctrl-C.
COMMANDS = {
    demo.demo: ALL_OR_NOTHING,
    map.map: ALL_OR_NOTHING,
    run.run: ALL_OR_NOTHING,
    sweep.sweep: RESUMABLE,
    status.status: ALL_OR_NOTHING,
    verify.verify: ALL_OR_NOTHING,
    export.export: ALL_OR_NOTHING,
    report.report: ALL_OR_NOTHING,
    tune.tune: RESUMABLE_WITH_OUT,
    advise.advise: ALL_OR_NOTHING,
    bench.bench: ALL_OR_NOTHING,
    claims.claims: RESUMABLE,
    doctor.doctor: ALL_OR_NOTHING,
}


def call(words: Sequence[str]) -> int:
    """Run one command, such as ``call(["status", "out"])``; returns its exit status."""
    app = App(name="jaxbandit", help="The laboratory for bandits with delayed feedback.", version=jaxbandit.__version__)
    for command in COMMANDS:
        app.command(command, name=command.__name__)
    try:
        command, arguments, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        print(f"jaxbandit: {error}\n`jaxbandit {words[0]} --help` shows what there is", file=sys.stderr)
        return WRONG_COMMAND
    return speak(lambda: command(*arguments.args, **arguments.kwargs), COMMANDS.get(command, ALL_OR_NOTHING))


def leave(status: int) -> NoReturn:
    """End the program. After a failure or Ctrl-C, blocks that other threads still compute are not waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    if status and any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(status)
    sys.exit(status)
