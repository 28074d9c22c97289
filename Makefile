# make run    two jobs, derived, accounted for, proved; a figure in out/profile.svg; ten seconds
# make test   ruff, mypy and every test that is not slow; 3 to 8 minutes of two idle cores
# make test-ROOM  the quick tests of one room: make test-numeric, make test-derive, ...
# make slow   of each slow test its first case and its last; 44 minutes of a processor, on all cores
# make sweep  what make slow leaves out, by hand: the cases between, and those of a minute or more
# make lint   ruff and mypy alone
# make docs   the documentation, its pages executed one by one, in out/docs/index.html; about ten
#             minutes of a processor the first time, then only the pages that changed
# make try    docs/try.html, the page in which a density is typed, from its parts in docs/try
# make paper  the tables of paper/paper.md anew, in a minute, and out/paper.pdf where pandoc and a
#             TeX engine are installed
# make figures  the published tables and figures computed anew, into docs/
# make bench  symdp beside its peers and the questions of ordinary days, in an environment of their
#             own, into docs/; half an hour
# make integrations  the tests of the adapters beside Opacus, dp-accounting, jax-privacy, Flower and
#             OpenDP, in an environment of their own
# make dist   a wheel in dist/, installed and checked in an environment of its own
# make clean  removes what the others made

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
INTEGRATIONS := .venv-integrations
PIP := -m pip --disable-pip-version-check --quiet
SOURCES := symdp tests examples benchmarks

# Tests start many processes, which would compile the package anew where no compiled files are kept.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := $(VENV)/bin/python -m pytest --numprocesses auto --dist worksteal

.PHONY: run test slow sweep lint docs try paper figures bench integrations dist clean

run: $(VENV)/.plot
	$(VENV)/bin/python examples/run.py

test: lint
	@echo "tests: the quick ones; about ten seconds pass until all are found"
	$(PYTEST) -m "not slow"

test-%: $(VENV)/.dev
	$(PYTEST) -m "not slow" symdp/$* $(wildcard tests/$*)

slow: $(VENV)/.dev
	@echo "tests: the slow ones; about twenty seconds pass until all are found"
	$(PYTEST) -m "slow and not sweep"

sweep: $(VENV)/.dev
	@echo "tests: what make slow leaves out; hours"
	$(PYTEST) -m sweep

lint: $(VENV)/.dev
	@echo "lint: ruff, a second"
	$(VENV)/bin/ruff check $(SOURCES)
	$(VENV)/bin/ruff format --check $(SOURCES)
	@echo "types: mypy, twenty seconds the first time, then a second"
	$(VENV)/bin/mypy

docs: $(VENV)/.docs
	@echo "documentation: every page is executed, about ten minutes the first time"
	$(VENV)/bin/python -m sphinx -W --keep-going -b html docs out/docs
	@echo "documentation: out/docs/index.html"

try: $(VENV)/.plot
	$(VENV)/bin/python docs/try_page.py
	@echo "the page: docs/try.html"

paper: $(VENV)/.plot
	$(VENV)/bin/python -m benchmarks.paper

figures: $(VENV)/.figures
	$(VENV)/bin/python benchmarks/reproduction

bench: $(BENCH)/.installed
	$(BENCH)/bin/python -m benchmarks.peers
	$(BENCH)/bin/python -m benchmarks.days

integrations: $(INTEGRATIONS)/.installed
	$(INTEGRATIONS)/bin/python -m pytest tests/adapters

dist:
	rm -rf dist out/clean
	$(PYTHON) $(PIP) wheel --no-deps --wheel-dir dist .
	$(PYTHON) -m venv out/clean
	out/clean/bin/python $(PIP) install dist/symdp-*.whl
	out/clean/bin/python -I .ci/check_wheel.py

clean:
	rm -rf $(VENV) $(BENCH) $(INTEGRATIONS) out docs/derivations docs/examples build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find symdp tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is older than these when dependencies, or the version that is installed, may have changed.
$(VENV)/.plot: pyproject.toml symdp/version.py | $(VENV)/bin/python
	@echo "installing symdp, NumPy, SciPy, SymPy and Matplotlib into $(VENV); it may take a minute"
	@$(VENV)/bin/python $(PIP) install --editable '.[plot]'
	@touch $@

$(VENV)/.figures: pyproject.toml symdp/version.py | $(VENV)/bin/python
	@echo "installing symdp, Matplotlib and scikit-learn into $(VENV); it may take a minute"
	@$(VENV)/bin/python $(PIP) install --editable '.[plot,examples]'
	@touch $@ $(VENV)/.plot

$(VENV)/.dev: pyproject.toml symdp/version.py | $(VENV)/bin/python
	@echo "installing symdp and its development tools into $(VENV); it may take a minute"
	@$(VENV)/bin/python $(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.plot $(VENV)/.figures

$(VENV)/.docs: pyproject.toml symdp/version.py | $(VENV)/bin/python
	@echo "installing symdp and what builds its documentation into $(VENV); it may take a minute"
	@$(VENV)/bin/python $(PIP) install --editable '.[docs]'
	@touch $@ $(VENV)/.plot

$(BENCH)/.installed: pyproject.toml benchmarks/requirements.txt
	@echo "installing symdp and its peers into $(BENCH); it takes some minutes"
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) install --editable '.[plot]'
	@$(BENCH)/bin/python $(PIP) install --requirement benchmarks/requirements.txt
	@$(BENCH)/bin/python $(PIP) install --no-deps --target .peers/prv-accountant 'prv-accountant>=0.2'
	@touch $@

$(INTEGRATIONS)/.installed: pyproject.toml
	@echo "installing symdp, Opacus with torch, dp-accounting, jax-privacy, Flower and OpenDP into $(INTEGRATIONS); minutes"
	@$(PYTHON) -m venv $(INTEGRATIONS)
	@$(INTEGRATIONS)/bin/python $(PIP) install --editable '.[integrations]'
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "symdp needs Python 3.11 or newer: make PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up a Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
