"""[output], [population], [compare], [alerts] and [engine]: where it goes, who is protected, how it runs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field, PlainValidator

from agedp_data.config.places import LedgerUrl, Place, SharedFolder
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
    """Folder that may be handed over as it is."""
    confidential: SharedFolder
    """Folder that stays in the house: readings, quality, model, true means. Never a URL."""
    ledger: LedgerUrl
    """Address of the ledger, without a password. Back it up, never edit it."""
    title: Text | None = None
    """Name of the release, for people and for `datapackage.json`."""
    source: Text | None = None
    """Attribution; it travels with the release."""
    licence: Text | None = None
    """Licence of the release."""
    contact: Text | None = None
    """Whom to ask."""
    interval: Fraction01 = Decimal("0.95")
    """How much of the noise the published interval covers."""


class Population(Block):
    """[population]: the people to whom the promise is made."""

    name: Text
    """The people. Every series of this name in the ledger spends one promise."""
    roster: Place
    """File `household_id,from,to` and group columns: who is counted on which days. Rows may change for days that are
    not released.
    """
    min_households: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """A day or a group with fewer homes on the roster is never released."""


def _deltas(value: object) -> tuple[Decimal, ...]:
    return ascending(value, positive_kwh)


class Compare(Block):
    """[compare]: figures for the statement only; they change no noise."""

    window_days: Days | None = None
    """Length of the window whose loss the statement tells; a week if it is left out."""
    exponential: Fraction01 | None = None
    """Rate of an exponentially discounted sum in the statement."""
    hyperbolic: Amount | None = None
    """Rate of a hyperbolically discounted sum in the statement."""
    delta_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_deltas)] = ()
    """Sizes of change of which the statement tells the loss."""

    @property
    def delta_wh(self) -> tuple[int, ...]:
        """Return the sizes of change to report, in whole watt-hours."""
        return tuple(watt_hours(delta) for delta in self.delta_kwh)


class Alerts(Block):
    """[alerts]: what the operator is warned about, in the confidential folder and on the terminal; it decides nothing.

    A day that loses more than 5 % of its readings to conflicts, and a day without any usable household, raise an alert
    whatever stands here.
    """

    min_coverage: Fraction01 | None = None
    """A due day on which a smaller share of the roster has a usable day raises an alert; without it, a day on which
    nobody has one.
    """


_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://([^][/@\s:]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def _scheduler(value: object) -> str:
    written = text(value)
    if written in ("threads", "processes", "local-cluster") or _ADDRESS.fullmatch(written):
        return written
    raise wrong('must be "threads", "processes", "local-cluster" or the address of a cluster, "tls://host:port"')


class Engine(Block):
    """[engine]: results are the same to the bit whatever stands here."""

    scheduler: Annotated[str, PlainValidator(_scheduler)] = "threads"
    """Where the work is done; see the cluster page for an address."""
    workers: Annotated[int, Field(ge=1, le=10_000)] = 2
    """How many parts are worked on at once."""
    block_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    """How much of a file is parsed at once."""
    keep_days: Annotated[int, Field(ge=0, le=100_000)] = 400
    """Readings older than this leave the confidential folder; 0 keeps none. An archive keeps all if it is left out."""
