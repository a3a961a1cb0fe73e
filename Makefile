# Python 3.11 or newer and make are all that a fresh machine needs: everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USE_PEP517 := 1

.DEFAULT_GOAL := help
.PHONY: help demo example test soak lint types floors bench docs messages wheel

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 8

demo: $(VENV)/plain  ## Find the duplicates among made-up petitions
	$(BIN)/db-dedup demo

example: $(VENV)/with-web,postgresql  ## Start the example application with sample data (URL=postgresql://... PORT=8100)
	$(BIN)/python examples/petition_office/start.py $(if $(URL),--url "$(URL)") $(if $(PORT),--port $(PORT)) $(ARGS)

test: $(VENV)/with-test  ## Run the tests, on servers of their own (CI=true for the thorough ones, too; ARGS="-k sqlite" for some)
	$(BIN)/python -m pytest -n 3 $(if $(filter true,$(CI)),,-m "not thorough") $(ARGS)

soak: $(VENV)/with-test  ## Play random histories for SOAK minutes (10) on each database (SEED=number for one round once more)
	DB_DEDUP_TEST_SOAK_MINUTES=$(or $(SOAK),10) $(if $(SEED),DB_DEDUP_TEST_SEED=$(SEED)) $(BIN)/python -m pytest -s --timeout=0 tests/worker/test_histories.py $(ARGS)

lint: $(VENV)/with-lint types floors  ## Check style, format, types and imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/with-lint $(VENV)/with-test  ## Check types
	$(BIN)/mypy

floors: $(VENV)/with-lint  ## Check that imports go down only
	$(BIN)/lint-imports

bench: $(VENV)/with-test $(VENV)/with-peers  ## Measure speed and quality: the headline figures (PART=long for all, DATA=folder of texts)
	$(BIN)/python -m benchmarks --part $(or $(PART),quick) $(if $(DATA),--data "$(DATA)")

docs: $(VENV)/plain  ## Write the reference of the command line anew
	$(BIN)/python docs/generate.py

messages: $(VENV)/with-test  ## Bring the catalogues of translated messages up to date, and compile them
	$(BIN)/python -m translations

wheel: $(VENV)/with-build  ## Build the wheel and the sdist of this version into dist/
	$(BIN)/python -m hatchling build --clean --directory dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/plain: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable .
	touch $@

$(VENV)/with-%: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable ".[$*]"
	touch $@
