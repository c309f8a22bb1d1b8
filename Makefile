# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock
# One BLAS thread for each test worker: two processes with two threads each only get in each other's way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Lets scikit-learn run its array API checks instead of skipping them.
TEST_ENV := $(ONE_THREAD) SCIPY_ARRAY_API=1

.PHONY: help demo test lint format bench league league-full clean

help:
	@echo "make demo    a 2-D view of wine from 30 pairs"
	@echo "make test    the whole test suite"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff rewrite the files"
	@echo "make bench   measure against peers, as ratios in one run"
	@echo "make league  all methods from few and noisy pairs; writes docs/league.md (league-full: hours)"

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Each stamp installs one extra, again only when what it depends on has changed.
$(VENV)/.core: $(VENV)/.made pyproject.toml requirements.lock
	$(PIP) -e .
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: $(VENV)/.made pyproject.toml requirements.lock
	$(PIP) -e ".[$*]"
	@touch $@

demo: $(VENV)/.core
	@$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(TEST_ENV) $(BIN)/python -m pytest -n auto -q $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ARGS)

league: $(VENV)/.bench
	$(BIN)/python -m benchmarks.league $(ARGS)

league-full: $(VENV)/.bench
	$(BIN)/python -m benchmarks.league --full $(ARGS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
