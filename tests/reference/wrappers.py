"""Wrappers around a base learner that knows no delays (section 7)."""

from __future__ import annotations

from collections import deque

import numpy as np

from .ftrl import TsallisINF
from .interface import Reference, draw


class QPMD(Reference):
    """Section 7, QPM-D (Joulani et al. 2013): per arm a queue of arrived losses in front of a delay-free base.

    The base names an arm; that arm is played, round after round, while its queue is empty. At the end of each round
    the arrivals join their queues (ascending s); then, while the queue of the named arm is non-empty: the base is fed
    its oldest loss, the base's clock advances by one, and the base names its next arm.

    Randomness: ``act`` returns a one-hot vector; the base's arm is drawn as draw(base probabilities, uniform), with
    one uniform per question to the base, taken from ``uniforms`` (any iterable) or else from ``rng``. The first
    question is asked in round 1. ``base_probabilities`` lists the base's answers in order.
    """

    def __init__(self, arms, base=TsallisINF, uniforms=None, rng=None, **hyperparameters):
        super().__init__(arms)
        self.base = base(arms, **hyperparameters)
        self.uniforms = iter(uniforms) if uniforms is not None else iter(rng.random, None)
        self.queues = [deque() for _ in range(arms)]
        self.clock = 0
        self.base_probabilities = []
        self.named = None

    def ask(self):
        self.clock += 1
        x = self.base.act(self.clock, [])
        self.base_probabilities.append(np.array(x))
        self.named = draw(x, next(self.uniforms))
        self.base.played(self.clock, self.named)

    def act(self, t, outstanding):
        if self.named is None:
            self.ask()
        return self.remember(t, np.eye(self.arms)[self.named])

    def observe(self, t, s, arm, loss):
        self.queues[arm].append(loss)

    def end(self, t, outstanding):
        while self.queues[self.named]:
            self.base.observe(self.clock, self.clock, self.named, self.queues[self.named].popleft())
            self.base.end(self.clock, [])
            self.ask()


class BOLD(Reference):
    """Section 7, BOLD (Joulani et al. 2013): a copy of the base learner per simultaneously outstanding play.

    Round t uses the free copy with the smallest number (a new one if all wait). Each copy has its own clock 1, 2, ...,
    sees no delay, and is free again from the round after its feedback arrived.
    """

    def __init__(self, arms, base=TsallisINF, **hyperparameters):
        super().__init__(arms)
        self.new_base = lambda: base(arms, **hyperparameters)
        self.copies: list[Reference] = []
        self.clocks: list[int] = []
        self.waiting: set[int] = set()  # copies with an outstanding play
        self.copy_of: dict[int, int] = {}  # round -> copy

    def act(self, t, outstanding):
        copy = next((c for c in range(len(self.copies)) if c not in self.waiting), len(self.copies))
        if copy == len(self.copies):
            self.copies.append(self.new_base())
            self.clocks.append(0)
        self.clocks[copy] += 1
        self.copy_of[t] = copy
        self.waiting.add(copy)
        return self.remember(t, self.copies[copy].act(self.clocks[copy], []))

    def force(self, t, x):
        super().force(t, x)
        copy = self.copy_of[t]
        self.copies[copy].force(self.clocks[copy], x)

    def played(self, t, arm):
        super().played(t, arm)
        copy = self.copy_of[t]
        self.copies[copy].played(self.clocks[copy], arm)

    def shown(self, t, signal):
        copy = self.copy_of[t]
        self.copies[copy].shown(self.clocks[copy], signal)

    def observe(self, t, s, arm, loss):
        copy = self.copy_of[s]
        self.copies[copy].observe(self.clocks[copy], self.clocks[copy], arm, loss)
        self.copies[copy].end(self.clocks[copy], [])
        self.waiting.discard(copy)
