"""[output], [population], [compare], [alerts] and [engine]: folders, population, and how a run is computed."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from agedp_data import parameters
from agedp_data.amendment_rules import APART, RAISE, SIGN, WITNESS
from agedp_data.config.paths import LedgerUrl, Location, OptionalLocation, RegisterUrl, SharedFolder, WitnessLocation
from agedp_data.series.mean import PERIODS, Period

FolderLayout = Literal["single", "monthly"]
_PERIODS: Final = WithJsonSchema(
    {"anyOf": [{"enum": [*PERIODS]}, {"type": "array", "items": {"enum": [*PERIODS]}, "uniqueItems": True}]}
)


def _averages_by(value: object) -> tuple[Period, ...]:
    names = value if isinstance(value, list | tuple) else [value]
    if any(name not in PERIODS for name in names) or len(set(names)) < len(names):
        raise parameters.wrong('must be a list of "week", "month" and "year", each at most once')
    return tuple(period for period in PERIODS if period in names)


class OutputSection(parameters.Section):
    """[output]: the release folder, the confidential folder, the ledger, and the texts of the release."""

    release: Location
    """Release folder, which may be handed over as it is."""
    confidential: SharedFolder
    """Confidential folder, never handed over: readings, data quality, model, true means. Never a URL."""
    ledger: LedgerUrl
    """URL of the ledger, without a password. Back it up, never edit it."""
    household_register: RegisterUrl = None
    """URL of the accounts of populations, without a password, where machines or users share them. Unless written they
    are in the user's data (`$XDG_DATA_HOME/agedp` or `~/.local/share/agedp`) if permanent and writable, else in the
    confidential folder; a population stays where it began. A file's key, `household_register.key`, is beside it; a
    server's is in the confidential folder: copy it into each.
    """
    witness: Annotated[WitnessLocation, WITNESS] = None
    """Where the newest head of the ledger is confirmed: a file on another disk, or an object (`s3://`). A ledger
    restored from a snapshot is then refused. The place may change; only `agedp ledger amend` removes a witness. A row
    (`postgresql://`) is for populations that 0.2 began.
    """
    sign: Annotated[bool, SIGN] = False
    """Whether the release folder is signed (`SIGNATURE.json`) with the key of `agedp key create`. `agedp verify --key
    FINGERPRINT` then refuses every edit. In the contract: from then on a folder without a signature is refused.
    """
    deployment: bool = False
    """Whether the release folder has `deployment.json`: an entry for the public registry of differential-privacy
    deployments, filled in from the statement. What no statement knows is `...`.
    """
    explore: bool = False
    """Whether the release folder has `explore.html`: its tables as charts to zoom, with groups to choose from, offline,
    in a file of about 1.4 MB and 30 bytes for each value. Its script is BokehJS: `pip install 'agedp[explore]'`.
    """
    title: parameters.Text | None = None
    """Title of the release, also in `datapackage.json`."""
    source: parameters.Text | None = None
    """Attribution of the data; part of the release."""
    licence: parameters.Text | None = None
    """Licence of the release."""
    contact: parameters.Text | None = None
    """Contact for questions about the release."""
    interval: parameters.Fraction01 = Decimal("0.95")
    """Probability with which a published interval covers the noise."""
    layout: FolderLayout = "single"
    """Files of the release folder: each table in one file, or `"monthly"`: one for each month of publication, never
    written again once a later month has begun. A change writes the folder anew.
    """
    averages_by: Annotated[tuple[Period, ...], PlainValidator(_averages_by), _PERIODS] | None = None
    """Derived averages that are written, such as `["week", "month", "year"]`. Months unless written; a population that
    0.1 or 0.2 began keeps all three. Recipients compute the others (`ReleaseFolder.period_averages`).
    """


FEWEST_HOUSEHOLDS: Final = 10
"""Households below which no group is proposed to be released: the threshold of official statistics for a table's cell
(Office for National Statistics, rule of ten; the energy statistics of Great Britain by postcode have 5 meters). It is a
convention and no privacy mechanism: of fewer households the noise alone hides one.
"""


class PopulationSection(parameters.Section):
    """[population]: the households that the promise protects."""

    name: parameters.Text
    """Name of the population. All series under this name in the ledger share one promise."""
    roster: Location
    """CSV or `.parquet` file with the columns `household_id,from,to` and group columns: the households that count on
    each day. Rows of days that are not released may change.
    """
    meters: Annotated[OptionalLocation, parameters.LATER] = None
    """CSV file with the columns `meter,household,from,to`: the meters of each household, which are added up. The ids of
    the input files are then meters; others count for nobody. A day that lacks a meter is missing.
    """
    min_households: Annotated[int, Field(ge=1, le=1_000_000_000), RAISE]
    """A day or a group with fewer households on the roster is never released."""
    shared_households: Annotated[Literal["count", "refuse"], parameters.LATER, APART] = "count"
    """What follows if a household is counted in another population, ledger or rehearsal over readings too: the losses
    of both are added up and stated, or the day is refused before it is drawn.
    """

    @property
    def own_files(self) -> tuple[str, ...]:
        """The files of this table, which are no input files wherever they lie."""
        return (self.roster, *([] if self.meters is None else [self.meters]))


def _deltas(value: object) -> tuple[Decimal, ...]:
    return parameters.ascending(value, parameters.positive_kwh)


class CompareSection(parameters.Section):
    """[compare]: additional bounds in the statement; they change no noise."""

    window_days: parameters.Days | None = None
    """Window of the w-event bound in the statement, in days; 7 unless written."""
    exponential: parameters.Fraction01 | None = None
    """Rate of an exponentially discounted sum in the statement."""
    hyperbolic: parameters.Amount | None = None
    """Rate of a hyperbolically discounted sum in the statement."""
    delta_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_deltas), parameters.NUMBERS] = ()
    """Sizes of change for which the statement has a bound."""

    @property
    def delta_wh(self) -> tuple[int, ...]:
        """The sizes of change to report [Wh]."""
        return tuple(parameters.watt_hours(delta) for delta in self.delta_kwh)


class AlertsSection(parameters.Section):
    """[alerts]: warnings to the operator, in the confidential folder and on the terminal; they change no release.

    A day that loses more than 5 % of its readings to conflicts, and a day without any usable household, always raise an
    alert.
    """

    min_coverage: parameters.Fraction01 | None = None
    """A due day on which a smaller share of the roster is usable raises an alert; without it, a day on which nobody is.
    """


_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://([^][/@\s:]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def _scheduler(value: object) -> str:
    scheduler = parameters.text(value)
    if scheduler in ("threads", "processes", "local-cluster") or _ADDRESS.fullmatch(scheduler):
        return scheduler
    raise parameters.wrong(
        'must be "threads", "processes", "local-cluster" or the address of a cluster, "tls://host:port"'
    )


class EngineSection(parameters.Section):
    """[engine]: how a run is computed; no key changes a bit of the results."""

    scheduler: Annotated[str, PlainValidator(_scheduler), parameters.TEXT] = "threads"
    """Dask scheduler; the page on clusters explains addresses."""
    workers: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Number of partitions that are processed at the same time."""
    block_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    """Size of the chunks in which a file is parsed, MiB."""
    keep_days: Annotated[int, Field(ge=0, le=100_000)] = 400
    """Readings older than this are deleted from the confidential folder; 0 keeps none. An archive keeps all unless
    written.
    """
