"""A block of runs as one kernel of Pallas: the loop over rounds is inside it and the state stays on the chip.

XLA's loop starts some forty kernels each round and takes the state to memory and back between them. Here one program
instance holds a slice of the runs, plays all rounds of a call, and writes the records. The round is that of
:class:`jaxbandit.rollout.Game`, evaluated by :class:`jaxbandit.lanes.Lanes`: no learner is written twice.

======== ============================ ================================== ===========================================
platform slice of the runs            the state                          pending plays
======== ============================ ================================== ===========================================
``tpu``  8 x 128, a register          in registers and VMEM, shared      in VMEM; with a delay for each play all rows
                                      numbers in SMEM                    are looked through for each observation
``cuda`` 128, one for each thread     in registers                       in device memory, read by pointers
======== ============================ ================================== ===========================================
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from jaxbandit.lanes import Array, Lanes, Memory, Number, Ring, Unsupported, constant
from jaxbandit.rollout import Game, Records, State

PLATFORMS = ("tpu", "cuda")
LANES = 128
MOST_ARMS = 16  # arms are unrolled: with more, neither registers nor compilers are large enough
TABLE = 64  # numbers from which on an array that all runs share is left in memory
SCALARS = 1 << 12  # shared numbers that fit a TPU's scalar memory
VMEM = 64 << 20  # bytes of a TPU's vector memory that pending plays and records may fill, of 128 MB
SLICE = 1024  # runs of which every platform makes whole slices
MOST_SLICES = 16  # in a block
CHECKED = 256  # rounds, and twice the longest wait, that the loop plays too before the kernel is trusted
AGREE = 0.95  # of the runs must: where rounding decides which arm is drawn, a run goes another way


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One leaf of the game or its state: as it is for a single run, and whether each run has its own."""

    shape: tuple[int, ...]
    dtype: Any
    per_run: bool
    ring: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def stored(self) -> Any:
        """The dtype in memory, where there are no truth values."""
        return np.dtype(np.int32) if self.dtype == np.bool_ else self.dtype


class Layout:
    """How runs are cut into slices, and where leaves are in memory."""

    def __init__(self, platform: str, runs: int):
        if platform not in PLATFORMS:
            raise Unsupported(f"there is no kernel for {platform}")
        if runs % LANES:
            raise Unsupported(f"{runs} runs are not a multiple of {LANES}")
        self.tpu, rows = platform == "tpu", runs // LANES
        high = 8 if rows % 8 == 0 else rows
        self.tiles = (rows, LANES) if self.tpu else (runs,)
        self.lanes = (high, LANES) if self.tpu else (LANES,)
        self.programs = rows // high if self.tpu else rows

    def spec(self, leaf: Leaf, output: bool = False) -> pl.BlockSpec:
        if leaf.per_run:
            zeros = (0,) * len(leaf.shape)
            return pl.BlockSpec(
                (*leaf.shape, *self.lanes), lambda i: (*zeros, i, 0) if self.tpu else (*zeros, i), **self._space("VMEM")
            )
        # On a GPU programs run at once, and each writes to a copy of its own; on a TPU one after the other.
        own = output and not self.tpu
        return pl.BlockSpec((1, leaf.size), lambda i: (i if own else 0, 0), **self._space("SMEM"))

    def out_shape(self, leaf: Leaf) -> jax.ShapeDtypeStruct:
        shape = (*leaf.shape, *self.tiles) if leaf.per_run else (1 if self.tpu else self.programs, leaf.size)
        return jax.ShapeDtypeStruct(shape, leaf.stored)

    def packed(self, leaf: Leaf, value: jax.Array) -> jax.Array:
        shape = (*leaf.shape, *self.tiles) if leaf.per_run else (1, leaf.size)
        return jnp.asarray(value).astype(leaf.stored).reshape(shape)

    def unpacked(self, leaf: Leaf, value: jax.Array) -> jax.Array:
        value = value.reshape(*leaf.shape, -1) if leaf.per_run else value[0].reshape(leaf.shape)
        return value.astype(leaf.dtype)

    def _space(self, name: str) -> dict[str, Any]:
        if not self.tpu:
            return {}
        from jax.experimental.pallas import tpu as pltpu

        return {"memory_space": getattr(pltpu, name)}


def advance(
    game: Game,
    state: State,
    done: jax.Array,
    record: jax.Array,
    probabilities: bool,
    *,
    platform: str,
    interpret: bool = False,
) -> tuple[State, Records]:
    """:meth:`jaxbandit.rollout.Game.advance` as one kernel for ``platform``; raises :class:`Unsupported` where it cannot be.

    Args:
      game, state, done, record, probabilities: as there.
      platform: ``"tpu"`` or ``"cuda"``.
      interpret: run the kernel's program on whatever device there is, to test it.
    """
    if game.losses.num_arms > MOST_ARMS:
        raise Unsupported(f"{game.losses.num_arms} arms; the kernel takes at most {MOST_ARMS}")
    program = _Program(game, state, record.shape[0], probabilities, platform, interpret)
    return program(game, state, done, record)


@functools.partial(jax.jit, static_argnames=("probabilities", "platform", "interpret"))
def _advance(game: Game, state: State, done, record, probabilities: bool, platform: str, interpret: bool):
    return advance(game, state, done, record, probabilities, platform=platform, interpret=interpret)


def block_size(runs: int) -> int:
    """How many runs make a block: whole slices, a power of two of them, so that few shapes are compiled.

    >>> block_size(3000), block_size(10**6)
    (4096, 16384)
    """
    slices = -(-runs // SLICE)
    return SLICE * min(1 << (slices - 1).bit_length(), MOST_SLICES)


def trusted(
    game: Game,
    loop: Callable,
    rounds: int,
    width: int,
    probabilities: bool,
    *,
    platform: str | None = None,
    interpret: bool = False,
) -> Callable | None:
    """The kernel in the place of ``loop``, if it plays the first rounds of this very game as the loop does.

    Otherwise None, and a warning says why: there is no kernel for this platform or game, its compiler turned it down, or it
    went another way.

    Args:
      game: with the ids of a block of runs.
      loop: ``(game, state, done, record, probabilities) -> state, records``.
      rounds: the horizon; at most CHECKED of them and twice the longest wait are played by both.
      width: how many rounds are recorded in one call.
    """
    platform = _platform() if platform is None else platform
    kernel = functools.partial(_advance, platform=platform, interpret=interpret)
    checked = min(rounds, CHECKED + 2 * int(game.delays.bound))  # late feedback has come by then, too
    record = np.ceil(np.linspace(0, checked, width + 1)[1:]).astype(np.int32)
    try:
        if platform not in PLATFORMS:
            raise Unsupported(f"there is no kernel for {platform}")
        arguments = game, jax.jit(_start)(game), np.int32(0), record, probabilities
        ours, theirs = (np.asarray(play(*arguments)[1].regret, np.float64) for play in (kernel, loop))
        agree = np.mean(np.all(np.abs(ours - theirs) <= 1e-3 * (1 + np.abs(theirs)), 0))
        if agree < AGREE:
            raise Unsupported(f"it disagrees with the loop in {1 - agree:.0%} of the runs")
    except Exception as error:  # whatever a compiler or driver may say: the loop is there
        reason = str(error).strip().split("\n")[0]
        warnings.warn(f"kernel=True: {type(error).__name__}: {reason}; the loop is used instead", stacklevel=4)
        return None
    return kernel


def _platform() -> str:
    device = jax.local_devices()[0]
    return "cuda" if device.platform == "gpu" and "cuda" in device.client.platform_version.lower() else device.platform


def _start(game: Game) -> State:
    return game.start()


def _step(game: Game, state: State, t: jax.Array) -> tuple[State, jax.Array]:
    return game.step(state, t)


def _read(game: Game, state: State) -> tuple[jax.Array, dict[str, jax.Array]]:
    return game.regret(state), game.readings(state)


def _shapes(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), tree)


class _Program:
    """The kernel for games of one structure, and how its arguments go in and out."""

    def __init__(self, game: Game, state: State, count: int, probabilities: bool, platform: str, interpret: bool):
        self.layout = Layout(platform, game.runs.shape[0])
        self.keeps_x, self.interpret = probabilities, interpret
        # One run: the same game with runs of shape (), which every law and learner serves.
        one = dataclasses.replace(_shapes(game), runs=jax.ShapeDtypeStruct((), np.uint32))
        like = jax.eval_shape(_start, one)
        self.step = jax.make_jaxpr(_step)(one, like, jax.ShapeDtypeStruct((), np.int32))
        self.read = jax.make_jaxpr(_read)(one, like)
        self.read_tree = jax.tree.structure(jax.eval_shape(_read, one, like))
        self.game = _leaves(one, game, lambda path, leaf, per_run: not per_run and np.prod(leaf.shape) > TABLE)
        self.state = _leaves(like, state, lambda path, leaf, per_run: _waits(path))
        self.recorded = [Leaf((count, *leaf.aval.shape), leaf.aval.dtype, True) for leaf in self.read.jaxpr.outvars]
        if probabilities:
            x = self.step.jaxpr.outvars[-1].aval
            self.recorded.append(Leaf((count, *x.shape), x.dtype, True))
        self.count = count
        if self.layout.tpu:
            self._check_room()

    def _check_room(self) -> None:
        leaves = [*self.game, *self.state, *self.recorded]
        shared = sum(leaf.size for leaf in leaves if not leaf.per_run)
        if shared > SCALARS:
            raise Unsupported(f"{shared} shared numbers do not fit a TPU's scalar memory")
        held = 4 * int(np.prod(self.layout.lanes)) * sum(leaf.size for leaf in leaves if leaf.per_run)
        # What goes in also comes out, and the next slice is fetched while this one is computed.
        if 4 * held > VMEM:
            raise Unsupported(f"{4 * held >> 20} MB of pending plays and records do not fit a TPU's vector memory")

    def __call__(self, game: Game, state: State, done: jax.Array, record: jax.Array) -> tuple[State, Records]:
        layout, numbers = self.layout, Leaf((self.count + 1,), np.dtype(np.int32), False)
        inputs, outputs = [numbers, *self.game, *self.state], [*self.state, *self.recorded]
        values = [jnp.append(jnp.asarray(done, jnp.int32), record), *jax.tree.leaves(game), *jax.tree.leaves(state)]
        call = pl.pallas_call(
            self._kernel,
            grid=(layout.programs,),
            in_specs=[layout.spec(leaf) for leaf in inputs],
            out_specs=[layout.spec(leaf, output=True) for leaf in outputs],
            out_shape=[layout.out_shape(leaf) for leaf in outputs],
            interpret=self.interpret,
            name="play_rounds",
            **self._compiler_params(),
        )
        found = call(*(layout.packed(leaf, value) for leaf, value in zip(inputs, values, strict=True)))
        found = [layout.unpacked(leaf, value) for leaf, value in zip(outputs, found, strict=True)]
        new, records = found[: len(self.state)], found[len(self.state) :]
        x = records.pop() if self.keeps_x else None
        regret, measured = jax.tree.unflatten(self.read_tree, records)
        return jax.tree.unflatten(jax.tree.structure(state), new), Records(regret, x, measured)

    def _compiler_params(self) -> dict[str, Any]:
        if self.interpret:
            return {}
        if self.layout.tpu:
            from jax.experimental.pallas import tpu

            return {"compiler_params": tpu.CompilerParams(vmem_limit_bytes=VMEM + (16 << 20))}
        from jax.experimental.pallas import triton

        return {"compiler_params": triton.CompilerParams(num_warps=LANES // 32, num_stages=1)}

    def _fence(self) -> None:
        """On a GPU what one thread wrote must be seen by the others; elsewhere everything happens in order."""
        if not (self.layout.tpu or self.interpret):
            from jax.experimental.pallas import triton

            triton.debug_barrier()

    def _kernel(self, rounds, *refs) -> None:
        layout, places = self.layout, np.cumsum([len(self.game), len(self.state), len(self.state)])
        given_game, given_state, outs, records = (refs[i:j] for i, j in zip([0, *places], [*places, None], strict=True))

        def spread(vector):
            # Zeros that the compiler does not know to be zeros: it would keep one number where the loop needs a vector.
            return vector + ((ids & np.uint32(1)) >> np.uint32(1)).astype(vector.dtype) if layout.tpu else vector

        lanes = Lanes(layout.lanes, scalar_unit=layout.tpu, pointers=not layout.tpu, fence=self._fence, spread=spread)
        game = [_loaded(leaf, ref) for leaf, ref in zip(self.game, given_game, strict=True)]
        state = [
            _copied(leaf, ref, out) if leaf.ring else _loaded(leaf, ref)
            for leaf, ref, out in zip(self.state, given_state, outs, strict=True)
        ]
        ids = next(array for array, leaf in zip(game, self.game, strict=True) if leaf.per_run)[()].value
        self._fence()
        x = [constant(np.zeros(leaf.shape[1:], leaf.dtype)) for leaf in self.recorded[-1:]] if self.keeps_x else []
        many = len(self.state)

        def one_round(t, carry):
            out = lanes.run(self.step, [*game, *carry[:many], t])
            return out if self.keeps_x else out[:many]

        def one_record(index, carry):
            number = index[()].value
            carry = lanes.loop(rounds[0, number] + 1, rounds[0, number + 1] + 1, one_round, carry, top=True)
            kept = [*lanes.run(self.read, [*game, *carry[:many]]), *carry[many:]]
            for leaf, ref, array in zip(self.recorded, records, kept, strict=True):
                for place in np.ndindex(array.shape):
                    ref[(number, *place)] = lanes.vector(array[place]).astype(leaf.stored)
            return carry

        carry = lanes.loop(0, self.count, one_record, [*state, *x], top=True)
        for leaf, ref, value in zip(self.state, outs, carry[:many], strict=True):
            if not leaf.ring:
                _store(lanes, leaf, ref, value)


def _leaves(one: Any, block: Any, is_ring) -> list[Leaf]:
    """The leaves of a tree for one run, told apart by what they are for a block of runs."""
    out = []
    for (path, single), many in zip(jax.tree_util.tree_flatten_with_path(one)[0], jax.tree.leaves(block), strict=True):
        extra = jnp.shape(many)[len(single.shape) :]
        if jnp.shape(many)[: len(single.shape)] != single.shape or len(extra) > 1:
            raise Unsupported(
                f"{jax.tree_util.keystr(path)} has shape {jnp.shape(many)}, which is not that of one run and the runs"
            )
        if 0 in single.shape or jnp.issubdtype(single.dtype, jax.dtypes.prng_key):
            raise Unsupported(f"{jax.tree_util.keystr(path)} is empty or a key")
        out.append(Leaf(single.shape, np.dtype(single.dtype), bool(extra), bool(is_ring(path, single, bool(extra)))))
    return out


def _waits(path: tuple) -> bool:
    """Whether a leaf of the state has one row for each round that may be waited for."""
    names = [getattr(key, "name", None) for key in path[:2]]
    return names[0] == "pending" and names[1] in ("plays", "lists", "due")


def _loaded(leaf: Leaf, ref: Any) -> Array:
    if leaf.ring:
        return Ring(Memory(ref, leaf.shape, leaf.dtype, not leaf.per_run))
    out = np.empty(leaf.shape, object)
    for flat, place in enumerate(np.ndindex(leaf.shape)):
        value = ref[place] if leaf.per_run else ref[0, flat]
        out[place] = Number(value != 0 if leaf.dtype == np.bool_ else value, not leaf.per_run)
    return out


def _copied(leaf: Leaf, given: Any, out: Any) -> Ring:
    """Rows that will be written are copied to where they will be read from afterwards."""
    memory = Memory(out, leaf.shape, leaf.dtype, not leaf.per_run)

    def copy(row, nothing):
        for place in memory.places():
            out[memory.at(row, place)] = given[memory.at(row, place)]
        return nothing

    jax.lax.fori_loop(0, leaf.shape[0], copy, jnp.int32(0))
    return Ring(memory)


def _store(lanes: Lanes, leaf: Leaf, ref: Any, value: Array) -> None:
    for flat, place in enumerate(np.ndindex(leaf.shape)):
        if leaf.per_run:
            ref[place] = lanes.vector(value[place]).astype(leaf.stored)
        else:
            ref[0, flat] = lanes.first(value[place]).astype(leaf.stored)
