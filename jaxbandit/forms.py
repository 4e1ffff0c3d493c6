"""How a game is played on a platform: how many runs make a block, how a round is evaluated, how plays wait.

On a CPU rounds are evaluated on arrays, in blocks of a few hundred runs that stay in its caches. A GPU or TPU wants tens of
thousands of runs at once, loops whose length it knows beforehand, and rounds that are few kernels. What was chosen is recorded in the
:class:`jaxbandit.Result`. The same bits are promised for one platform and one form.
"""

import dataclasses
from typing import Any, Literal

import jax
import numpy as np

from jaxbandit.delays import Delays
from jaxbandit.flat import MOST_ARMS, FlatRounds
from jaxbandit.game import Game, Records, State, Waiting
from jaxbandit.pending import ring_size
from jaxbandit.settings import declared_axes

BLOCK = 256  # runs in a block on a CPU; within 10 % of the best size (`jaxbandit bench` shows others)
SIZES = (1024, 8192, 65536)  # runs in a block on an accelerator; few, so that few programs are compiled
RINGS = (32, 256, 2048)  # rows that plays wait in; few, so that games that differ in a fixed delay share a program
LARGEST_RING = 1 << 18  # rows times arms; above, a ring has no row more than it needs
FEW_ARMS, SLOT_ARMS, SLOT_NUMBERS = 4, 20, 1 << 14  # on a CPU: up to how many arms, rows times arms, plays wait in slots
CHUNK = 64  # rounds in a loop of known length
MEMORY = 12 << 30  # bytes of an accelerator that does not say how much it has


@dataclasses.dataclass(frozen=True)
class Form:
    """How the blocks of a game are played."""

    platform: str  # "cpu", "gpu" or "tpu"
    block: int  # runs in a block
    evaluation: Literal["array", "flat"]
    arrivals: Waiting  # see jaxbandit.slots
    chunk: int  # rounds in a loop of known length, 0: none
    ring: int  # rows that plays wait in, of which those beyond the law's own bound are never used
    note: str = ""  # why it is not the fastest form that the platform has

    def laid_out(self, game: Game) -> Game:
        """The game as this form evaluates it, with rings as long as its law of delays asks for."""
        arrays = self.evaluation == "array"
        one_pass = arrays and self.platform == "cpu"
        return dataclasses.replace(game, arrivals=self.arrivals, broadcast=arrays and bool(game.own), one_pass=one_pass)

    def applied(self, game: Game) -> Game:
        """The game as this form plays it."""
        game = self.laid_out(game)
        if not game.delays.roomy or game.mask is not None or self.ring not in RINGS:
            return game
        delays: Any = game.delays
        used = np.uint32(ring_size(delays.bound) - 1)
        return dataclasses.replace(game, delays=dataclasses.replace(delays, bound=self.ring - 1), mask=used)

    def advance(self, game: Game, state: State, done: jax.Array, record: jax.Array, probabilities: bool) -> tuple[State, Records]:
        """:meth:`jaxbandit.game.Game.advance` in this form."""
        rounds = FlatRounds(game, state, probabilities) if self.evaluation == "flat" else None
        return game.advance(state, done, record, probabilities, rounds, self.chunk)

    def about(self) -> dict[str, Any]:
        """What a Result keeps of it."""
        return dataclasses.asdict(self)


def block_size(num_arms: int) -> int:
    """How many runs make a block on a CPU: twice as many for one or two arms, where starting a kernel takes longer than its work."""
    return 2 * BLOCK if num_arms <= 2 else BLOCK


def ring_rows(delays: Delays, num_arms: int) -> int:
    """How many rows a ring has: what the bound of the law asks for or, where that may be, the next of a few sizes."""
    rows = ring_size(delays.bound)
    sizes = [size for size in RINGS if size >= rows and size * num_arms <= LARGEST_RING] if delays.roomy else []
    return sizes[0] if sizes else rows


def choose_form(game: Game, platform: str, memory: int | None = None, runs: int | None = None) -> Form:
    """The form for ``runs`` runs of a game (those it has, by default) on a ``platform`` with ``memory`` bytes."""
    num_arms, runs = game.losses.num_arms, runs or game.runs.size
    ring = ring_rows(game.delays, num_arms)
    if platform == "cpu" and (not game.own or _can_broadcast(game)):
        return Form("cpu", block_size(num_arms), "array", _arrivals(game, "cpu"), 0, ring)
    if platform == "cpu":
        form = Form("cpu", block_size(num_arms), "flat", "listed", 0, ring)
        return _with_settings(
            form, _why_not_flat(with_runs(game, form.block), jax.eval_shape(Game.start, with_runs(game, form.block)))
        )
    arrivals = _arrivals(game, platform)
    form = Form(platform, SIZES[0], "array", arrivals, CHUNK, ring)
    game = with_runs(form.applied(game), SIZES[0])
    state = jax.eval_shape(Game.start, game)
    fits = [size for size in SIZES if 3 * size * _bytes_per_run(state, SIZES[0]) <= (memory or MEMORY)] or SIZES[:1]
    form = dataclasses.replace(form, block=next((size for size in fits if size >= runs), fits[-1]))
    note = _why_not_flat(game, state)
    if game.own:
        return _with_settings(form, note)
    return dataclasses.replace(form, evaluation="array" if note else "flat", note=note)


def _can_broadcast(game: Game) -> bool:
    """Whether values for each run are only in fields of the losses that arrays of runs can read as they are."""
    before = len(jax.tree.leaves(game.learner))
    fields = declared_axes(game.losses)
    own = {place - before for place, flag in enumerate(game.own) if flag}
    allowed = {place for place, (name, _) in enumerate(fields) if name.rpartition(".")[2] in game.losses.by_run}
    return not game.measure and own <= allowed


def with_runs(game: Game, count: int) -> Game:
    """The game with as many runs as a block has, to ask programs for shapes or to trace them."""
    leaves, structure = jax.tree.flatten(game)
    for place, own in enumerate(game.own):
        if own:
            leaves[place] = jax.ShapeDtypeStruct((*leaves[place].shape[:-1], count), leaves[place].dtype)
    return dataclasses.replace(jax.tree.unflatten(structure, leaves), runs=jax.ShapeDtypeStruct((count,), np.uint32))


def _with_settings(form: Form, note: str) -> Form:
    """Values of its own for each run need flat rounds."""
    if note:
        raise ValueError(f"a value for each run in learner, losses or delays: not possible for this game ({note})")
    return dataclasses.replace(form, evaluation="flat", note="")


def _arrivals(game: Game, platform: str) -> Waiting:
    one_by_one = not game.learner.adds_only or game.feedback is not None or game.learner.watches_plays
    if one_by_one or game.delays.fixed_age() is not None or game.delays.long_waits:
        return "listed"
    if platform == "cpu":
        fit = not game.delays.shared and game.learner.adds_at_arm and _slots_fit_caches(game)
        return "slots in turn" if fit else "listed"
    return "dense" if platform == "tpu" else "slots"


def _slots_fit_caches(game: Game) -> bool:
    """Whether slots are faster than lists on a CPU, whose caches must hold a number for each row and arm; see docs/performance.md."""
    num_arms = game.losses.num_arms
    return num_arms <= FEW_ARMS or (num_arms <= SLOT_ARMS and ring_size(game.delays.bound) * (num_arms + 1) <= SLOT_NUMBERS)


def _bytes_per_run(state: State, runs: int) -> float:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)) / runs


def check_memory(game: Game, state: State, available: int | None) -> None:
    """Raise, in one sentence, if a block in this ``state`` (its shapes) cannot fit into ``available`` bytes, None if nobody knows.

    A block needs its state twice, before and after the rounds that are played in one call.
    """

    def size(part: Any) -> int:
        return 2 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(part))

    need = size(state)
    if available is None or need <= available:
        return
    arms, bound = game.losses.num_arms, game.delays.bound
    told = f"a block of {game.runs.size} runs needs {need / 1e9:,.0f} GB of memory and there are {available / 1e9:,.0f} GB"
    if arms > bound:
        raise ValueError(f"losses={type(game.losses).__name__}(…): with {arms} arms {told}; take fewer arms")
    if size(state.learner_state) > size(state.pending):
        raise ValueError(f"learner={type(game.learner).__name__}(…): {told}; give it a smaller capacity, or take fewer arms")
    raise ValueError(
        f"delays={type(game.delays).__name__}(…): for plays that may wait {bound} rounds {told}; take shorter delays, "
        "or give bound= where longer ones may be lost"
    )


def _why_not_flat(game: Game, state: State) -> str:
    """A sentence if the game cannot be evaluated flat, or is not worth it; empty if it can."""
    num_arms = game.losses.num_arms
    if num_arms > MOST_ARMS:
        return f"{num_arms} arms: rounds are evaluated on arrays above {MOST_ARMS}"
    if game.feedback is not None:
        return "gradients: rounds are evaluated on arrays"

    def one_round(game: Game, state: State):
        rounds = FlatRounds(game, state, False)
        done = jax.numpy.int32(0)
        return rounds.leave(rounds.play(done + 1, rounds.enter(state, done)))[0]

    try:
        jax.eval_shape(one_round, game, state)
    except Exception as error:  # whatever is wrong with reading JAX's programs, arrays always work
        return f"rounds are evaluated on arrays: {type(error).__name__}: {error}".splitlines()[0][:200]
    return ""
