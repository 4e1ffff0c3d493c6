"""The digest of users' code: which edits it sees, what it must not see, and who refuses edited code."""

import dataclasses
import importlib
import json
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._provenance.identity import check_identity
from jaxbandit._provenance.user_code import SCHEME, code_digest
from jaxbandit.gradients.record import CODE
from jaxbandit.results.result import Result

OWN = """
import dataclasses, enum, functools
import jax, jax.numpy as jnp, numpy as np
import jaxbandit as jb
import own_helpers

RULES = {"plain": lambda x: x + 10.0}
RATES = [0.1, 0.2]
TABLE = np.array([1.0, 2.0])
COUNT = 0
Kind = enum.Enum("Kind", ["ONE", "TWO"])
KIND = Kind.ONE

def first(x):
    return x + 1.5
def second(x):
    return x + 2.5
CHOSEN = first

def logged(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner

def scaled(by):
    def multiply(x):
        return x * by
    return multiply
double = scaled(2.25)
add = functools.partial(lambda a, b: a + b, 3.25)

@functools.lru_cache
def kept(x):
    return x + 4.25

@jax.custom_jvp
def bent(x):
    return x
@bent.defjvp
def bent_slope(primals, tangents):
    return primals[0], 5.25 * tangents[0]

@dataclasses.dataclass
class Helper:
    size: int = 6
    parts: list = dataclasses.field(default_factory=lambda: [7.25])

class Parent(jb.Uniform):
    def inherited(self, x):
        return x * 8.25

@jb.extend.pytree_dataclass
class Mine(Parent):
    rates = [9.25]
    calls = 0

    def act(self, state, round):
        global COUNT
        COUNT += 1
        type(self).calls += 1
        RATES.append(0.0)
        RULES["plain"](1.0), TABLE, CHOSEN(1.0), first, second, double(1.0), add(1.0), kept(1.0), bent(1.0), KIND, Helper()
        own_helpers.used(1.0)
        return super().act(state, round)

    @logged
    def decorated(self):
        return 10.25

    @property
    def looked_at(self):
        return 11.25
    @looked_at.setter
    def looked_at(self, value):
        value + 12.25

@jb.extend.pytree_dataclass
class Holder(jb.Uniform):
    rule: object = jb.extend.static(default=lambda x: x * 13.25)
"""
HELPERS = """
MEMO = {}
def used(x):
    MEMO[x] = x
    return x + 14.25
def unused(x):
    return x + 15.25
"""
SEEN = [
    ("x + 10.0", "a function in a dictionary"),
    ("RATES = [0.1, 0.2]", "a list by the statement that makes it"),
    ("np.array([1.0, 2.0])", "an array"),
    ("KIND = Kind.ONE", "a member of an enumeration"),
    ("CHOSEN = first", "which of two functions"),
    ("return function(*arguments)", "the wrapper of a decorator"),
    ("scaled(2.25)", "a closure"),
    ("a + b, 3.25", "an argument of partial"),
    ("lambda a, b: a + b", "the function of partial"),
    ("x + 4.25", "a function with a cache"),
    ("5.25 * tangents", "a rule of a derivative"),
    ("size: int = 6", "a default of a dataclass"),
    ("[7.25]", "a default factory"),
    ("x * 8.25", "an inherited method"),
    ("rates = [9.25]", "a list in a class"),
    ("return 10.25", "a decorated method"),
    ("return 11.25", "a getter that has a setter"),
    ("value + 12.25", "a setter"),
    ("x + 14.25", "a function of a module"),
]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's and one that it imports, which can be edited: ``own(text, helpers)`` imports them anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text=OWN, helpers=HELPERS):
        for name, content in (("own_helpers", helpers), ("own_code", text)):
            (tmp_path / f"{name}.py").write_text(content)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own_code")

    yield write
    for name in ("own_code", "own_helpers"):
        sys.modules.pop(name, None)


EDITS = {"RATES = [0.1, 0.2]": "RATES = [0.1, 0.3]", "KIND = Kind.ONE": "KIND = Kind.TWO", "CHOSEN = first": "CHOSEN = second"}
EDITS |= {"lambda a, b: a + b": "lambda a, b: a * b", "return function(*arguments)": "return [*arguments]"}
EDITS |= {"size: int = 6": "size: int = 7", "np.array([1.0, 2.0])": "np.array([1.0, 3.0])"}


@pytest.mark.parametrize("old", [old for old, _ in SEEN], ids=[what for _, what in SEEN])
def test_an_edit_changes_the_digest(own, old):
    new = EDITS.get(old) or old.replace(".25", ".75").replace("10.0", "11.0")
    assert (OWN + HELPERS).count(old) == 1
    assert new != old
    before = code_digest(own().Mine())
    assert before == code_digest(own().Mine())
    assert before != code_digest(own(OWN.replace(old, new), HELPERS.replace(old, new)).Mine())


def test_a_lambda_in_a_field_counts(own):
    holder = own().Holder()
    assert code_digest(holder) != code_digest(own(OWN.replace("13.25", "13.75")).Holder())
    mine = code_digest(dataclasses.replace(holder, rule=lambda x: x * 2))
    assert mine == code_digest(dataclasses.replace(holder, rule=lambda x: x * 2))
    assert mine != code_digest(dataclasses.replace(holder, rule=lambda x: x * 3))


def test_what_a_run_changes_does_not_count(own):
    """Lists that grow, memo dictionaries, counters, and functions nobody uses."""
    module = own()
    before = code_digest(module.Mine())
    module.RATES.append(3.0)
    module.RULES["other"] = len
    module.own_helpers.MEMO[1.0] = 2.0
    module.COUNT += 1
    module.Mine.calls += 1
    module.Mine.rates.append(1.0)
    assert code_digest(module.Mine()) == before
    assert code_digest(own(OWN, HELPERS.replace("15.25", "15.75")).Mine()) == before


def test_a_file_edited_after_its_import_is_not_what_runs(own, tmp_path):
    module = own()
    before = code_digest(module.Mine())
    (tmp_path / "own_code.py").write_text(OWN.replace("RATES = [0.1, 0.2]", "RATES = [0.5]"))
    assert code_digest(module.Mine()) == before
    importlib.reload(module)
    assert code_digest(module.Mine()) != before


GAME = jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Fixed(2)
LEARNER = """
import jaxbandit as jb
import jax.numpy as jnp
MEMO = {}
@jb.extend.pytree_dataclass
class Mine(jb.Uniform):
    def act(self, state, round):
        MEMO[len(MEMO)] = "traced"
        probabilities, memo, state = super().act(state, round)
        return jnp.roll(probabilities, 1, 0), memo, state
"""
EDITED = LEARNER.replace("probabilities, 1, 0)", "probabilities, 2, 0)")


def test_a_sweep_of_a_learner_with_a_memo_ends_and_resumes(own, tmp_path):
    def spec(text=LEARNER):
        return jb.Spec(rounds=20, runs=300, record=2, learners=[own(text).Mine()], losses=[GAME[0]], delays=[GAME[1]])

    summary = jb.sweep(made := spec(), tmp_path / "out")
    assert (summary.done, summary.failed) == (summary.units, {})
    assert jb.sweep(made, tmp_path / "out", runs=3000).computed > 0
    assert jb.sweep(spec(), tmp_path / "out", runs=3000).computed == 0


def play(learner, **options):
    return jb.simulate(learner, *GAME, **{"rounds": 20, "runs": 4, "seed": 0, "record": 2} | options)


def test_results_of_edited_code_are_not_resumed_or_joined(own, tmp_path):
    made = play(own(LEARNER).Mine())
    made.save(tmp_path / "made.npz")
    loaded = Result.load(tmp_path / "made.npz")
    same, edited = own(LEARNER).Mine(), own(EDITED).Mine()
    with pytest.raises(ValueError, match=r"resume: this Result was made with other code of the learner"):
        play(edited, rounds=40, resume=loaded)
    play(same, rounds=40, resume=loaded)
    with pytest.raises(ValueError, match=r"concat_runs: one of these Results was made with other code of the learner"):
        Result.concat_runs([loaded, play(edited, first_run=4)])
    Result.concat_runs([loaded, play(same, first_run=4)])


def test_a_user_class_does_not_pass_as_the_librarys(own):
    mine = own(LEARNER.replace("class Mine", "class Uniform")).Uniform()
    with pytest.raises(ValueError, match="other code of the learner"):
        play(jb.Uniform(), rounds=40, resume=play(mine))


def test_results_of_earlier_versions_are_resumed_with_a_warning(own):
    """They hold no digest of the code; without code of the user's there is nothing to compare."""

    def old(result):
        return dataclasses.replace(result, identity={k: v for k, v in result.identity.items() if not k.endswith(" code")})

    learner = own(LEARNER).Mine()
    with pytest.warns(UserWarning, match="earlier version of jaxbandit, so whether the code of the learner"):
        play(learner, rounds=40, resume=old(play(learner)))
    play(jb.Uniform(), rounds=40, resume=old(play(jb.Uniform())))
    with pytest.warns(UserWarning, match="another version of Python"):
        check_identity("x", {"learner code": "3.1/2:1"}, {"learner code": f"{SCHEME}:1"})


def test_an_agent_of_edited_code_is_not_opened(own, tmp_path):
    key = jax.random.key(0)
    with jb.Agent.open(tmp_path / "a.db", own(LEARNER).Mine(), 2, key) as agent:
        agent.act()
        agent.save(tmp_path / "a.npz")
        about = json.loads(json.dumps(agent._about))
    edited = own(EDITED).Mine()
    for call in (jb.Agent.open, jb.Agent.load):
        file = tmp_path / ("a.db" if call == jb.Agent.open else "a.npz")
        with pytest.raises(ValueError, match=r"the file was made with other code of the learner; undo the edit"):
            call(file, edited, 2, key)
    with jb.Agent.open(tmp_path / "a.db", own(LEARNER).Mine(), 2, key) as agent:
        assert agent.rounds == 1
        del about["learner code"]
        with pytest.warns(UserWarning, match="earlier version"):
            agent._check_about("Agent.open", about)


@pytest.mark.thorough
def test_a_tuning_of_edited_code_is_not_resumed(own, tmp_path):
    text = LEARNER.replace("jb.Uniform", "jb.TsallisINF")
    options = {"rounds": 20, "runs": 4, "steps": 1, "seed": 0, "fresh_runs": 4, "audit": False, "file": tmp_path / "steps"}
    jb.tune(own(text).Mine(), *GAME, **options)
    with pytest.raises(ValueError, match=CODE):
        jb.tune(own(EDITED.replace("jb.Uniform", "jb.TsallisINF")).Mine(), *GAME, **options)
    jb.tune(own(text).Mine(), *GAME, **options)


def test_a_static_function_has_the_same_fingerprint_in_every_process(own, tmp_path):
    own()
    script = "import jax, own_code; from jaxbandit._provenance.identity import fingerprint; f = own_code.Holder()\n"
    script += "junk = [object() for _ in range({})]; print(fingerprint(f, None, None, jax.random.key(0))['learner'])"
    path = [str(tmp_path), *sys.path]
    found = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(f"import sys; sys.path[:] = {path!r}\n" + script.format(count))],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for count in (0, 100_000)
    }
    assert len(found) == 1


def test_numbers_still_decide(own):
    assert np.isfinite(play(own(LEARNER).Mine()).regret).all()
