"""What smoothed estimates are, and what they were computed from: the record in each of their files.

Decisions:

* The record contains no date of computation: the same release folder and the same public files give the same bytes.
* The region of a dataset or time zone is the default only where a country is beyond doubt. For another part of the
  country, such as Scotland, it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from typing import Any, Final

from agedp.smoothed_estimates.weather_table import WeatherTable
from agedp_data.errors import InputError
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_data.smoothing.measured_coverage import coverage_text
from agedp_data.smoothing.public_calendar import calendar_source
from agedp_data.statement.document import Statement

SCHEMA: Final = "agedp-daily-average-smoothed-1"
_REGIONS: Final[Mapping[str, str]] = {
    "london": "GB-ENG",
    "ausgrid": "AU-NSW",
    "Europe/London": "GB-ENG",
    "Australia/Sydney": "AU-NSW",
}
"""Region of a dataset, or of a time zone of days."""
_MEANING: Final = (
    "An estimate from the published noisy averages{public}; it says nothing more about any household than they do. It "
    "stands beside the published averages and replaces none. The 90 % intervals assume the model; {coverage}. What the "
    "clamp cuts off is not in them."
)
VARIANTS: Final[Mapping[str, str]] = {
    "archive": "from all rows of the release; replaced as a whole by later ones",
    "live": "of a day from the rows of the days up to it that were in the ledger by then; never revised",
}
MODEL: Final = {
    "parts": {
        "level": "changes over weeks (Matérn 3/2, 45 days)",
        "weekday": "effect of each weekday",
        "holiday": "effect of public holidays",
        "heating": "effect of 5 degrees below 15.5 degrees Celsius, on the day and over two days",
        "short": "variation that lasts about 4 days",
        "single": "variation of single days",
        "special": "further variation of single days that are public holidays or from 22 December to 1 January",
    },
    "amplitudes": "standard deviation of each part, kWh per household; the most probable ones given the averages and a "
    "prior from open households, in proportion to the level of the averages; estimates are averaged over 32 draws of "
    "their law",
    "noise": "of known variance, 2 q / (1 - q)^2 with q = exp(-1 / scale), independent by day",
    "groups": "averages of groups and of their total are combined by least squares before smoothing, and estimates are "
    "moved until they add up",
}


def usual_region(statement: Statement) -> str | None:
    """Return the region of a release by its dataset or the time zone of its days, None if neither names one."""
    return _REGIONS.get(statement.contract.input.dataset) or _REGIONS.get(statement.contract.terms.layout.day_zone)


def default_region(statement: Statement) -> str:
    """Return the usual region of a release.

    Raises:
        InputError: it has none.
    """
    region = usual_region(statement)
    if region is None:
        zone = statement.contract.terms.layout.day_zone
        raise InputError(
            f"the release does not say in which region its households are: its days are of zone {zone}, and those of a "
            "table of readings are of UTC or GMT wherever they come from. Give the region (region, --region), such as "
            "GB-ENG, or none for weekdays without holidays"
        )
    return region


def _layer_clamps(statement: Statement) -> dict[str, list[str]]:
    """Return the clamps of each mean that the newest contract has in layers [kWh]."""
    clamps: dict[str, list[str]] = {}
    for name, series in sorted(statement.contract.series.items()):
        if layer_number(name):
            clamps.setdefault(mean_name(name), []).append(series.clamp_kwh or "0")
    return clamps


def smoothing_source(
    statement: Statement, digest: str, *, region: str, weather: WeatherTable | None, days: Sequence[date]
) -> dict[str, Any]:
    """Return the record of what estimates were computed from.

    Args:
        statement: of the release.
        digest: SHA-256 of statement.json.
        region: of the calendar.
        weather: the table of temperatures, if there is one.
        days: the days with estimates, in order.
    """
    credits = {key: getattr(statement, key) for key in ("title", "source", "licence", "contact")}
    return {
        "schema": SCHEMA,
        "meaning": _MEANING.format(
            public=" and the calendar" if weather is None else ", the calendar and the weather",
            coverage=coverage_text(),
        ),
        **{key: text for key, text in credits.items() if text},
        "population": statement.population,
        "rehearsal": statement.rehearsal,
        "ledger": {"id": statement.ledger.id, "head": statement.ledger.head},
        "statement_sha256": digest,
        "region": region,
        "calendar": calendar_source(region),
        "weather": None if weather is None else weather.source(days),
        "days": {"first": str(days[0]), "last": str(days[-1])},
        "layers": _layer_clamps(statement),
        "interval": {"coverage": "0.9", "covers": "the day under the clamp, if the model is right"},
        "variants": dict(VARIANTS),
        "agedp": version("agedp"),
    }
