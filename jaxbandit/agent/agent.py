"""``jb.Agent``: decides when asked, takes feedback whenever it comes, and plays what a simulation would play."""

import io
import json
import os
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import randomness
from jaxbandit.agent import program
from jaxbandit.agent.journal import Decided, Fed, Journal
from jaxbandit.agent.ledger import Ledger
from jaxbandit.agent.players import Fleet, Single
from jaxbandit.agent.tickets import Ticket, as_ids
from jaxbandit.files import read_arrays, unpack_arrays, whole_file
from jaxbandit.learners.base import as_learner
from jaxbandit.pytrees import canonical, float_dtype, is_numeric, show
from jaxbandit.result import fingerprint
from jaxbandit.validation import MOST_ROUNDS, check_runs, given_key, validate_learner

FORMAT = 1  # of saved agents
SNAPSHOT_EVERY = 1000  # decisions, or more: at most so many are played again when a durable agent is opened
Arms = int | Sequence[str]
Key = jax.Array | None


class Agent:
    """A learner in a live system: decides one round at a time, and takes feedback whenever it comes.

    ``act()`` gives a :class:`Ticket`; ``observe(ticket.id, loss)`` answers it, at any later time and in any order.

    The rule is the simulation's: what arrives between two decisions counts as arrived at the end of the earlier round, and is
    delivered at the next decision in ascending round of origin. The random words are those of ``rollout`` with the same key
    and run. An agent fed by a simulated environment therefore plays what :func:`jaxbandit.rollout` plays: bit for bit what it
    plays outside of ``jit``, on the same machine with the same versions (tested for every learner of the registry). Where
    XLA compiles another program (``rollout`` within ``jit``, ``simulate``) the last digit may be rounded differently.

    A play that has expired stays outstanding for the learner, as lost feedback does in a simulation: a learner that pays for
    what is outstanding goes on paying.

    :meth:`open` keeps everything in a file, and :meth:`save` writes it to one. Calls from several threads wait for each other.

    Arms cannot be added or removed: no learner's guarantee covers that. Start a new agent instead.

    Args:
      learner: such as ``jb.DelayedThompson()``. What it must be told (``max_delay``, a horizon) you must know or bound.
      arms: how many, or their names.
      key: a typed key, ``jax.random.key(0)``; or ``seed=0`` in its place.
      fleet: None for one learner, or how many independent ones (for each customer segment, say), which act and observe in
        one call. Run i of the fleet has the random words of a single agent with ``first_run=first_run + i``.
      first_run: id of the run, or of the first run of the fleet.

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
        self, learner: Any, arms: Arms, key: Key = None, *, seed: int | None = None, fleet: int | None = None, first_run: int = 0
    ):
        self.names = _check_arms(arms)
        self.num_arms: int = arms if self.names is None else len(self.names)  # type: ignore[assignment]
        validate_learner(learner)
        if as_learner(learner).num_signals:
            name = type(learner).__name__
            raise ValueError(f"learner={name}(…): {name} reads the signal of each play, and an agent has none; use jb.simulate")
        key = given_key(key, seed)
        if fleet is not None and (not isinstance(fleet, int | np.integer) or isinstance(fleet, bool) or fleet < 1):
            raise ValueError(f"fleet={show(fleet)}: a fleet is a number of learners, 1 or more; None is a single learner")
        check_runs(1 if fleet is None else fleet, first_run)
        self.fleet, self.first_run = None if fleet is None else int(fleet), int(first_run)
        self._shape = () if self.fleet is None else (self.fleet,)
        dtype = float_dtype()
        ids = np.arange(first_run, first_run + (self.fleet or 1), dtype=np.int64).astype(np.uint32).reshape(self._shape)
        setup = program.Setup(as_learner(canonical(learner)), randomness.streams(key), jnp.asarray(ids), randomness.grain(dtype))
        program.check_memory(setup, self.num_arms)
        self._player = (Fleet if self._shape else Single)(setup, self.num_arms)
        self._state: Any = self._player.start()
        memo = program.decision_like(setup, self.num_arms).memo
        self._ledger = Ledger(self._shape, memo, setup.learner.watches_plays, dtype)
        self._probabilities = np.full((self.num_arms, *self._shape), np.nan, dtype)
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._snapshot_at = 0  # the newest decision in it
        self._closed = False
        self._learner = type(learner).__name__
        self._about = {
            "format": FORMAT,
            **{part: mark for part, mark in fingerprint(learner, None, None, key).items() if part in ("learner", "key")},
            "arms": self.names or int(self.num_arms),
            "fleet": self.fleet,
            "first_run": self.first_run,
            "precision": str(dtype),
        }

    def __repr__(self) -> str:
        size = f"{self.num_arms} arms" if self.fleet is None else f"{self.num_arms} arms, fleet={self.fleet:,}"
        decided, waiting = int(self._ledger.rounds.sum()), len(self._ledger.book.waiting())
        return f"Agent({self._learner}, {size}: {decided:,} decisions, {waiting:,} outstanding)"

    @property
    def rounds(self) -> Any:
        """How many decisions were made: a number, or one for each run of the fleet."""
        return self._ledger.rounds.copy() if self._shape else int(self._ledger.rounds[0])

    @property
    def probabilities(self) -> np.ndarray:
        """``[K]`` or ``[K, fleet]``: with which probabilities the last decision was drawn; NaN before the first."""
        return self._probabilities.copy()

    def act(self, runs: Any = None) -> Ticket:
        """Decide, and give a ticket.

        Args:
          runs: which of the fleet decide, as a list of their numbers, from 0; None: all. The ticket's arrays are in this order.
        """
        with self._lock:
            self._check_open()
            turn = self._ledger.turn(self._check_acting(runs))
            decision, state = self._player.decide(self._state, self._ledger.inboxes(turn.rows), self._ledger.clock(turn))
            ticket = self._ledger.tickets(turn, decision.arm, decision.probability)
            if self._journal is not None:
                columns = ticket.id, ticket.run, ticket.round, ticket.arm, ticket.probability
                self._journal.add_decisions(*(column.tolist() for column in columns))
            # From here on nothing can fail: what was decided is on disk, or it was not decided.
            self._state = state
            self._ledger.finish(turn, ticket, jax.tree.leaves(decision.memo))
            self._remember(turn.acting, decision.probabilities)
            if self._journal is not None and self._ledger.decided - self._snapshot_at >= self._snapshot_due():
                self._take_snapshot(self._journal)
            return self._as_given(ticket)

    def observe(self, ticket: Any, loss: Any = None, *, reward: Any = None) -> None:
        """Feedback of one ticket or of many. It counts from the next decision on.

        Args:
          ticket: the id of a ticket, or a list of ids (a :class:`Ticket` will do as well).
          loss: what was lost, between 0 and 1, one number for each ticket or one for all.
          reward: in its place, what was won, between 0 and 1: the loss is 1 - reward.
        """
        with self._lock:
            self._check_open()
            ids, losses = as_ids(ticket), _check_losses(loss, reward)
            if losses.ndim and losses.shape != ids.shape:
                raise ValueError(f"{losses.size} losses for {ids.size} tickets: give one for each ticket, or one number for all")
            rows = self._ledger.book.find(ids, self._ledger.decided)
            if self._journal is not None and ids.size:
                self._journal.add_feedback(ids.tolist(), np.broadcast_to(losses, ids.shape).tolist(), self._ledger.decided)
            self._ledger.book.arrive(rows, losses)

    def expire(self, ticket: Any) -> None:
        """Feedback of this ticket, or of these, will never come."""
        with self._lock:
            self._check_open()
            ids = as_ids(ticket)
            rows = self._ledger.book.find(ids, self._ledger.decided)
            if self._journal is not None and ids.size:
                self._journal.add_feedback(ids.tolist(), [None] * ids.size, self._ledger.decided)
            self._ledger.book.expire(rows)

    def outstanding(self) -> list[Ticket]:
        """The tickets that can still be answered, oldest first."""
        with self._lock:
            book, rows = self._ledger.book, self._ledger.book.waiting()
            columns = [book[name][rows].tolist() for name in ("id", "arm", "probability", "round", "run")]
            if self.names is not None:
                columns[1] = [self.names[arm] for arm in columns[1]]
            return [Ticket(*row) for row in zip(*columns, strict=True)]

    @classmethod
    def open(
        cls,
        path: str | os.PathLike,
        learner: Any,
        arms: Arms,
        key: Key = None,
        *,
        seed: int | None = None,
        fleet: int | None = None,
        first_run: int = 0,
        flush: bool = True,
    ) -> "Agent":
        """An agent that keeps everything in one SQLite file, made if it is not there.

        Every decision and all feedback is committed before the call returns: after a crash or ``kill -9`` nothing that was
        answered is lost, and the next decision is the one it would have been. One process at a time has the file open.
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
        agent = cls(learner, arms, key, seed=seed, fleet=fleet, first_run=first_run)
        journal = Journal(path, agent._about, flush)
        try:
            agent._check_about(f"Agent.open({str(path)!r})", journal.about)
            snapshot = journal.snapshot()
            if snapshot is not None:
                agent._restore(journal.name, unpack_arrays(snapshot))
            agent._snapshot_at = agent._ledger.decided
            agent._replay(journal.decisions(agent._ledger.decided), journal.feedback(agent._ledger.decided))
        except BaseException:
            journal.close()
            raise
        agent._journal = journal
        return agent

    def close(self) -> None:
        """Close the file of a durable agent, which can then be opened quickly; others have nothing to close."""
        with self._lock:
            if self._journal is not None:
                self._take_snapshot(self._journal)
                self._journal.close()
                self._journal, self._closed = None, True

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; :meth:`load` goes on from it (no pickle)."""
        with self._lock, whole_file(path) as file:
            np.savez(file, **self._to_arrays())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,
        learner: Any,
        arms: Arms,
        key: Key = None,
        *,
        seed: int | None = None,
        fleet: int | None = None,
        first_run: int = 0,
    ) -> "Agent":
        """An agent that goes on from a file written by :meth:`save`, with the same learner, arms, key, fleet and first_run."""
        agent = cls(learner, arms, key, seed=seed, fleet=fleet, first_run=first_run)
        name = f"Agent.load({str(path)!r})"
        try:
            arrays = read_arrays(path)
            about = json.loads(str(arrays["about"]))
        except (KeyError, ValueError) as error:
            raise ValueError(f"{name}: this is not a file written by Agent.save") from error
        agent._check_about(name, about)
        agent._restore(name, arrays)
        return agent

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this agent is closed, and its file may be open elsewhere; open it again with Agent.open")

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
        rounds = self._ledger.rounds if acting is None else self._ledger.rounds[acting]
        if rounds.max(initial=0) >= MOST_ROUNDS:
            raise ValueError("act(): 2**30 rounds are played; no learner here counts further")
        return acting

    def _remember(self, acting: np.ndarray | None, probabilities: np.ndarray) -> None:
        if acting is None:
            self._probabilities = probabilities
        else:
            self._probabilities = self._probabilities.copy()
            self._probabilities[:, acting] = probabilities[:, acting]

    def _as_given(self, ticket: Ticket) -> Ticket:
        """The ticket as the user gets it: numbers in place of arrays for a single learner, and names of arms."""
        if not self._shape:
            ticket = Ticket(*(field[0].item() for field in ticket))
            return ticket if self.names is None else ticket._replace(arm=self.names[ticket.arm])
        return ticket if self.names is None else ticket._replace(arm=np.asarray(self.names)[ticket.arm])

    def _check_about(self, name: str, about: dict[str, Any]) -> None:
        if about.get("format") != FORMAT:
            raise ValueError(f"{name}: format {show(about.get('format'))} is not known here; this version reads format {FORMAT}")
        for part, mine in self._about.items():
            if about.get(part) != mine:
                shown = f": {show(about.get(part))}, not {show(mine)}" if part not in ("learner", "key") else ""
                raise ValueError(f"{name}: the file was made with another {part}{shown}; going on needs the same")

    def _to_arrays(self) -> dict[str, Any]:
        arrays = {f"state_{i}": leaf for i, leaf in enumerate(self._player.leaves(self._state))}
        about = np.array(json.dumps(self._about))
        return arrays | self._ledger.to_arrays() | {"probabilities": self._probabilities, "about": about}

    def _restore(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        leaves = self._player.leaves(self._state)
        try:
            state = [arrays[f"state_{i}"] for i in range(len(leaves))]
            if [(leaf.shape, leaf.dtype) for leaf in state] != [(leaf.shape, leaf.dtype) for leaf in leaves]:
                raise ValueError("its state has other shapes")
            self._ledger.restore(arrays)
            self._probabilities = arrays["probabilities"]
        except (KeyError, ValueError) as error:
            raise ValueError(f"{name}: what is in the file does not fit this learner ({error})") from error
        self._state = self._player.restore(state)

    def _snapshot_due(self) -> int:
        """After how many decisions the next snapshot is taken: rarely enough to cost little beside them."""
        return max(SNAPSHOT_EVERY, 16 * (self.fleet or 1), 2 * self._ledger.book.size)

    def _take_snapshot(self, journal: Journal) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, **self._to_arrays())
        journal.write_snapshot(buffer.getvalue())
        self._snapshot_at = self._ledger.decided

    def _replay(self, decisions: list[Decided], feedback: list[Fed]) -> None:
        """Decide again what was decided since the snapshot, with the feedback in between."""
        new = {decision.id for decision in decisions}
        known = self._ledger.book.waiting_ids()
        # Of what came right after the snapshot's last decision, the snapshot may hold a part.
        feedback = [fed for fed in feedback if fed.ticket in new or fed.ticket in known]
        fed = differs = first = 0
        while first < len(decisions):
            while fed < len(feedback) and feedback[fed].after < decisions[first].id:
                self._feed(feedback[fed])
                fed += 1
            # Decisions of different runs without feedback in between can be made in one call.
            until = feedback[fed].after if fed < len(feedback) else decisions[-1].id
            last, runs = first, set()
            while last < len(decisions) and decisions[last].id <= until and decisions[last].run not in runs:
                runs.add(decisions[last].run)
                last += 1
            part = decisions[first:last]
            chosen = [decision.run for decision in part]
            self.act(chosen if self._shape and chosen != list(range(self._shape[0])) else None)
            differs += self._ledger.book.set_arms([(d.id, d.arm, d.probability) for d in part])
            first = last
        for rest in feedback[fed:]:
            self._feed(rest)
        if differs:
            warnings.warn(
                f"{differs} of {len(decisions)} decisions since the last snapshot come out otherwise on this machine with these "
                "versions; those in the file stand",
                stacklevel=3,
            )

    def _feed(self, fed: Fed) -> None:
        if fed.loss is None:
            self.expire(fed.ticket)
        else:
            self.observe(fed.ticket, fed.loss)


def _check_arms(arms: Any) -> list[str] | None:
    """Their names, or None if only their number is given."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool) and 1 <= arms <= MOST_ROUNDS:
        return None
    names = list(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else []
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"arms={show(arms)}: give how many arms there are, 1 or more, or a list of their names, each once")
    return names


def _check_losses(loss: Any, reward: Any) -> np.ndarray:
    if (loss is None) == (reward is None):
        given = "neither loss nor reward is given" if loss is None else "both loss and reward are given"
        raise ValueError(f"observe(): {given}; give one of the two")
    name, value = ("loss", loss) if reward is None else ("reward", reward)
    array = np.asarray(value) if is_numeric(value) else np.array(np.nan)
    if array.ndim > 1 or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"observe({name}={show(value)}): a {name} is a number between 0 and 1")
    return array if reward is None else 1 - array.astype(np.float64)
