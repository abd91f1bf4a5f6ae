"""Public facts about days: weekday, public holidays of a region, the weeks around the year's end, heating degrees.

Example: in "GB-ENG" 29 March 2013, Good Friday, is a holiday and special; 24 December is special only.

Decisions:

* Regions are countries and their subdivisions by ISO 3166, as the library `holidays` has them ("GB-ENG", "AU-NSW",
  "DE"). The region "none" has weekdays and the year's end, and needs no library.
* Holidays are those of public offices. School holidays are not in the library and not in the model.
* Heating degrees count from 15.5 degrees, the usual base of British degree days, in units of 5 K.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from types import ModuleType
from typing import Final

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import InputError
from agedp_data.messages import escape_text, suggest_name
from agedp_data.smoothing.structural_model import Covariates

WITHOUT_HOLIDAYS: Final = "none"
YEAR_END: Final = "weekdays and the days from 22 December to 1 January"
HEATING_BASE_C: Final = 15.5
_HEATING_UNIT_C: Final = 5.0
_UNITED_KINGDOM: Final = ("GB-ENG", "GB-SCT", "GB-WLS", "GB-NIR")
_COMMON_NAMES: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("uk", "united kingdom", "great britain", "britain"), _UNITED_KINGDOM),
    **dict.fromkeys(("england", "london"), ("GB-ENG",)),
    **dict.fromkeys(("scotland", "edinburgh", "glasgow"), ("GB-SCT",)),
    **dict.fromkeys(("wales", "cardiff"), ("GB-WLS",)),
    **dict.fromkeys(("northern ireland", "belfast"), ("GB-NIR",)),
    "australia": ("AU",),
    **dict.fromkeys(("new south wales", "sydney"), ("AU-NSW",)),
}
"""Regions that people call by these names."""


def covariates(days: Sequence[date], *, region: str, temperature_c: Floats | None = None) -> Covariates:
    """Return the public facts about consecutive days.

    Special days are public holidays and 22 December to 1 January. Heating is max(0, 15.5 - T) / 5 of each day.

    Args:
        days: T consecutive days.
        region: country or subdivision, such as "GB-ENG"; "none" for weekdays and the year's end alone.
        temperature_c: mean temperature of each day, shape (T,), or None [degrees Celsius].

    Raises:
        InputError: an unknown region, a temperature that is missing, or the library `holidays` is not installed.

    >>> turn = covariates([date(2013, 12, 21), date(2013, 12, 22)], region="none")
    >>> turn.weekday.tolist(), turn.special.tolist()
    ([5, 6], [False, True])
    """
    public = frozenset() if region == WITHOUT_HOLIDAYS else _holidays(days, region)
    holiday = np.array([day in public for day in days], bool)
    turn = np.array([(day.month, day.day) >= (12, 22) or (day.month, day.day) == (1, 1) for day in days], bool)
    heating = None
    if temperature_c is not None:
        if temperature_c.shape != holiday.shape or not np.isfinite(temperature_c).all():
            raise InputError("The weather table must have a temperature for each day of the release.")
        heating = np.maximum(0, HEATING_BASE_C - temperature_c) / _HEATING_UNIT_C
    return Covariates(np.array([day.weekday() for day in days], np.int64), holiday, holiday | turn, heating)


def check_region(region: str) -> None:
    """Check that holidays of a region are available.

    Raises:
        InputError: an unknown region, or the library `holidays` is not installed.
    """
    if region != WITHOUT_HOLIDAYS:
        _holidays([], region)


def regions() -> tuple[str, ...]:
    """Return all regions with holidays, such as "DE" and "DE-BY", in their order.

    Raises:
        InputError: the library `holidays` is not installed.
    """
    countries = _library().list_supported_countries(include_aliases=False)
    named = [
        country if not part else f"{country}-{part}" for country in countries for part in ("", *countries[country])
    ]
    return tuple(sorted(named))


def calendar_source(region: str) -> str:
    """Return where the holidays of a region come from; print it beside estimates, which other versions may change.

    Raises:
        InputError: the library `holidays` is not installed.

    >>> calendar_source("none")
    'weekdays and the days from 22 December to 1 January'
    """
    return YEAR_END if region == WITHOUT_HOLIDAYS else f"{region}, library holidays {_library().__version__}"


def _holidays(days: Sequence[date], region: str) -> frozenset[date]:
    library, (country, _, part) = _library(), region.partition("-")
    known = regions()
    if region not in known:
        raise InputError(
            f"region = {escape_text(region, 40)!r} has no calendar of public holidays. Write a country or a part of "
            f"it by ISO 3166 (region, --region), such as 'GB-ENG', or 'none'{_suggest_region(region, known)}"
        )
    years = sorted({day.year for day in days})
    return frozenset(library.country_holidays(country, subdiv=part or None, years=years))


def _suggest_region(region: str, known: Sequence[str]) -> str:
    """Return the question whether another region was meant, "" if none is near.

    A name of up to three letters is compared as a whole: one letter more or less is another country.

    >>> _suggest_region("eng", ["EG", "GB-ENG", "GB-SCT"]), _suggest_region("XG", ["EG"])
    ("; did you mean 'GB-ENG'?", '')
    """
    name = region.strip().casefold().replace("_", " ")
    parts = [code for code in known if name in (code.casefold(), code.casefold().rpartition("-")[2])]
    meant = _COMMON_NAMES.get(name) or _COMMON_NAMES.get(name.partition("-")[2]) or parts
    if 0 < len(meant) <= len(_UNITED_KINGDOM):
        return f"; did you mean {' or '.join(map(repr, meant))}?"
    return suggest_name(region, known) if len(name) > 3 else ""


def _library() -> ModuleType:
    try:
        import holidays  # noqa: PLC0415 - an extra, which only smoothed estimates need
    except ModuleNotFoundError:
        raise InputError(
            "holidays of a region need the library holidays, which is not installed. In the clone, run pip install "
            '--constraint constraints.txt ".[smooth]"; or give the region none, which works without it (--region none)'
        ) from None
    return holidays
