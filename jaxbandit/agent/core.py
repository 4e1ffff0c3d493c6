"""An agent without lock and file: the learner, its state and its tickets."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import DTypeLike

from jaxbandit.agent import program
from jaxbandit.agent.later import BUDGET, LEAST_BUFFERS, Later, Unread
from jaxbandit.agent.ledger import Change, Ledger
from jaxbandit.agent.players import Fleet, Single
from jaxbandit.agent.tables import Decided, Fed
from jaxbandit.agent.tickets import Book, Ticket


class Step(NamedTuple):
    """A computed decision that has not been applied yet."""

    ticket: Ticket  # of arrays
    change: Change
    state: Any
    probabilities: np.ndarray  # [K, ...], the latest of all runs


class Core:
    """``setup.runs`` has the shape ``()`` for a single learner and ``(fleet,)`` for a fleet."""

    def __init__(self, setup: program.Setup, num_arms: int, dtype: DTypeLike, *, later: bool = False):
        """``later``: propensities are computed when they are read, if they cost more than the decisions."""
        self._shape = setup.runs.shape
        self._unread: Unread | None = None
        if later and setup.propensities and program.has_costly_propensity(setup, num_arms):
            setup = dataclasses.replace(setup, propensities=False)
            like = jax.eval_shape(lambda setup: program.start(setup, num_arms), setup)
            size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like))
            self._unread = Unread(max(BUDGET // max(size, 1 if self._shape else LEAST_BUFFERS), 1))
        self._player = (Fleet if self._shape else Single)(setup, num_arms)
        self._state: Any = self._player.start()
        self._ledger_of = self._shape, program.decision_like(setup, num_arms).memo, setup.learner.watches_plays, dtype
        self._ledger = Ledger(*self._ledger_of)
        self.probabilities = np.full((num_arms, *self._shape), np.nan, dtype)
        self.active = np.ones(num_arms, bool)  # the arms that are not withdrawn

    @property
    def decided(self) -> int:
        """The newest ticket."""
        return self._ledger.decided

    @property
    def rounds(self) -> np.ndarray:
        return self._ledger.rounds

    @property
    def book(self) -> Book:
        return self._ledger.book

    def find(self, ids: np.ndarray) -> np.ndarray:
        """The rows of outstanding tickets; raises TicketError."""
        return self.book.find(ids, self.decided)

    def decide(
        self,
        acting: np.ndarray | None = None,
        *,
        forced: np.ndarray | None = None,
        keys: Sequence[str] | None = None,
        now: float = 0.0,
    ) -> Step:
        """Compute the next decision of these runs; None: of all. ``forced`` are arms that the caller demands, -1: none."""
        ledger = self._ledger
        turn = ledger.turn(acting)
        clock = ledger.clock(turn, forced, None if self.active.all() else self.active)
        inboxes = ledger.inboxes(turn.rows)
        decision, state = self._player.decide(self._state, inboxes, clock)
        if self._unread is not None:
            clock = clock._replace(forced=decision.arm)
            decision = decision._replace(propensity=self._later(inboxes, clock, turn.acting, forced))
        ticket = ledger.tickets(turn, decision, now, keys)
        probabilities = decision.probabilities
        if acting is not None:
            probabilities = self.probabilities.copy()
            probabilities[:, acting] = decision.probabilities[:, acting]
        return Step(ticket, ledger.change(turn, ticket, decision), state, probabilities)

    def _later(
        self, inboxes: Sequence[program.Inbox], clock: program.Clock, acting: np.ndarray | None, forced: np.ndarray | None
    ) -> Later:
        """The propensities of the runs that act, in their order, from the state as it is now; a number for a single learner."""
        player, state = self._player, self._state

        def compute() -> Any:
            found = player.propensity(state, inboxes, clock)
            found = found if acting is None else found[acting]
            found = found if forced is None else np.where(forced >= 0, np.ones((), found.dtype), found)
            return found if self._shape else found.item()

        return Later(compute, number=not self._shape)

    def apply(self, step: Step) -> None:
        """Make a decision take effect. Applying it twice equals applying it once."""
        self._ledger.apply(step.change)
        later = step.change.tickets["propensity"]
        if self._unread is not None and isinstance(later, Later):
            self._unread.add(later)
        self._state, self.probabilities = step.state, step.probabilities

    def to_arrays(self) -> dict[str, Any]:
        """Everything, to be saved."""
        arrays = {f"state_{i}": leaf for i, leaf in enumerate(self._player.leaves(self._state))}
        return arrays | self._ledger.to_arrays() | {"probabilities": self.probabilities, "active": self.active}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Everything, or nothing and a KeyError or ValueError."""
        leaves = self._player.leaves(self._state)
        state = [arrays[f"state_{i}"] for i in range(len(leaves))]
        if [(leaf.shape, leaf.dtype) for leaf in state] != [(leaf.shape, leaf.dtype) for leaf in leaves]:
            raise ValueError("its state has other shapes")
        ledger, probabilities = Ledger(*self._ledger_of), arrays["probabilities"]
        ledger.restore(arrays)
        active = arrays.get("active", np.ones(len(self.active), bool))  # earlier versions have none
        self._state, self._ledger, self.probabilities = self._player.restore(state), ledger, probabilities
        self.active = active

    def withdraw(self, arm: int) -> None:
        active = self.active.copy()
        active[arm] = False
        self.active = active

    def try_without(self, arm: int) -> None:
        """Compute a decision without this arm and forget it: a learner that needs the arm raises its error."""
        before = self.active
        try:
            self.withdraw(arm)
            self.decide()
        finally:
            self.active = before

    def replay(self, decisions: Sequence[Decided], feedback: Sequence[Fed], withdrawn: Sequence[tuple[int, int]]) -> int:
        """Repeat these decisions with the feedback in between; returns the number of arms that differ.

        ``withdrawn``: arms and the newest decision before their withdrawal, in order.
        """
        new = {decision.id for decision in decisions}
        known = self.book.waiting_ids()
        # Of the feedback right after the snapshot's last decision, the snapshot may hold a part.
        feedback = [fed for fed in feedback if fed.ticket in new or fed.ticket in known]
        fed = differs = first = gone = 0
        while first < len(decisions):
            while gone < len(withdrawn) and withdrawn[gone][1] < decisions[first].id:
                self.withdraw(withdrawn[gone][0])
                gone += 1
            while fed < len(feedback) and feedback[fed].after < decisions[first].id:
                self._feed(feedback[fed])
                fed += 1
            # Decisions of different runs without feedback in between can be made in one call.
            until = min([after for _, after in withdrawn[gone : gone + 1]], default=decisions[-1].id)
            until = min([until, *(row.after for row in feedback[fed : fed + 1])])
            last, runs = first, set()
            while last < len(decisions) and decisions[last].id <= until and decisions[last].run not in runs:
                runs.add(decisions[last].run)
                last += 1
            part = decisions[first:last]
            chosen = [decision.run for decision in part]
            every = not self._shape or chosen == list(range(self._shape[0]))
            forced = np.array([d.arm if d.forced else -1 for d in part]) if any(d.forced for d in part) else None
            self.apply(self.decide(None if every else np.array(chosen), forced=forced))
            columns = {
                "arm": [d.arm for d in part],
                "probability": [d.probability for d in part],
                "propensity": [math.nan if d.propensity is None else d.propensity for d in part],
                "time": [d.at for d in part],
            }
            differs += self.book.overwrite([d.id for d in part], columns)
            self.book.keys.update((d.id, d.key) for d in part if d.key is not None)
            first = last
        for rest in feedback[fed:]:
            self._feed(rest)
        for arm, _ in withdrawn[gone:]:
            self.withdraw(arm)
        return differs

    def _feed(self, fed: Fed) -> None:
        rows = self.find(np.array([fed.ticket]))
        if fed.loss is None:
            self.book.expire(rows)
        else:
            self.book.arrive(rows, np.array(fed.loss))
