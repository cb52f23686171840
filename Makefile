# All commands for development and first use. `make help` lists them.

PYTHON ?= python3
PORT ?= 8000
SEEDS ?= 20
FIRST ?= 201
ADVISORIES ?= pypi
MUTANTS ?= 40

.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE
.NOTPARALLEL:
.PHONY: help demo demo-data serve test test-all test-deep coverage mutants check format audit bench chaos mail-chaos incidents \
        flag-quality services stop env secrets lock clean setup setup-dev setup-test setup-bench migrate

VENV := .venv/bin
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder
RUN := $(PYTHON) -m scripts.services run
MANAGE := $(RUN) $(VENV)/python manage.py
LOCK := $(VENV)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup  ## Set up everything with simulated data and serve it until Ctrl-C
	@$(VENV)/python -m simulator past --out var/live 2> var/log/past.log & past=$$!; \
	    $(VENV)/python -m scripts.services start && { \
	        $(MAKE) --no-print-directory staticfiles/staticfiles.json & static=$$!; \
	        $(MANAGE) migrate --verbosity 0 && wait $$past && \
	        echo "==> Loading the latest hours of a simulated centre" && \
	        $(MANAGE) demo_today 2> var/log/demo_today.log && wait $$static; \
	    } || { tail var/log/past.log var/log/demo_today.log; exit 1; }
	@$(RUN) $(VENV)/python -m scripts.serve $(PORT)

demo-data: migrate  ## Load all of the demo without serving it
	@echo "==> Simulating and loading a year"
	@$(MANAGE) demo_data

serve: migrate staticfiles/staticfiles.json  ## Run web, worker and beat until Ctrl-C (PORT=8000)
	@$(RUN) $(VENV)/python -m scripts.serve $(PORT)

test: setup-test services check  ## Run the checks and all tests but the long ones
	@echo "==> Running the tests"
	@$(RUN) $(VENV)/pytest $(PARALLEL) -m "not long"

test-all: setup-test services check  ## Run the checks and all tests
	@echo "==> Running all tests"
	@$(RUN) $(VENV)/pytest $(PARALLEL)

test-deep: setup-test services  ## Run the property tests with 100 times as many examples (nightly)
	@$(RUN) $(VENV)/pytest $(PARALLEL) --hypothesis-profile deep -m hypothesis \
	    --override-ini faulthandler_timeout=0

coverage: setup-test services  ## Run all tests but the long ones; report the branches of collectors, rules and analysis
	@$(RUN) $(VENV)/coverage run -m pytest $(PARALLEL) -m "not long"
	@$(VENV)/coverage combine --quiet && $(VENV)/coverage report

mutants: setup-dev services  ## Count the code changes that tests detect, in a sample (MUTANTS=40 SEED=1)
	@$(RUN) $(VENV)/python -m scripts.mutants $(or $(SEED),1) $(MUTANTS)

check: setup-dev services  ## Run the linters, the type checker and the project's contracts
	@echo "==> ruff"
	@$(VENV)/ruff check
	@$(VENV)/ruff format --check
	@echo "==> djlint"
	@$(VENV)/djlint templates --check --lint
	@echo "==> import-linter"
	@$(VENV)/lint-imports
	@echo "==> mypy"
	@$(RUN) $(VENV)/mypy
	@echo "==> Django"
	@$(MANAGE) check
	@$(MANAGE) makemigrations --check --dry-run

format: setup-dev  ## Fix and format code and templates
	@$(VENV)/ruff check --fix --quiet
	@$(VENV)/ruff format --quiet
	@$(VENV)/djlint templates --reformat --quiet

audit: setup-dev  ## Check the locked packages for known vulnerabilities (ADVISORIES=pypi, or osv)
	@$(VENV)/pip-audit --strict --require-hashes --disable-pip \
	    --vulnerability-service $(ADVISORIES) --requirement requirements/dev.txt

bench: setup-bench services staticfiles/staticfiles.json  ## Measure parsers, loading and pages; update docs/performance.md
	@$(RUN) $(VENV)/python -m bench

chaos: services  ## Inject faults and verify every count (SEEDS=20, or SEED=17)
	@$(VENV)/python -m chaos $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

mail-chaos: services  ## Kill the sender of notifications and break its servers; count every message (SEEDS=20, or SEED=17)
	@$(RUN) $(VENV)/python -m chaos.mails $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

incidents: setup-test services  ## Distinguish harmful from busy jobs in 20 simulated incidents
	@$(RUN) env IOPORTAL_TEST_INCIDENTS=20 $(VENV)/pytest --capture no tests/web/incidents/test_impact.py

flag-quality: setup-bench services  ## Measure precision and recall of the rules on labelled sets (SEEDS=20, FIRST=201)
	@$(RUN) $(VENV)/python -m bench flag-quality --seeds $(SEEDS) --first $(FIRST)

services: setup  ## Start PostgreSQL and Valkey, or check the servers named in the environment
	@$(VENV)/python -m scripts.services start

stop:  ## Stop the services of this checkout
	@$(PYTHON) -m scripts.services stop

env:  ## Print settings as NAME=value lines, for: export $(make env)
	@$(PYTHON) -m scripts.services env

secrets:  ## Create the secrets that docker-compose.yml needs (production)
	@$(PYTHON) -m scripts.production_secrets

lock: setup-dev  ## Lock the latest versions that pyproject.toml allows, with hashes
	@echo "==> Locking"
	@echo pip | $(LOCK) --output-file requirements/installer.txt -
	@$(LOCK) --output-file requirements/base.txt pyproject.toml
	@printf '%s\n' blake3 clustershell httpx numpy polars zstandard | \
	    $(LOCK) --output-file requirements/agent.txt --constraints requirements/base.txt -
	@$(LOCK) --output-file requirements/dev.txt --extra dev --constraints requirements/base.txt \
	    pyproject.toml

clean: stop  ## Stop and remove everything created here, including the database
	@rm -rf .venv var staticfiles .*_cache .hypothesis
	@find . -name __pycache__ -prune -exec rm -rf {} +

# -- steps of the targets above ---------------------------------------------------------------

setup:
	@$(PYTHON) -m scripts.bootstrap base

setup-dev:
	@$(PYTHON) -m scripts.bootstrap dev

setup-test:
	@$(PYTHON) -m scripts.bootstrap dev chromium libatomic.so.1 nginx

setup-bench:
	@$(PYTHON) -m scripts.bootstrap dev mawk

staticfiles/staticfiles.json: requirements/base.txt $(shell find static -type f)
	@echo "==> Collecting and compressing the static files"
	@$(MANAGE) collectstatic --noinput --clear --verbosity 0

migrate: services
	@echo "==> Migrating the database"
	@$(MANAGE) migrate --verbosity 0
