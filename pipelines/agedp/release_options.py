"""The keywords of `agedp.release` and `agedp.plan`, and the run file that they make of a table of readings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, TypeVar, get_args

from agedp.compute.engine_settings import Scheduler
from agedp.models import CalibratedModel
from agedp.promises import DeclaredCurve, Number, PromiseKeys, exact_number
from agedp.run_context import RunContext
from agedp.workspace import StoredReadings, Workspace
from agedp_data.config import RunFile
from agedp_data.config.loading import from_keys
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import RunFileError
from agedp_data.ledger import Ledger
from agedp_data.messages import suggest_name
from agedp_data.parameters import Acceptance, FindingName

SERIES = "use"
_DEFAULTS: Final[Mapping[str, Any]] = {
    "statistic": "mean",
    "max_missing": 2,
    "missing_kwh": 0,
    "population": "households",
}
_REQUIRED: Final = ("clamp_kwh", "min_households")
_SHOWN: Final = {**_DEFAULTS, **dict.fromkeys(_REQUIRED, inspect.Parameter.empty)}


class ReleaseOptions(TypedDict, total=False):
    """What decides a release of a table; a run file says all of it, so it takes none of these.

    Attributes:
        clamp_kwh: upper bound on a household's daily total, or ascending bounds of its layers; required, except for
            coverage, which has none.
        share: share of each day's epsilon for each layer, with a list of clamps only.
        min_households: a day or group with fewer households is never released; required.
        roster: who counts on each day (`household_id, from, to` and group columns), a table or the path of a CSV file.
            Without it the roster is read off the readings, and the statement says so.
        statistic: "mean", "distribution" with `bins_kwh`, the edges of the ranges, "profile" with
            `half_hour_clamp_kwh`, the upper bound on a household's half-hour, or "coverage".
        by: a group column of the roster.
        max_missing: a household-day that lacks more half-hours than this counts as missing.
        missing_kwh: value of a missing household-day.
        every: the days of a row: "day"; of a mean also "week", "month" or "year", of a profile "weekday-month".
        first_day: first day to release; the first with a reading if not given.
        last_day: last day to release; the last with a reading if not given.
        skip_days: days of the period that are not released; chosen without looking at the readings.
        model: a model, for the notions that need one.
        accept_unverified_model: True accepts that a promised risk rests on an estimated model, which one dataset can
            contradict but never verify; required for it.
        accept: causes for which a first release is refused, accepted knowingly: "no-credit", "useless", "total", beside
            those of the promise; and names of `agedp.findings`, such as "negative".
        population: name of the population in the ledger and the release.
        ledger: URL of a ledger, or an open one; in memory if not given.
        title: title of the release; also `attribution` ([output] source), `licence` and `contact`.
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
    """Show the keywords of `ReleaseOptions` in the signature of a function that takes `**options`."""
    shown_signature = inspect.signature(function)
    named = [
        parameter for parameter in shown_signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD
    ]
    shown = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=_SHOWN.get(name), annotation=annotation.__forward_arg__
        )
        for name, annotation in ReleaseOptions.__annotations__.items()
    ]
    function.__signature__ = shown_signature.replace(parameters=[*named, *shown])  # type: ignore[attr-defined]
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
    names = tuple(ReleaseOptions.__annotations__)
    for name in options.keys() - set(names):
        raise TypeError(f"{name!r} is no keyword of a release{suggest_name(name, names)}")
    on = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    if isinstance(source, str | Path):
        if promise is not None or options:
            given = ", ".join([*(["promise"] if promise is not None else []), *options])
            raise RunFileError(f"{given}: a run file says this; change the file, or pass a table of readings instead")
        return RunContext.load(source, scheduler=scheduler, as_of=on), None
    if as_of is not None:
        raise RunFileError("as_of goes with a run file in a rehearsal; a table is released as an archive")
    unused = _UNUSED.get(options.get("statistic", "mean"), ())
    missing = [name for name in _REQUIRED if name not in options and name not in unused]
    if promise is None:
        missing.insert(0, "promise")
    if missing or promise is None:
        raise RunFileError(f"release: {', '.join(missing)} decide what is promised and have no default; give them")
    if not isinstance(promise, PromiseKeys):
        known = ", ".join(f"agedp.{kind.__name__}" for kind in PromiseKeys.__subclasses__())
        raise RunFileError(f"promise: {type(promise).__name__} is no promise; give one of {known}, with its keywords")
    stored = source
    if not isinstance(source, StoredReadings):
        accepted = _accepted_findings(options)
        stored = StoredReadings.of(source, scheduler=scheduler, has_begun=_has_begun(options), accepted=accepted)
    return RunContext.of(_run_file(stored, promise, options), scheduler=scheduler), stored.workspace


def _has_begun(options: ReleaseOptions) -> bool:
    """Return whether the ledger of a release has a released day of its population."""
    ledger = options.get("ledger")
    if isinstance(ledger, str):
        if not Ledger.exists(ledger):
            return False
        with Ledger.open(ledger) as opened:
            return _has_begun({**options, "ledger": opened})
    history = () if ledger is None else ledger.history(options.get("population", _DEFAULTS["population"]))
    return any(header.state == "released" for header in history)


def _run_file(stored: StoredReadings, promise: PromiseKeys, options: ReleaseOptions) -> RunFile:
    """Return the run file of a release of a table."""
    unused = _UNUSED.get(options.get("statistic", "mean"), ())
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in unused}
    chosen, workspace = {**defaults, **options}, stored.workspace
    first, last = (_day(chosen.get(key), day) for key, day in zip(("first_day", "last_day"), stored.days, strict=True))
    series = {key: _exact(chosen[key]) for key in _SERIES_KEYS if chosen.get(key) is not None}
    roster = chosen.get("roster")
    path = stored.roster_file if roster is None else workspace.write_roster(roster)
    ledger = chosen.get("ledger")
    url = ledger.url if isinstance(ledger, Ledger) else ledger
    keys: dict[str, Any] = {
        "version": 1,
        "population": {"name": chosen["population"], "roster": str(path), "min_households": chosen["min_households"]},
        "input": {**stored.input_keys, **({"accept": accepted} if (accepted := _accepted_findings(chosen)) else {})},
        "schedule": {"mode": "archive", "first_day": first, "last_day": last, **_skip_days(chosen)},
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
    run = from_keys(keys, base=Path.cwd(), name="release").accepting(_words(chosen, of_promise=True)).outside_register()
    return run if url else run.with_temporary_ledger()


def _accepted_findings(options: Mapping[str, Any]) -> list[str]:
    return _words(options, of_promise=False)


def _words(options: Mapping[str, Any], *, of_promise: bool) -> list[str]:
    """Return the words of `accept`, those about the input or all others; a text alone is one word."""
    words = options.get("accept", ())
    listed = [words] if isinstance(words, str) else [*words]
    return [word for word in listed if (word not in get_args(FindingName)) == of_promise]


_OUTPUT_KEYS = {"title": "title", "source": "attribution", "licence": "licence", "contact": "contact"}
_MODEL_NUMBERS = {"level", "selection_epsilon", "coverage", "failure_probability"}
_MODEL_KEYS = ("accept_unverified_model",)
_SERIES_KEYS = (
    "statistic",
    "clamp_kwh",
    "half_hour_clamp_kwh",
    "share",
    "bins_kwh",
    "by",
    "every",
    "max_missing",
    "missing_kwh",
)
_UNUSED: Final[Mapping[str, tuple[str, ...]]] = {"coverage": ("clamp_kwh", "missing_kwh")}
"""Keywords that a statistic does not have."""


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


def _skip_days(chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the key skip_days of [schedule], nothing if it is not given."""
    days = chosen.get("skip_days")
    if days is None:
        return {}
    return {"skip_days": days if isinstance(days, str) else [_day(day, date.min) for day in days]}


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
        settings["quantiles"] = [
            {**question, **{key: Decimal(question[key]) for key in ("probability", "epsilon")}}
            for question in settings["quantiles"]
        ]
    family = settings.pop("family", {})
    if "age_days" in family:
        settings["family"] = _write_family(family, workspace)
    model_keys = {key: value for key, value in settings.items() if key in EstimatedModel.model_fields}
    return {"publish": "envelope", **model_keys, "file": str(model.folder)}


def _write_family(family: Mapping[str, Any], workspace: Workspace) -> str:
    """Return the path of a family's table, as the public part of a model contains it."""
    rows = zip(family["age_days"], *family["total_variation"], strict=True)
    path = workspace.folder / "family.csv"
    path.write_text("".join(f"{','.join(row)}\n" for row in rows), encoding="ascii")
    return str(path)
