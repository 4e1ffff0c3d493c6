"""The command line: one file per command, assembled in :mod:`jaxbandit.cli.app`."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn


def main() -> NoReturn:
    """The program ``jaxbandit``."""
    # A stream that the shell closed (>&-) is None; files opened later must not take its place.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        from jaxbandit._engine.cache import cache_by_default
        from jaxbandit.cli import app

        cache_by_default()
    except ModuleNotFoundError as error:
        if error.name != "cyclopts":
            raise
        sys.exit("the jaxbandit command needs: pip install 'jaxbandit[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app.leave(app.call(sys.argv[1:]))


def main_of(command: Callable[..., int | None], name: str, when_stopped: str) -> NoReturn:
    """A program with one command, for scripts that are not part of ``jaxbandit``; see :func:`jaxbandit.cli.app.call_one`."""
    from jaxbandit.cli import app

    app.leave(app.call_one(command, name, sys.argv[1:], when_stopped))
