"""``python -m experiments.bench``: see :func:`experiments.bench.bench.bench`."""

from experiments.bench.bench import NAME, bench
from jaxbandit.cli import main_of
from jaxbandit.cli.app import ALL_OR_NOTHING

if __name__ == "__main__":
    main_of(bench, NAME, ALL_OR_NOTHING)
