"""Errors of all commands: a message and an exit status, never a traceback.

====  =========================================================================
0     success
1     something failed or is damaged
2     the spec or the command line is wrong; nothing was computed or written
130   stopped by Ctrl-C
====  =========================================================================

``JAXBANDIT_TRACEBACK=1`` shows where an error came from.
"""

import contextlib
import errno
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator

import jax

from jaxbandit.sweeps import MismatchError, SpecError, StoreError
from jaxbandit.sweeps.layout import FULL

FAILED, WRONG_COMMAND, STOPPED = 1, 2, 130
PATIENCE = 3.0  # seconds between Ctrl-C and the end of the program


class CommandError(Exception):
    """An invalid command line. The message names the option, its value and a correct value."""


def speak(command: Callable[[], int | None], when_stopped: str) -> int:
    """Call ``command`` and return the exit status; exceptions are printed as messages.

    Args:
      command: returns None or an exit status.
      when_stopped: message after Ctrl-C on the files that remain.
    """
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    farewell = f"\nstopped; {when_stopped}"
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # in place of that of the program's start
        with _end_soon_after_an_interrupt(farewell):
            status = command() or 0
            sys.stdout.flush()  # here, where an error of the stream is reported
            return status
    except KeyboardInterrupt:
        print(farewell, file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # the reader of a pipe has ended
        _close_stdout()
        return FAILED
    except Exception as error:  # every exception becomes a message and an exit status
        if os.environ.get("JAXBANDIT_TRACEBACK"):
            traceback.print_exc()
        status, sentence = _message(error)
        try:
            sys.stdout.flush()
        except OSError:
            _close_stdout()
        print(sentence, file=sys.stderr, flush=True)
        return status


def _close_stdout() -> None:
    """Discard unprinted output: Python would flush it again at exit, and fail with a traceback."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> tuple[int, str]:
    """Exit status and message of an error."""
    if isinstance(error, SpecError | MismatchError | CommandError):
        return WRONG_COMMAND, str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return FAILED, _disk_trouble(error)
    if isinstance(error, StoreError | ImportError | OSError):
        return FAILED, str(error)
    platforms = os.environ.get("JAX_PLATFORMS")
    if platforms and not _jax_starts():
        return FAILED, f"JAX_PLATFORMS={platforms}: JAX cannot start this platform here; set it to cpu, or unset it"
    line = (str(error).strip().splitlines() or ["no message"])[0]
    return FAILED, f"{type(error).__name__}: {line} (JAXBANDIT_TRACEBACK=1 shows where)"


def _disk_trouble(error: OSError) -> str:
    where = error.filename or "the output"
    if error.errno in FULL:
        return f"{where}: the disk is full; make room and run the same command"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{where}: this cannot be written ({error.strerror}); choose another place"
    return f"{where}: {error.strerror}"


def _jax_starts() -> bool:
    try:
        jax.devices()
    except Exception:  # the exception differs between versions of JAX and between platforms
        return False
    return True


@contextlib.contextmanager
def _end_soon_after_an_interrupt(farewell: str) -> Iterator[None]:
    """End the program a few seconds after Ctrl-C, even if the main thread cannot notice it.

    Python handles a signal in its main thread only between two bytecode instructions. A thread that waits inside XLA, for a
    compiler or a device, would handle it a minute later. So the signal also wakes a dedicated thread.
    """
    ended = threading.Event()
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)

    def wait() -> None:
        while (heard := ear.recv(1)) and signal.SIGINT not in heard:
            pass
        if heard and not ended.wait(PATIENCE):
            print(farewell, file=sys.stderr, flush=True)
            os._exit(STOPPED)
        ear.close()

    before = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=wait, name="jaxbandit-interrupt", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        mouth.close()
