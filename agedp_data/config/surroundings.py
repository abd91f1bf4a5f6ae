"""[output], [population], [compare] and [engine]: where it goes, who is protected, how it runs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field, PlainValidator

from agedp_data.config.places import LedgerUrl, Place
from agedp_data.notions.parameters import (
    Amount,
    Block,
    Days,
    Fraction01,
    Text,
    ascending,
    positive_kwh,
    text,
    watt_hours,
    wrong,
)


class Output(Block):
    """[output]: the folder that may be handed over, the one that may not, and the promise itself."""

    release: Place
    confidential: Place
    ledger: LedgerUrl
    title: Text | None = None
    source: Text | None = None
    licence: Text | None = None
    contact: Text | None = None
    interval: Fraction01 = Decimal("0.95")


class Population(Block):
    """[population]: the people to whom the promise is made."""

    name: Text
    roster: Place
    min_households: Annotated[int, Field(ge=1, le=1_000_000_000)]


def _deltas(value: object) -> tuple[Decimal, ...]:
    return ascending(value, positive_kwh)


class Compare(Block):
    """[compare]: figures for the statement only; they change no noise."""

    window_days: Days | None = None
    exponential: Fraction01 | None = None
    hyperbolic: Amount | None = None
    delta_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_deltas)] = ()

    @property
    def delta_wh(self) -> tuple[int, ...]:
        """Return the sizes of change to report, in whole watt-hours."""
        return tuple(watt_hours(delta) for delta in self.delta_kwh)


_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://([^][/@\s:]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def _scheduler(value: object) -> str:
    written = text(value)
    if written in ("threads", "processes", "local-cluster") or _ADDRESS.fullmatch(written):
        return written
    raise wrong('must be "threads", "processes", "local-cluster" or the address of a cluster, "tls://host:port"')


class Engine(Block):
    """[engine]: results are the same to the bit whatever stands here."""

    scheduler: Annotated[str, PlainValidator(_scheduler)] = "threads"
    workers: Annotated[int, Field(ge=1, le=10_000)] = 2
    block_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    keep_days: Annotated[int, Field(ge=0, le=100_000)] = 400
