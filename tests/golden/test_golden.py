"""The golden set: a restructuring changes no byte of what `agedp` computes, writes and prints.

`runs/` contains run files of all six notions in all three modes, over three datasets. `inputs.py` makes their input,
without the product. Each run executes `calibrate` (estimated models), `plan`, `run`, `verify` and `ledger show` with
fixed noise and clock. `digests.json` contains the SHA-256 of every artefact: run -> category -> artefact. The
categories are `numbers` (ledger, Parquet, JSON, exit statuses) and `texts` (STATEMENT.md, HTML, terminal, SHA256SUMS).
A change of wording on purpose may change texts. It also changes the numbers that contain sentences or hashes of texts:
statement.json, datapackage.json, ledger/statement.jsonl, ledger_rows.jsonl, and by the hash chain ledger/release.jsonl
and the guarantee in the metadata of the Parquet tables.

Masked: the run's folder, the version of Parquet's writer, and the versions of agedp and its libraries, which are
0.0.0 for the time of a run, so that ledger hashes do not depend on them. Parquet tables of the confidential folder
are compared by schema and rows, its store not at all: its file names contain the location of the input.

Where a difference comes from:

    python -m tests.golden --write /tmp/before      # in a checkout without the change
    python -m tests.golden --write /tmp/after       # in one with it
    diff -r /tmp/before /tmp/after

After a change on purpose: `python -m tests.golden --update [RUN ...]`, then read the diff of digests.json: it names
the artefacts, and a numbers line in it needs a reason. A renamed or moved package changes the two names at the top
of `product.py` only. The digests belong to the library versions of `constraints.txt`; other ones may differ in the
last digits of a float or in Parquet's encoding. So do processors with AVX-512, which `tests/conftest.py` switches off;
`python -m tests.golden` needs NPY_DISABLE_CPU_FEATURES=X86_V4 there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.artefacts import RUNS, collect, differences, digests_of, stored_digests
from tests.references import unresolved


@pytest.mark.parametrize("name", RUNS)
def test_every_artefact_of_a_run_is_unchanged(tmp_path: Path, name: str) -> None:
    artefacts = collect(name, tmp_path)
    lines = differences(stored_digests()[name], digests_of(artefacts))
    assert not lines, f"{name}: {len(lines)} artefacts (see the docstring of this module):\n" + "\n".join(lines)
    texts = {
        artefact: content.decode(errors="replace") for of in artefacts.values() for artefact, content in of.items()
    }
    assert {artefact: found for artefact, text in texts.items() if (found := unresolved(text))} == {}


def test_the_digests_are_those_of_the_run_files() -> None:
    assert set(stored_digests()) == set(RUNS)
