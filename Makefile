# Each target makes what it needs with plain pip: a virtual environment in .venv, or, with `make ... PYTHON=python3.13`, in .venv-3.13.
PYTHON ?= python3
VENV := .venv$(if $(filter file,$(origin PYTHON)),,-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
BIN := $(VENV)/bin
LOWEST := .venv-lowest/bin
# Each worker is one process on one core.
PYTEST := python -m pytest -n auto --dist worksteal

.PHONY: demo test test-all test-slow test-lowest compilers lint docs release bench gpu-report claims live-service test-live-service clean

demo: $(VENV)/demo
	$(BIN)/jaxbandit demo --force  # the figure of an earlier call is replaced

test: $(VENV)/dev  # what a newcomer runs: every part of the library, each once
	$(BIN)/$(PYTEST) -m "not thorough and not slow"

test-all: test  # and the same in more settings
	$(BIN)/$(PYTEST) -m "thorough and not slow"

test-slow: $(VENV)/dev  # the long ones alone
	$(BIN)/$(PYTEST) -m slow

test-lowest: .venv-lowest/dev  # `make test` with the lowest version of each package that pyproject.toml allows
	$(LOWEST)/$(PYTEST) -m "not thorough and not slow"

compilers: $(VENV)/dev  # the compilers for GPUs and TPUs (some 1 GB), for the tests that are skipped without them
	$(BIN)/pip install --quiet --editable '.[dev,compilers]'

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

docs: $(VENV)/docs  # the site, docs/_build/html; runs the notebooks that changed, the first time all of them (some 10 minutes)
	$(BIN)/python docs/build_notebooks.py
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

release:  # source archive and wheel in dist, checked, installed in a clean environment, and the README's first block run there
	$(PYTHON) -m venv --clear build/release
	build/release/bin/pip install --quiet build twine
	rm -rf dist
	build/release/bin/python -m build --outdir dist .
	build/release/bin/twine check --strict dist/*
	$(PYTHON) -m venv --clear build/installed
	build/installed/bin/pip install --quiet "$$(ls dist/*.whl)[cli,data]"
	cd build && installed/bin/python ../docs/run_first_block.py ../README.md

live-service: $(VENV)/dev  # the example of a live system, http://127.0.0.1:8000; its state is experiments/live_service/campaign.db
	$(BIN)/pip install --quiet fastapi uvicorn
	cd experiments/live_service && $(abspath $(BIN))/uvicorn service:app

test-live-service: $(VENV)/dev  # the tests of it, which are skipped where FastAPI is missing: 20 clients, ten kills, the page in Chromium
	$(BIN)/pip install --quiet fastapi uvicorn
	$(BIN)/python -m pytest tests/experiments/test_live_service.py

bench: $(VENV)/dev  # tables and figure in build/bench, some 8 minutes; PEERS=folder also times the programs there, QUICK=1 takes fewer turns
	$(BIN)/python -m experiments.bench --force --out build/bench $(if $(PEERS),--peers $(PEERS)) $(if $(QUICK),--quick)

gpu-report: $(VENV)/dev  # timings and bitwise comparisons on this machine's GPU; attach build/gpu-report/bench.json to an issue; the library has never run on one
	$(BIN)/pip install --quiet 'jax[cuda12]'
	$(BIN)/python -m experiments.bench --device gpu --out build/gpu-report
	@echo "attach build/gpu-report/bench.json to an issue of the form 'Timings on a GPU or TPU'"

claims: $(VENV)/dev  # a page for each statement of the paper, in build/claims
	$(BIN)/python -m experiments.claims --out build/claims

# An empty file for each set of extras that is installed.
$(VENV)/demo: EXTRA := cli
$(VENV)/docs: EXTRA := docs
$(VENV)/dev: EXTRA := dev
$(VENV)/demo $(VENV)/docs $(VENV)/dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[$(EXTRA)]'
	touch $@

.venv-lowest/dev: pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	$(LOWEST)/pip install --quiet uv
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python --resolution lowest-direct --editable '.[dev]'
	touch $@

clean:  # everything that the targets above make
	rm -rf .venv .venv-* build dist docs/_build *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -f demo.png experiments/live_service/campaign.db*
	find jaxbandit experiments tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
