"""``jb.Agent``: a learner in a live system, with the decisions of a simulation with the same feedback.

More than 400 lines: one class with its documentation. The parts that need no lock and no file are in :mod:`jaxbandit.agent.core`.
"""

import contextlib
import datetime
import functools
import io
import json
import math
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandit._checks.inputs import MOST_ROUNDS, check_runs, check_switch, given_key, validate_learner
from jaxbandit._core import randomness
from jaxbandit._core.fields import canonical, float_dtype, show
from jaxbandit._io.files import read_arrays, unpack_arrays, whole_file
from jaxbandit._io.optional import need
from jaxbandit._provenance.identity import check_identity, fingerprint
from jaxbandit._provenance.package_code import own_versions
from jaxbandit.agent import program
from jaxbandit.agent.checks import check_age, check_arms, check_count, check_keys, check_losses, check_path
from jaxbandit.agent.core import Core
from jaxbandit.agent.estimates import ArmEstimates, weighted_estimates
from jaxbandit.agent.journal import Journal
from jaxbandit.agent.later import Later
from jaxbandit.agent.memory import Memory
from jaxbandit.agent.tables import Decided, Fed, Late
from jaxbandit.agent.tickets import Ticket, TicketError, as_ids
from jaxbandit.learners.base import FullInformation, LearnerLike, ReadsDelays, ReadsStages, as_learner, is_a, signals_read
from jaxbandit.learners.thompson import DelayedThompson

FORMAT = 1  # of saved agents
IDENTITY = "learner", "learner code", "key"  # the parts of a fingerprint that an agent has
SNAPSHOT_EVERY = 1000  # decisions, or more: at most this many are replayed when a durable agent is opened
Arms = int | Sequence[str]
Key = jax.Array | None
FORMER = {"d12aa298c5e969d5": DelayedThompson()}  # learners in files of earlier versions, before they had more fields
NOT_WRITTEN = (OSError, sqlite3.Error, MemoryError, OverflowError)  # a snapshot that could not be written


class Unfinished(NamedTuple):
    """A change of the agent that an interrupt may have stopped at any point.

    Exceptions such as KeyboardInterrupt can be raised between any two instructions, also between the commit and the update
    of the memory. The next call finishes the change if it is in the file, and drops it otherwise.
    """

    is_kept: Callable[[], bool]
    apply: Callable[[], None]  # applying it twice equals applying it once


class Agent:
    """A learner in a live system: one decision at a time, feedback when it arrives.

    ``act()`` returns a :class:`Ticket`; ``observe(ticket.id, loss)`` adds its feedback, at any later time and in any order.

    The rule is that of simulations: feedback between two decisions counts as arrived at the end of the earlier round, and is
    delivered at the next decision in ascending round of origin. The random numbers are those of ``rollout`` with the same key
    and run. An agent in a simulated environment therefore makes the decisions of :func:`jaxbandit.rollout`: bitwise those that it
    makes outside of ``jit``, on the same machine with the same versions (tested for every learner of the registry). Where
    XLA compiles another program (``rollout`` within ``jit``, ``simulate``) the last digit may be rounded differently.

    An expired ticket stays outstanding for the learner, as missing feedback does in a simulation: a learner whose rate depends on
    outstanding observations keeps counting it.

    :meth:`open` keeps everything in a file, and :meth:`save` writes it to one. Calls from several threads wait for each other.

    An arm can be withdrawn (:meth:`withdraw`). A new arm needs a new agent, which can carry the old counts as its prior.

    Args:
      learner: such as ``jb.DelayedThompson()``. Its required inputs (``max_delay``, a horizon) must be known or bounded.
      arms: the number of arms, or their names.
      key: a typed key, ``jax.random.key(0)``; or ``seed=0`` in its place.
      fleet: None for one learner, or the number of independent ones (for each customer segment, say), which act and observe in
        one call. Run i of the fleet has the random numbers of a single agent with ``first_run=first_run + i``.
      first_run: id of the run, or of the first run of the fleet.
      propensities: False leaves ``ticket.probability`` NaN for learners that draw within their rule (Thompson sampling). A durable
        agent then decides faster. An agent in memory computes them when they are read.

    >>> import jax, jaxbandit as jb
    >>> agent = jb.Agent(jb.DelayedThompson(), ["red", "green", "blue"], jax.random.key(0))
    >>> first, second = agent.act(), agent.act()
    >>> agent.observe(second.id, reward=1.0)  # in any order; losses, or rewards by name
    >>> agent.observe(first.id, loss=1.0)
    >>> third = agent.act()
    >>> agent
    Agent(DelayedThompson, 3 arms: 3 decisions, 1 outstanding)
    """

    def __init__(
        self,
        learner: LearnerLike,
        arms: Arms,
        key: Key = None,
        *,
        seed: int | None = None,
        fleet: int | None = None,
        first_run: int = 0,
        propensities: bool = True,
    ):
        self.names = check_arms(arms)
        self.num_arms: int = arms if self.names is None else len(self.names)  # type: ignore[assignment]
        validate_learner(learner, self.num_arms)
        if signals_read(as_learner(learner)):
            name = type(learner).__name__
            raise ValueError(
                f"learner={name}(…): {name} uses intermediate observations, which an agent does not support; use jb.simulate"
            )
        for kind, needs in (
            (ReadsDelays, "the delay of an action when it is chosen"),
            (FullInformation, "the losses of all arms"),
            (ReadsStages, "outcomes before the loss"),
        ):
            if is_a(as_learner(learner), kind):
                name = type(learner).__name__
                raise ValueError(f"learner={name}(…): {name} requires {needs}, which an agent does not support; use jb.simulate")
        key = given_key(key, seed)
        if fleet is not None and (not isinstance(fleet, int | np.integer) or isinstance(fleet, bool) or fleet < 1):
            raise ValueError(f"fleet={show(fleet)}: a fleet is a number of learners, 1 or more; None is a single learner")
        check_runs(1 if fleet is None else fleet, first_run)
        self.fleet, self.first_run = None if fleet is None else int(fleet), int(first_run)
        self._shape = () if self.fleet is None else (self.fleet,)
        dtype = float_dtype()
        ids = np.arange(first_run, first_run + (self.fleet or 1), dtype=np.int64).astype(np.uint32).reshape(self._shape)
        check_switch("propensities", propensities)
        setup = program.Setup(
            as_learner(canonical(learner)), randomness.streams(key), jnp.asarray(ids), randomness.grain(dtype), bool(propensities)
        )
        program.check_agent_memory(setup, self.num_arms)
        self._new_core = functools.partial(Core, setup, self.num_arms, dtype, later=True)
        self._core = self._new_core()
        self._memory = Memory()
        self._grouping = self._stale = False  # within a group; after a group that was not kept
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._snapshot_at = 0  # the newest decision in it
        self._closed = False
        self._unfinished: Unfinished | None = None
        self._learner = type(learner).__name__
        self._prior = _prior(learner, self.num_arms)
        self._about = {
            "format": FORMAT,
            **{part: mark for part, mark in fingerprint(learner, None, None, key).items() if part in IDENTITY},
            "arms": self.names or int(self.num_arms),
            "fleet": self.fleet,
            "first_run": self.first_run,
            "precision": str(dtype),
            "versions": own_versions(),
        }

    def __repr__(self) -> str:
        with self._lock:
            self._settle()
        size = f"{self.num_arms} arms" if self.fleet is None else f"{self.num_arms} arms, fleet={self.fleet:,}"
        decided, waiting = int(self._core.rounds.sum()), len(self._core.book.waiting())
        return f"Agent({self._learner}, {size}: {decided:,} decisions, {waiting:,} outstanding)"

    @property
    def rounds(self) -> Any:
        """The number of decisions made, or an array with one number for each run of the fleet."""
        with self._lock:
            self._settle()
        return self._core.rounds.copy() if self._shape else int(self._core.rounds[0])

    @property
    def probabilities(self) -> np.ndarray:
        """The probabilities ``[K]`` or ``[K, fleet]`` of the last decision; NaN before the first."""
        with self._lock:
            self._settle()
            return self._core.probabilities.copy()

    def act(
        self,
        runs: Sequence[int] | np.ndarray | None = None,
        *,
        key: str | Sequence[str] | None = None,
        arm: int | str | None = None,
        count: int | None = None,
    ) -> Ticket:
        """Make a decision and return its ticket.

        Args:
          runs: which learners of a fleet decide, as a list of their numbers, from 0; None: all. The ticket's arrays are in this order.
          key: your own name for the decision, such as the id of a request; a list of them for a fleet or for several decisions. A
            call with a key that was used before returns the ticket of that time: after a crash, repeat the call.
          arm: use this arm instead of the learner's draw. The ticket's probability is 1. Bounds do not cover such rounds.
          count: the number of decisions of a single learner in one call and one commit, with no feedback in between.
        """
        with self._lock:
            self._check_open()
            acting = self._check_acting(runs)
            size = self.fleet if acting is None else len(acting)
            if not self._shape:
                size = check_count(count, key)
            elif count is not None:
                raise ValueError(f"act(count={show(count)}): a fleet decides once for each of its runs; give runs=[…]")
            keys = check_keys(key, size)
            forced = self._check_forced(arm, size)
            if self._shape:
                return self._as_given(self._decide(acting, keys, forced))
            if size is None:
                return _first(self._as_given(self._decide(None, keys, forced)))
            with self.group():
                every = [
                    self._decide(None, None if keys is None else keys[i : i + 1], None if forced is None else forced[i : i + 1])
                    for i in range(size)
                ]
            return self._as_given(_joined([_first(_columns(ticket)) for ticket in every]))

    def _decide(self, acting: np.ndarray | None, keys: list[str] | None, forced: np.ndarray | None) -> Ticket:
        """Tickets of arrays: those issued before under these keys, and new ones."""
        known = {} if keys is None else {i: ticket for i, key in enumerate(keys) if (ticket := self._with_key(key)) is not None}
        if not known:
            return self._decide_new(acting, keys, forced)
        assert keys is not None
        runs = np.arange(len(keys)) if acting is None else acting
        for i, ticket in known.items():
            if ticket.run != runs[i]:
                raise ValueError(f"act(key={keys[i]!r}): this key belongs to a decision of run {ticket.run}, not {runs[i]}")
        new = [i for i in range(len(keys)) if i not in known]
        if new:
            fresh = self._decide_new(runs[new], [keys[i] for i in new], None if forced is None else forced[new])
            known |= {i: Ticket(*row) for i, row in zip(new, zip(*_columns(fresh), strict=True), strict=True)}
        return _joined([known[i] for i in range(len(keys))])

    def _decide_new(self, acting: np.ndarray | None, keys: list[str] | None, forced: np.ndarray | None) -> Ticket:
        step = self._core.decide(acting, forced=forced, keys=keys, now=time.time())
        ticket, journal = step.ticket, self._journal
        if journal is None or not ticket.id.size:

            def apply() -> None:
                self._core.apply(step)
                if keys is not None:
                    self._memory.given.update((row[-1], Ticket(*row)) for row in zip(*_columns(ticket), strict=True))

            self._carry_out(apply)
            return ticket
        demanded = [0] * len(ticket.id) if forced is None else (forced >= 0).astype(int).tolist()
        probabilities = step.change.tickets["probability"].tolist()
        rows = [
            Decided(id, run, round, arm, p, at, None if math.isnan(propensity) else propensity, key, force)
            for (id, arm, propensity, round, run, at, key), p, force in zip(
                zip(*_columns(ticket), strict=True), probabilities, demanded, strict=True
            )
        ]
        self._carry_out(
            lambda: self._core.apply(step), lambda: journal.add_decisions(rows), lambda: journal.has_decision(rows[0].id)
        )
        if self._core.decided - self._snapshot_at >= self._snapshot_due() and not self._grouping:
            self._take_snapshot(journal)
        return ticket

    def _with_key(self, key: str) -> Ticket | None:
        """The ticket issued under this key, with the number of its arm."""
        if self._journal is None:
            return self._memory.given.get(key)
        row = self._journal.with_key(key)
        if row is None:
            return None
        return Ticket(
            row.id, row.arm, math.nan if row.propensity is None else row.propensity, row.round, row.run, row.at, row.key
        )

    def observe(
        self,
        ticket: Ticket | int | Sequence[int] | np.ndarray,
        loss: ArrayLike | Sequence[float] | None = None,
        *,
        reward: ArrayLike | Sequence[float] | None = None,
    ) -> None:
        """Add the feedback of one or more tickets. It counts from the next decision on.

        Feedback of a ticket that :meth:`close_window` has closed is late: it is kept in the log and does not reach the learner.

        Args:
          ticket: the id of a ticket, or a list of ids (a :class:`Ticket` will do as well).
          loss: the loss, between 0 and 1, one number for each ticket or one for all.
          reward: in its place the reward, between 0 and 1: the loss is 1 - reward.
        """
        with self._lock:
            self._check_open()
            ids, losses = as_ids(ticket), check_losses(loss, reward)
            if losses.ndim and losses.shape != ids.shape:
                raise ValueError(f"{losses.size} losses for {ids.size} tickets: give one for each ticket, or one number for all")
            losses, late = np.broadcast_to(losses, ids.shape), np.zeros(ids.shape, bool)
            try:
                rows = self._core.find(ids)
            except TicketError:
                late = np.array([self._is_late(id) for id in ids.tolist()])
                if not late.any():
                    raise
                rows = self._core.find(ids[~late])
                if len(set(ids.tolist())) < len(ids):
                    raise
            on_time = losses[~late]
            after_window = list(zip(ids[late].tolist(), losses[late].tolist(), strict=True))

            def apply() -> None:
                self._core.book.arrive(rows, on_time)
                if self._journal is None:
                    self._memory.late.update(after_window)

            self._answer(ids[~late], on_time.tolist(), apply, late=after_window)

    def _is_late(self, id: int) -> bool:
        """Whether the window of this ticket is closed, and no late feedback has arrived for it."""
        if self._journal is None:
            return id in self._memory.closed and id not in self._memory.late
        return self._journal.has_closed(id) and not self._journal.has_late(id)

    def expire(self, ticket: Ticket | int | Sequence[int] | np.ndarray) -> None:
        """Mark the feedback of this ticket, or of these, as missing."""
        with self._lock:
            self._check_open()
            ids = as_ids(ticket)
            rows = self._core.find(ids)
            self._answer(ids, [None] * ids.size, lambda: self._core.book.expire(rows))

    def close_window(
        self, older_than: float | datetime.timedelta, *, reward: float | None = 0.0, now: float | None = None
    ) -> int:
        """Close the outstanding tickets of decisions older than the window; returns how many.

        All of them get the same reward, in one commit. Feedback that arrives later is kept in the log and does not reach the
        learner; :meth:`estimate` can count it.

        Args:
          older_than: the length of the window, in seconds or as a ``datetime.timedelta``.
          reward: of the tickets without feedback; 0 for conversions. None: they expire, and the learner gets no feedback.
          now: the present, in seconds since 1970; by default that of the clock.
        """
        with self._lock:
            self._check_open()
            age, loss = check_age(older_than), None if reward is None else check_losses(None, reward).reshape(())
            book = self._core.book
            waiting = book.waiting()
            rows = waiting[book["time"][waiting] < (time.time() if now is None else now) - age]
            ids = book["id"][rows].copy()

            def apply() -> None:
                if loss is None:
                    book.expire(rows)
                else:
                    book.arrive(rows, loss)
                if self._journal is None:
                    self._memory.closed.update(ids.tolist())

            self._answer(ids, [None if loss is None else float(loss)] * len(ids), apply, closed=1)
            return len(ids)

    def _answer(
        self,
        ids: np.ndarray,
        losses: list[Any],
        apply: Callable[[], None],
        closed: int | None = None,
        late: Sequence[tuple[int, float]] = (),
    ) -> None:
        journal = self._journal
        if journal is None or not (ids.size or late):
            self._carry_out(apply)
            return
        after, now = self._core.decided, time.time()
        rows = [Fed(id, loss, after, now, closed) for id, loss in zip(ids.tolist(), losses, strict=True)]
        late_rows = [Late(id, loss, now) for id, loss in late]
        if closed:
            is_kept = functools.partial(journal.has_closed, rows[0].ticket)
        else:
            is_kept = functools.partial(journal.has_feedback, [*rows, *late_rows][0].ticket)
        self._carry_out(apply, lambda: journal.add_feedback(rows, late_rows), is_kept)

    def withdraw(self, arm: int | str) -> None:
        """Never draw this arm again. Feedback of its outstanding tickets still counts.

        Learners that compare indices or draws (UCB, Thompson sampling) compare the other arms. Importance-weighted learners draw
        from their probabilities restricted to the other arms. No regret bound covers the change: bounds compare with a fixed set of
        arms. Learners with other rules, such as elimination, raise a ValueError.
        """
        with self._lock:
            self._check_open()
            number = self._arm_number("withdraw", arm)
            active = self._core.active
            if not active[number] or active.sum() == 1:
                state = "is withdrawn already" if not active[number] else "is the last one"
                raise ValueError(f"withdraw({show(arm)}): this arm {state}")
            self._core.try_without(number)
            journal, after = self._journal, self._core.decided
            if journal is None:
                self._carry_out(lambda: self._core.withdraw(number))
            else:
                self._carry_out(
                    lambda: self._core.withdraw(number),
                    lambda: journal.add_withdrawal(number, after, time.time()),
                    lambda: journal.has_withdrawn(number),
                )

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Commit all calls in a ``with`` block together, at its end: one flush of the disk in place of one for each call.

        Nothing in the block is on disk before its end. If an exception leaves the block, nothing of it is kept. Other threads wait.
        """
        with self._lock:
            self._check_open()
            if self._journal is None or self._grouping:
                yield
                return
            self._grouping = True
            try:
                with self._journal.group():
                    yield
            except BaseException:
                self._stale = True
                raise
            finally:
                self._grouping = False

    def export(self) -> Any:
        """The log of a durable agent as a ``pandas.DataFrame``, one row for each decision. Needs the extra ``jaxbandit[data]``.

        ``status`` is outstanding, answered, expired or closed (by :meth:`close_window`). Times are in UTC.
        """
        pandas = need("pandas", "data", "Agent.export")
        frame = pandas.DataFrame(self._log("export"))
        answered, closed = frame.pop("ticket").notna(), frame.pop("closed") == 1
        frame["status"] = np.select(
            [closed, answered & frame.loss.notna(), answered], ["closed", "answered", "expired"], "outstanding"
        )
        if self.names is not None:
            frame["arm"] = np.asarray(self.names, object)[frame.arm.to_numpy(np.int64)]
        for name in ("time", "loss_time", "late_time"):
            frame[name] = pandas.to_datetime(frame[name].astype(float), unit="s", utc=True)
        frame["forced"] = frame.forced.astype(bool)
        return frame.drop(columns="after")

    def estimate(self, *, late: bool = False) -> ArmEstimates:
        """The mean loss of each arm, estimated from the log with inverse propensities, and 95% intervals.

        A plain mean of the observed losses is biased, because the learner chooses an arm more often after good feedback. Weighted by
        its propensity every decision counts as if arms were drawn evenly. Unbiased if feedback is not missing depending on arm or
        loss: close the window first. Arms that the propensities cannot support (a deterministic learner such as UCB) get NaN.

        Args:
          late: count feedback that arrived after its window was closed.
        """
        log = {name: np.array(column) for name, column in self._log("estimate").items() if name != "key"}
        loss, after = log["loss"].astype(float), log["after"].astype(float)
        if late:
            loss = np.where(np.isnan(log["late_loss"].astype(float)), loss, log["late_loss"].astype(float))
        used = ~np.isnan(loss) & (log["forced"] == 0)
        propensity = log["probability"].astype(float)
        if np.isnan(propensity[used]).any():
            raise ValueError(f"estimate(): {self._learner} does not know the probabilities of its arms; use one that does")
        columns = {"arm": log["arm"], "probability": propensity, "loss": loss, "id": log["id"], "after": after}
        return weighted_estimates({name: column[used] for name, column in columns.items()}, self.names or [*range(self.num_arms)])

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The sums of losses and of rewards of each arm, ``[K]``: a prior for an agent with other arms.

        They are the sums of the log, over all runs of a fleet, and the prior of the learner itself. A campaign that is restarted
        several times therefore keeps all of its counts. Late and expired feedback does not count.
        """
        log = self._log("counts")
        arm, loss = np.array(log["arm"], np.int64), np.array(log["loss"], float)
        seen = ~np.isnan(loss)
        losses, count = (np.bincount(arm[seen], value, self.num_arms) for value in (loss[seen], np.ones(seen.sum())))
        return losses + self._prior[0], count - losses + self._prior[1]

    def backup(self, path: str | os.PathLike) -> None:
        """Copy the file of a durable agent, with everything that is committed, to a new file that :meth:`open` reads."""
        file = check_path("agent.backup", path, "backup.db")
        with self._lock:
            self._check_open()
            if self._journal is None:
                raise ValueError("agent.backup(): this agent is in memory; use agent.save(path), or start it with Agent.open")
            self._journal.backup(file)

    def _log(self, method: str) -> dict[str, Any]:
        with self._lock:
            self._check_open()
            if self._journal is None:
                raise ValueError(f"agent.{method}(): this agent is in memory and keeps no log; start it with Agent.open(path, …)")
            names, rows = self._journal.log()
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {name: [] for name in names}

    def _carry_out(
        self,
        apply: Callable[[], None],
        write: Callable[[], None] = lambda: None,
        is_kept: Callable[[], bool] = lambda: True,
    ) -> None:
        """Commit a change to the file, then apply it to the memory."""
        self._unfinished = Unfinished(is_kept, apply)
        write()
        apply()
        self._unfinished = None

    def _settle(self) -> None:
        """Finish or drop a change during which an exception was raised."""
        if self._grouping:
            if self._unfinished is not None:
                raise OSError("a call of this group failed; leave the group, nothing of it was kept")
            return
        if self._stale and self._journal is not None:
            self._journal.roll_back()
            self._core = self._new_core()
            self._recover(self._journal)
            self._stale, self._unfinished = False, None
        if self._unfinished is not None:
            if self._journal is not None:
                self._journal.roll_back()
            if self._unfinished.is_kept():
                self._unfinished.apply()
            self._unfinished = None

    def outstanding(self) -> list[Ticket]:
        """The tickets that can still be answered, oldest first."""
        with self._lock:
            self._settle()
            self._core.book.read_propensities()
            book, rows = self._core.book, self._core.book.waiting()
            columns = [book[name][rows].tolist() for name in ("id", "arm", "propensity", "round", "run", "time")]
            if self.names is not None:
                columns[1] = [self.names[arm] for arm in columns[1]]
            return [Ticket._make([*row, book.keys.get(row[0])]) for row in zip(*columns, strict=True)]

    @classmethod
    def open(
        cls,
        path: str | os.PathLike,
        learner: LearnerLike,
        arms: Arms,
        key: Key = None,
        *,
        seed: int | None = None,
        fleet: int | None = None,
        first_run: int = 0,
        propensities: bool = True,
        flush: bool = True,
    ) -> "Agent":
        """Open an agent that keeps everything in one SQLite file, which is created if it does not exist.

        Every decision and all feedback is committed before the call returns: after a crash or ``kill -9`` nothing that was
        answered is lost, and the next decision is the one it would have been. One agent at a time has the file open; other programs
        can read it meanwhile.
        :meth:`close` it, or use it in a ``with`` block; an agent that was not closed only takes longer to open.

        Args:
          path: the file; one that exists must have been made with the same learner, arms, key, fleet and first_run.
          learner, arms, key, seed, fleet, first_run: as in :class:`Agent`.
          flush: wait for the disk at every commit, so that a loss of power loses nothing either.

        >>> import jax, tempfile, jaxbandit as jb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with jb.Agent.open(f"{folder}/campaign.db", jb.DelayedUCB1(), 3, jax.random.key(0)) as agent:
        ...         ticket = agent.act()
        ...     with jb.Agent.open(f"{folder}/campaign.db", jb.DelayedUCB1(), 3, jax.random.key(0)) as agent:
        ...         agent.outstanding() == [ticket]
        True
        """
        agent = cls(learner, arms, key, seed=seed, fleet=fleet, first_run=first_run, propensities=propensities)
        agent._new_core = functools.partial(agent._new_core, later=False)  # the journal needs propensities at once
        agent._core = agent._new_core()
        journal = None
        try:
            journal = Journal(path, agent._about, flush)
            agent._check_about(f"Agent.open({str(path)!r})", agent._as_now(journal.about))
            journal.migrate()
            agent._recover(journal)
            agent._journal = journal
        except BaseException:
            if journal is not None:
                journal.close()
            raise
        return agent

    def close(self) -> None:
        """Close the file of a durable agent; an agent in memory has nothing to close.

        The file is released in any case. On a full disk the snapshot is left out, and opening the file takes longer.
        """
        with self._lock:
            journal = self._journal
            if journal is None:
                return
            try:
                self._settle()
                self._take_snapshot(journal)
            except NOT_WRITTEN:  # the file holds everything that was committed
                pass
            finally:
                journal.close()
                self._journal, self._unfinished, self._closed = None, None, True

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; :meth:`load` resumes from it (no pickle)."""
        file_name = check_path("Agent.save", path, "agent.npz")
        with self._lock:
            self._settle()
            with whole_file(file_name) as file:
                np.savez(file, **self._to_arrays())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,
        learner: LearnerLike,
        arms: Arms,
        key: Key = None,
        *,
        seed: int | None = None,
        fleet: int | None = None,
        first_run: int = 0,
        propensities: bool = True,
    ) -> "Agent":
        """Resume an agent from a file written by :meth:`save`, with the same learner, arms, key, fleet and first_run."""
        agent = cls(learner, arms, key, seed=seed, fleet=fleet, first_run=first_run, propensities=propensities)
        file = check_path("Agent.load", path, "agent.npz")
        name = f"Agent.load({str(path)!r})"
        if not file.is_file():
            raise FileNotFoundError(f"{name}: there is no such file")
        arrays, about = {}, None
        try:
            arrays = read_arrays(file)
            about = json.loads(str(arrays["about"]))
        except (KeyError, ValueError):
            pass
        if not isinstance(about, dict):
            raise ValueError(f"{name}: this is not a file written by Agent.save")
        agent._check_about(name, agent._as_now(about))
        agent._restore(name, arrays)
        return agent

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this agent is closed, and its file may be open elsewhere; open it again with Agent.open")
        self._settle()

    def _check_acting(self, runs: Any) -> np.ndarray | None:
        if runs is None:
            acting = None
        elif not self._shape:
            raise ValueError(f"act(runs={show(runs)}): this agent is a single learner; only a fleet has runs to choose from")
        else:
            acting = np.asarray(runs)
            if acting.size == 0:
                acting = acting.reshape(0).astype(np.int64)
            good = acting.ndim == 1 and acting.dtype.kind in "iu"
            if not good or ((acting < 0) | (acting >= self._shape[0])).any() or len(np.unique(acting)) < len(acting):
                raise ValueError(
                    f"act(runs={show(runs)}): give a list of different whole numbers from 0 to {self._shape[0] - 1}, one for each "
                    "learner of the fleet that decides"
                )
        rounds = self._core.rounds if acting is None else self._core.rounds[acting]
        if rounds.max(initial=0) >= MOST_ROUNDS:
            raise ValueError("act(): 2**30 rounds are played; no learner here counts further")
        return acting

    def _as_given(self, ticket: Ticket) -> Ticket:
        """The ticket as the user gets it: names of arms, and Python values for a single learner."""
        if self._shape:
            return ticket if self.names is None else ticket._replace(arm=np.asarray(self.names)[ticket.arm])
        columns = _columns(ticket)
        return columns if self.names is None else columns._replace(arm=[self.names[arm] for arm in columns.arm])

    def _arm_number(self, method: str, arm: Any) -> int:
        if self.names is not None and isinstance(arm, str) and arm in self.names:
            return self.names.index(arm)
        if self.names is None and isinstance(arm, int | np.integer) and not isinstance(arm, bool) and 0 <= arm < self.num_arms:
            return int(arm)
        right = f"one of {show(self.names)}" if self.names is not None else f"a whole number from 0 to {self.num_arms - 1}"
        raise ValueError(f"{method}(arm={show(arm)}): an arm of this agent is {right}")

    def _check_forced(self, arm: Any, size: int | None) -> np.ndarray | None:
        """The demanded arms, one for each decision."""
        if arm is None:
            return None
        each = list(arm) if isinstance(arm, list | tuple | np.ndarray) else [arm] * (1 if size is None else size)
        if len(each) != (1 if size is None else size):
            raise ValueError(
                f"act(arm={show(arm)}): {len(each)} arms for {size or 1} decisions; give one for each, or one for all"
            )
        numbers = np.array([self._arm_number("act", one) for one in each], np.int32)
        if not self._core.active[numbers].all():
            raise ValueError(f"act(arm={show(arm)}): this arm was withdrawn")
        return numbers

    def _as_now(self, about: dict[str, Any]) -> dict[str, Any]:
        """The description of an agent in a file, with the mark that its learner has in this version."""
        former = FORMER.get(str(about.get("learner")))
        if former is None:
            return about
        return about | {"learner": fingerprint(former, None, None, jax.random.key(0))["learner"]}

    def _check_about(self, name: str, about: dict[str, Any]) -> None:
        if about.get("format") != FORMAT:
            raise ValueError(f"{name}: format {show(about.get('format'))} is not known here; this version reads format {FORMAT}")
        check_identity(f"{name}: the file", about, {part: self._about[part] for part in IDENTITY})
        for part, mine in self._about.items():
            if part not in (*IDENTITY, "versions") and about.get(part) != mine:
                raise ValueError(f"{name}: the file was made with another {part}: {show(about.get(part))}, not {show(mine)}")

    def _to_arrays(self) -> dict[str, Any]:
        return self._core.to_arrays() | self._memory.to_arrays() | {"about": np.array(json.dumps(self._about))}

    def _restore(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        try:
            self._core.restore(arrays)
            self._memory.restore(arrays)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{name}: the state in the file does not fit this learner ({error})") from error

    def _snapshot_due(self) -> int:
        """After how many decisions the next snapshot is taken: rarely enough to cost little beside them."""
        return max(SNAPSHOT_EVERY, 16 * (self.fleet or 1), 2 * self._core.book.size)

    def _take_snapshot(self, journal: Journal) -> None:
        """Write a snapshot if there is room for one. Without it, opening the file takes longer and nothing is lost."""
        self._snapshot_at = self._core.decided
        buffer = io.BytesIO()
        try:
            np.savez(buffer, **self._to_arrays())
            journal.write_snapshot(buffer.getvalue())
        except NOT_WRITTEN:
            pass

    def _recover(self, journal: Journal) -> None:
        """Restore the snapshot in the file and replay the decisions after it; all of them if the snapshot is damaged."""
        newest = journal.newest()
        try:
            snapshot = journal.snapshot()
            if snapshot is not None:
                self._restore(journal.name, unpack_arrays(snapshot))
        except ValueError:
            warnings.warn(f"{journal.name}: the snapshot is damaged; all {newest:,} decisions are replayed", stacklevel=3)
        if self._core.decided > newest:
            raise ValueError(
                f"{journal.name}: the file is damaged: of {self._core.decided:,} decisions {newest:,} are left; restore a copy of it"
            )
        self._snapshot_at = self._core.decided
        decisions = journal.decisions(self._core.decided)
        withdrawn = [(arm, after) for arm, after in journal.withdrawn() if self._core.active[arm]]
        differs = self._core.replay(decisions, journal.feedback(self._core.decided), withdrawn)
        if differs:
            warnings.warn(
                f"{journal.name}: {differs} of {len(decisions)} replayed decisions differ on this machine with these versions; those in "
                "the file stand",
                stacklevel=3,
            )


def _prior(learner: Any, num_arms: int) -> list[np.ndarray]:
    """The losses and rewards ``[K]`` that a learner counts as observed before its first decision."""
    fields = (learner.prior_losses, learner.prior_rewards) if isinstance(learner, DelayedThompson) else (None, None)
    return [np.zeros(num_arms) if one is None else np.asarray(one, float) for one in fields]


def _columns(ticket: Ticket) -> Ticket:
    """A ticket of arrays as one of lists of Python values."""
    keys = [None] * len(ticket.id) if ticket.key is None else list(ticket.key)
    lists = [[column] if isinstance(column, Later) and column.number else column.tolist() for column in ticket[:-1]]
    return Ticket._make([*lists, keys])


def _first(ticket: Ticket) -> Ticket:
    return Ticket._make(column[0] for column in ticket)


def _joined(tickets: Sequence[Ticket]) -> Ticket:
    """Tickets of single values as one of arrays."""
    *columns, keys = zip(*tickets, strict=True)
    return Ticket._make([*map(np.array, columns), list(keys)])
