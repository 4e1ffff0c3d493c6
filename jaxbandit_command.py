"""The start of the program ``jaxbandit``: outside of the package, so that Ctrl-C ends the program while the package is imported."""

import os
import signal
from typing import NoReturn


def _stop(*_: object) -> NoReturn:
    os.write(2, b"\nstopped; nothing was written\n")
    os._exit(130)


def main() -> NoReturn:
    """Import the command line and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup and & ignore the signal
        signal.signal(signal.SIGINT, _stop)
    from jaxbandit.cli import main as run

    run()
