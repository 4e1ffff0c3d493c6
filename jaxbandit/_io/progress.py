"""Progress bars: the share done, rounds per second, and the time left.

A terminal or notebook shows a bar. Where stderr is a file or a pipe, a line is printed every half minute.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, Self

TICK = 0.4  # seconds between two drawings of a bar, also while nothing has been done
LINES_EVERY = 30.0  # seconds between two lines in a file
BAR = "{desc} {percentage:3.0f}% {bar} {rate_fmt} {elapsed}<{remaining}"
LINE = "{desc}: {percentage:3.0f}%, {rate_fmt}, {elapsed} so far, {remaining} left"


@contextlib.contextmanager
def showing(progress: "bool | Progress", total: int, text: str) -> "Iterator[Progress]":
    """The progress bar for the argument ``progress=``: a new one, none, or one that is shown already."""
    if isinstance(progress, Progress):
        yield progress
    else:
        with Progress(progress, total, text) as bar:
            yield bar


class _NoLock:
    """Replaces tqdm's lock, which stays locked when writing fails, as to a closed pipe: the program would then never end.
    :class:`Progress` has a lock of its own."""

    def acquire(self, *_: object, **__: object) -> bool:
        return True

    def release(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Nowhere:
    """A stream for a bar that is not drawn."""

    def write(self, text: str) -> None: ...

    def flush(self) -> None: ...


def is_watched() -> bool:
    """Whether bars are drawn: in a terminal, and in a notebook, where tqdm draws a widget."""
    import tqdm.auto
    import tqdm.notebook

    return sys.stderr.isatty() or issubclass(tqdm.auto.tqdm, tqdm.notebook.tqdm)


class Progress:
    """A bar for ``total`` rounds, summed over runs; any thread may move it. Shows nothing unless ``shown``.

    >>> with Progress(False, total=1000, text="512 runs") as bar:
    ...     bar.update(500)
    """

    def __init__(self, shown: bool, total: int, text: str):
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._unread = False  # the reader of a pipe has ended: results are no longer needed
        self._bar: Any = None
        if shown and sys.stderr is not None and not sys.stderr.closed:
            from tqdm.auto import tqdm  # draws a widget in a notebook, a line elsewhere

            class Bar(tqdm):
                monitor_interval = 0  # no thread of tqdm's own draws it
                _lock = _NoLock()

            self._drawn = is_watched()
            where: dict[str, Any] = {"bar_format": BAR} if self._drawn else {"bar_format": LINE, "file": _Nowhere()}
            self._bar = Bar(total=total, desc=text, unit=" rounds", unit_scale=True, smoothing=0.1, leave=False, **where)
            threading.Thread(target=self._keep_drawing, daemon=True, name="jaxbandit-progress").start()

    def _keep_drawing(self) -> None:
        """Draw the bar again and again, so that its clock runs while a program simulates all rounds of a block."""
        while not self._ended.wait(TICK if self._drawn else LINES_EVERY):
            with self._lock:
                if self._ended.is_set():
                    return
                try:
                    self._bar.refresh() if self._drawn else print(self._bar, file=sys.stderr, flush=True)
                except (OSError, ValueError) as error:  # the stream has no reader any more
                    self._unread = isinstance(error, BrokenPipeError) and not self._drawn
                    return

    def update(self, rounds: int, text: str | None = None) -> None:
        """Advance the bar by ``rounds``; ``text`` replaces the text before the bar."""
        if self._unread:
            raise BrokenPipeError
        if self._bar is not None:
            with self._lock:
                if text is not None:
                    self._bar.set_description_str(text, refresh=False)
                self._bar.update(rounds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._bar is not None:
            with self._lock:
                self._bar.close()
