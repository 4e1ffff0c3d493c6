"""The progress bar of everything that takes long: how much is done, rounds per second, and the time left."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Self

TICK = 0.4  # seconds between two drawings of a bar, also while nothing has been done
LINE = "{desc} {percentage:3.0f}% {bar} {rate_fmt} {elapsed}<{remaining}"


@contextlib.contextmanager
def showing(progress: "bool | Progress", total: int, text: str) -> "Iterator[Progress]":
    """The bar that a user asked for by ``progress=``: a new one, none, or one that is shown already."""
    if isinstance(progress, Progress):
        yield progress
    else:
        with Progress(progress, total, text) as bar:
            yield bar


class _NoLock:
    """In place of tqdm's lock, which stays taken when writing fails, as to a closed pipe: the program would then never end.
    :class:`Progress` has a lock of its own."""

    def acquire(self, *_: object, **__: object) -> bool:
        return True

    def release(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Progress:
    """A bar for ``total`` rounds, summed over runs; any thread may move it. Shows nothing unless ``shown``.

    >>> with Progress(False, total=1000, text="512 runs") as bar:
    ...     bar.update(500)
    """

    def __init__(self, shown: bool, total: int, text: str):
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._bar: Any = None
        if shown:
            from tqdm.auto import tqdm  # draws a widget in a notebook, a line elsewhere

            class Bar(tqdm):
                monitor_interval = 0  # no thread of tqdm's own draws it
                _lock = _NoLock()

            self._bar = Bar(total=total, desc=text, unit=" rounds", unit_scale=True, bar_format=LINE, smoothing=0.1, leave=False)
            threading.Thread(target=self._keep_drawing, daemon=True, name="jaxbandit-progress").start()

    def _keep_drawing(self) -> None:
        """Draw the bar again and again, so that its clock runs while a program plays all rounds of a block."""
        while not self._ended.wait(TICK):
            with self._lock:
                if self._ended.is_set():
                    return
                try:
                    self._bar.refresh()
                except (OSError, ValueError):  # nobody reads it any more
                    return

    def update(self, rounds: int, text: str | None = None) -> None:
        """So many rounds more are done; ``text`` replaces what stands before the bar."""
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
