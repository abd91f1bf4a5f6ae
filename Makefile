# `make run`: set up and show everything once on synthetic households, out/index.html. `make test`: set up and pass the tests.
# `make docs`: the pages as a site, docs/_build/index.html; asks no network once it is set up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt
OUT    ?= out

LOWEST ?= .venv-lowest
BASE   ?= main

.PHONY: run test check long lowest papers docs reference benchmarks compare clean

run: $(VENV)/.run
	@$(BIN)/agedp demo $(OUT)

test: check
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(VENV)/.test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

long: $(VENV)/.test
	@$(BIN)/python -m pytest -m long
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --hypothesis-profile=new-examples tests/agedp_data tests/laws tests/fuzz

papers: $(VENV)/.test
	@$(BIN)/python -m docs.papers all --out $(OUT)/papers

docs: $(VENV)/.docs
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build && echo docs/_build/index.html

# Writes the keys of run files and the commands into docs/run-file.md and docs/commands.md.
reference: $(VENV)/.run
	@$(BIN)/python docs/_ext/reference.py

# The lowest versions that pyproject.toml admits: installed apart, both formats published with them, by plain run and flow.
lowest:
	@$(PYTHON) -m tests.package.lowest > lowest.txt
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check install -qq --constraint lowest.txt '.[cluster,postgresql,prefect,s3]' pytest hypothesis
	@rm lowest.txt
	@$(LOWEST)/bin/agedp sample london $(OUT)/lowest/london --households 30 --days 10
	@$(LOWEST)/bin/agedp run $(OUT)/lowest/london/london.toml --flow
	@$(LOWEST)/bin/agedp sample ausgrid $(OUT)/lowest/ausgrid --households 30 --days 10
	@$(LOWEST)/bin/agedp run $(OUT)/lowest/ausgrid/ausgrid.toml
	@$(LOWEST)/bin/python -m pytest -q -p no:cacheprovider -W default tests/agedp/test_ingest.py tests/agedp/test_release_and_publish.py tests/agedp_data/ledger tests/agedp_data/config tests/statistics tests/laws tests/agedp_flows/test_command.py

# Measures everything that docs/benchmarks.md and docs/scale.md print: about half an hour on a machine that does nothing else.
benchmarks: $(VENV)/.bench
	@$(BIN)/python -m tests.benchmarks --all

# The commit BASE against the present one, on this machine: fails if a measurement became 10 % slower. Six minutes.
compare: $(VENV)/.bench
	@$(BIN)/python -m tests.benchmarks.compare $(BASE)

clean:
	rm -rf $(VENV) $(LOWEST) $(OUT) docs/_build

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

$(VENV)/.docs: $(VENV)/.run
	@echo "Adding the tools for the pages ..."
	@$(PIP) --editable '.[docs,prefect]'
	@touch $@
