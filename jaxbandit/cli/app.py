"""All commands as one program: names, exit statuses, and the message printed after an interrupt."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Group, Parameter

import jaxbandit
from jaxbandit._core.fields import suggest
from jaxbandit._provenance.package_code import own_versions
from jaxbandit.cli import advise, demo, doctor, folders, listing, run, sweep, tune
from jaxbandit.cli.errors import WRONG_COMMAND, speak

HELP = """Multi-armed bandits with delayed feedback: simulate, compare, tune and choose algorithms.

Start with: jaxbandit demo"""
RESUMABLE = "finished work is saved; run the same command to resume"
ALL_OR_NOTHING = "nothing was written"
RESUMABLE_WITH_OUT = "with --out, finished steps are saved; run the same command to resume"

# The groups of `jaxbandit --help`, in this order.
GROUPS: dict[str, tuple[Callable[..., int | None], ...]] = {
    "Start": (demo.demo, run.run, listing.list),
    "Experiments": (sweep.sweep, folders.merge, folders.status, folders.report, folders.export),
    "Tuning and advice": (tune.tune, advise.advise),
    "Maintenance": (folders.verify, doctor.doctor),
}
# The docstring of each function is the help text of its command; the value is printed after Ctrl-C.
COMMANDS = {command: ALL_OR_NOTHING for commands in GROUPS.values() for command in commands}
COMMANDS |= {sweep.sweep: RESUMABLE, folders.merge: RESUMABLE, advise.advise: RESUMABLE, tune.tune: RESUMABLE_WITH_OUT}


def call(words: Sequence[str]) -> int:
    """Run one command, such as ``call(["status", "out"])``, and return its exit status."""
    app = _program("jaxbandit", help=HELP)
    for place, (name, commands) in enumerate(GROUPS.items()):
        group = Group(name, sort_key=place)
        for command in commands:
            app.command(command, name=command.__name__, group=group)
    names = [command.__name__ for command in COMMANDS]
    if words and not words[0].startswith("-") and words[0] not in names:
        print(
            f"jaxbandit: there is no command {words[0]!r}; {suggest(words[0], names)}\n`jaxbandit --help` lists the commands",
            file=sys.stderr,
        )
        return WRONG_COMMAND
    return _parse_and_run(app, words, f"jaxbandit {words[0]}" if words and words[0] in names else "jaxbandit")


def call_one(command: Callable[..., int | None], name: str, words: Sequence[str], when_stopped: str = ALL_OR_NOTHING) -> int:
    """Run a program that consists of one command, with the same option parsing and error messages; returns its exit status.

    Args:
      command: the function to run; its docstring is the help text.
      name: the name of the program, for usage and error messages.
      words: the command line without the program.
      when_stopped: printed after Ctrl-C.
    """
    app = _program(name)
    app.default(command)
    return _parse_and_run(app, words, name, {command: when_stopped})


def _program(name: str, **options: Any) -> App:
    """An empty program. Flags have no negative form: a flag that is not given is off."""
    flags = Parameter(negative="")
    about = Group("Options", sort_key=len(GROUPS))  # --help and --version, below the commands
    return App(
        name=name,
        version=_version,
        help_format="plaintext",
        default_parameter=flags,
        group_commands=about,
        **options,
    )


def _version() -> str:
    """The version, and a digest of the code that decides numbers: it differs between commits with different numbers."""
    return f"{jaxbandit.__version__} (code {own_versions()['package']})"


def _parse_and_run(app: App, words: Sequence[str], name: str, commands: dict[Any, str] = COMMANDS) -> int:
    try:
        command, arguments, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        print(f"{app.name[0]}: {error}\n`{name} --help` lists the options", file=sys.stderr)
        return WRONG_COMMAND
    return speak(lambda: command(*arguments.args, **arguments.kwargs), commands.get(command, ALL_OR_NOTHING))


def leave(status: int) -> NoReturn:
    """End the program. After a failure or Ctrl-C, do not wait for blocks that other threads still compute."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    if status and any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(status)
    sys.exit(status)
