# Two commands on a fresh machine: `make demo` and `make test`. They need make, Python and a package index.
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.PHONY: help demo test lint bench bench-smoke lock upgrade env clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## seed a small office and drive every outcome and refusal through a real worker
	@$(BIN)/office demo

test: $(STAMP) ## run the whole test suite; it starts its own servers
	@$(BIN)/python -m pytest -n 4 --dist worksteal

lint: $(STAMP) ## ruff, its formatter, mypy --strict, the import contracts, and no sleeps in tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@! grep -rnE --include='*.py' '(^|[^_])sleep\(|[^g]_sleep\(' tests || \
		{ echo 'tests do not sleep: wait for a signal, a row or a lock wait, with a time-out' >&2; exit 1; }

bench: $(STAMP) ## measure what docs/performance.md promises
	@$(BIN)/python -m bench

bench-smoke: $(STAMP) ## run every benchmark once, small, to see that it runs
	@$(BIN)/python -m bench --smoke

lock: $(STAMP) ## resolve pyproject.toml again, keeping every pin that still fits
	@$(COMPILE) -o requirements/runtime.lock
	@$(COMPILE) --all-extras -o requirements/dev.lock

upgrade: $(STAMP) ## upgrade every pin to the newest release that pyproject.toml allows
	@$(COMPILE) --upgrade -o requirements/runtime.lock
	@$(COMPILE) --upgrade --all-extras -o requirements/dev.lock

env: ## write .env with random secrets for docker compose; to an existing one only what it lacks
	@$(PYTHON) .ci/write_env.py .env

clean: ## remove .venv, .data and all caches
	@# As root, a database under a directory closed to others lies elsewhere, and a link says where.
	@for link in .data/*/elsewhere; do if [ -L "$$link" ]; then rm -rf "$$(readlink "$$link")"; fi; done
	@rm -rf .venv .data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp holds the checkout's path: an environment that an interrupted install left, or that was moved with its
# checkout (scripts name their interpreter by its full path), is made anew; an outdated one is only updated.
ifneq "$(shell cat $(STAMP) 2>/dev/null)" "$(CURDIR)"
.PHONY: $(STAMP)
endif
$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed and\
	 '$(PYTHON)' is not: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@{ [ "$$(cat $@ 2>/dev/null)" = '$(CURDIR)' ] && $(BIN)/python -m pip --version >/dev/null 2>&1; } || \
		$(PYTHON) -m venv --clear .venv
	@echo 'Installing what requirements/dev.lock names into .venv ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo '$(CURDIR)' > $@
