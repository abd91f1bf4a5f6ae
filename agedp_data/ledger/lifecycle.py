"""Records of the ledger itself: closed, recovered, taken over, upgraded; calibration draws and household accounts.

Each is a statement row without population, so that it is part of the hash chain, such as

    {"closed":{"head":"9f3c...","rows":120}}

* Closed ledger: no row can be added after this record. The ledger continues elsewhere; if both continued, the same
  days would be drawn twice.
* Recovery record: the first row of a ledger that was recovered. It names the lost ledger, its head, and the hashes
  that the recovered rows had there, so that folders published from the lost ledger are still found on the chain. If
  the lost ledger had been recovered itself, its own record is contained in the new one.
* Takeover: follows the rows of an export whose ledger was never closed, and states that this ledger is lost.
* Upgrade: names the row from which on rows may have a later form, and the version of agedp that reads it. Earlier rows
  are not rewritten.
* Calibration draw (from form 2 on): one private answer about all readings of a household in a period, with its loss,
  such as the choice of a model. It is drawn once: the same query about the same period is answered by this record.
* Household account (form 2): the largest loss of any household of a population, over everything that the household
  register of 0.2 knew, as of the rows before it.
* Population account (from form 3 on): what a household of a population may have lost in it, and in it and every other
  population that shares a household with it. None is below the one before it.
* Signing key (from form 3 on): the fingerprint of the key that signs the folders of this ledger from this row on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from agedp_data.config.contract import NEEDS
from agedp_data.ledger.records import Row, StatementRecord, canonical
from agedp_data.notions.publication import Event, Events

LEDGER_POPULATION: Final = ""
"""The population of a lifecycle record: none, because the record is about the ledger."""


@dataclass(frozen=True, slots=True)
class ClosedLedger:
    """The ledger ended after `rows` rows, the last with hash `head`, and continues elsewhere."""

    head: str
    rows: int


@dataclass(frozen=True, slots=True)
class EarlierLedger:
    """A ledger before the lost one: the recovered rows had `hashes` in it ("" for rows that it did not contain).

    `files` (name, SHA-256) are those of the folder that the next ledger was recovered from.
    """

    ledger: str
    head: str
    hashes: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """The rows after this record had `hashes` in the lost ledger, whose last published row had hash `head`."""

    ledger: str
    head: str
    hashes: tuple[str, ...]
    earlier_ledgers: tuple[EarlierLedger, ...] = ()


@dataclass(frozen=True, slots=True)
class Takeover:
    """The first `rows` rows, the last with hash `head`, come from a ledger that was not closed and is lost."""

    head: str
    rows: int


@dataclass(frozen=True, slots=True)
class LedgerUpgrade:
    """The rows after this record may have `form`, which agedp reads from version `needs` on."""

    form: int
    needs: str


@dataclass(frozen=True, slots=True)
class CalibrationDraw:
    """What was drawn once from the readings of a period, first to last day (ISO dates), and its loss [nano-epsilon].

    `query` is canonical JSON of all that was asked, and how; `value` is the answer. The loss is about all readings of
    one household in the period.
    """

    population: str
    first_day: str
    last_day: str
    query: str
    value: tuple[int, ...]
    loss: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what a draw is unique by: population, period and query."""
        return self.population, self.first_day, self.last_day, self.query


@dataclass(frozen=True, slots=True)
class HouseholdAccount:
    """The largest loss about one `day` and in `total` of any household of a population [nano-epsilon].

    Every release in the household register counts, of whatever population and ledger. The register counts since a date
    (`since`, ISO); `gaps` names what it is known to lack: "rebuilt", "rehearsals", "releases".
    """

    population: str
    day: int
    total: int
    since: str = ""
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PopulationAccount(HouseholdAccount):
    """The same for a population and every other one that shares a household with it (`population_accounts`).

    `own_day` and `own_total` are the part of the population itself. `gaps` may name "rebuilt" for accounts that began
    anew.
    """

    own_day: int = 0
    own_total: int = 0


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The SHA-256 `fingerprint` of the key that signs from here on, and the `signature` of it by the key before it.

    `signature` is the earlier public key and what it signed, both hexadecimal (`signature.KeyHistory`); "" for the
    first key, and where the earlier key is lost.
    """

    fingerprint: str
    signature: str = ""


_Flat = ClosedLedger | Takeover | LedgerUpgrade | CalibrationDraw | HouseholdAccount | PopulationAccount | SigningKey
LifecycleRecord = _Flat | RecoveryRecord
SINCE_FORM_2: Final = (CalibrationDraw, HouseholdAccount)
"""Records about a population, of later forms than the first."""
LEDGER_FORM: Final = 3
"""The newest form of the rows of a ledger; a contract has a form of its own (`config.contract`)."""
LEDGER_NEEDS: Final[Mapping[int, str]] = {**NEEDS, 3: "0.3"}
"""The first version of agedp that reads each form of rows."""

_KINDS: Final[Mapping[str, type[_Flat]]] = {
    "closed": ClosedLedger,
    "taken over": Takeover,
    "upgraded": LedgerUpgrade,
    "calibration draw": CalibrationDraw,
    "household account": HouseholdAccount,
    "population account": PopulationAccount,
    "signing key": SigningKey,
}
"""Records whose text has their fields by name."""


def format_lifecycle_record(record: LifecycleRecord) -> str:
    """Return a lifecycle record as canonical JSON, the text of its statement row.

    >>> format_lifecycle_record(ClosedLedger("ab", 3))
    '{"closed":{"head":"ab","rows":3}}'
    """
    if not isinstance(record, RecoveryRecord):
        kind = next(kind for kind, of_kind in _KINDS.items() if type(record) is of_kind)
        return canonical({kind: asdict(record)})
    content: dict[str, object] = {"ledger": record.ledger, "head": record.head, "hashes": list(record.hashes)}
    if record.earlier_ledgers:
        content["former"] = [
            {"ledger": of.ledger, "head": of.head, "hashes": list(of.hashes), "files": dict(of.files)}
            for of in record.earlier_ledgers
        ]
    return canonical({"recovered": content})


def form_of(record: LifecycleRecord | None) -> int:
    """Return the form that a ledger must have before it can have a record."""
    return 3 if isinstance(record, PopulationAccount | SigningKey) else 2 if isinstance(record, SINCE_FORM_2) else 1


def read_lifecycle_record(row: StatementRecord) -> LifecycleRecord | None:
    """Return the lifecycle record of a statement row.

    Returns:
        The record; None for a privacy statement, or for a record that this version does not know.
    """
    if row.population != LEDGER_POPULATION:
        return None
    try:
        return _parse_record(json.loads(row.claim))
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _parse_record(record: dict[str, dict[str, object]]) -> LifecycleRecord | None:
    [(kind, content)] = record.items() if isinstance(record, dict) and len(record) == 1 else [("", {})]
    if of_kind := _KINDS.get(kind):
        return of_kind(**{field.name: _parse_field(str(field.type), content[field.name]) for field in fields(of_kind)})
    match kind, content:
        case "recovered", {"ledger": str(ledger), "head": str(head), "hashes": [*hashes]}:
            earlier_ledgers = tuple(map(_parse_earlier_ledger, _require_list(content.get("former", []))))
            return RecoveryRecord(ledger, head, _texts(hashes), earlier_ledgers)
    return None


def _parse_field(kind: str, value: object) -> Any:  # noqa: ANN401  (a field of any record)
    if kind.startswith("tuple"):
        return _integers(_require_list(value)) if "int" in kind else _texts(_require_list(value))
    if isinstance(value, int if kind == "int" else str):
        return value
    raise ValueError("no field of a record")


def _parse_earlier_ledger(content: object) -> EarlierLedger:
    match content:
        case {"ledger": str(ledger), "head": str(head), "hashes": [*hashes], "files": {**files}}:
            return EarlierLedger(
                ledger, head, _texts(hashes), tuple(sorted((str(key), str(files[key])) for key in files))
            )
    raise ValueError("no former ledger")


def _require_list(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise ValueError("no list")


def _integers(values: list[object]) -> tuple[int, ...]:
    integers = tuple(value for value in values if isinstance(value, int) and not isinstance(value, bool))
    if not integers or len(integers) < len(values):
        raise ValueError("no list of integers")
    return integers


def _texts(hashes: list[object]) -> tuple[str, ...]:
    return tuple(str(digest) for digest in hashes)


# --------------------------------------------------------------------------------------------------
# Calibration draws of a ledger -> the losses that notions count.
# --------------------------------------------------------------------------------------------------


def charges_of(draws: Iterable[CalibrationDraw]) -> Events:
    """Return the losses of calibration draws, as notions count them."""
    return tuple(Event(draw.first_day, draw.last_day, draw.loss) for draw in draws)


def draws_of_model(public: Mapping[str, Any], population: str) -> tuple[CalibrationDraw, ...]:
    """Return the draws that a model's public part contains, as they are charged to a population; () for most models."""
    first, last = public.get("period", ("", ""))
    return tuple(
        CalibrationDraw(population, first, last, str(draw["query"]), tuple(draw["value"]), int(draw["loss"]))
        for draw in public.get("draws", ())
    )


def calibration_draws(rows: Iterable[Row]) -> tuple[CalibrationDraw, ...]:
    """Return the calibration draws among the rows of a release folder, oldest first."""
    records = (read_lifecycle_record(row) for row in rows if isinstance(row, StatementRecord))
    return tuple(record for record in records if isinstance(record, CalibrationDraw))
