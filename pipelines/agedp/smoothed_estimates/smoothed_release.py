"""`agedp.smooth`: a release folder and public files -> smoothed estimates of its daily averages.

    estimates = agedp.smooth("received", weather="weather.csv")
    estimates.table, estimates.save("estimates")

The folder is verified first. Nothing but its files, the calendar and the weather table is read, so the estimates say
nothing more about any household than the release does.

Decisions:

* The record contains no date of computation: the same release folder and the same public files give the same bytes.
* The region of a dataset or time zone is the default only where a country is beyond doubt. For another part of the
  country, such as Scotland, it is written.
* Each file is put in place by rename, SHA256SUMS last: a folder whose sums do not match was interrupted, and
  smoothing again completes it. All files are replaced; files of other names stay.
* A folder is taken if it is new, empty, or has estimates of the same population, ledger and kind: those of a
  rehearsal, or of another ledger that uses the name, never replace real ones. Everything else is refused, above all
  a release folder and what is inside it, whose checksums must not change.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from agedp import plots
from agedp.compute.engine_settings import SHOWN_PROGRESS, ProgressReporter
from agedp.local_files import atomic_files
from agedp.release_folder.folder_files import STATEMENT
from agedp.release_folder.folder_writer import add_checksums
from agedp.release_folder.release_folder import ESTIMATES_RECORD
from agedp.release_folder.result_tables import METADATA_KEY, parquet_bytes
from agedp.release_verification import ReleaseFolder, open_release
from agedp.result_summary import ResultSummary, extent
from agedp.smoothed_estimates import smoothed_table
from agedp.smoothed_estimates.smoothed_page import smoothed_page
from agedp.smoothed_estimates.smoothed_table import TOTAL, Quantity, QuantityEstimates, QuantityFigures, SeriesSpan
from agedp.smoothed_estimates.weather_table import WeatherTable, read_weather
from agedp_data.datasets import filesystem
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.roster import ALL
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_data.smoothing.public_calendar import calendar_source, check_region, covariates
from agedp_data.smoothing.signal_estimate import coverage_text
from agedp_data.statement.datapackage import datapackage
from agedp_data.statement.document import Statement
from agedp_data.versions import version

if TYPE_CHECKING:
    import pandas as pd

    from agedp.smoothed_estimates.weather_table import WeatherSource


# --------------------------------------------------------------------------------------------------
# What smoothed estimates are, and what they were computed from: the record in each of their files.
# --------------------------------------------------------------------------------------------------

SCHEMA: Final = "agedp-daily-average-smoothed-1"
_REGIONS: Final[Mapping[str, str]] = {
    "london": "GB-ENG",
    "ausgrid": "AU-NSW",
    "Europe/London": "GB-ENG",
    "Australia/Sydney": "AU-NSW",
}
"""Region of a dataset, or of a time zone of days."""
_TEXTS: Final = tomllib.loads(Path(__file__).with_name("record.toml").read_text(encoding="utf-8"))


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
        "meaning": _TEXTS["record"]["meaning"].format(
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
        "variants": _TEXTS["record"]["variants"],
        "agedp": version("agedp"),
    }


# --------------------------------------------------------------------------------------------------
# Files of smoothed estimates -> a folder of their own, beside the release folder and never in it.
#
#     daily_average_smoothed.parquet  smoothing.json  smoothed.html  datapackage.json  SHA256SUMS
# --------------------------------------------------------------------------------------------------

TABLE: Final = "daily_average_smoothed.parquet"
RECORD: Final = ESTIMATES_RECORD
PAGE: Final = "smoothed.html"
PACKAGE_FILE: Final = "datapackage.json"
_READABLE: Final = 0o644


def check_target(target: str | Path, release: Path, statement: Statement) -> Path:
    """Return the folder for estimates of a release, if they may be written there.

    Args:
        target: the folder; it need not exist.
        release: the release folder that they were computed from.
        statement: of the release.

    Raises:
        InputError: it is the release folder or inside it, or it has other files; the message says what to do.
    """
    if filesystem.is_url(str(target)):
        raise InputError("--out: is a URL; name a folder of this machine, and upload it afterwards")
    path = Path(target)
    resolved, source = path.resolve(), release.resolve()
    if resolved == source or source in resolved.parents:
        place = "the release folder" if resolved == source else "inside the release folder"
        raise InputError(f"{path}: is {place}, whose files must not change; name a folder beside it")
    if not atomic_files.path_exists(resolved):
        return path
    if not resolved.is_dir():
        raise InputError(f"{path}: is a file; name a new folder")
    names = {entry.name for entry in resolved.iterdir() if not atomic_files.is_temporary(entry.name)}
    if STATEMENT in names:
        raise InputError(f"{path}: is a release folder; name a new folder for the estimates")
    if names and (what := _other_content(resolved, statement) if RECORD in names else "has other files already"):
        raise InputError(f"{path}: {what}; name a new or empty folder")
    return path


def _other_content(folder: Path, statement: Statement) -> str:
    """Return what estimates a folder has, if they are of another release than that of a statement; "" if of the same.

    >>> from types import SimpleNamespace
    >>> _other_content(Path("nowhere"), SimpleNamespace(population="homes"))
    'has estimates without a readable record'
    """
    try:
        record = json.loads((folder / RECORD).read_bytes())
        if record["population"] != statement.population:
            return "has estimates of another population"
        if record["rehearsal"] != statement.rehearsal:
            return f"has estimates of a {'rehearsal' if record['rehearsal'] else 'release that is no rehearsal'}"
        return "" if record["ledger"]["id"] == statement.ledger.id else "has estimates of another ledger"
    except (OSError, ValueError, LookupError, TypeError):
        return "has estimates without a readable record"


def write_estimates(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of estimates, SHA256SUMS last, and make the folder unless it exists.

    Raises:
        InputError: the folder cannot be written.
    """
    with atomic_files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    atomic_files.remove_stale_files(folder)
    for name, content in add_checksums(dict(sorted(files.items(), key=lambda item: item[0] != RECORD))).items():
        atomic_files.write(folder / name, content, mode=_READABLE)


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """Return smoothing.json; the same record, the same bytes."""
    return (json.dumps(record, indent=1, ensure_ascii=True) + "\n").encode()


# --------------------------------------------------------------------------------------------------
# `agedp.smooth`: a release folder and public files -> smoothed estimates of its daily averages.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class SmoothedRelease(ResultSummary):
    """Smoothed estimates of a release: their table, and `source`, what they were computed from."""

    source: Mapping[str, Any]
    arrow: pa.Table
    amplitudes: Sequence[Mapping[str, Any]]
    statement: Statement
    release: Path

    def _facts(self) -> dict[str, object]:
        low, high = (self.arrow[name].to_numpy() for name in ("low_kwh", "high_kwh"))
        return {
            "population": self.statement.population,
            "days": extent(self.source["days"].values()),
            "region": self.source["region"],
            "weather": "used" if self.source["weather"] else "not used",
            "half_width_of_90_percent_kwh": extent((high - low) / 2),
        }

    @property
    def table(self) -> pd.DataFrame:
        """The estimates, indexed by day: columns as in the data dictionary, `daily_average_smoothed.parquet`."""
        frame: pd.DataFrame = self.arrow.to_pandas(date_as_object=False)
        return frame.set_index("day")

    def save(self, folder: str | Path) -> Path:
        """Write the table, its dictionary, a record of its sources and a page into a folder; return the folder.

        Estimates of the same population and ledger that are there are replaced as a whole.

        Raises:
            InputError: it is the release folder or inside it, has other files, or cannot be written.
        """
        target = check_target(folder, self.release, self.statement)
        write_estimates(target, self.files())
        return target

    def files(self) -> dict[str, bytes]:
        """Return the files of the estimates by name, without their checksums."""
        title = self.statement.full_title
        record = {**self.source, "model": _TEXTS["model"], "amplitudes": list(self.amplitudes)}
        files = {
            TABLE: parquet_bytes(
                self.arrow.replace_schema_metadata(
                    {METADATA_KEY: json.dumps(self.source, sort_keys=True, ensure_ascii=True)}
                )
            ),
            RECORD: record_bytes(record),
            PAGE: smoothed_page(self.arrow.to_pylist(), self.source, self.amplitudes, title=title),
        }
        package = datapackage(self.statement, files, smoothed=str(self.source["meaning"]))
        return {**files, PACKAGE_FILE: record_bytes(package)}

    def plot(self) -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot the published values, and the archive estimates with their 90 % intervals."""
        return plots.estimates(self.table)


def smooth(
    release: Any,  # noqa: ANN401  (a release, a release folder or its path)
    *,
    region: str | None = None,
    weather: WeatherSource | None = None,
    temperature_column: str | None = None,
) -> SmoothedRelease:
    r"""Return smoothed estimates of every day of the daily averages of a release, beside the published values.

    Use it where noise hides single days; it adds no loss. The published mean y of day t is modelled as

    .. math:: y_t = c + \text{level}_t + \text{weekday}_t + \text{holiday}_t + \text{heating}_t + \text{short}_t
       + \text{single}_t + \text{noise}_t

    with independent Gaussian parts of fitted size, and noise of known variance. Estimates are posterior means [kWh per
    household], with intervals of 90 %.

    Source: [RW] section 4.2, in `agedp_data.smoothing.structural_model`.

    Args:
        release: what `agedp.release`, `sanitise` or `open_release` return, or the path of a release folder.
        region: country or part of it whose public holidays count, such as "GB-ENG"; "none": weekdays and the days
            from 22 December to 1 January. By default that of London or Sydney, if the release names its dataset or
            time zone: one of a run file does, one of a table of readings does not.
        weather: daily mean temperatures in degrees Celsius: the path of a CSV or Parquet file, or a pandas table.
        temperature_column: its column of temperatures; None: the only column of numbers.

    Raises:
        InputError: the folder differs from what was published or has no daily averages, an unknown region, or a
            weather table with missing or impossible temperatures.

    References:
        [RW] Rasmussen, Williams: Gaussian Processes for Machine Learning. MIT Press, 2006.
        https://doi.org/10.7551/mitpress/3206.001.0001

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> caps = {"max_day_epsilon": 0.5, "epsilon_total": 100, "accept": ["useless"]}  # of use to nobody: two homes
    >>> promise = agedp.Classical(epsilon_per_day=0.5, **caps)
    >>> released = agedp.release(readings, promise=promise, clamp_kwh=50, min_households=2)
    >>> smooth(released, region="none").table[["published_kwh", "estimate_kwh"]].notna().all().tolist()
    [True, True]
    """
    if weather is None and temperature_column is not None:
        raise InputError("temperature_column names a column of the weather table; give weather too")
    table = None if weather is None else read_weather(weather, column=temperature_column)
    return estimate_release(release, region=region, weather=table, progress=ProgressReporter(SHOWN_PROGRESS.get()))


def estimate_release(
    release: Any,  # noqa: ANN401  (a release, a release folder or its path)
    *,
    region: str | None,
    weather: WeatherTable | None,
    progress: ProgressReporter,
) -> SmoothedRelease:
    """Return smoothed estimates as `smooth` does; `progress` is called before each quantity.

    Raises:
        InputError: as `smooth`.
    """
    given = getattr(release, "folder", release)
    folder = given if isinstance(given, ReleaseFolder) else open_release(given)
    folder.verify()
    statement = folder.read_statement()
    chosen = default_region(statement) if region is None else region
    check_region(chosen)
    spans, figures = _published_figures(folder)
    estimates = estimate_quantities(spans, figures, region=chosen, weather=weather, progress=progress)
    table = smoothed_table.smoothed_table(spans, estimates)
    if not table.num_rows:
        raise InputError("the release has no day on which all layers of an average were published yet")
    digest = folder.checksums[STATEMENT]  # of the verified folder
    days = sorted(set(table["day"].to_pylist()))
    source = smoothing_source(statement, digest, region=chosen, weather=weather, days=days)
    return SmoothedRelease(source, table, recorded_amplitudes(estimates), statement, folder.path)


def _published_figures(folder: ReleaseFolder) -> tuple[list[SeriesSpan], dict[Quantity, QuantityFigures]]:
    """Return the spans of each series, and the figures of each quantity.

    Raises:
        InputError: no mean was released.
    """
    rows = folder.ledger_rows().rows
    contracts = [row for row in rows if isinstance(row, ContractRecord)]
    means = smoothed_table.published_means([row for row in rows if isinstance(row, ReleaseRecord)], contracts)
    if not any(mean.is_released for mean in means):
        what = "has no published day of an average yet" if means else "has no daily averages"
        raise InputError(f"the release {what}, and only daily averages are smoothed")
    spans = smoothed_table.series_spans(means)
    return spans, smoothed_table.quantity_figures(means, smoothed_table.last_days(spans))


def estimate_quantities(
    spans: Sequence[SeriesSpan],
    figures: Mapping[Quantity, QuantityFigures],
    *,
    region: str,
    weather: WeatherTable | None,
    progress: ProgressReporter,
) -> dict[Quantity, QuantityEstimates]:
    """Return the estimates of each quantity, the first layers before the upper ones, which follow them."""
    first_layers = {quantity: span.layers[0] for span in spans for quantity in span.layers[1:]}
    estimates: dict[Quantity, QuantityEstimates] = {}
    for number, quantity in enumerate(sorted(figures, key=lambda quantity: figures[quantity].above_kwh)):
        if progress.progress is not None:
            progress.progress("smooth", number, len(figures))
        days = figures[quantity].days
        public = covariates(days, region=region, temperature_c=None if weather is None else weather.over(days))
        layer = estimates.get(first_layers[quantity]) if quantity in first_layers else None
        estimates[quantity] = smoothed_table.estimate_quantity(figures[quantity], public, first_layer=layer)
    return estimates


def recorded_amplitudes(estimates: Mapping[Quantity, QuantityEstimates]) -> list[dict[str, Any]]:
    """Return the most probable amplitudes of the total of each quantity, of the archive estimates.

    An upper layer follows the first one in place of the weather.
    """
    rows = []
    for estimate in estimates.values():
        figures, amplitudes = estimate.figures, estimate.archive[TOTAL].amplitudes
        if amplitudes is not None:
            kwh = {
                "first_layer" if figures.above_kwh and name == "heating" else name: round(value, 4)
                for name, value in asdict(amplitudes).items()
            }
            days = [str(figures.days[0]), str(figures.days[-1])]
            name = ", ".join(figures.series)
            rows.append({"series": name, "group_column": ALL, "group": ALL, "days": days, "kwh": kwh})
    return rows
