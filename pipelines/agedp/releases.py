"""`agedp.release`, `plan`, `compare` and `sanitise` on tables in memory: the stages of a run on a temporary run file.

The keywords are those of a run file; the same stages plan, sum, draw and publish. Without `ledger` the ledger ends with
this process, and the statement says so. With the URL of one, all rules of a run apply: days are drawn once, losses add
up, and a changed promise is refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from agedp import plots
from agedp.compute.engine_settings import Scheduler
from agedp.ledger_session import LedgerSession
from agedp.models import CalibratedModel
from agedp.pipeline import run_stages
from agedp.planning.compare_notions import compare_promises
from agedp.planning.notion_comparison import ComparisonTarget, NotionComparison
from agedp.promises import DeclaredCurve, Number, Promise, exact_number
from agedp.release_folder.release_folder import ReleaseFolder, is_release_file
from agedp.run_context import RunContext
from agedp.stages.run_forecast import RunForecast, forecast_run
from agedp.workspace import StoredReadings, Workspace
from agedp_data.config import RunFile
from agedp_data.config.loading import from_keys
from agedp_data.epsilon import NANO
from agedp_data.errors import InputError, RunFileError
from agedp_data.ledger import Ledger
from agedp_data.mechanisms import standard_deviation

if TYPE_CHECKING:
    import pandas as pd

SERIES = "use"
_DEFAULTS = {"statistic": "mean", "max_missing": 2, "missing_kwh": 0, "population": "households"}


class ReleaseOptions(TypedDict, total=False):
    """What decides a release of a table; a run file says all of it, so it takes none of these.

    Attributes:
        clamp_kwh: upper bound on a household's daily total; required.
        min_households: a day or group with fewer households is never released; required.
        roster: who counts on each day (`household_id, from, to` and group columns), a table or the path of a CSV file.
            Without it the roster is read off the readings, and the statement says so.
        statistic: "mean", or "distribution" with `bins_kwh`, the edges of the ranges.
        by: a group column of the roster.
        max_missing: a household-day that lacks more half-hours than this counts as missing.
        missing_kwh: value of a missing household-day.
        first_day: first day to release; the first with a reading if not given.
        last_day: last day to release; the last with a reading if not given.
        model: a model, for the notions that need one.
        population: name of the population in the ledger and the release.
        ledger: URL of a ledger, or an open one; in memory if not given.
        title: title of the release; also `attribution` ([output] source), `licence` and `contact`.
    """

    clamp_kwh: Number
    min_households: int
    roster: Any
    statistic: Literal["mean", "distribution"]
    bins_kwh: Sequence[Number]
    by: str
    max_missing: int
    missing_kwh: Number
    first_day: date | str
    last_day: date | str
    model: CalibratedModel | DeclaredCurve
    population: str
    ledger: str | Ledger
    title: str
    attribution: str
    licence: str
    contact: str


@dataclass(frozen=True, slots=True)
class Release:
    """Released days: their table and statement, and the ledger that remembers what was spent."""

    folder: ReleaseFolder
    ledger: Ledger
    _owner: Workspace | None = None

    @property
    def table(self) -> pd.DataFrame:
        """The published values, indexed by day: `daily_averages.parquet` or `daily_distribution.parquet`."""
        return _indexed(self.folder)

    @property
    def statement(self) -> dict[str, Any]:
        """The statement, as in statement.json."""
        return self.folder.statement

    @property
    def bounds(self) -> pd.DataFrame:
        """The bounds of the statement on the privacy loss, one row each, those without assumption first."""
        import pandas as pd  # noqa: PLC0415

        bounds = self.folder.read_statement().bounds
        names = ("name", "epsilon", "factor", "limit", "kind", "scope", "assumption")
        frame = pd.DataFrame([{name: getattr(bound, name) for name in names} for bound in bounds])
        frame["epsilon"] = [float("inf") if bound.epsilon == "infinite" else float(bound.epsilon) for bound in bounds]
        return frame

    def plot(self) -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot the published means with their noise intervals."""
        return plots.means(self.table)

    def save(self, folder: str | Path) -> ReleaseFolder:
        """Copy the release folder to a new or empty folder, which may be handed over; `agedp verify` checks it.

        Raises:
            InputError: the folder has files already.
        """
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{target.name}: has files already; name a new or empty folder")
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.path.iterdir()):
            if is_release_file(path.name):
                shutil.copyfile(path, target / path.name)
        return ReleaseFolder(target)

    def verify(self) -> None:
        """Verify the release folder, as a recipient would."""
        self.folder.verify()


def _indexed(folder: ReleaseFolder) -> pd.DataFrame:
    tables = folder.averages() | folder.distributions()
    frame: pd.DataFrame = next(iter(tables.values())).to_pandas(date_as_object=False)
    return frame.set_index("day")


def release(
    source: Any,  # noqa: ANN401  (the path of a run file, or any table of readings)
    *,
    promise: Promise | None = None,
    scheduler: Scheduler = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> Release:
    """Release every due day of a run file, or every day of a table of readings, under a promise.

    Args:
        source: the path of a run file, which says everything else; or a table with the columns of `agedp.read`.
        promise: the promise, one of `agedp.Classical`, `WEvent`, `AgeDependent`, `Temporal`, `Discounted`,
            `Neighbourhood`.
        scheduler: a Dask scheduler, client or cluster; the active client, or threads, if not given.
        as_of: of a run file in a rehearsal, the simulated date.
        options: `ReleaseOptions`; `clamp_kwh` and `min_households` have no default.

    Returns:
        The release. Without `ledger`, releasing the same days again draws again and the losses add: pass one ledger
        to have them composed and limited.

    Raises:
        RunFileError: a missing or invalid keyword, or keywords beside a run file.
        InputError: a table that has not the columns of `agedp.read`, or readings too bad for a first release.
        Refused: the promise does not permit a day; days before it are released.
        ContractChanged: the ledger holds releases of this population under another promise.
    """
    run, workspace = _context(source, promise, options, scheduler=scheduler, as_of=as_of)
    summary = run_stages(run)
    summary.check_not_refused()
    ledger = options.get("ledger")
    if not isinstance(ledger, Ledger):
        ledger = Ledger.open(run.run_file.output.ledger)
    return Release(ReleaseFolder(run.release_folder), ledger, workspace)


def sanitise(
    source: Any,  # noqa: ANN401
    *,
    folder: str | Path | None = None,
    promise: Promise | None = None,
    scheduler: Scheduler = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> ReleaseFolder:
    """Release as `release` does, and return the release folder: that of the run file, or `folder` for a table.

    Raises:
        RunFileError: no `folder` for a table, or one beside a run file; and as `release`.
    """
    if isinstance(source, str | Path):
        if folder is not None:
            raise RunFileError("sanitise: a run file names its release folder; leave out folder=")
        return release(source, promise=promise, scheduler=scheduler, as_of=as_of, **options).folder
    if folder is None:
        raise RunFileError("sanitise: give folder=, where the release folder of a table is written")
    return release(source, promise=promise, scheduler=scheduler, **options).save(folder)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a promise permits, before anything is drawn; public."""

    table: pd.DataFrame
    """Due days: day, publish_on, households, epsilon, noise_sd_kwh; a row for each day, series and group."""
    ends_on: date | None
    """The last day that can be released; None if no day can, or no end is in sight."""
    ended_by: str
    """What ends the series: "promise", "period", or the bound that refuses the next day."""
    _run: RunContext
    _forecast: RunForecast
    _owner: Workspace | None = None

    def compare(self, *, epsilon: Number | None = None, error_kwh: Number | None = None) -> pd.DataFrame:
        """Return every notion that meets a target, one row each: the least noise for an epsilon, or the reverse.

        Args:
            epsilon: the bound that every alternative must keep; that of the promise if nothing is given.
            error_kwh: the noise that every alternative must keep, kWh per household.
        """
        error = None if error_kwh is None else float(error_kwh)
        risk = None if epsilon is None else Decimal(str(epsilon))
        session = LedgerSession.open(self._run)
        found = compare_promises(session.terms(), session.forecast_view, ComparisonTarget(risk=risk, error_kwh=error))
        return _comparison_table(found)

    def plot(self) -> Any:  # noqa: ANN401
        """Plot the epsilon of each planned day."""
        return plots.losses(self.table)


def plan(
    source: Any,  # noqa: ANN401
    *,
    promise: Promise | None = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> Plan:
    """Return what a run would release now: the days, their epsilon and noise, and when the series ends.

    Nothing is drawn or written; the readings of a table are used for its days and its roster only.

    Args:
        source: the path of a run file, or a table with the columns of `agedp.read`.
        promise: as in `release`.
        as_of: as in `release`.
        options: as in `release`.

    Raises:
        RunFileError: a missing or invalid keyword, or keywords beside a run file.
        ContractChanged: the ledger holds releases of this population under another promise.
    """
    run, workspace = _context(source, promise, options, scheduler=None, as_of=as_of)
    found = forecast_run(LedgerSession.open(run))
    expected = found.forecast
    ended_by = expected.refusal or expected.stopped or ("promise" if expected.ended_by_promise else "period")
    return Plan(_planned_table(found, run.run_file), expected.last_day, ended_by, run, found, workspace)


def _planned_table(found: RunForecast, run_file: RunFile) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    if found.now.refused is not None:
        raise found.now.refused
    rows = []
    for planned in found.now.planned:
        row = planned.row
        sd_wh = standard_deviation(row.scale) if row.state == "released" else float("nan")
        is_mean = run_file.series[row.series].statistic == "mean"
        for cell, households in zip(row.cells, row.households, strict=True):
            unit = sd_wh / households / 1000 if is_mean and households else sd_wh
            rows.append(
                (row.day, row.published_on, row.series, cell, households, row.loss / NANO, unit, planned.skip_reason)
            )
    error = "noise_sd_kwh" if all(series.statistic == "mean" for series in run_file.series.values()) else "noise_sd"
    names = ["day", "publish_on", "series", "group", "households", "epsilon", error, "skipped"]
    table = pd.DataFrame(rows, columns=names)
    table["day"], table["publish_on"] = pd.to_datetime(table["day"]), pd.to_datetime(table["publish_on"])
    return table.set_index("day")


def compare(
    readings: Any,  # noqa: ANN401
    promises: Sequence[Promise],
    **options: Unpack[ReleaseOptions],
) -> pd.DataFrame:
    """Return what each promise costs for a table of readings: noise, bounds, last day; one row each.

    Args:
        readings: a table with the columns of `agedp.read`.
        promises: the promises to compare.
        options: as in `release`; `model` is used by the notions that need one.
    """
    import pandas as pd  # noqa: PLC0415

    stored = StoredReadings.of(readings)
    rows = []
    for promise in promises:
        run, _ = _context(stored, promise, options, scheduler=None, as_of=None)
        try:
            found = forecast_run(LedgerSession.open(run))
            table = _planned_table(found, run.run_file)
        except (RunFileError, InputError):
            raise
        except Exception as error:  # a promise that permits no day is a row of the comparison
            rows.append({"notion": promise.notion, "promise": promise, "days": 0, "problem": str(error)})
            continue
        drawn = table[table["skipped"] == ""]
        noise = drawn.filter(like="noise_sd").iloc[:, 0]
        limits = {name: _amount(value) for name, value in run.run_file.notion.limits.items()}
        rows.append(
            {
                "notion": promise.notion,
                "promise": promise,
                "days": drawn.index.nunique(),
                "last_day": drawn.index.max(),
                "epsilon_first_day": drawn["epsilon"].iloc[0] if len(drawn) else float("nan"),
                "noise_sd_kwh_median": noise.median(),
                "noise_sd_kwh_max": noise.max(),
                "epsilon_sum": drawn["epsilon"].groupby(level=0).max().sum(),
                "bounds": limits,
                "problem": "",
            }
        )
    return pd.DataFrame(rows)


def _amount(nano: int | None) -> float:
    return float("inf") if nano is None else nano / NANO


def _comparison_table(found: NotionComparison) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    rows = [
        {
            "notion": entry.notion,
            "method": entry.method,
            "epsilon": float("nan") if entry.epsilon is None else float(entry.epsilon),
            "noise_sd_kwh": float("nan") if entry.series is None else entry.series.noise_kwh,
            "bound": "" if entry.bound is None else entry.bound.name,
            "kind": "" if entry.bound is None else entry.bound.kind,
            "meets_target": entry.meets_target,
            "cheapest": entry.cheapest,
            "reason": entry.reason,
        }
        for entry in found.entries
    ]
    return pd.DataFrame(rows)


def _context(
    source: Any,  # noqa: ANN401
    promise: Promise | None,
    options: ReleaseOptions,
    *,
    scheduler: Scheduler,
    as_of: date | str | None,
) -> tuple[RunContext, Workspace | None]:
    """Return the inputs of a run: of a run file, or of a table and keywords in a new workspace."""
    on = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    if isinstance(source, str | Path):
        if promise is not None or options:
            given = ", ".join([*(["promise"] if promise is not None else []), *options])
            raise RunFileError(f"{given}: a run file says this; change the file, or pass a table of readings instead")
        return RunContext.load(source, scheduler=scheduler, as_of=on), None
    if as_of is not None:
        raise RunFileError("as_of goes with a run file in a rehearsal; a table is released as an archive")
    missing = [name for name in ("clamp_kwh", "min_households") if name not in options]
    if promise is None:
        missing.insert(0, "promise")
    if missing or promise is None:
        raise RunFileError(f"release: {', '.join(missing)} decide what is promised and have no default; give them")
    stored = source if isinstance(source, StoredReadings) else StoredReadings.of(source, scheduler=scheduler)
    return RunContext.of(_run_file(stored, promise, options), scheduler=scheduler), stored.workspace


def _run_file(stored: StoredReadings, promise: Promise, options: ReleaseOptions) -> RunFile:
    """Return the run file of a release of a table."""
    chosen, workspace = {**_DEFAULTS, **options}, stored.workspace
    first, last = (_day(chosen.get(key), day) for key, day in zip(("first_day", "last_day"), stored.days, strict=True))
    series = {key: _exact(chosen[key]) for key in _SERIES_KEYS if chosen.get(key) is not None}
    roster = chosen.get("roster")
    path = stored.roster_file if roster is None else workspace.write_roster(roster)
    ledger = chosen.get("ledger")
    url = ledger.url if isinstance(ledger, Ledger) else ledger
    keys: dict[str, Any] = {
        "version": 1,
        "population": {"name": chosen["population"], "roster": str(path), "min_households": chosen["min_households"]},
        "input": stored.input_keys,
        "schedule": {"mode": "archive", "first_day": first, "last_day": last},
        "series": {SERIES: series},
        "promise": promise.keys(),
        "output": {
            "release": str(workspace.folder / "release"),
            "confidential": str(workspace.confidential),
            "ledger": url or f"sqlite:///{workspace.folder / 'ledger.sqlite'}",
            **{key: chosen[name] for key, name in _OUTPUT_KEYS.items() if name in chosen},
        },
        "engine": {"keep_days": 100_000},
    }
    if (model := chosen.get("model")) is not None:
        keys["model"] = _model_keys(model, workspace)
    run = from_keys(keys, base=Path.cwd(), name="release")
    return run if url else run.with_temporary_ledger()


_OUTPUT_KEYS = {"title": "title", "source": "attribution", "licence": "licence", "contact": "contact"}
_SERIES_KEYS = ("statistic", "clamp_kwh", "bins_kwh", "by", "max_missing", "missing_kwh")


def _exact(value: Any) -> Any:  # noqa: ANN401
    return (
        [exact_number(item) for item in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else (exact_number(value))
    )


def _day(value: Any, default: date) -> date:  # noqa: ANN401
    if value is None:
        return default
    return date.fromisoformat(value[:10]) if isinstance(value, str) else date(value.year, value.month, value.day)


def _model_keys(model: Any, workspace: Workspace) -> Mapping[str, Any]:  # noqa: ANN401
    """Return the table [model] of a run file."""
    if isinstance(model, DeclaredCurve):
        path = workspace.folder / "curve.csv"
        path.write_text(model.csv(), encoding="ascii")
        return {"source": "declared", "assume": model.assume, "curve": str(path), "basis": model.basis}
    if not isinstance(model, CalibratedModel):
        raise RunFileError("model: give a DeclaredCurve, or what agedp.calibrate or agedp.load_model returns")
    settings = dict(model.settings)
    settings["period"] = [date.fromisoformat(day) for day in settings["period"]]
    edges = settings["edges"]
    settings["edges"] = edges if isinstance(edges, str) else [exact_number(float(edge)) for edge in edges]
    if "level" in settings:
        settings["level"] = exact_number(float(settings["level"]))
    return {**settings, "file": str(model.folder), "publish": "envelope"}
