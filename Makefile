# `make run`: set up and show everything once on synthetic households, out/index.html. `make test`: set up and pass the tests.
# `make help`: all targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt
OUT    ?= out

LOWEST ?= .venv-lowest
BASE   ?= HEAD~1

.PHONY: run help test check lint long lowest papers docs reference benchmarks compare dist check-dist image clean

run: $(VENV)/.run ## the whole pipeline on synthetic households: out/index.html
	@$(BIN)/agedp demo $(OUT)

help: ## this list
	@awk -F ":.*## " '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

# Types are checked beside the tests, on the core that pytest leaves idle while it collects and at its end.
test: lint ## lint, types, import rules and all tests
	@$(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n 2 --dist loadgroup; tests=$$?; wait $$types; typed=$$?; \
	cat $(VENV)/types.txt; exit $$((tests | typed))

check: lint ## lint, types and import rules
	@$(BIN)/mypy

lint: $(VENV)/.test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

long: $(VENV)/.test ## the long tests
	@$(BIN)/python -m pytest -m long
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --hypothesis-profile=new-examples tests/agedp_data tests/laws tests/fuzz

papers: $(VENV)/.test ## the figures of the papers: out/papers
	@$(BIN)/python -m docs.papers all --out $(OUT)/papers

docs: $(VENV)/.docs ## the pages as a site: docs/_build/index.html; asks no network once it is set up
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build && echo docs/_build/index.html

# Writes the keys of run files and the commands into docs/run-file.md and docs/commands.md.
reference: $(VENV)/.run ## docs/run-file.md and docs/commands.md from the code
	@$(BIN)/python docs/_ext/reference.py

# The lowest versions that pyproject.toml admits: installed apart, both formats published with them, by plain run and flow.
lowest: ## tests with the lowest versions that pyproject.toml admits
	@$(PYTHON) -m tests.package.lowest > lowest.txt
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check install -qq --constraint lowest.txt '.[cluster,postgresql,prefect,s3]'
	@# the tools of the tests afterwards: together with them the resolver tries all versions of botocore for half an hour
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check freeze | grep botocore >> lowest.txt
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check install -qq --constraint lowest.txt pytest hypothesis flask flask-cors 'moto[s3]'
	@rm lowest.txt
	@$(LOWEST)/bin/agedp sample london $(OUT)/lowest/london --households 30 --days 10
	@$(LOWEST)/bin/agedp run $(OUT)/lowest/london/london.toml --flow
	@$(LOWEST)/bin/agedp sample ausgrid $(OUT)/lowest/ausgrid --households 30 --days 10
	@$(LOWEST)/bin/agedp run $(OUT)/lowest/ausgrid/ausgrid.toml
	@$(LOWEST)/bin/python -m pytest -q -p no:cacheprovider -W default tests/agedp/test_ingest.py tests/agedp/test_release_and_publish.py tests/agedp_data/ledger tests/agedp_data/config tests/statistics tests/laws tests/agedp_flows/test_command.py

# Measures everything that docs/benchmarks.md prints: about half an hour on a machine that does nothing else.
benchmarks: $(VENV)/.bench ## docs/benchmarks.md: half an hour on an idle machine
	@$(BIN)/python -m benchmarks --all

# The commit BASE against HEAD, on this machine: fails if a measurement became 10 % slower. Six minutes. BASE is the commit
# before HEAD: the main branch as it was, after a merge. On a branch: make compare BASE=main. After a release: BASE=v0.2.0.
compare: $(VENV)/.bench ## speed of HEAD against BASE (HEAD~1): fails if a measurement became 10 % slower
	@$(BIN)/python -m benchmarks.compare $(BASE)

# The distributions: built, their content and README checked, then each extra installed outside of the clone and tried.
dist: $(VENV)/.dist ## wheel and source distribution: dist/
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . >/dev/null && ls -l dist

check-dist: dist ## installs dist/ and each extra in new environments and tries them: ten minutes
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python -m tests.package.installed dist

image: dist ## the container image of docs/deploy.md, with docker or podman
	@if command -v podman >/dev/null; then podman build --format docker --file container/Containerfile --tag agedp .; \
	else docker build --file container/Containerfile --tag agedp .; fi

clean: ## removes what the other targets wrote
	rm -rf $(VENV) $(LOWEST) $(OUT) dist docs/_build

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@$(PIP) --editable '.[prefect]'
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@echo "Adding the test tools ..."
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.run
	@echo "Adding the contenders of the benchmarks ..."
	@$(PIP) --editable '.[bench,prefect]'
	@touch $@

$(VENV)/.dist: $(VENV)/.run
	@echo "Adding the tools for distributions ..."
	@$(PIP) build twine
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	@echo "Adding the tools for the pages ..."
	@$(PIP) --editable '.[docs,prefect]'
	@touch $@
