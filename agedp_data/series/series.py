"""The statistics that a series can publish, each a class in a file of its own.

A statistic is an exact vector of integers over the days of one group's households, its cells, the sensitivity of the
vector of all groups, which is that of one group because a household is in one group, and the tables that are published
of it. A further statistic is one file and its line in `STATISTICS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Union

from pydantic import Discriminator, ValidationError

from agedp_data.errors import LedgerError
from agedp_data.series.coverage import Coverage
from agedp_data.series.distribution import Distribution
from agedp_data.series.layered_mean import Layer
from agedp_data.series.mean import Mean
from agedp_data.series.profile import Profile
from agedp_data.series.result_table import DerivedTable, ResultTable
from agedp_data.series.series_terms import Series

_AMOUNTS: Final = ("share", "clamp_kwh", "half_hour_clamp_kwh", "above_kwh", "missing_kwh", "bins_kwh")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


STATISTICS: Final[tuple[type[Series], ...]] = (
    Mean,
    Distribution,
    Profile,
    Coverage,
)
"""The classes of all statistics."""
_RELEASED: Final[tuple[type[Series], ...]] = (Mean, Layer, *STATISTICS[1:])
_DERIVED: Final[tuple[type[Series], ...]] = (Mean, Profile, *STATISTICS)
RESULT_TABLES: Final[tuple[ResultTable, ...]] = tuple(table for statistic in _RELEASED for table in statistic.TABLES)
"""The kinds of table of released values, in the order of a release."""
DERIVED_TABLES: Final[tuple[DerivedTable, ...]] = tuple(
    dict.fromkeys(table for statistic in _DERIVED for table in statistic.DERIVED)
)
"""The kinds of derived table, in the order of a release."""

if TYPE_CHECKING:
    AnySeries = Series
else:
    AnySeries = Annotated[Union[STATISTICS], Discriminator("statistic")]  # noqa: UP007  (a tuple, not two types)
BY_NAME: Final[Mapping[str, type[Series]]] = {kind.KIND: kind for kind in STATISTICS}
"""The class of each statistic by its name in the run file."""


def series_of(terms: Mapping[str, Any]) -> dict[str, AnySeries]:
    """Return the series of a contract by name; keys that this version does not know are ignored.

    Raises:
        LedgerError: a series differs in form from those that agedp writes.
    """
    try:
        return {name: series_in(table) for name, table in terms["series"].items()}
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError):
        raise LedgerError(
            "a contract in the ledger holds a series that this agedp does not know; update agedp"
        ) from None


def series_in(terms: Mapping[str, Any]) -> AnySeries:
    """Return one series from its table in a contract, where amounts are text.

    >>> series_in({"statistic": "mean", "clamp_kwh": "50", "share": "1"}).clamp_wh
    50000

    Raises:
        ValueError: the table is not a series.
    """
    kind: type[Any] = BY_NAME.get(terms["statistic"], Mean)
    kind = Layer if terms.get("above_kwh", "0") != "0" and kind is Mean else kind
    fields = {key: value for key, value in terms.items() if key in kind.model_fields}
    return kind.model_validate({key: _amounts(value) if key in _AMOUNTS else value for key, value in fields.items()})


def _amounts(value: object) -> object:
    return tuple(map(_amount, value)) if isinstance(value, list) else _amount(value)


def _amount(value: object) -> object:
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
