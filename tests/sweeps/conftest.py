import shutil
from pathlib import Path

import pytest

import jaxbandit as jb
from tests.sweeps.examples import spec


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """A finished sweep."""
    out = tmp_path_factory.mktemp("sweep") / "whole"
    summary = jb.sweep(spec(), out)
    assert (summary.done, summary.units, summary.computed, summary.failed) == (12, 12, 12, {})
    return out


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))
