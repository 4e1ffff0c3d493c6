"""The command line: one file a command, put together in :mod:`jaxbandit.cli.app`."""

import sys
from typing import NoReturn

from jaxbandit.blocks import use_all_cores


def main() -> NoReturn:
    """The program ``jaxbandit``."""
    try:
        from jaxbandit.cli import app
    except ModuleNotFoundError as error:
        if error.name != "cyclopts":
            raise
        sys.exit("the jaxbandit command needs: pip install 'jaxbandit[cli]'")
    use_all_cores()  # here and not in a command: it must come before JAX starts
    app.leave(app.call(sys.argv[1:]))
