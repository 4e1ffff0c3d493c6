"""Execution of :mod:`jaxbandit.agent.program` for an agent: one learner, or a fleet on all devices.

Both take and return NumPy arrays. States are passed in and returned, so that a decision that could not be written to disk has no
effect.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandit._core.fields import PyTree
from jaxbandit._engine.devices import Threads, count_cores, platform
from jaxbandit.agent import program
from jaxbandit.agent.pages import Pages
from jaxbandit.agent.program import Clock, Decision, Inbox, Setup
from jaxbandit.learners.base import Learner

MOST_TOGETHER = 5000  # learners of a fleet in one call of the compiled program


_deliver, _decide, _propensity = (jax.jit(one) for one in (program.deliver, program.decide, program.propensity))  # of a fleet


class Letter:
    """An inbox and a clock for one learner, on pages."""

    def __init__(self, inbox: Inbox, clock: Clock):
        self.pages = Pages.of((inbox, clock))
        self._blank, on_them = self.pages.blank()
        self._places = jax.tree.leaves(on_them)

    def write(self, inbox: Inbox, clock: Clock) -> list[np.ndarray]:
        for place, leaf in zip(self._places, jax.tree.leaves((inbox, clock)), strict=True):
            place[...] = leaf
        return [page.copy() for page in self._blank]  # a program may read its arguments until it has ended


class Single:
    """One learner. Its numbers travel in few buffers (:mod:`jaxbandit.agent.pages`): there is little to compute."""

    def __init__(self, setup: Setup, num_arms: int):
        state = program.start(setup, num_arms)
        self._learner, self._leaves = setup.learner, jax.tree.leaves(state)
        self._setup_pages, self._state_pages = Pages.of(setup), Pages.of(state)
        self._decision_pages = Pages.of(program.decision_like(setup, num_arms))
        self._setup = _put(self._setup_pages, setup)
        self._programs: dict[
            tuple[int, bool], Any
        ] = {}  # by their capacity for outstanding observations, and whether all arms are active

    def start(self) -> list[Any]:
        """The state before round 1: its pages."""
        return self.restore(self._leaves)

    def decide(self, state: list[Any], inboxes: Sequence[Inbox], clock: Clock) -> tuple[Decision, list[Any]]:
        """The decision, and the state after it."""
        kind = 0 if clock.watched is None else len(clock.watched), clock.active is None
        if kind not in self._programs:
            letter = Letter(inboxes[-1], clock)
            self._programs[kind] = letter, *_compiled(self._setup_pages, self._state_pages, letter.pages)
        letter, deliver, decide, _ = self._programs[kind]
        for inbox in inboxes[:-1]:
            state = deliver(self._setup, state, letter.write(inbox, clock))
        said, state = decide(self._setup, state, letter.write(inboxes[-1], clock))
        decision = self._decision_pages.read([np.asarray(page) for page in said])
        if type(self._learner)._check_state is not Learner._check_state:
            self._learner._check_state(self._read(state))
        return decision, state

    def propensity(self, state: list[Any], inboxes: Sequence[Inbox], clock: Clock) -> np.ndarray:
        """The probability ``[]`` of the arm ``clock.forced`` in a decision that was made before with these arguments."""
        letter, deliver, _, propensity = self._programs[0 if clock.watched is None else len(clock.watched), clock.active is None]
        for inbox in inboxes[:-1]:
            state = deliver(self._setup, state, letter.write(inbox, clock))
        return np.asarray(propensity(self._setup, state, letter.write(inboxes[-1], clock)))

    def leaves(self, state: list[Any]) -> list[np.ndarray]:
        """The arrays of a state, to be saved."""
        return jax.tree.leaves(self._read(state))

    def restore(self, leaves: Sequence[Any]) -> list[Any]:
        """The state of these arrays."""
        return _put(self._state_pages, leaves)

    def _read(self, state: list[Any]) -> Any:
        return self._state_pages.read([np.asarray(page) for page in state])


def _put(pages: Pages, tree: PyTree) -> list[jax.Array]:
    blank, on_them = pages.blank()
    for place, leaf in zip(jax.tree.leaves(on_them), jax.tree.leaves(tree), strict=True):
        place[...] = np.asarray(leaf)
    return [jnp.array(page) for page in blank]


@functools.lru_cache(maxsize=256)
def _compiled(setup: Pages, state: Pages, letter: Pages) -> tuple[Any, Any, Any]:
    """Programs that deliver, that decide, and that compute a propensity, from pages to pages. Each is compiled at its first call."""

    def open_letter(setup_pages: Any, state_pages: Any, letter_pages: Any) -> tuple[Setup, Any, Inbox, Clock]:
        return setup.read(setup_pages), state.read(state_pages), *letter.read(letter_pages)

    def deliver(*pages: Any) -> Any:
        mine, before, inbox, _ = open_letter(*pages)
        return state.write(program.deliver(mine, before, inbox))

    def decide(setup_pages: Any, state_pages: Any, letter_pages: Any) -> tuple[Any, Any]:
        def once(setup_pages: Any, state_pages: Any, letter_pages: Any) -> tuple[Any, Any]:
            decision, after = program.decide(*open_letter(setup_pages, state_pages, letter_pages))
            return Pages.of(decision).write(decision), state.write(after)

        # A loop with one turn, of which the compiler does not know that: inside a loop it rounds as in a rollout. The barrier keeps all
        # of it in there.
        def turn(number: Any, pages: tuple[Any, Any]) -> tuple[Any, Any]:
            _, mine, said = lax.optimization_barrier((number, setup_pages, letter_pages))
            return once(mine, pages[1], said)

        turns = (letter.read(letter_pages)[1].round > 0).astype(np.int32)
        nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(once, setup_pages, state_pages, letter_pages)[0])
        return lax.fori_loop(0, turns, turn, (nothing, state_pages))

    return jax.jit(deliver), jax.jit(decide), jax.jit(lambda *pages: program.propensity(*open_letter(*pages)))


@dataclasses.dataclass(frozen=True)
class BlockPlayer:
    """Some learners of a fleet, on one device."""

    runs: slice
    device: Any
    setup: Setup

    def put(self, tree: PyTree) -> Any:
        return jax.device_put(tree, self.device)

    def decide(self, state: PyTree, inboxes: Sequence[Inbox], clock: Clock) -> tuple[Decision, Any]:
        """As :meth:`Fleet.decide`, with arguments of all learners."""
        decision, state = _decide(self.setup, *self._delivered(state, inboxes, clock))
        self.setup.learner._check_state(state)
        return decision, state

    def propensity(self, state: PyTree, inboxes: Sequence[Inbox], clock: Clock) -> jax.Array:
        return _propensity(self.setup, *self._delivered(state, inboxes, clock))

    def _delivered(self, state: Any, inboxes: Sequence[Inbox], clock: Clock) -> tuple[Any, Inbox, Clock]:
        """The state after all inboxes but the last one, that one, and the clock, of these runs."""
        *full, last = (Inbox(filled, *jax.tree.map(lambda leaf: leaf[..., self.runs], rows)) for filled, *rows in inboxes)
        for inbox in full:
            if (inbox.arm >= 0).any():
                state = _deliver(self.setup, state, inbox)
        mine = jax.tree.map(lambda leaf: leaf[..., self.runs], clock._replace(active=None))._replace(active=clock.active)
        return state, last, mine

    def fill(self, whole: np.ndarray, part: jax.Array) -> None:
        whole[..., self.runs] = np.asarray(part)


class Fleet:
    """Many learners, in blocks that run on all devices at once.

    The division into blocks depends on the size of the fleet alone, not on the devices: XLA rounds differently for other shapes.
    """

    def __init__(self, setup: Setup, num_arms: int):
        ids = np.asarray(setup.runs)
        parts = np.array_split(np.arange(len(ids)), -(-len(ids) // MOST_TOGETHER))
        # Every core serves the one CPU device; accelerators run in parallel.
        cores = [jax.local_devices()[0]] * count_cores() if platform() == "cpu" else jax.local_devices()
        devices = cores[: len(parts)]
        self._num_arms, self._like = num_arms, program.decision_like(setup, num_arms)
        self._blocks = []
        for number, part in enumerate(parts):
            runs, device = slice(int(part[0]), int(part[-1]) + 1), devices[number % len(devices)]
            mine: Any = ids[runs]
            self._blocks.append(BlockPlayer(runs, device, jax.device_put(dataclasses.replace(setup, runs=mine), device)))
        self._shares = [self._blocks[first :: len(devices)] for first in range(len(devices))]  # of each device
        self._threads = Threads(len(devices), "jaxbandit-fleet") if len(devices) > 1 else None

    def start(self) -> dict[int, Any]:
        """The states of the blocks, by their first run."""
        return {block.runs.start: block.put(program.start(block.setup, self._num_arms)) for block in self._blocks}

    def decide(self, state: dict[int, Any], inboxes: Sequence[Inbox], clock: Clock) -> tuple[Decision, dict[int, Any]]:
        """The decisions, and the states after them. Blocks in which no learner acts are skipped."""
        after, joined = dict(state), jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self._like)

        def play(block: BlockPlayer) -> None:
            decision, new = block.decide(state[block.runs.start], inboxes, clock)
            after[block.runs.start] = new
            jax.tree.map(block.fill, joined, decision)

        self._in_all_blocks(play, clock)
        return joined, after

    def propensity(self, state: dict[int, Any], inboxes: Sequence[Inbox], clock: Clock) -> np.ndarray:
        """The probabilities ``[fleet]`` of the arms ``clock.forced`` in a decision with these arguments."""
        found = np.full(self._like.propensity.shape, np.nan, self._like.propensity.dtype)
        self._in_all_blocks(
            lambda block: block.fill(found, block.propensity(state[block.runs.start], inboxes, clock)),
            clock,
        )
        return found

    def _in_all_blocks(self, play: Callable[[BlockPlayer], None], clock: Clock) -> None:
        def play_share(blocks: Sequence[BlockPlayer]) -> None:
            for block in blocks:
                if clock.acts is None or clock.acts[block.runs].any():
                    play(block)

        if self._threads is None:
            play_share(self._blocks)
        else:
            list(self._threads.map(play_share, self._shares))

    def leaves(self, state: dict[int, Any]) -> list[np.ndarray]:
        """The arrays of a state, to be saved."""
        each = [jax.tree.leaves(state[block.runs.start]) for block in self._blocks]
        return [np.concatenate(column, -1) for column in zip(*each, strict=True)]

    def restore(self, leaves: Sequence[np.ndarray]) -> dict[int, Any]:
        """The state of these arrays."""
        state = self.start()
        for block in self._blocks:
            structure = jax.tree.structure(state[block.runs.start])
            state[block.runs.start] = block.put(jax.tree.unflatten(structure, [leaf[..., block.runs] for leaf in leaves]))
        return state
