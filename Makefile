# Every target prepares what it needs: a machine with Python 3.11, make and a package index is
# enough. Set PYTHON to choose an interpreter, with a VENV of its own beside that of another one.
# Set DATA_DIR to choose where a service keeps its data.

VENV      := .venv
BIN       := $(VENV)/bin
STAMP     := $(VENV)/.innkeeper-installed
DATA_DIR  ?= ./.innkeeper
HOSTS     ?= 8
PYTHON    ?= $(shell command -v python3.11 || command -v python3)
# A path, a node id or several of them: make test T=tests/unit
T         ?=
# What only "check" runs: the rules of the house, and requests made up from the API's schema.
CHECK_ONLY := tests/tidy tests/fuzz
# Files of tests run side by side, more than there are processors, since most of them wait for
# other programs. JOBS=0 runs them one after the other, in one process.
JOBS      ?= $(shell echo $$((2 * $$(nproc))))
# "check" asks the package index for known vulnerabilities of the pinned packages. AUDIT= leaves
# that out.
AUDIT     ?= yes
# In their order: the files that take longest come first, and the many short ones fill up the end.
PYTEST    := $(VENV)/bin/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

COMPILE := $(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --no-header --no-emit-options
INPUTS  := $(sort $(wildcard requirements/*.in))

# Many an image asks Python not to keep compiled modules. Each start of a service would then compile
# all of them again, and the tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install run demo demo-zones demo-pods test check bench docs reference samples format requirements clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@test -n "$$(command -v "$(PYTHON)")" || { echo "Innkeeper needs Python 3.11 or newer, and there is no $(or $(PYTHON),python3) here. Set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Innkeeper needs Python 3.11 or newer, but $(PYTHON) is $$("$(PYTHON)" -V). Set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu install the package python3-venv." >&2; rm -rf $(VENV); exit 1; }

# The environment's interpreter is an order-only prerequisite: its time stamp says when Python
# was installed, not when this environment was filled.
$(STAMP): requirements/dev.txt $(INPUTS) pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

install: $(STAMP) ## fill .venv with the pinned requirements and this package

run: $(STAMP) ## start a service with made-up hosts (HOSTS=8, DATA_DIR=./.innkeeper)
	$(BIN)/innkeeper serve --demo-hosts $(HOSTS) --data-dir $(DATA_DIR)

demo: $(STAMP) ## tell the story of a first server, from start to the reason why it landed there
	$(BIN)/python -m benchmarks.demo

demo-zones: $(STAMP) ## tell the story of a tree of four zones, and of one that fails
	$(BIN)/python -m benchmarks.demo_zones

demo-pods: $(STAMP) ## tell the story of a door over two pods, and of one that fails
	$(BIN)/python -m benchmarks.demo_pods

test: $(STAMP) ## run the tests, or some of them: make test T=tests/unit
	$(PYTEST) $(if $(T),$(T),$(addprefix --ignore=,$(CHECK_ONLY)))

check: $(STAMP) ## judge format, lint, types, layers, packages, house rules, requests at random, documentation
	$(MAKE) --no-print-directory --jobs 2 check-code check-rules

# Two at a time: types are judged, and requests made up, by one processor each.
.PHONY: check-code check-rules
check-code: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(MAKE) --no-print-directory docs

# Requests are made up in one process: their tests have one name for all routes, and whoever
# hands tests out by their names hands out one of them.
check-rules: $(STAMP)
	$(if $(AUDIT),$(BIN)/python -m tests.support.dependency_audit requirements/dev.txt,@echo "The packages are not audited: AUDIT is empty.")
	$(PYTEST) tests/tidy
	$(PYTEST) --numprocesses 0 --dist no tests/fuzz

bench: $(STAMP) ## measure, and compare with the last record
	$(BIN)/python -m benchmarks

docs: $(STAMP) ## build the documentation into docs/_build/html, and try its examples
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder doctest docs docs/_build/doctest

samples: $(STAMP) ## run the commands in the reference of pcloud commands, and write what they print
	WRITE_SAMPLES=1 $(BIN)/python -m pytest --quiet --numprocesses 0 tests/compat/test_pcloud_samples.py

reference: $(STAMP) ## write the reference pages that repeat what the program says of itself
	$(BIN)/python -m docs.generate

format: $(STAMP) ## format the code and mend what the linter can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# The second command is held to the first one's choices, so that tests run what is shipped.
# Without --upgrade a pin stays while it fits: make requirements UPGRADE=--upgrade renews all.
requirements: $(STAMP) ## pin again after a change in requirements/*.in (UPGRADE=--upgrade: all)
	$(COMPILE) $(UPGRADE) --output-file requirements/runtime.txt requirements/runtime.in
	$(COMPILE) $(UPGRADE) --constraint requirements/runtime.txt --output-file requirements/dev.txt $(INPUTS)

clean: ## remove what make made, except the data of services
	rm -rf $(VENV) build dist docs/_build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find src -name '*.egg-info' -prune -exec rm -rf {} +
	find src tests -name __pycache__ -prune -exec rm -rf {} +
