"""release folder + LEDGER: does the folder lie on the chain, and does it say what the ledger says?

For recipients who are given a ledger (`agedp verify FOLDER --ledger URL`), and for every run, which must not go
on from a ledger that lacks what was published beside it: it would draw the same days a second time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import losses
from agedp_data.errors import InputError, LedgerBehind, LedgerError
from agedp_data.ledger import Contract, Ledger, Release
from pipelines.received import METADATA_KEY, ROWS, ReleaseFolder, is_of_release


class Said(NamedTuple):
    """One figure of the daily averages: a cell of a day, what was drawn, at which loss [1e-9], when."""

    day: str
    group: str
    revision: int
    households: int
    noisy_sum_wh: int
    published_on: str
    loss: int
    version: int


class Sign(NamedTuple):
    """What a file of a release says of its origin: the people, and the ledger's head when it was written."""

    population: str
    head: str


def require_not_behind(ledger: Ledger, signs: Iterable[Sign]) -> None:
    """Check that a ledger holds what the files of the release folder beside it were published from.

    Raises:
        LedgerBehind: it does not; `agedp ledger recover` restores what the folder carries.
    """
    if not all(ledger.contains(sign.head) for sign in signs):
        raise LedgerBehind(
            "the release folder holds more than the ledger, or comes from another one; put back the newest copy of the "
            "ledger, restore it from the folder (`agedp ledger recover`), or name another folder in [output] release"
        )


def signs_in(folder: Path) -> frozenset[Sign]:
    """Return what the files of a release folder say of their origin; a damaged one says nothing, publishing mends it.

    Every file that names a head is asked: a folder of which one was lost or cut off must not be taken for none.
    """
    figures = [partial(_of_figures, name=path.name) for path in _figures(folder)]
    origins: list[Callable[[Path], Sign]] = [_of_statement, _of_rows, *figures]
    found = set()
    for origin in origins:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException, InputError):
            found.add(origin(folder))
    return frozenset(found)


def _of_statement(folder: Path) -> Sign:
    claim = ReleaseFolder(folder).statement
    return _sign(claim["population"], claim["ledger"]["head"])


def _of_rows(folder: Path) -> Sign:
    with (folder / ROWS).open(encoding="ascii") as stream:
        head = json.loads(next(stream, ""))["head"]
        texts = (json.loads(json.loads(line)["text"]) for line in stream)
        return _sign(next((text["population"] for text in texts if text.get("population")), None), head)


def _of_figures(folder: Path, *, name: str) -> Sign:
    guarantee = json.loads((pq.read_schema(folder / name).metadata or {})[METADATA_KEY])
    return _sign(guarantee["population"], guarantee["ledger"]["head"])


def _figures(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.parquet") if is_of_release(path.name))


def _sign(population: object, head: object) -> Sign:
    if not isinstance(population, str) or not isinstance(head, str):
        raise TypeError("a file that names its origin names it as text")
    return Sign(population, head)


def verify_against(folder: ReleaseFolder, ledger: Ledger) -> None:
    """Check a verified folder against a ledger: its head, its values, its files.

    Raises:
        LedgerBehind: the ledger ends before the folder does, or went another way since.
        LedgerError: another ledger, other values, or files that the ledger keeps no statement of.
    """
    place = ledger.place(_head(folder))
    if place is None:
        raise _not_on_chain(folder, ledger)
    population = str(folder.statement["population"])
    rows = [row for row in ledger.rows(population) if row.seq <= place]
    require_same(told(folder), averages_of(rows, ledger.contracts(population)))
    files = tuple(sorted(folder.checksums.items()))
    if files not in {*(statement.files for statement in ledger.statements(population)), *ledger.former_files()}:
        raise LedgerError("the ledger keeps no statement with the files of this folder; `agedp publish` writes it anew")


def _head(folder: ReleaseFolder) -> str:
    try:
        return str(folder.statement["ledger"]["head"])
    except (LookupError, TypeError):
        raise InputError("statement.json names no head of a ledger; ask for the release again") from None


def _not_on_chain(folder: ReleaseFolder, ledger: Ledger) -> LedgerError:
    if ledger.length() and folder.statement["ledger"].get("id") != ledger.id:
        return LedgerError("the folder's head is not on the chain: it was published from another ledger")
    return LedgerBehind(
        "the ledger is shorter than the folder: it lacks the row that the folder ends with; put back its newest copy, "
        "or restore it from the folder (`agedp ledger recover`)"
    )


def told(folder: ReleaseFolder) -> list[Said]:
    """Return what a folder's daily averages say of their draws.

    Raises:
        InputError: no daily averages to read.
    """
    return [
        Said(
            row["day"].isoformat(),
            row["group"],
            row["revision"],
            row["households"],
            row["noisy_sum_wh"],
            row["published_on"].isoformat(),
            round(row["epsilon"] * losses.NANO),
            row["version"],
        )
        for table in folder.averages().values()
        for row in table.to_pylist()
    ]


def averages_of(rows: Sequence[Release], contracts: Sequence[Contract]) -> list[Said]:
    """Return what daily averages of these rows say of their draws; other statistics have files of their own."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    means = {contract.hash: _means(contract) for contract in contracts}
    return [
        Said(row.day, cell, row.revision, homes, value, row.published_on, row.loss, versions[row.contract])
        for row in rows
        if row.state == "released" and row.series in means[row.contract]
        for cell, homes, value in zip(row.cells, row.households, row.values, strict=True)
    ]


def _means(contract: Contract) -> frozenset[str]:
    series = json.loads(contract.promise)["series"]
    return frozenset(name for name, each in series.items() if each["statistic"] == "mean")


def require_same(published: Sequence[Said], kept: Sequence[Said]) -> None:
    """Check that a folder and a ledger say the same of the same days.

    Raises:
        LedgerError: the first day of which they do not.
    """
    folder, ledger = Counter(published), Counter(kept)
    if folder != ledger:
        day = min((folder - ledger) + (ledger - folder)).day
        raise LedgerError(f"the folder says other values than the ledger of {day}; one of the two was changed")
