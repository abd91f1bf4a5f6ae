"""`agedp.smooth`: a release folder and public files -> smoothed estimates of its daily averages.

    estimates = agedp.smooth("received", weather="weather.csv")
    estimates.table, estimates.save("estimates")

The folder is verified first. Nothing but its files, the calendar and the weather table is read, so the estimates say
nothing more about any household than the release does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agedp import plots
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.release_folder.release_folder import STATEMENT, ReleaseFolder, open_release
from agedp.release_folder.result_tables import METADATA_KEY, parquet_bytes
from agedp.smoothed_estimates import smoothed_folder
from agedp.smoothed_estimates.published_means import Quantity, QuantityFigures, published_means, quantity_figures
from agedp.smoothed_estimates.quantity_estimates import TOTAL, QuantityEstimates, estimate_quantity
from agedp.smoothed_estimates.smoothed_page import smoothed_page
from agedp.smoothed_estimates.smoothed_table import SeriesSpan, last_days, series_spans, smoothed_table
from agedp.smoothed_estimates.smoothing_source import MODEL, default_region, smoothing_source
from agedp.smoothed_estimates.weather_table import WeatherTable, read_weather
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.roster import ALL
from agedp_data.smoothing.public_calendar import check_region, covariates
from agedp_data.statement.datapackage import smoothed_package
from agedp_data.statement.document import Statement

if TYPE_CHECKING:
    import pandas as pd

    from agedp.smoothed_estimates.weather_table import WeatherSource


@dataclass(frozen=True, slots=True)
class SmoothedRelease:
    """Smoothed estimates of a release: their table, and `source`, what they were computed from."""

    source: Mapping[str, Any]
    arrow: pa.Table
    amplitudes: Sequence[Mapping[str, Any]]
    statement: Statement
    release: Path

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
        target = smoothed_folder.check_target(folder, self.release, self.statement)
        smoothed_folder.write_estimates(target, self.files())
        return target

    def files(self) -> dict[str, bytes]:
        """Return the files of the estimates by name, without their checksums."""
        title = self.statement.full_title
        record = {**self.source, "model": MODEL, "amplitudes": list(self.amplitudes)}
        files = {
            smoothed_folder.TABLE: parquet_bytes(
                self.arrow.replace_schema_metadata(
                    {METADATA_KEY: json.dumps(self.source, sort_keys=True, ensure_ascii=True)}
                )
            ),
            smoothed_folder.RECORD: smoothed_folder.record_bytes(record),
            smoothed_folder.PAGE: smoothed_page(self.arrow.to_pylist(), self.source, self.amplitudes, title=title),
        }
        package = smoothed_package(self.statement, files, str(self.source["meaning"]))
        return {**files, smoothed_folder.PACKAGE_FILE: smoothed_folder.record_bytes(package)}

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
    >>> promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100)
    >>> released = agedp.release(readings, promise=promise, clamp_kwh=50, min_households=2)
    >>> smooth(released, region="none").table[["published_kwh", "estimate_kwh"]].notna().all().tolist()
    [True, True]
    """
    if weather is None and temperature_column is not None:
        raise InputError("temperature_column names a column of the weather table; give weather too")
    table = None if weather is None else read_weather(weather, column=temperature_column)
    return estimate_release(release, region=region, weather=table, progress=SILENT)


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
    folder = _release_folder(release)
    folder.verify()
    statement = folder.read_statement()
    chosen = default_region(statement) if region is None else region
    check_region(chosen)
    spans, figures = _published_figures(folder)
    estimates = estimate_quantities(spans, figures, region=chosen, weather=weather, progress=progress)
    table = smoothed_table(spans, estimates)
    if not table.num_rows:
        raise InputError("the release has no day on which all layers of an average were published yet")
    digest = folder.checksums[STATEMENT]  # of the verified folder
    days = sorted(set(table["day"].to_pylist()))
    source = smoothing_source(statement, digest, region=chosen, weather=weather, days=days)
    return SmoothedRelease(source, table, recorded_amplitudes(estimates), statement, folder.path)


def _release_folder(release: Any) -> ReleaseFolder:  # noqa: ANN401  (as `smooth`)
    folder = getattr(release, "folder", release)
    return folder if isinstance(folder, ReleaseFolder) else open_release(folder)


def _published_figures(folder: ReleaseFolder) -> tuple[list[SeriesSpan], dict[Quantity, QuantityFigures]]:
    """Return the spans of each series, and the figures of each quantity.

    Raises:
        InputError: no mean was released.
    """
    rows = folder.ledger_rows().rows
    contracts = [row for row in rows if isinstance(row, ContractRecord)]
    means = published_means([row for row in rows if isinstance(row, ReleaseRecord)], contracts)
    if not any(mean.is_released for mean in means):
        what = "has no published day of an average yet" if means else "has distributions only"
        raise InputError(f"the release {what}; only daily averages are smoothed")
    spans = series_spans(means)
    return spans, quantity_figures(means, last_days(spans))


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
        estimates[quantity] = estimate_quantity(figures[quantity], public, first_layer=layer)
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
