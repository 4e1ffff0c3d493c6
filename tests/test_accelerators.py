"""What can be shown of GPU and TPU without having one: the programs lower for them, and a round stays few kernels."""

import functools
import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._core.fields import canonical
from jaxbandit._engine.blocks import advance, start
from jaxbandit._engine.choose import block_size, choose_execution, fitted
from jaxbandit._engine.game import Game
from jaxbandit._engine.player import Player
from jaxbandit.gradients import programs
from jaxbandit.gradients.jump import JumpTangent
from jaxbandit.learners import nonstationary
from jaxbandit.sweeps import batch, plan

D = jb.delays
BERNOULLI = jb.losses.Bernoulli([0.3, *[0.5] * 9])
GAMES = {
    "fixed delay": (jb.BestOfBothWorlds(10), BERNOULLI, D.Fixed(10)),
    "a delay for each play": (jb.BestOfBothWorlds(127), BERNOULLI, D.Geometric(10.0, bound=127)),
    "skipping": (jb.RobustBestOfBothWorlds(), BERNOULLI, D.Pareto(0.5, bound=63)),
    "moving means": (jb.TsallisINF("rv"), jb.losses.StochasticallyConstrained(0.2, 10), D.Bursts(8)),
    "keys of its own": (jb.DelayedThompson(), jb.losses.Beta([0.3, 0.5], 2.0), D.Poisson(3.0, bound=15)),
    "a wrapper": (jb.QPMD(jb.TsallisINF(), 16), BERNOULLI, D.Fixed(3)),
}


PLATFORMS = ("cuda", "tpu")


def made(parts, measure=()):
    learner, losses, delays = map(canonical, parts)
    runs = jnp.zeros(block_size(losses.num_arms), jnp.uint32)
    return Game.set_up(learner, losses, delays, jax.random.key(0), runs, measure)


@pytest.mark.parametrize("name", GAMES)
def test_the_block_lowers(name):
    game = made(GAMES[name], (jb.ControlVariates(),))
    state = start.eval_shape(Player(), game)
    record = jnp.array([5, 10], jnp.int32)
    program = jax.export.export(advance.plain, platforms=PLATFORMS)(
        Player(), game, state, jnp.int32(0), record, probabilities=False
    )
    assert program.platforms == PLATFORMS
    assert "stablehlo.while" in program.mlir_module()


@pytest.mark.thorough
def test_gradients_lower():
    """Forward mode with jump tangents, reverse mode, and paired differences."""
    parts = jb.BestOfBothWorlds(3), jb.losses.Bernoulli([0.3, 0.5]), D.Fixed(3)
    game, record = made(parts, (jb.ControlVariates(),)), jnp.array([5, 10], jnp.int32)
    jumping = Player(hook=JumpTangent())
    calls = [
        (functools.partial(programs.forward, which=(0, 2)), (jumping, game, record)),
        (functools.partial(programs.backward, rounds=10, which=(0, 2)), (jumping, game)),
        (programs.regrets, (Player(), game, record)),
    ]
    for call, arguments in calls:
        program = jax.export.export(jax.jit(call), platforms=PLATFORMS)(*arguments)
        assert program.platforms == PLATFORMS
        assert "stablehlo.while" in program.mlir_module()


def test_a_unit_of_a_sweep_lowers():
    """What a worker compiles for a unit: the start and the advance of a block of a cell, with what it measures."""
    spec = jb.Spec(
        rounds=100,
        runs=10,
        record=4,
        learners=[jb.BestOfBothWorlds("oracle")],
        losses=[jb.losses.Bernoulli([0.3, 0.5])],
        delays=[D.Geometric(3.0, bound=63, shared=True)],
    )
    (cell,) = plan.Plan.make(spec).cells
    learner, losses, delays = map(canonical, (cell.learner, cell.losses, cell.delays))
    measure = canonical(plan.measurements(spec.control_variates))
    game = Game.set_up(learner, losses, delays, jax.random.key(spec.seed), jnp.zeros(cell.block, jnp.uint32), measure)
    state, record = batch.block_state(cell, spec.control_variates), jnp.array([5, 20, 60, 100, 100], jnp.int32)
    started = jax.export.export(start, platforms=PLATFORMS)(Player(), game)
    assert [leaf.shape for leaf in started.out_avals] == [leaf.shape for leaf in jax.tree.leaves(state)]
    program = jax.export.export(advance.plain, platforms=PLATFORMS)(
        Player(), game, state, jnp.int32(0), record, probabilities=False
    )
    assert "stablehlo.while" in program.mlir_module()


@pytest.mark.parametrize(
    ("name", "most", "own_form"),
    [
        ("fixed delay", 39, False),
        pytest.param("a delay for each play", 51, False, marks=pytest.mark.thorough),
        ("a delay for each play", 48, True),
    ],
)
def test_few_kernels_a_round(name, most, own_form):
    """Starting kernels is what a round costs on an accelerator; the CPU's count is the proxy to be had without one.

    With ``own_form`` the game is as a CPU plays it.
    """
    most += 2 * (jax.__version_info__ < (0, 8))
    game = made(GAMES[name])
    player, game = fitted(game, choose_execution(game, "cpu")) if own_form else (Player(), game)
    lowered = advance.lower(
        player, game, start.eval_shape(player, game), jnp.int32(0), jnp.array([5, 10], jnp.int32), probabilities=False
    )
    text = lowered.compile().as_text()
    bodies = {
        body: re.search(rf"^%?{re.escape(body)} \(.*?^}}", text, re.DOTALL | re.MULTILINE)
        for body in re.findall(r"body=%?([\w.\-]+)", text)
    }
    assert all(bodies.values())
    free = ("get-tuple-element", "parameter", "constant", "bitcast", "tuple", "while")
    counts = [
        sum(1 for op in re.findall(r"= \S+ ([\w\-]+)\(", body.group(0).replace("{1,0}", "")) if op not in free)
        for body in bodies.values()
    ]
    assert 10 < max(counts) <= most, counts
    # No ring is copied: nothing in a loop body copies an array of more than one row for each arm.
    ring = r"(?:s32|f32)\[(?:16|128),(?:11,)?256\]\S* copy\("
    assert not any(re.search(ring, body.group(0)) for body in bodies.values())
    # Nor is there a scatter, which on a CPU is a kernel of its own: with it XLA makes no longer one function of the loop.
    assert "scatter(" not in text


@pytest.mark.parametrize(
    "delays",
    [
        pytest.param(D.Fixed(10), id="fixed"),
        pytest.param(D.Geometric(10.0, bound=127), id="for each play", marks=pytest.mark.thorough),
    ],
)
def test_a_window_is_not_copied(delays):
    """Nor is a learner's own memory, of which a row is read and overwritten in every round: copies would be most of the time."""
    game = made((jb.SlidingWindowUCB(window=200), BERNOULLI, delays))
    lowered = advance.lower(
        Player(), game, start.eval_shape(Player(), game), jnp.int32(0), jnp.array([5, 10], jnp.int32), probabilities=False
    )
    loops, entry = lowered.compile().as_text().split("\nENTRY ")
    copied = r"(?:s32|f32)\[(?:200,256|51200)\]\S* copy\("
    assert not re.search(copied, loops)
    assert len(re.findall(copied, entry)) <= 2  # what the caller keeps


def test_a_row_that_is_read_once_is_the_row():
    values = jnp.array([0.25, -1.5, jnp.inf, -0.0, jnp.nan, 1e-38])
    one = jnp.ones(6, jnp.int32)
    seen, tangent = jax.jvp(lambda x: nonstationary.read_once(x, one), (values,), (jnp.arange(6.0),))
    np.testing.assert_array_equal(jax.lax.bitcast_convert_type(seen, jnp.int32), jax.lax.bitcast_convert_type(values, jnp.int32))
    np.testing.assert_array_equal(tangent, jnp.arange(6.0))
