# `make setup` needs python3 >= 3.11 and a pip that can install; everything else works inside .venv.

PYTHON ?= python3
# More arguments for pip, such as --find-links with a CPU wheel of torch.
PIP_FLAGS ?=

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.installed

# Tests start hundreds of processes, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup system test test-changed statistical targets slow mutants lint fmt bench demo vsix playground wheel e2e screenshots clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: system $(STAMP) ## make .venv with the versions of constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "QVR needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Could not make $(VENV). On Debian and Ubuntu, install the package python3-venv." >&2; exit 1; }
	$(PY) -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[dev]'
	@touch $@

# Only SVG and PNG from the command line need `dot`; so its absence is told, never an error.
system:
	@if command -v dot >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	     { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends graphviz; } >/dev/null; then :; \
	else echo "note: the program 'dot' is missing: install the package 'graphviz' to get SVG and PNG diagrams. Going on without it." >&2; \
	fi

# Which tests a plain `pytest` selects, pyproject.toml says.
DEFAULT_TESTS := -n 2 --dist worksteal

test: setup ## run the tests, but for the statistical ones, the long replays and those with a real editor
	$(PY) -m pytest $(DEFAULT_TESTS)

test-changed: setup ## run those of them that what differs from main can reach (BASE=… for another branch)
	$(PY) -m scripts.changed_tests $(DEFAULT_TESTS)

statistical: setup ## run the tests that fit whole models, on one machine and on clusters, and those that take seconds
	$(PY) -m pytest -m "(statistical or long) and not slow" -n 2 --dist worksteal

targets: setup ## compare exported programs with Stan, NumPyro and PyMC, in environments of their own
	$(PY) -m scripts.targets
	$(PY) -m pytest -m targets -n 0 tests/export

slow: setup ## replay random edits in the encodings that `make test` leaves out, and a thousand random programs
	$(PY) -m pytest -m slow -n 2 --dist worksteal

# All of them take a day: name a module, or some.
MUTANTS ?= qvr_core.semantics.arithmetic.ranges* qvr_core.semantics.arithmetic.broadcasting* qvr_core.inference.mcmc.mass*

mutants: setup ## change the code in small ways and list what no test notices (MUTANTS="qvr_core.…*" says where)
	$(PY) -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[dev,mutants]'
	$(VENV)/bin/mutmut run $(foreach one,$(MUTANTS),'$(one)')
	$(VENV)/bin/mutmut results | grep -v 'not checked$$'

lint: setup ## ruff, its formatting, and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright

fmt: setup ## format, and fix what ruff can fix
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: setup ## run the benchmarks
	$(PY) -m benchmarks

demo: setup ## run the demonstration
	$(PY) scripts/demo.py

.PHONY: release
release: setup ## build all that is published from a clean clone into dist/, and check it
	$(PY) -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[dev,release]'
	$(PY) -m scripts.release

.PHONY: pythons
pythons: setup ## test the front end under Python 3.11 to 3.14, as far as they can be had here
	$(PY) -m scripts.pythons

.PHONY: docs
docs: setup ## build the site into site/, and check its links and that it fetches nothing
	$(PY) -m scripts.website

# The extension's tools come from its lock file; no script of theirs is run.
vsix: vscode-extension/node_modules/.package-lock.json playground ## build, test and package the VS Code extension
	cd vscode-extension && npm run --silent check && npm run --silent test && npm run --silent package

vscode-extension/node_modules/.package-lock.json: vscode-extension/package-lock.json
	@command -v npm >/dev/null 2>&1 || { echo "Building the extension needs Node 20 or newer with npm." >&2; exit 1; }
	cd vscode-extension && npm ci --ignore-scripts
	@touch $@

# QVR_E2E=skip goes on without the editors; without it, an editor that cannot be had is a failure.
e2e: setup vsix ## drive a real VS Code and a real Neovim (fetches them into .cache/)
	$(MAKE) walks

# What is built stands already: `.ci/run` builds it beside the types, which leave a core idle.
.PHONY: walks
walks: setup
	$(PY) -m tests.e2e.fetch
	$(PY) -m pytest -m e2e tests/e2e -n 2 --dist load -p cacheprovider # which of them failed is known afterwards

screenshots: setup vsix ## take the README's pictures from the real VS Code
	$(PY) -m tests.e2e.fetch
	PATH="$(CURDIR)/.cache/e2e/code/node_modules/.bin:$$PATH" node tests/e2e/vscode/screenshots.mjs docs/images
	node tests/e2e/playground/screenshots.mjs docs/images
	QVR_PICTURES=docs/images node tests/e2e/play/drive.mjs

# Wheels come from PyPI, everything else from the lock file.
playground: setup playground/node_modules/.package-lock.json ## build the page that needs nothing installed into playground/dist/
	cd playground && npm run --silent check && npm run --silent build

# The page travels in this wheel, for `qvr play`; Pyodide does not: the server is the process itself there.
PAGE := qvr_lsp/play/page
wheel: playground ## build the wheel with the page of `qvr play` into dist/
	rm -rf $(PAGE) && cp -r playground/dist $(PAGE) && rm -r $(PAGE)/server $(PAGE)/store.js $(PAGE)/netcdf.js $(PAGE)/data.json
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist . ; status=$$? ; rm -rf $(PAGE) ; exit $$status

playground/node_modules/.package-lock.json: playground/package-lock.json
	@command -v npm >/dev/null 2>&1 || { echo "Building the playground needs Node 20 or newer with npm." >&2; exit 1; }
	cd playground && npm ci --ignore-scripts
	@touch $@

clean: ## remove the environment, caches and build outputs
	rm -rf $(VENV) build dist site mutants .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './*node_modules/*' -prune -exec rm -rf {} +
