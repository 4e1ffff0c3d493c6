"""The kernel plays what the loop plays, in interpret mode; and it lowers for the accelerators. No accelerator was at hand."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandit as jb
from jaxbandit import kernel
from jaxbandit.lanes import Lanes, Memory, Number, Ring, Unsupported
from jaxbandit.pytrees import canonical
from jaxbandit.rollout import Game

D = jb.delays
TWO = jb.losses.Bernoulli([0.3, 0.6])
TEN = jb.losses.Bernoulli([0.3, *[0.5] * 9])
LEARNERS = {
    "bobw": jb.BestOfBothWorlds(2.0, factor=1.0),
    "iw": jb.TsallisINF("iw"),
    "rv": jb.TsallisINF("rv"),
    "exp3": jb.DelayedExp3(),
    "uniform": jb.Uniform(),
}
DELAYS = {"fixed": D.Fixed(3), "per run": D.Geometric(2.0, bound=7), "shared": D.Geometric(2.0, bound=7, shared=True)}


def made(learner, losses, delays, runs, measure=()):
    learner, losses, delays = canonical(learner), canonical(losses), canonical(delays)
    return Game.set_up(learner, losses, delays, jax.random.key(3), jnp.arange(runs, dtype=jnp.uint32), measure)


start = jax.jit(lambda game: game.start())
loop = jax.jit(lambda game, state, done, record, x: game.advance(state, done, record, x), static_argnums=4)


def kernel_for(platform):
    return functools.partial(kernel._advance, platform=platform, interpret=True)


def compare(game, platform, probabilities=False, ends=((20, 40), (60, 80))):
    """Two stretches of rounds by the kernel and by the loop, each going on from its own state."""
    states = [start(game)] * 2
    done = 0
    for end in ends:
        arguments = np.int32(done), np.array(end, np.int32), probabilities
        found = [play(game, state, *arguments) for play, state in zip((kernel_for(platform), loop), states, strict=True)]
        states, done = [state for state, _ in found], end[-1]
        found = jax.tree.map(np.asarray, found)
        for ours, theirs in zip(*map(jax.tree.leaves, found), strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        ours, theirs = (records for _, records in found)
        same = np.isclose(ours.regret, theirs.regret, rtol=1e-4, atol=1e-4).all(0)
        assert same.mean() >= 0.99  # rounding may decide which arm is drawn
        for one, other in zip(*map(jax.tree.leaves, (ours, theirs)), strict=True):
            np.testing.assert_allclose(one[..., same], other[..., same], rtol=2e-3, atol=2e-4)
        ours, theirs = (state.pending for state, _ in found)
        np.testing.assert_array_equal(ours.plays.arm[:, same], theirs.plays.arm[:, same])
        np.testing.assert_array_equal(ours.total_outstanding.exact(), theirs.total_outstanding.exact())
        np.testing.assert_array_equal(ours.outstanding, theirs.outstanding)
        np.testing.assert_array_equal(ours.lost, theirs.lost)


def test_two_slices_and_probabilities():
    compare(made(LEARNERS["bobw"], TWO, D.Fixed(3), 2 * kernel.SLICE), "tpu", probabilities=True)


def test_delays_that_all_runs_share():
    compare(made(LEARNERS["exp3"], TWO, DELAYS["shared"], 256), "tpu")


@pytest.mark.slow
@pytest.mark.parametrize("platform", kernel.PLATFORMS)
def test_measurements(platform):
    compare(made(LEARNERS["bobw"], TEN, DELAYS["per run"], 1024, (jb.ControlVariates(),)), platform)


@pytest.mark.slow
@pytest.mark.parametrize("platform", kernel.PLATFORMS)
@pytest.mark.parametrize("losses", [TWO, TEN], ids=["two", "ten"])
@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners(learner, delays, losses, platform):
    compare(made(LEARNERS[learner], losses, DELAYS[delays], 256), platform)


OTHERS = {
    "moving means": (jb.TsallisINF("rv"), jb.losses.StochasticallyConstrained(0.2, 3), D.Bursts(8)),
    "a table": (jb.DelayedExp3(), jb.losses.Table(np.random.default_rng(0).random((100, 3))), D.Fixed(3)),
    "switching": (jb.DelayedExp3(), jb.losses.Switching([[0.3, 0.6], [0.6, 0.2]], [1, 40]), D.PacketLoss(0.3, 2)),
    "a tabulated law": (LEARNERS["iw"], TWO, D.Poisson(2.0, bound=7)),
    "skipping": (jb.RobustBestOfBothWorlds(), TWO, D.Pareto(0.7, bound=15)),
    "a bank": (jb.BankerTsallisINF(), TWO, D.UniformRandom(0, 5)),
    "elimination": (jb.SuccessiveElimination(1000), TWO, D.Fixed(3)),
    "an index": (jb.DelayedUCB1(), TEN, D.Geometric(2.0, bound=7)),
    "a posterior": (jb.DelayedThompson(), TWO, D.Fixed(3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("platform", kernel.PLATFORMS)
@pytest.mark.parametrize("name", OTHERS)
def test_others(name, platform):
    compare(made(*OTHERS[name], 256), platform)


def lowered(game, platform):
    call = functools.partial(kernel._advance, platform=platform, interpret=False, probabilities=False)
    traced = jax.jit(call).trace(game, start.eval_shape(game), jnp.int32(0), jnp.array([5, 10], jnp.int32))
    return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize(("platform", "compiler"), [("tpu", "tpu_custom_call"), ("cuda", "triton")])
def test_lowers(platform, compiler):
    """JAX's own rules for the platform take every step; one call of its compiler is all that is left, and no loop of XLA."""
    text = lowered(made(jb.BestOfBothWorlds(10), jb.losses.Bernoulli([0.3, 0.5, 0.5]), D.Fixed(10), kernel.SLICE), platform)
    assert compiler in text
    assert "stablehlo.while" not in text


@pytest.mark.slow
@pytest.mark.parametrize("platform", kernel.PLATFORMS)
@pytest.mark.parametrize("name", OTHERS)
def test_others_lower(name, platform):
    assert "custom_call" in lowered(made(*OTHERS[name], kernel.SLICE), platform)


@pytest.mark.parametrize(
    ("game", "why"),
    [
        ((jb.Uniform(), jb.losses.Bernoulli([0.5] * 17), D.Fixed(1), 256), "17 arms"),
        ((jb.Uniform(), TWO, D.Fixed(1), 100), "not a multiple of 128"),
        ((jb.Uniform(), jb.losses.Beta([0.3, 0.5]), D.Fixed(1), 256), "no rule for"),
        ((jb.Uniform(), TWO, D.Fixed(1000), 1024), "do not fit"),
    ],
)
def test_says_what_it_cannot(game, why):
    game = made(*game)
    with pytest.raises(Unsupported, match=why):
        kernel_for("tpu").func.eval_shape(game, start.eval_shape(game), 0, np.array([5]), False, "tpu", True)


def test_is_not_trusted_when_it_goes_another_way(monkeypatch):
    game = made(jb.Uniform(), TWO, D.Fixed(1), 256)

    def kernel_off_by(factor):
        def play(*arguments, platform, interpret):
            state, records = loop(*arguments)
            return state, jax.tree.map(lambda leaf: leaf * factor, records)

        return play

    trusted = functools.partial(kernel.trusted, game, loop, rounds=50, width=2, probabilities=False, platform="cuda")
    monkeypatch.setattr(kernel, "_advance", kernel_off_by(1 + 1e-6))
    assert trusted() is not None
    monkeypatch.setattr(kernel, "_advance", kernel_off_by(1.01))
    with pytest.warns(UserWarning, match="disagrees with the loop in 100% of the runs"):
        assert trusted() is None


def test_simulate_with_it(monkeypatch):
    """Through the engine, padding and all, with a delay for each play."""
    game = (jb.DelayedExp3(), TWO, DELAYS["per run"])
    options = {"rounds": 60, "runs": 300, "key": jax.random.key(0), "record": 3, "first_run": 7}
    plain = jb.simulate(*game, **options)
    with pytest.warns(UserWarning, match="no kernel for cpu; the loop is used"):
        np.testing.assert_array_equal(jb.simulate(*game, **options, kernel=True).regret, plain.regret)
    monkeypatch.setattr(kernel, "trusted", functools.partial(kernel.trusted, platform="cuda", interpret=True))
    found = jb.simulate(*game, **options, kernel=True)
    np.testing.assert_array_equal(found.total_delay, plain.total_delay)
    same = np.isclose(found.regret, plain.regret, rtol=1e-4).all(0)
    assert same.mean() >= 0.99
    for ours, theirs in zip(found.state, plain.state, strict=True):  # estimates, arms, losses, probabilities, lists, counts
        np.testing.assert_allclose(ours[..., same], theirs[..., same], rtol=2e-3, atol=1e-3)


# Programs of one run, each compared with jax.vmap: [2, 3] and [] of each run to anything.
def _collatz(number):
    def step(carry):
        number, steps = carry
        return jnp.where(number % 2 == 0, number // 2, 3 * number + 1), steps + 1

    return lax.while_loop(lambda carry: carry[0] > 1, step, (number, jnp.int32(0)))


PROGRAMS = {
    "reductions": lambda x, n: (x.sum(), x.max(0), x.min(1), jnp.argmin(x, 1), jnp.argmax(x.reshape(-1)), (x > 0).any()),
    "running sums": lambda x, n: (jnp.cumsum(x, 0), lax.cumsum(x, 1, reverse=True)),
    "shapes": lambda x, n: (jnp.pad(x, ((1, 0), (0, 2)))[:, ::2].T, jnp.concatenate([x, x[:1]]), x[::-1], jnp.arange(3) + n),
    "own rows": lambda x, n: (lax.dynamic_index_in_dim(x, n, 1), lax.dynamic_update_index_in_dim(x, x[:, 0], n, 1)),
    "a loop as long as each needs": lambda x, n: _collatz(n + 3),
    "a loop of one length": lambda x, n: lax.fori_loop(0, 4, lambda i, y: y * x + i, x),
    "a choice": lambda x, n: lax.cond(n > 1, lambda x: x + 1, lambda x: 2 * x, x),
    "rounding": lambda x, n: (
        jnp.round(4 * x) / 2,
        jnp.round(n / 2),
        -n // 2,
        jnp.exp(x),
        jnp.where(n > 0, x > 0, x < 0),
        jnp.expm1(x / 64),
    ),
}


def test_lanes_is_vmap():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    n = np.array([0, 1, 5, 2], np.int32)
    lanes = Lanes((4,), scalar_unit=True, pointers=True, fence=lambda: None, spread=lambda vector: vector)

    def boxed(array):
        out = np.empty(array.shape[:-1], object)
        for place in np.ndindex(out.shape):
            out[place] = Number(array[place], False)
        return out

    @jax.jit
    def by_lanes(x, n):
        found = {}
        for name, program in PROGRAMS.items():
            arrays = lanes.run(jax.make_jaxpr(program)(x[..., 0], n[0]), [boxed(x), boxed(n)])
            found[name] = [(array.shape, [lanes.vector(number) for number in array.flat]) for array in arrays]
        return found

    @jax.jit
    def by_vmap(x, n):
        vmapped = {name: jax.vmap(program, in_axes=-1, out_axes=-1) for name, program in PROGRAMS.items()}
        return {name: jax.tree.leaves(program(x, n)) for name, program in vmapped.items()}

    found, expected = by_lanes(x, n), by_vmap(x, n)
    for name in PROGRAMS:
        for (shape, numbers), right in zip(found[name], expected[name], strict=True):
            assert tuple(shape) == right.shape[:-1], name
            np.testing.assert_allclose(np.reshape(numbers, right.shape), right, rtol=1e-6, err_msg=name)


def test_memory_that_was_overwritten_is_not_read():
    lanes = Lanes((4,), scalar_unit=False, pointers=True, fence=lambda: None, spread=lambda vector: vector)
    ring = Ring(Memory(np.zeros((2, 4), np.float32), (2,), np.float32, shared=False))
    row, values = Number(np.int32(1), True), np.full((), Number(np.ones(4, np.float32), False), object)
    newer = lanes.write(ring, row, values)
    assert lanes.read(newer, row)[()].value.tolist() == [1, 1, 1, 1]
    with pytest.raises(Unsupported, match="after they were overwritten"):
        lanes.read(ring, row)
    with pytest.raises(Unsupported, match="more than once"):
        lanes.write(ring, row, values)
