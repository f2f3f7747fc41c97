# Every target does its own set-up: a virtual environment in .venv, made with the newest
# Python that works here. `make PYTHON=python3.12 test` chooses another one.

PYTHONS := python3.13 python3.12 python3.11 python3 python
USABLE  := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON  ?= $(shell for p in $(PYTHONS); do if $$p -c '$(USABLE)' >/dev/null 2>&1; then echo $$p; break; fi; done)

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Many tests start processes; where bytecode is not kept each of them compiles the whole package.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test bench lint clean

help:
	@echo "make demo    load 336,776 flights into a database file and ask questions of them"
	@echo "make test    run the tests"
	@echo "make bench   time the same SQL on memory, LMDB, LevelDB and sqlite3"
	@echo "make lint    ruff, mypy --strict, layers"
	@echo "make clean   remove the virtual environment and caches"

demo: $(VENV)/.demo
	$(BIN)/quereus demo $(DEMO)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(TESTS)

bench: $(VENV)/.base
	$(BIN)/quereus bench $(BENCH)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Stamp files: one for each set of extras; they age with pyproject.toml alone, for the package
# itself is installed in place.  A larger set is installed at once and stands for the smaller ones.

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name one with PYTHON=..." >&2; exit 1; }
	@echo "Making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(BIN)/python
	@echo "Installing quereus-store"
	@$(PIP) install -e .
	@touch $@

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Installing quereus-store and the data set of the demo"
	@$(PIP) install -e '.[demo]'
	@touch $(VENV)/.base $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing quereus-store, the data set of the demo and the development tools"
	@$(PIP) install -e '.[demo,dev,arrow]'
	@touch $(VENV)/.base $(VENV)/.demo $@
