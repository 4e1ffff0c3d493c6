"""The protocols that users write classes after: few members, each with one line of meaning; public signatures with types."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import jaxbandit as jb
from jaxbandit import extend
from jaxbandit.learners.base import LearnerLike, State

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


MOST_ANY = 60
ROOT = Path(jb.__file__).parent


def bare_any() -> list[str]:
    """Parameters annotated ``Any`` of public functions: those of public modules, and those that the package itself exports."""
    found = []

    def visit(node: ast.AST, where: str, wanted: Callable[[str], bool]) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.ClassDef) or not wanted(child.name):
                continue
            if isinstance(child, ast.ClassDef):
                visit(child, f"{where} {child.name}", lambda name: not name.startswith("_") or name == "__init__")
                continue
            given = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs, child.args.vararg, child.args.kwarg]
            bare = [one.arg for one in given if one and one.annotation and ast.unparse(one.annotation) == "Any"]
            found.extend(f"{where} {child.name}: {name}" for name in bare)

    for file in sorted(ROOT.rglob("*.py")):
        inside = file.relative_to(ROOT)
        private = any(part.startswith("_") and part != "__init__.py" for part in inside.parts)
        wanted = (lambda name: name in jb.__all__) if private else (lambda name: not name.startswith("_"))
        visit(ast.parse(file.read_text(encoding="utf-8")), str(inside), wanted)
    return found


def test_public_signatures_have_types():
    """Rejects ``simulate(learner: Any, losses: Any, delays: Any)``."""
    found = bare_any()
    assert len(found) <= MOST_ANY, "\n".join(found)
    assert not [line for line in found if line.rpartition(" ")[2] in ("learner", "losses", "state")]


def test_a_learner_like_object_need_not_inherit():
    """The protocol has the three methods and a type variable for the state."""
    assert LearnerLike.__parameters__ == (State,)
    assert {"init", "act", "observe"} == {name for name in vars(LearnerLike) if not name.startswith("_")}
