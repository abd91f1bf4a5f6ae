"""The golden set: a restructuring changes no byte of what `agedp` computes, writes and prints.

`runs/*.toml` are run files of all six notions in all three modes, over three datasets; each run executes `calibrate`
(estimated models), `plan`, `run`, `verify` and `ledger show`, with fixed noise and clock. `runs/short/*.toml` are the
statistics, each in both layouts, delta, a private model, two populations that share households, amendments, and a
release at a URL, with fewer commands; `runs/short/second` contains the second population, and the run file that an
amendment records. `inputs.py` makes the input, without the product. `digests/` contains the SHA-256 of every artefact,
run -> artefact, in three files:

* `values.json`: exit statuses, and column by column what no wording and no hash enters: releases of the ledger (loss,
  scale, noisy values), published tables, the household sums behind them, and the promise's own bounds. Never
  rewritten: `--update` adds new runs and columns to it and refuses everything else.
* `contracts.json`: contracts and models with their first hashes, the ledger's records of itself (household accounts,
  calibration draws), its tables. Rewritten only where the change on purpose is one of these.
* `texts.json`: everything else, and every file that contains a sentence, or the hash of a row after a statement:
  terminal, JSON, STATEMENT.md, statement.json, HTML, SHA256SUMS, ledger rows, whole Parquet files with their metadata.

Masked: the run's folder, the seconds of the model's check, the version of Parquet's writer, and the versions of agedp
and its libraries, which are 0.0.0 for the time of a run, so that ledger hashes do not depend on them. Parquet tables of
the confidential folder are compared by schema and rows, its store not at all: its file names contain the location of
the input.

Where a difference comes from:

    python -m tests.golden --write /tmp/before      # in a checkout without the change
    python -m tests.golden --write /tmp/after       # in one with it
    diff -r /tmp/before /tmp/after

After a change on purpose: `python -m tests.golden --update [RUN ...]`, then read the diff of the digests: it names
the artefacts. A renamed or moved package changes the three names at the top of `product.py` only. The digests belong
to the library versions of `constraints.txt`; other ones may differ in the last digits of a float or in Parquet's
encoding. So do processors with AVX-512, which `tests/conftest.py` switches off; `python -m tests.golden` needs
NPY_DISABLE_CPU_FEATURES=X86_V4 and OPENBLAS_CORETYPE=Haswell there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.artefacts import (
    RUNS,
    SHORT,
    TEXTS,
    VALUES,
    collect,
    differences,
    digests_of,
    rewritten_values,
    stored_digests,
)
from tests.references import unresolved
from tests.statement_words import faults

FAST = {*[run for run in RUNS if run not in SHORT][::2], "periods-single", "url", "weekday-month-single"}
"""Every second complete run, so each notion and each mode, and three short ones; the others are behind `long`."""
LONG = {*RUNS} - FAST


@pytest.mark.parametrize("name", [pytest.param(run, marks=pytest.mark.long if run in LONG else ()) for run in RUNS])
def test_every_artefact_of_a_run_is_unchanged(tmp_path: Path, name: str) -> None:
    artefacts = collect(name, tmp_path)
    lines = differences(stored_digests()[name], digests_of(artefacts))
    assert not lines, f"{name}: {len(lines)} artefacts (see the docstring of this module):\n" + "\n".join(lines)
    texts = {
        artefact: content.decode(errors="replace") for of in artefacts.values() for artefact, content in of.items()
    }
    assert {artefact: found for artefact, text in texts.items() if (found := unresolved(text))} == {}
    statements = {artefact: text for artefact, text in texts.items() if artefact.endswith("STATEMENT.md")}
    assert statements
    assert {artefact: found for artefact, text in statements.items() if (found := faults(text))} == {}


def test_the_digests_are_those_of_the_run_files() -> None:
    stored = stored_digests()
    assert set(stored) == set(RUNS)
    assert all(all(by_category.values()) for by_category in stored.values())


def test_an_update_adds_values_and_rewrites_none() -> None:
    stored = {"run": {VALUES: {"loss": "1", "scale": "2"}, TEXTS: {"page": "3"}}}
    more = {"run": {VALUES: {"loss": "1", "scale": "2", "new": "4"}, TEXTS: {"page": "5"}}, "new run": stored["run"]}
    assert rewritten_values(stored, more) == []
    assert rewritten_values(stored, {"run": {VALUES: {"loss": "9"}}}) == ["run: loss", "run: scale"]
    assert rewritten_values(stored, {}) == ["run: loss", "run: scale"]
