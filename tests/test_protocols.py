"""The protocols that users write classes after: few members, each with one line of meaning; public signatures with types."""

import inspect
import re

import pytest

import jaxbandit as jb
from jaxbandit import extend

MOST_MEMBERS = 30
PROTOCOLS = (extend.Learner, extend.Losses, extend.Delays)
BASES = (extend.ImportanceWeighted, extend.FTRL, extend.ReadsSignals, extend.DifferentiableLosses, extend.ShowsSignals)


def members(cls: type) -> list[str]:
    return sorted(name for name in {*vars(cls), *cls.__annotations__} if not name.startswith("_"))


def test_there_are_few_members():
    """Rejects a trait of one learner or of the execution that is declared for all of them."""
    found = {cls.__name__: members(cls) for cls in PROTOCOLS}
    assert sum(map(len, found.values())) <= MOST_MEMBERS, found


@pytest.mark.parametrize("cls", [*PROTOCOLS, *BASES], ids=lambda cls: cls.__name__)
def test_each_member_says_what_it_means(cls):
    lines = inspect.getsource(cls).splitlines()
    for name in members(cls):
        value = vars(cls).get(name)
        comment = any(re.match(rf"    {name}: .*  # \S", line) for line in lines)
        inherited = any(getattr(base, name, None) and inspect.getdoc(getattr(base, name)) for base in cls.__mro__[1:])
        assert comment or inherited or (inspect.isfunction(value) and value.__doc__), f"{cls.__name__}.{name}"


class Bare(extend.Learner):
    """Declares what only a subclass of Learner has."""

    takes_sums = True


class Unheard(extend.Losses):
    num_arms, num_signals = 2, 2


def test_a_trait_without_its_base_is_refused():
    """Rejects a class whose declaration has no effect."""
    delays = jb.delays.Fixed(1)
    with pytest.raises(TypeError, match=r"Bare\.takes_sums counts only in a class that inherits from jb\.extend\.TakesSums"):
        jb.simulate(Bare(), jb.losses.Bernoulli([0.3, 0.5]), delays, rounds=3, runs=1, seed=0)
    with pytest.raises(TypeError, match=r"Unheard\.num_signals counts only in .* jb\.extend\.ShowsSignals"):
        jb.simulate(jb.Uniform(), extend.pytree_dataclass(Unheard)(), delays, rounds=3, runs=1, seed=0)
