# Sharpwave needs make and Python >= 3.11; everything else is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
CODE := storage training pipeline tests bench
# Processes that share the test suite: one a core, four at most.
TESTERS ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 4))')

# One thread each: two threads beside another process are slower than one, and one is repeatable.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types contracts check unit format soak bench bench-quick results clean

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '%-13s %s\n' "$$name" "$$text"; done

install: $(READY) ## create .venv and install Sharpwave with its tools

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Sharpwave needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Creating $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing into $(VENV) (some minutes the first time)"
	@$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@

demo: $(READY) ## train V-RACER with ReF-ER on a MuJoCo task for a few minutes, then look at it
	@$(BIN)/sharpwave demo configs/demo.yaml

test: lint types contracts unit ## lint, types, import contracts and the whole test suite

check: lint types contracts ## everything of `make test` but the tests

lint: $(READY) ## ruff: rules and layout
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --quiet --check $(CODE) || { echo "make format puts this right" >&2; exit 1; }

format: $(READY) ## put layout and import order right
	@$(BIN)/ruff check --quiet --fix $(CODE)
	@$(BIN)/ruff format --quiet $(CODE)

types: $(READY) ## mypy --strict
	@$(BIN)/mypy --no-error-summary

contracts: $(READY) ## which package may import which
	@$(BIN)/lint-imports --no-logo >$(VENV)/contracts.log 2>&1 || { cat $(VENV)/contracts.log; exit 1; }

unit: $(READY) ## the test suite alone
	@$(BIN)/python -m pytest -q -m "not soak" --numprocesses=$(TESTERS) --dist=loadfile

soak: $(READY) ## the tests that take minutes: kills, thousands of reopenings, long runs
	@$(BIN)/python -m pytest -q -m soak

bench: $(READY) ## measure speed on an idle machine; COMPARE=OLD flags what became slower
	@$(BIN)/python -m bench $(if $(COMPARE),--compare '$(COMPARE)')

bench-quick: $(READY) ## the same in some 5 minutes: fewer repeats, no cost curves
	@$(BIN)/python -m bench --quick $(if $(COMPARE),--compare '$(COMPARE)')

results: $(READY) ## train the runs behind docs/results.md that are not on record; hours
	@$(BIN)/python -m bench.learning $(NAMES)

clean: ## remove .venv and caches; runs/ stays
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
	@find storage training pipeline tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
