# Each target sets up what it needs: a virtual environment in .venv, nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow lint bench clean

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

bench: .venv/dev
	$(BIN)/jaxbandit bench $(if $(PEERS),--peers $(PEERS))  # make bench PEERS=folder times peer programs beside it

.venv/demo: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[cli]'
	touch $@

.venv/dev: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist
