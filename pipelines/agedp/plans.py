"""`agedp.plan` and `agedp.compare`: what a promise permits and costs, before anything is drawn. Public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from agedp import plots
from agedp.ledger_session import LedgerSession, comparison_view
from agedp.planning.first_release_verdict import Verdict
from agedp.planning.notion_comparison import ComparisonTarget, NotionComparison, compare_promises
from agedp.planning.row_noise import GroupNoise, group_noises
from agedp.preflight.input_checks import noted, warn_of
from agedp.promises import Classical, Number, PromiseKeys
from agedp.releases import ReleaseOptions, context_of, with_defaults, with_options
from agedp.result_summary import ResultSummary, extent
from agedp.run_context import RunContext
from agedp.setup.advice import advise_run
from agedp.stages.input_check import check_input_files
from agedp.stages.plan import RunForecast, check_enough_households, find_due_days, forecast_run
from agedp.workspace import StoredReadings, Workspace
from agedp_data.config import RunFile
from agedp_data.epsilon import NANO
from agedp_data.errors import RunFileError
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.notion import DAY_BOUND, losses_about_days
from agedp_data.series.layered_mean import is_upper, series_text
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import mean_name

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class Plan(ResultSummary):
    """What a promise permits, before anything is drawn; public."""

    table: pd.DataFrame
    """Due days: day, publish_on, households, epsilon, noise_sd_kwh; a row for each day, series and group.

    The noise of a profile is that of each half-hour. A profile of months has a row for each kind of day of a group,
    "Std weekday". Of rows that cover several days, `households` is the mean number of these days, rounded down.
    """
    ends_on: date | None
    """The last day that can be released; None if no day can, or no end is in sight."""
    ended_by: str
    """What ends the series: "promise", "period", or the bound that refuses the next day; "" if no end is in sight."""
    verdict: Verdict | None
    """What a first release is judged by: its `lines`, `causes`, and `refusal` ("" if it is not refused); None later."""
    _run: RunContext
    _owner: Workspace | None = None

    def _facts(self) -> dict[str, object]:
        drawn = self.table[self.table["skipped"] == ""]
        noise = "noise_sd_kwh" if "noise_sd_kwh" in drawn else "noise_sd"
        return {
            "notion": self._run.run_file.promise.notion,
            "rows": drawn["day"].nunique(),
            "days": extent(drawn["day"].dt.date),
            "households": extent(drawn["households"]),
            "epsilon": extent(drawn["epsilon"]),
            noise: extent(drawn[noise]),
            "ends_on": self.ends_on,
            "ended_by": self.ended_by,
            "verdict": None if self.verdict is None else self.verdict.purpose,
            "refused": None if self.verdict is None else ", ".join(cause.word for cause in self.verdict.refused),
        }

    def compare(self, *, epsilon: Number | None = None, error_kwh: Number | None = None) -> pd.DataFrame:
        """Return every notion that meets a target, one row each: the least noise for an epsilon, or the reverse.

        `noise_sd_kwh` is of the series that `noise_of` names: of a layered clamp layer 1. `noise_sd_of_sum_kwh` is that
        of the sum of its layers.

        Args:
            epsilon: the bound that every alternative must keep; that of the promise if nothing is given.
            error_kwh: the noise that every alternative must keep [kWh per household].
        """
        target = ComparisonTarget(
            risk=None if epsilon is None else Decimal(str(epsilon)),
            error_kwh=None if error_kwh is None else float(error_kwh),
        )
        session = LedgerSession.open(self._run)
        return _comparison_table(compare_promises(session.terms(), comparison_view(session), target))

    def plot(self) -> Any:  # noqa: ANN401
        """Plot the epsilon of each planned day."""
        return plots.losses(self.table)


@with_options
def plan(
    source: Any,  # noqa: ANN401
    *,
    promise: PromiseKeys | None = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> Plan:
    """Return what a run would release now: the days, their epsilon and noise, and when the series ends.

    Use it before every release: noise and end are known without a draw. Nothing is written; the readings of a table are
    used for its days, its roster and what the preflight finds. The noise of a mean is that of `agedp.release`.

    Args:
        source: the path of a run file, or a table with the columns of `agedp.read`.
        promise: as in `release`.
        as_of: as in `release`.
        options: as in `release`.

    Raises:
        RunFileError: a missing or invalid keyword, or keywords beside a run file; no day has `min_households`.
        PreflightFailed: readings that refuse a first release; `agedp.findings` names the causes.
        ContractChanged: the ledger holds releases of this population under another promise.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100)
    >>> planned = plan(readings, promise=promise, clamp_kwh=50, min_households=2)
    >>> planned.table[["households", "epsilon", "noise_sd_kwh"]].round(1).to_numpy().tolist()  # sqrt(2) 50 / (2 x 0.5)
    [[2.0, 0.5, 70.7], [2.0, 0.5, 70.7]]
    """
    run, workspace = context_of(source, promise, options, scheduler=None, as_of=as_of)
    session = LedgerSession.open(run)
    if workspace is not None and (checked := check_input_files(session, find_due_days(session))) is not None:
        if checked.refusal is not None:
            raise noted(checked.refusal)
        warn_of(checked.findings)
    planned = forecast_run(session)
    if not session.history.contracts:
        check_enough_households(run.run_file, run.roster.counts, planned.due_days.due)
    expected = planned.forecast
    refusal = "" if planned.now.refused is None else str(planned.now.refused)
    ended_by = refusal or expected.refusal or expected.stopped or ("promise" if expected.ended_by_promise else "period")
    table, ends_on = _planned_table(planned, run.run_file), expected.last_day
    if planned.open_until is not None:
        ends_on, ended_by = None, ""
    return Plan(table, ends_on, ended_by, planned.verdict, run, workspace)


_ANY_TERMS: Final[ReleaseOptions] = {"clamp_kwh": 50, "min_households": 1}
"""Terms without which no run file is complete; an advice tries clamps of its own."""


@with_defaults(_ANY_TERMS)
def advise(source: Any, **options: Unpack[ReleaseOptions]) -> pd.DataFrame:  # noqa: ANN401
    """Return what these households can publish usefully, the best promise first; no reading is used.

    Use it before `release`: a row's `promise`, `clamp_kwh` and `every` are its keywords. Every figure is that of the
    accountant, for the number of households and days alone. A span is fit if the half-width of its 90 % interval is at
    most 10 % of the mean of open households (the yardstick), and rough up to 25 %. No keyword is required.

    Args:
        source: the path of a run file, or a table with the columns of `agedp.read`.
        options: as in `release`; `every` keeps the rows about such periods, and `clamp_kwh` is what is advised.

    Returns:
        Columns: `of_use` ("fit", "rough") and `span`, for which the row is advised; `protects`, `epsilon`, `every`,
        `clamp_kwh`; `error_kwh`, the half-width [kWh per household], and `error_percent` of the yardstick's
        mean, `smoothed` if by `agedp.smooth`; `epsilon_of_a_day` and `epsilon_of_a_year` about one household;
        `days_cut` and `energy_cut` [-] of the yardstick by the clamp; `promise`.

    Raises:
        RunFileError: an invalid keyword, or keywords beside a run file.

    >>> import numpy as np, pandas as pd, agedp
    >>> times, homes = pd.date_range("2026-01-01", periods=48 * 90, freq="30min", tz="UTC"), [f"H{n}" for n in range(9)]
    >>> columns = {"household_id": np.repeat(homes, len(times)), "interval_start": [*times] * 9, "energy_wh": 200}
    >>> best = advise(pd.DataFrame(columns)).iloc[0]
    >>> best["of_use"], best["span"], best["protects"], best["promise"].notion
    ('rough', 'month', 'all', 'classical')
    """
    import pandas as pd  # noqa: PLC0415

    if "clamp_kwh" in options:
        raise RunFileError("clamp_kwh: the advice proposes it; agedp.plan says what a release with yours is fit for")
    given = options if isinstance(source, str | Path) else {**_ANY_TERMS, **options}
    promise = None if isinstance(source, str | Path) else _ANY_PROMISE
    run, _ = context_of(source, promise, given, scheduler=None, as_of=None)
    advice = advise_run(run)
    kinds = {kind.notion: kind for kind in PromiseKeys.__subclasses__()}
    rows = []
    every = options.get("every")
    for row in [row for row in advice.rows if every is None or row.every == every]:
        error, promised = row.error, row.run.promise
        keys = promised.model_dump(exclude_none=True, exclude={"notion", "accept"})
        rows.append(
            {
                "of_use": "" if error is None else error.grade,
                "span": row.span,
                "protects": row.protected,
                "epsilon": float(row.epsilon or 0),
                "every": row.every,
                "clamp_kwh": [*map(float, row.clamps_kwh)] if len(row.clamps_kwh) > 1 else float(*row.clamps_kwh),
                "error_kwh": None if error is None else error.half_width,
                "error_percent": None if error is None else 100 * error.ratio,
                "smoothed": error is not None and error.is_smoothed,
                "epsilon_of_a_day": row.verdict.losses.day / NANO,
                "epsilon_of_a_year": row.verdict.losses.year / NANO,
                "days_cut": row.cut.days,
                "energy_cut": row.cut.energy,
                "promise": kinds[promised.notion](**keys),
            }
        )
    return pd.DataFrame(rows)


_ANY_PROMISE = Classical(epsilon_per_day=1, max_day_epsilon=1, epsilon_total="unlimited")
"""A promise whose keys an advice does not use."""


def _planned_table(plan_of_run: RunForecast, run_file: RunFile) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    rows = []
    for planned in plan_of_run.now.planned:
        row = planned.row
        for of in _noises(row, run_file.series[row.series]):
            label = " ".join(filter(None, [of.group, of.day_kind]))
            place = row.series, label, planned.skip_reason
            rows.append((row.day, row.published_on, of.households, row.loss / NANO, of.noise_sd, *place))
    error = "noise_sd_kwh" if all(series.unit == "kWh" for series in run_file.series.values()) else "noise_sd"
    names = ["day", "publish_on", "households", "epsilon", error, "series", "group", "skipped"]
    table = pd.DataFrame(rows, columns=names)
    table["day"], table["publish_on"] = pd.to_datetime(table["day"]), pd.to_datetime(table["publish_on"])
    return table


def _noises(row: ReleaseRecord, series: AnySeries) -> tuple[GroupNoise, ...]:
    """Return the lines of a planned row: its groups, of counts its cells."""
    noises = group_noises(row, series)
    if series.unit == "kWh" or series.has_one_cell() or not noises:
        return noises
    cells = zip(row.cells, row.households, strict=True)
    return tuple(GroupNoise(cell, households, noises[0].noise_sd) for cell, households in cells)


@with_options
def compare(
    readings: Any,  # noqa: ANN401
    promises: Sequence[PromiseKeys],
    **options: Unpack[ReleaseOptions],
) -> pd.DataFrame:
    """Return what each promise costs for a table of readings, one row each; nothing is drawn.

    Use it to choose between promises; the noise alone does not decide, since they protect different things.
    `limit` is the bound that the promise keeps whatever follows (its name is in `bound`), `noise_sd_kwh` the noise of
    the noisiest day of `noise_of`: the series, of a layered clamp its layer 1. `noise_sd_of_sum_kwh` is that of the sum
    of all layers, without layers the same (NaN for a distribution). `epsilon_sum` is the sum over the released days,
    `problem` what refuses the day after the last one.

    Args:
        readings: a table with the columns of `agedp.read`.
        promises: the promises to compare.
        options: as in `release`.

    Raises:
        RunFileError: a missing or invalid keyword.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> promise = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100)
    >>> week = agedp.WEvent(window_days=7, epsilon_per_window=0.7, spend="even", max_day_epsilon=1, epsilon_total=100)
    >>> compare(readings, [promise, week], clamp_kwh=50, min_households=2)["epsilon_max"].tolist()
    [0.5, 0.1]
    """
    import pandas as pd  # noqa: PLC0415

    stored = StoredReadings.of(readings, accepted=options.get("accept", ()))
    rows = []
    for promise in promises:
        run, _ = context_of(stored, promise, options, scheduler=None, as_of=None)
        planned = forecast_run(LedgerSession.open(run))
        table = _planned_table(planned, run.run_file)
        drawn, limits = table[table["skipped"] == ""], run.run_file.notion.limits
        bound_name = own_bound_name(limits) or DAY_BOUND
        noise = drawn[~drawn["series"].map(is_upper)].filter(like="noise_sd").iloc[:, 0]
        name, series = next(iter(run.run_file.series.items()))
        losses = drawn.groupby(["day", "series"])["epsilon"].max().groupby("day").sum()
        rows.append(
            {
                "notion": promise.notion,
                "bound": bound_name,
                "limit": float("inf") if (limit := limits[bound_name]) is None else limit / NANO,
                "days": drawn["day"].nunique(),
                "last_day": drawn["day"].max(),
                "epsilon_max": _largest_day(planned, run.run_file),
                "epsilon_sum": losses.sum(),
                "noise_of": series_text(name, series),
                "noise_sd_kwh": noise.max(),
                "noise_sd_of_sum_kwh": _noise_of_sums(drawn),
                "problem": "" if planned.now.refused is None else str(planned.now.refused),
                "promise": promise,
            }
        )
    return pd.DataFrame(rows)


def _largest_day(planned: RunForecast, run_file: RunFile) -> float:
    """Return the largest epsilon about one day; a row counts in full on each day that it covers. NaN without a row."""
    rows = [release.row for release in planned.now.planned]
    losses = losses_about_days(rows, run_file.publication)
    return max(losses.values()) / NANO if losses else float("nan")


def _noise_of_sums(drawn: pd.DataFrame) -> float:
    """Return the noise of the noisiest sum of all layers of a day and group: the root of the summed variances."""
    if "noise_sd_kwh" not in drawn:
        return float("nan")
    places = [drawn["day"], drawn["series"].map(mean_name), drawn["group"]]
    return float((drawn["noise_sd_kwh"] ** 2).groupby(places).sum().max() ** 0.5)


def _comparison_table(comparison: NotionComparison) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    nan = float("nan")
    rows = [
        {
            "notion": entry.notion,
            "method": entry.method,
            "epsilon": nan if entry.epsilon is None else float(entry.epsilon),
            "noise_of": comparison.label,
            "noise_sd_kwh": nan if entry.series is None else entry.series.noise_kwh,
            "noise_sd_of_sum_kwh": nan if entry.series is None else entry.series.sum_noise_kwh,
            "bound": "" if entry.bound is None else entry.bound.name,
            "kind": "" if entry.bound is None else entry.bound.kind,
            "meets_target": entry.meets_target,
            "cheapest": entry.cheapest,
            "reason": entry.reason,
        }
        for entry in comparison.entries
    ]
    return pd.DataFrame(rows)
