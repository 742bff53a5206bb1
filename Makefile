# `make graft` makes the vLLM fork with the series applied; `make test` runs everything.
#
#   PYTHON   a Python 3.10 or newer to make the environment with
#   VLLM     the release to fetch
#   FORK     where the fork goes
#   SERIES   the series to apply; several with spaces between, in quotes
PYTHON ?= python3
VLLM ?= 0.23.0
FORK ?= fork
VENV ?= .venv
SERIES ?= mrv2-async-output
BIN := $(VENV)/bin
GRAFT := $(BIN)/vllm-graft
WANTED := $(SERIES:%=--series %)
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help graft test proof test-fast lint format bench matrix clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 20

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("vllm-graft needs Python 3.10 or newer; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(FORK)/.git/HEAD: | $(READY)
	$(GRAFT) fetch $(VLLM) $(FORK)

graft: $(READY) $(FORK)/.git/HEAD ## make fork/: vLLM with the series as commits, and dist/: the mail
	@git -C $(FORK) config user.email >/dev/null || git -C $(FORK) config user.email graft@localhost
	@git -C $(FORK) config user.name >/dev/null || git -C $(FORK) config user.name vllm-graft
	$(GRAFT) apply --commit $(WANTED) $(FORK)
	$(GRAFT) status $(WANTED) $(FORK)
	@git -C $(FORK) --no-pager log --oneline v$(VLLM)..HEAD
	@git -C $(FORK) --no-pager diff --stat v$(VLLM) HEAD
	$(GRAFT) export $(WANTED) -o dist $(FORK)

test: $(READY) ## run the tests, executors of real vLLM included; the first time installs the engine (6 GB) into the cache
	$(BIN)/python -m pytest -n auto -m "not engine"
	$(BIN)/python -m pytest -m "engine and not proof"

proof: $(READY) ## run the long proofs on real engines: wants two quiet cores
	$(BIN)/python -m pytest -m proof

test-fast: $(READY) ## run the tests that need neither the engine nor the network
	$(BIN)/python -m pytest -n auto -m "not engine and not network"

lint: $(READY) ## check style, types and the patches
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(GRAFT) check

format: $(READY) ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## run the benchmarks and print their tables
	$(BIN)/python -m benchmarks

matrix: $(READY) ## judge the series on every release; writes dist/matrix.html
	@mkdir -p dist
	$(GRAFT) matrix --html dist/matrix.html

clean: ## delete what was made here (the cache stays)
	rm -rf $(VENV) $(FORK) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
