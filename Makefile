# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The packages of some extras, in the versions of requirements.lock and checked by its hashes, and these sources.
INSTALL := $(BIN)/python tools/install.py
LOCKED := pyproject.toml requirements.lock tools/install.py
# One BLAS thread for each test worker: two processes with two threads each only get in each other's way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Lets scikit-learn run its array API checks instead of skipping them.
TEST_ENV := $(ONE_THREAD) SCIPY_ARRAY_API=1
# A worker takes the tests of whole modules, whose fixtures are then made once, and helps the others when it is done.
PYTEST := -m pytest -n auto --dist worksteal -q
# Scripts and styles of the pages.
PAGES := '**/*.js' '**/*.mjs' '**/*.css'
# The libraries of which private names are used (docs/dependencies.md).
NIGHTLY := $(addprefix git+https://github.com/,numpy/numpy scikit-learn/scikit-learn pavlin-policar/openTSNE)

.PHONY: help demo test explore test-oldest test-newest test-nightly coverage dist lint format bench history league league-full reproduce reproduce-full docs clean

help:
	@echo "make demo    the tour: digits from 60 answered pairs, penguins by two questions, reports in demo/"
	@echo "make test    the whole test suite"
	@echo "make test-oldest, make test-newest  the same with the oldest and the newest dependencies that are supported"
	@echo "make test-nightly  the same with numpy, scikit-learn and openTSNE built from their main branches"
	@echo "make coverage  the same with every optional package, and the share of the code that it runs"
	@echo "make explore the tests of properties, and 2,000 changed model files, on examples that are new each time"
	@echo "make dist    wheel and sdist, checked, and the wheel tried in an empty environment"
	@echo "make lint    format, lint and types of Python, format and lint of JavaScript and CSS, spelling"
	@echo "make format  fix what can be fixed automatically"
	@echo "make bench   measure against peers, as ratios in one run"
	@echo "make history  time and quality of the last commits, as curves (airspeed velocity)"
	@echo "make league  all methods from few and noisy pairs; writes docs/league.md (league-full: 80 minutes; ARGS=\"--maps\": maps, docs/maps.md; ARGS=\"--mixed\": mixed tables; ARGS=\"--notions\": several ways to say same, docs/notions.md, its sets in PAIRLENS_NOTIONS)"
	@echo "make reproduce  the experiments of the papers, quickly (reproduce-full: as printed; writes docs/reproduction.md)"
	@echo "make docs    the site: guide, gallery, methods and API, in build/docs/index.html"

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Each stamp installs one extra, again only when what it depends on has changed.
$(VENV)/.tour: $(VENV)/.made $(LOCKED)
	$(INSTALL) cli report studio
	@touch $@

$(VENV)/.papers: $(VENV)/.made $(LOCKED)
	$(INSTALL) cli report boost
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench $(VENV)/.docs $(VENV)/.dist: $(VENV)/.%: $(VENV)/.made $(LOCKED)
	$(INSTALL) $*
	@touch $@

demo: $(VENV)/.tour
	@$(BIN)/pairlens demo --out demo

test: $(VENV)/.test
	$(TEST_ENV) $(BIN)/python $(PYTEST) $(ARGS)

explore: $(VENV)/.test
	PAIRLENS_EXPLORE=1 $(TEST_ENV) $(BIN)/python $(PYTEST) -m hypothesis $(ARGS)

# Environments of their own; nothing is taken from requirements.lock.
test-oldest test-newest test-nightly: test-%: .venv-%/.test
	$(TEST_ENV) .venv-$*/bin/python $(PYTEST) $(ARGS)

.venv-oldest/.test: pyproject.toml requirements-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c requirements-oldest.txt -e ".[test]"
	@touch $@

.venv-newest/.test: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager -e ".[test]"
	@touch $@

# Building takes a compiler and about half an hour. pandas, polars and the others stay as released.
.venv-nightly/.test: pyproject.toml
	$(PYTHON) -m venv .venv-nightly
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps $(NIGHTLY)
	@touch $@

# This spelling of torch alone selects the small CPU build.
coverage: $(VENV)/.test
	$(PIP) torch==2.13.0
	$(INSTALL) ci dask ann io
	$(TEST_ENV) $(BIN)/python $(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html:build/coverage $(ARGS)

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --quiet --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) tools/try_wheel.py dist

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/oxfmt --check $(PAGES)
	$(BIN)/oxlint --deny-warnings
	$(BIN)/codespell

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/oxfmt $(PAGES)

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ARGS)

# Of the last ten commits, in environments of their own; open .asv/html/index.html for the curves.
history: $(VENV)/.made
	$(PIP) asv virtualenv
	$(BIN)/asv machine --yes
	$(BIN)/asv run --steps 10 --skip-existing HEAD~10..HEAD
	$(BIN)/asv publish

league: $(VENV)/.bench
	$(BIN)/python -m benchmarks.league $(ARGS)

league-full: $(VENV)/.bench
	$(BIN)/python -m benchmarks.league --full $(ARGS)

reproduce: $(VENV)/.papers
	$(BIN)/python -m reproduction all --profile quick $(ARGS)

reproduce-full: $(VENV)/.papers
	$(BIN)/python -m reproduction all --profile full --docs docs $(ARGS)

docs: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/sphinx-build -q -W --keep-going -j 2 -b html -d build/doctrees docs build/docs
	$(BIN)/python docs/check_site.py build/docs
	@echo "open build/docs/index.html"

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-nightly build dist docs/generated docs/gallery docs/methods docs/guide/pictures
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
