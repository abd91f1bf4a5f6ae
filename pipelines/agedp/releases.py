"""`agedp.release`, `plan`, `compare` and `sanitise` on tables in memory: the stages of a run on a temporary run file.

The keywords are those of a run file; the same stages plan, sum, draw and publish. Without `ledger` the ledger ends with
this process, and the statement says so. With the URL of one, all rules of a run apply: days are drawn once, losses add
up, and a changed promise is refused.
"""

from __future__ import annotations

import inspect
import logging
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, Unpack, get_args

from agedp.compute.engine_settings import Scheduler
from agedp.internal_records.bookkeeping import TRUE_MEANS, take_over
from agedp.ledger_session import LedgerSession, PopulationHistory
from agedp.local_files.books import Books
from agedp.models import CalibratedModel
from agedp.pipeline import run_stages
from agedp.preflight.input_checks import noted, warn_of
from agedp.promises import DeclaredCurve, Number, PromiseKeys, exact_number
from agedp.release_folder.folder_files import is_release_file
from agedp.release_folder.partitions import list_files
from agedp.release_verification import ReleaseFolder
from agedp.result_summary import ResultSummary
from agedp.run_context import RunContext, internal_paths, load_run_file
from agedp.stages.plan import find_due_days, plan_due_days
from agedp.workspace import StoredReadings, Workspace
from agedp_data.config import RunFile
from agedp_data.config.loading import from_keys
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import InputError, PreflightFailed, Refused, RunFileError
from agedp_data.ledger import Ledger
from agedp_data.messages import suggest_name
from agedp_data.parameters import Acceptance, FindingName
from agedp_data.series.series import BY_NAME, STATISTICS

if TYPE_CHECKING:
    import pandas as pd

    from agedp.release_verification import Verification


# --------------------------------------------------------------------------------------------------
# The keywords of `agedp.release` and `agedp.plan`, and the run file that they make of a table of readings.
# --------------------------------------------------------------------------------------------------

SERIES = "use"
_DEFAULTS: dict[str, Any] = {"statistic": "mean", "max_missing": 2, "missing_kwh": 0, "population": "households"}
_REQUIRED: Final = ("clamp_kwh", "min_households")
_SHOWN: Final = {**_DEFAULTS, **dict.fromkeys(_REQUIRED, inspect.Parameter.empty)}


class ReleaseOptions(TypedDict, total=False):
    """What decides a release of a table; a run file says all of it, so it takes none of these.

    Attributes:
        clamp_kwh: upper bound on a household's daily total, or ascending bounds of its layers [kWh]; required, except
            for coverage, which has none. Public, never read off the readings.
        share: share of each day's epsilon for each layer, with a list of clamps only [-].
        min_households: a day or group with fewer households is never released; required.
        roster: who counts on each day (`household_id, from, to` and group columns), a table or the path of a CSV file.
            Confidential; the number of its rows by day and group is public. Without it the roster is read off the
            readings, and the statement says so.
        statistic: "mean", "distribution" with `bins_kwh`, "profile" with `half_hour_clamp_kwh`, or "coverage".
        bins_kwh: ascending edges of the ranges of a distribution [kWh]. Public.
        half_hour_clamp_kwh: upper bound on a household's half-hour, of a profile [kWh]. Public.
        by: a group column of the roster.
        max_missing: a household-day that lacks more than this counts as missing [half-hours].
        missing_kwh: value of a missing household-day [kWh]. Public.
        every: the days of a row: "day"; of a mean also "week", "month" or "year", of a profile "weekday-month".
        first_day: first day to release; the first with a reading if not given.
        last_day: last day to release; the last with a reading if not given.
        skip_days: days of the period that are not released; chosen without looking at the readings.
        model: a model, for the notions that need one.
        accept_unverified_model: True accepts that the promise rests on an estimated model, which one dataset can
            contradict but never verify; required for it.
        accept: causes for which a first release is refused, accepted knowingly: "no-credit", "useless", "total", beside
            those of the promise; and names of `agedp.findings`, such as "negative".
        population: name of the population in the ledger and the release.
        ledger: URL of a ledger, or an open one; in memory if not given.
        title: title of the release.
        attribution: where the data come from, as their licence asks for it ([output] source).
        licence: licence of the release.
        contact: whom to ask about the release.
    """

    clamp_kwh: Number | Sequence[Number]
    share: Sequence[Number]
    min_households: int
    roster: Any
    statistic: Literal["mean", "distribution", "profile", "coverage"]
    bins_kwh: Sequence[Number]
    half_hour_clamp_kwh: Number
    by: str
    max_missing: int
    missing_kwh: Number
    every: Literal["day", "week", "month", "year", "weekday-month"]
    first_day: date | str
    last_day: date | str
    skip_days: Sequence[date | str]
    model: CalibratedModel | DeclaredCurve
    accept_unverified_model: Literal[True]
    accept: Sequence[Acceptance | FindingName]
    population: str
    ledger: str | Ledger
    title: str
    attribution: str
    licence: str
    contact: str


_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_options(function: _Function) -> _Function:
    """Show the keywords of `ReleaseOptions` in signature and documentation of a function that takes `**options`."""
    return with_defaults({})(function)


def with_defaults(further: Mapping[str, Any]) -> Callable[[_Function], _Function]:
    """Return `with_options` for a function that has these defaults too, for keywords that others require."""
    return lambda function: _with_signature(function, {**_SHOWN, **further})


_OF_OPTIONS: Final = re.compile(r"    options: .*(?:\n {8}.*)*")


def _described(documentation: str) -> str:
    """Return the documentation of a function with every keyword of `ReleaseOptions` in place of `options`."""
    keywords = inspect.cleandoc(ReleaseOptions.__doc__ or "").partition("Attributes:\n")[2]
    return _OF_OPTIONS.sub(lambda _: keywords, inspect.cleandoc(documentation))


def _with_signature(function: _Function, defaults: Mapping[str, Any]) -> _Function:
    shown_signature = inspect.signature(function)
    named = [named for named in shown_signature.parameters.values() if named.kind is not named.VAR_KEYWORD]
    kind, kinds = inspect.Parameter.KEYWORD_ONLY, ReleaseOptions.__annotations__
    shown = [
        inspect.Parameter(name, kind, default=defaults.get(name), annotation=annotation.__forward_arg__)
        for name, annotation in kinds.items()
    ]
    function.__signature__ = shown_signature.replace(parameters=[*named, *shown])  # type: ignore[attr-defined]
    function.__doc__ = _described(function.__doc__ or "")
    return function


def context_of(
    source: Any,  # noqa: ANN401
    promise: PromiseKeys | None,
    options: ReleaseOptions,
    *,
    scheduler: Scheduler,
    as_of: date | str | None,
) -> tuple[RunContext, Workspace | None]:
    """Return the inputs of a run: of a run file, or of a table and keywords in a new workspace.

    Raises:
        TypeError: a keyword that does not exist.
        RunFileError: a missing or invalid keyword, or keywords beside a run file.
    """
    on = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    if isinstance(source, str | Path):
        if promise is not None or options:
            given = ", ".join([*(["promise"] if promise is not None else []), *options])
            remedy = "pass files of readings as agedp.read(files, ...), or write this in the run file"
            raise RunFileError(f"{given}: a path is that of a run file, which says this; {remedy}")
        return RunContext.load(source, scheduler=scheduler, as_of=on), None
    names = tuple(ReleaseOptions.__annotations__)
    for name in options.keys() - set(names):
        raise TypeError(f"{name!r} is no keyword of a release{suggest_name(name, names)}")
    if as_of is not None:
        raise RunFileError("as_of goes with a run file in a rehearsal; a table is released as an archive")
    unused = _unused(options)
    missing = [name for name in _REQUIRED if name not in options and name not in unused]
    if promise is None:
        missing.insert(0, "promise")
    if missing or promise is None:
        verbs = ("decides", "has") if len(missing) == 1 else ("decide", "have")
        raise RunFileError(f"{', '.join(missing)} {verbs[0]} what is promised and {verbs[1]} no default: give a value")
    if not isinstance(promise, PromiseKeys):
        known = ", ".join(f"agedp.{kind.__name__}" for kind in PromiseKeys.__subclasses__())
        raise RunFileError(f"promise: {type(promise).__name__} is no promise; give one of {known}, with its keywords")
    stored = source
    if not isinstance(source, StoredReadings):
        accepted = _words(options, of_promise=False)
        stored = StoredReadings.of(source, scheduler=scheduler, has_begun=_has_begun(options), accepted=accepted)
    run = RunContext.of(_run_file(stored, promise, options), scheduler=scheduler)
    has_temporary_ledger = not options.get("ledger")
    return replace(run, is_outside_register=True, has_temporary_ledger=has_temporary_ledger), stored.workspace


def _has_begun(options: ReleaseOptions) -> bool:
    """Return whether the ledger of a release has a released day of its population."""
    ledger = options.get("ledger")
    if isinstance(ledger, str):
        if not Ledger.exists(ledger):
            return False
        with Ledger.open(ledger) as opened:
            return _has_begun({**options, "ledger": opened})
    return PopulationHistory.read(ledger, options.get("population", _DEFAULTS["population"])).has_begun


def _run_file(stored: StoredReadings, promise: PromiseKeys, options: ReleaseOptions) -> RunFile:
    """Return the run file of a release of a table."""
    unused = _unused(options)
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in unused}
    chosen, workspace = {**defaults, **options}, stored.workspace
    first, last = (_day(chosen.get(key), day) for key, day in zip(("first_day", "last_day"), stored.days, strict=True))
    schedule: dict[str, Any] = {"mode": "archive", "first_day": first, "last_day": last}
    if (skipped := chosen.get("skip_days")) is not None:
        schedule["skip_days"] = skipped if isinstance(skipped, str) else [_day(day, date.min) for day in skipped]
    series = {key: _exact(chosen[key]) for key in _SERIES_KEYS if chosen.get(key) is not None}
    roster = chosen.get("roster")
    path = stored.roster_file if roster is None else workspace.write_roster(roster)
    ledger = chosen.get("ledger")
    url, accepted = ledger.url if isinstance(ledger, Ledger) else ledger, _words(chosen, of_promise=False)
    households = exact_number(chosen["min_households"])
    keys: dict[str, Any] = {
        "version": 1,
        "population": {"name": chosen["population"], "roster": str(path), "min_households": households},
        "input": {**stored.input_keys, **({"accept": accepted} if accepted else {})},
        "schedule": schedule,
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
        keys["model"] = {**_model_keys(model, workspace), **{key: chosen[key] for key in _MODEL_KEYS if key in chosen}}
    return from_keys(keys, base=Path.cwd(), name="release").accepting(_words(chosen, of_promise=True))


def _words(options: Mapping[str, Any], *, of_promise: bool) -> list[str]:
    """Return the words of `accept`, those about the input or all others; a text alone is one word."""
    words = options.get("accept", ())
    listed = [words] if isinstance(words, str) else [*words]
    return [word for word in listed if (word not in get_args(FindingName)) == of_promise]


_OUTPUT_KEYS = {"title": "title", "source": "attribution", "licence": "licence", "contact": "contact"}
_MODEL_NUMBERS = {"level", "selection_epsilon", "coverage", "failure_probability"}
_MODEL_KEYS = ("accept_unverified_model",)
_SERIES_KEYS: Final = tuple(
    key for key in ReleaseOptions.__annotations__ if any(key in kind.model_fields for kind in STATISTICS)
)


def _unused(options: ReleaseOptions) -> set[str]:
    """Return the keywords of series that the statistic does not have."""
    kind = BY_NAME.get(options.get("statistic", "mean"))
    return set() if kind is None else {key for key in _SERIES_KEYS if key not in kind.model_fields}


def _exact(value: Any) -> Any:  # noqa: ANN401
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return [exact_number(item) for item in value] if is_list else exact_number(value)


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
    for key in _MODEL_NUMBERS & settings.keys():
        settings[key] = Decimal(settings[key])
    if "quantiles" in settings:
        exact = ("probability", "epsilon")
        settings["quantiles"] = [{**of, **{key: Decimal(of[key]) for key in exact}} for of in settings["quantiles"]]
    family = settings.pop("family", {})
    if "age_days" in family:
        rows = zip(family["age_days"], *family["total_variation"], strict=True)
        path = workspace.folder / "family.csv"
        path.write_text("".join(f"{','.join(row)}\n" for row in rows), encoding="ascii")
        settings["family"] = str(path)
    model_keys = {key: value for key, value in settings.items() if key in EstimatedModel.model_fields}
    return {"publish": "envelope", **model_keys, "file": str(model.folder)}


_LOG = logging.getLogger("agedp")


@dataclass(frozen=True, slots=True, repr=False)
class Release(ResultSummary):
    """Released days: their table and statement, and the ledger that remembers what was spent."""

    folder: ReleaseFolder
    ledger: Ledger
    _owner: Workspace | None = None

    def _facts(self) -> dict[str, object]:
        return self.folder._facts()

    @property
    def table(self) -> pd.DataFrame:
        """The published values, indexed by day: `daily_averages.parquet` or `daily_distribution.parquet`."""
        return self.folder.table().set_index("day")

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
        if any(bound.conditional_days for bound in bounds):  # beside a model that is published without noise
            frame["conditional_days"] = [bound.conditional_days or "" for bound in bounds]
        if any(bound.delta for bound in bounds):
            frame["delta"] = [float(bound.delta or 0) for bound in bounds]
        frame["epsilon"] = [float("inf") if bound.epsilon == "infinite" else float(bound.epsilon) for bound in bounds]
        return frame

    def plot(self) -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot the first table with its noise intervals, as `ReleaseFolder.plot` does."""
        return self.folder.plot()

    def save(self, folder: str | Path) -> ReleaseFolder:
        """Copy the release folder to a new or empty folder, which may be handed over; `agedp verify` checks it.

        Raises:
            InputError: the folder has files already.
        """
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{target.name}: has files already; name a new or empty folder")
        target.mkdir(parents=True, exist_ok=True)
        for name in filter(is_release_file, list_files(self.folder.path)):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.folder.path / name, target / name)
        return ReleaseFolder(target)

    def verify(self) -> Verification:
        """Verify the release folder, as a recipient would."""
        return self.folder.verify()


@with_options
def release(
    source: Any,  # noqa: ANN401  (the path of a run file, or any table of readings)
    *,
    promise: PromiseKeys | None = None,
    scheduler: Scheduler = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> Release:
    r"""Release every due day of a run file, or every day of a table of readings, under a promise.

    Use it to publish. Each day's sum of n households, clamped at U, has discrete Laplace noise of its own. The noise of
    the mean, with the epsilon that the promise grants the day, has the standard deviation

    .. math:: \sigma = \frac{\sqrt 2\, U}{\varepsilon\, n} \text{ kWh per household}

    Source: [GRS] Ghosh, Roughgarden, Sundararajan (2009); `agedp_data.mechanisms.discrete_laplace`.

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
        InputError: a table that has not the columns of `agedp.read`.
        PreflightFailed: readings that refuse a first release; `agedp.findings` names the causes.
        Refused: the promise does not permit a day. Nothing is drawn of a table; of a run file the days before it are
            released.
        ContractChanged: the ledger holds releases of this population under another promise.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> caps = {"max_day_epsilon": 0.5, "epsilon_total": 100, "accept": ["useless"]}  # of use to nobody: two homes
    >>> promise = agedp.Classical(epsilon_per_day=0.5, **caps)
    >>> released = release(readings, promise=promise, clamp_kwh=50, min_households=2)
    >>> released.table["noise_sd_kwh"].round(1).tolist(), released.bounds.set_index("name")["epsilon"]["total"]
    ([70.7, 70.7], np.float64(1.0))
    >>> released.verify().compared[:3]
    ('checksums', 'tables', 'statement.json')
    """
    run, workspace = context_of(source, promise, options, scheduler=scheduler, as_of=as_of)
    if workspace is not None:
        _check_all_days_permitted(run)
    summary = run_stages(run)
    if isinstance(summary.refusal, PreflightFailed):
        raise noted(summary.refusal)
    summary.check_not_refused()
    if summary.checked is not None and workspace is not None:
        warn_of(summary.checked.findings)
    ledger = options.get("ledger")
    if not isinstance(ledger, Ledger):
        ledger = Ledger.open(run.run_file.output.ledger)
    return Release(ReleaseFolder(run.release_folder), ledger, workspace)


def _check_all_days_permitted(run: RunContext) -> None:
    """Check that the promise permits every day of a table: whoever releases a table expects all of its days.

    Raises:
        Refused: it does not permit a day.
    """
    session = LedgerSession.open(run)
    history = session.history
    refusal = plan_due_days(session.terms(), find_due_days(session).due, history.rows).refused
    if refusal is not None:
        raise Refused(f"{refusal}. Give last_day= to release the days before it, or another promise")
    if days := history.released_days:
        _LOG.warning(
            "agedp: the ledger has %d released days of population %r already; they are returned as they are, and "
            "nothing is drawn for them. Other households need another population=",
            len(days),
            run.population,
        )


@with_options
def sanitise(
    source: Any,  # noqa: ANN401
    *,
    folder: str | Path | None = None,
    promise: PromiseKeys | None = None,
    scheduler: Scheduler = None,
    as_of: date | str | None = None,
    **options: Unpack[ReleaseOptions],
) -> ReleaseFolder:
    """Release as `release` does, and return the release folder: that of the run file, or `folder` for a table.

    Use it where the folder is what you want, such as in a scheduled job. Arguments are those of `agedp.release`.

    Args:
        source: the path of a run file, or a table with the columns of `agedp.read`.
        folder: a new or empty folder for the release of a table.
        promise: as in `release`.
        scheduler: as in `release`.
        as_of: as in `release`.
        options: as in `release`.

    Raises:
        RunFileError: no `folder` for a table, or one beside a run file; and as `release`.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> caps = {"max_day_epsilon": 0.5, "epsilon_total": 100, "accept": ["useless"]}  # of use to nobody: two homes
    >>> promise = agedp.Classical(epsilon_per_day=0.5, **caps)
    >>> from tempfile import mkdtemp
    >>> folder = sanitise(readings, folder=mkdtemp(), promise=promise, clamp_kwh=50, min_households=2)
    >>> verification = agedp.verify(folder.path)
    """
    if isinstance(source, str | Path):
        if folder is not None:
            raise RunFileError("sanitise: a run file names its release folder; leave out folder=")
        return release(source, promise=promise, scheduler=scheduler, as_of=as_of, **options).folder
    if folder is None:
        raise RunFileError("sanitise: give folder=, where the release folder of a table is written")
    return release(source, promise=promise, scheduler=scheduler, as_of=as_of, **options).save(folder)


def true_means(run_file: str | Path) -> pd.DataFrame:
    """Return the daily means of a run file's population before noise, beside the released ones. Confidential.

    Use it to see what the noise did. A true mean is that of days as the series counts them: after the clamp, which it
    does not show, and with `missing_kwh` for a missing day. It is an unprotected figure: it is never handed over, and
    with the released mean it discloses the noise of its day.

    Args:
        run_file: the path of a run file.

    Returns:
        A row for each released day, mean and group: `day`, `series`, `cell` ("all", or the group), `households`,
        `true_mean_kwh` and `released_mean_kwh` [kWh per household]. No rows before the first release, and none for
        other statistics and for days whose record is lost.

    Raises:
        RunFileError: an invalid run file.
        InputError: the record in the confidential folder is damaged, or cannot be read.
    """
    run = load_run_file(run_file)
    books = Books(internal_paths(run).books)
    take_over(books)
    frame: pd.DataFrame = TRUE_MEANS.read(books, run.population.name).drop_columns(["population"]).to_pandas()
    return frame
