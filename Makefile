# Each target sets up what it needs: a virtual environment in .venv, nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow lint docs bench clean

demo: .venv/demo
	$(BIN)/jaxbandit demo

test: .venv/dev
	$(BIN)/pytest -n auto -m "not slow"

test-slow: .venv/dev
	$(BIN)/pytest -n auto -m slow

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: .venv/docs  # the site, docs/_build/html; runs the notebooks that changed, the first time all of them (some 10 minutes)
	$(BIN)/python docs/build_notebooks.py
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

bench: .venv/dev
	$(BIN)/jaxbandit bench $(if $(PEERS),--peers $(PEERS))  # make bench PEERS=folder times the programs there as well

.venv/demo: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[cli]'
	touch $@

.venv/docs: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

.venv/dev: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist docs/_build
