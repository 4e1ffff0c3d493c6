"""Compiled programs on disk: the same results from there, and no command fails for want of a folder."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandit as jb

SCRIPT = """
import sys, numpy as np, jaxbandit as jb
assert jb.cache_programs(sys.argv[1]) == sys.argv[1]
result = jb.simulate(jb.TsallisINF(), jb.losses.Bernoulli([0.3, 0.5]), jb.delays.Geometric(3.0), rounds=50, runs=20, seed=0, record=[50])
assert result.program["one_function"]
np.save(sys.argv[2], result.regret)
"""
CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("JAX_COMPILATION", "JAX_PERSISTENT", "JAXBANDIT"))
}


def run(*words, **environment):
    return subprocess.run([sys.executable, *map(str, words)], env=CLEAN | environment, capture_output=True, text=True, check=True)


@pytest.mark.thorough
def test_a_second_process_loads_what_the_first_compiled(tmp_path):
    """Marked programs too: nothing is added to the folder, and the bits are the same."""
    programs = tmp_path / "programs"
    run("-c", SCRIPT, programs, tmp_path / "first.npy")
    kept = {file.name for file in programs.glob("*/*marked*-cache")}
    assert len(kept) == 1
    run("-c", SCRIPT, programs, tmp_path / "second.npy")
    assert {file.name for file in programs.glob("*/*marked*-cache")} == kept
    np.testing.assert_array_equal(np.load(tmp_path / "first.npy"), np.load(tmp_path / "second.npy"))


@pytest.mark.thorough
@pytest.mark.parametrize(("chosen", "kept"), [("{folder}", True), ("off", False), ("/proc/nowhere", False)])
def test_commands_keep_their_programs(tmp_path, chosen, kept):
    """In the folder of the variable; not where it says off, and without a word where nothing can be written."""
    words = "-m", "jaxbandit", "list", "learners"
    done = run(
        *words,
        JAXBANDIT_CACHE=chosen.format(folder=tmp_path / "programs"),
        HOME=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path / "x"),
    )
    assert "bobw" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / "programs").is_dir() == kept
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    before = jax.config.values["jax_compilation_cache_dir"]
    with pytest.raises(OSError, match=r"cache_programs\(path=.*file"):
        jb.cache_programs(file)
    assert jax.config.values["jax_compilation_cache_dir"] == before


def test_the_folder_of_the_user_stays(monkeypatch):
    monkeypatch.delenv("JAXBANDIT_CACHE", raising=False)
    before = jax.config.values["jax_compilation_cache_dir"]
    assert Path(jb.cache_programs()) == Path(before)
    assert jax.config.values["jax_compilation_cache_dir"] == before


def test_using_all_cores_is_said_to_be_unnecessary():
    with pytest.warns(DeprecationWarning, match="unnecessary"):
        assert jb.use_all_cores() >= 1
