"""Propensities that are computed when they are read: they can cost many times as much as the decisions."""

import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BUDGET = 2**28  # bytes of learners' states that unread propensities of one agent may keep
LEAST_BUFFERS = 2**13  # bytes that the state and the inbox of one decision of a single learner take, however small they are


class Later(np.lib.mixins.NDArrayOperatorsMixin):
    """An array ``[n]``, or a number of a single learner, that is computed when it is first read; it can be used like its value."""

    def __init__(self, compute: Callable[[], Any], *, number: bool = False):
        self.number = number  # of a single learner
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    @property
    def is_read(self) -> bool:
        return self._value is not None

    def read(self) -> Any:
        """The array or number. Two threads that read it at the same time compute the same value twice."""
        compute = self._compute
        if compute is not None and self._value is None:
            self._value = compute()
            self._compute = None  # releases the states
        assert self._value is not None
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = np.asarray(self.read(), dtype)
        return value.copy() if copy else value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":  # such as np.add.reduce: np.asarray(later) serves these
            return NotImplemented
        return ufunc(*(one.read() if isinstance(one, Later) else one for one in inputs), **options)

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.read())

    def __float__(self) -> float:
        return float(self.read())

    def __format__(self, form: str) -> str:
        return format(self.read(), form)

    def __hash__(self) -> int:
        return hash(self.read())

    def tolist(self) -> list[Any]:
        return self.read().tolist()

    def __getitem__(self, place: Any) -> Any:
        return self.read()[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        return repr(self.read())

    def __reduce__(self) -> Any:
        value = self.read()
        return float if isinstance(value, float) else np.asarray, (value,)


class Unread:
    """The latest propensities of an agent that may still be unread. Only so many keep states; the oldest of more are computed."""

    def __init__(self, most: int):
        self._most, self._warned = most, False
        self._later: deque[weakref.ref[Later]] = deque()

    def add(self, later: Later) -> None:
        self._later.append(weakref.ref(later))
        if len(self._later) > self._most:
            self._later = deque(one for one in self._later if (found := one()) is not None and not found.is_read)
        if len(self._later) > self._most:
            oldest = self._later.popleft()()
            if oldest is not None:
                if not self._warned:
                    self._warned = True
                    warnings.warn(
                        f"{self._most:,} calls have outstanding tickets whose probability was not read; from now on each call computes the "
                        "oldest of these, which takes longer than the decisions. If probabilities are not needed, give propensities=False",
                        stacklevel=2,
                    )
                oldest.read()
