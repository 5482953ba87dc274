# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UNIT := tests/unit tests/golden tests/compatibility $(addprefix tests/architecture/test_,architecture.py imports.py language.py)

.PHONY: demo test unit sweep mutants journeys bench bench-quick figures docs dist lock clean
LOCKED := $(addprefix --extra ,client files openid pdf postgres remote serve)

demo: $(VENV)/.plain
	$(BIN)/sfumato demo

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -n auto --dist worksteal
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

unit: $(VENV)/.unit  ## the quick tests: no root, no Docker, no servers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not server and not long" $(UNIT)

sweep: $(VENV)/.dev  ## the slow statistical sweeps and a million fuzzed inputs, with a fresh seed that is printed
	$(BIN)/python -m pytest -n auto -m slow --seed random

mutants: $(VENV)/.dev  ## plants faults in what protects people, and lists those that no test notices; some 20 minutes
	PYTHONPATH=. $(BIN)/python -W ignore -m tests.mutation.campaign

journeys: $(VENV)/.dev  ## all browser tests by keyboard, with axe, in two browsers, two sizes and two colour schemes; some two hours
	for browser in chromium firefox; do for size in desktop phone; do for scheme in light dark; do \
	  $(BIN)/python -m pytest -n auto --dist worksteal tests/browser --keyboard --axe \
	    --browser $$browser --size $$size --scheme $$scheme || exit 1; \
	done; done; done

bench: $(VENV)/.dev  ## speed and memory against named rivals; rewrites docs/benchmarks.md
	PYTHONPATH=. $(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.dev  ## the most important ones in two minutes, printed only
	PYTHONPATH=. $(BIN)/python benchmarks/run.py --quick

figures: $(VENV)/.plain  ## every figure of the papers at full size, with verdicts, in sfumato-reproduced
	$(BIN)/sfumato reproduce --report

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build
	@echo "open docs/_build/index.html"

dist: $(VENV)/.release  ## source distribution, wheel and software bill of materials, checked, in dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv dist/.sbom && dist/.sbom/bin/pip install --quiet dist/*.whl
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-format JSON --outfile dist/sbom.json dist/.sbom
	rm -rf dist/.sbom

lock: $(VENV)/.release  ## exact versions with hashes, for machines without a network
	grep '^#' requirements/locked.txt > requirements/locked.new
	$(BIN)/uv pip compile pyproject.toml $(LOCKED) --generate-hashes --universal --no-header --no-annotate --quiet >> requirements/locked.new
	mv requirements/locked.new requirements/locked.txt

clean:
	rm -rf $(VENV) .bench docs/_build

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfumato needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.plain: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -e .
	touch $@

$(VENV)/.unit: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -e '.[unit]'
	touch $@

$(VENV)/.release: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -e '.[release]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@ $(VENV)/.plain $(VENV)/.unit
