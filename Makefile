# `make help` lists the targets. Everything is installed into .venv; nothing else is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= demo-out
PIP    := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## venv with everything that developing needs, exact versions

demo: $(VENV)/.demo ## the main job on this machine: real model, real rows, real parts
	$(BIN)/regen-run --demo --out $(OUT)

test: $(VENV)/.dev $(VENV)/.demo ## all tests
	$(PYTEST) $(ARGS)

lint: $(VENV)/.dev ## style, types, import rules, docker files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint docker/Dockerfile
	$(BIN)/python docker/check_compose.py

format: $(VENV)/.dev ## rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev $(VENV)/.demo ## measure what docs/benchmarks.md states
	$(BIN)/python bench/run.py

lock: $(VENV)/.dev ## resolve the exact versions anew
	$(PIP) install -q uv
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --no-header --extra local pyproject.toml requirements/build.in -o requirements/run.lock --upgrade
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --no-header --extra local --group dev pyproject.toml requirements/build.in -c requirements/run.lock -o requirements/dev.lock --upgrade
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --no-header --no-deps requirements/demo.in -o requirements/demo.lock --upgrade

clean: ## remove what make made
	rm -rf $(VENV) $(OUT) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Regen needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.python requirements/run.lock pyproject.toml
	$(PIP) install -q -r requirements/run.lock
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.demo: $(VENV)/.run requirements/demo.lock
	$(PIP) install -q --no-deps -r requirements/demo.lock
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.lock
	$(PIP) install -q -r requirements/dev.lock
	@touch $@
