"""Public facts about days: weekday, public holidays of a region, the weeks around the year's end, heating degrees.

Example: in "GB-ENG" 29 March 2013, Good Friday, is a holiday and special; 24 December is special only.

Decisions:

* Regions are countries and their subdivisions by ISO 3166, as the library `holidays` has them ("GB-ENG", "AU-NSW",
  "DE"). The region "none" has weekdays and the year's end, and needs no library.
* Holidays are those of public offices. School holidays are not in the library and not in the model.
* Heating degrees count from 15.5 degrees, the usual base of British degree days, in units of 5 K.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from types import ModuleType
from typing import Final

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import InputError
from agedp_data.messages import suggest_name
from agedp_data.smoothing.structural_model import Covariates

WITHOUT_HOLIDAYS: Final = "none"
HEATING_BASE_C: Final = 15.5
_HEATING_UNIT_C: Final = 5.0


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
    'weekdays only'
    """
    return "weekdays only" if region == WITHOUT_HOLIDAYS else f"{region}, library holidays {_library().__version__}"


def _holidays(days: Sequence[date], region: str) -> frozenset[date]:
    library, (country, _, part) = _library(), region.partition("-")
    known = regions()
    if region not in known:
        raise InputError(
            f"region = {region!r} has no calendar of public holidays. Write a country or a part of it by ISO 3166, "
            f"such as 'GB-ENG', or 'none'{suggest_name(region, known)}"
        )
    years = sorted({day.year for day in days})
    return frozenset(library.country_holidays(country, subdiv=part or None, years=years))


def _library() -> ModuleType:
    try:
        import holidays  # noqa: PLC0415 - an extra, which only smoothed estimates need
    except ModuleNotFoundError:
        raise InputError(
            "holidays of a region need the library holidays, which is not installed; pip install 'agedp[smooth]'"
        ) from None
    return holidays
