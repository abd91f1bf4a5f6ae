"""What flows leave in Prefect: names of runs, artifacts, an event, an asset and lines of the log. All of it is public.

Everything is a function of the run file, the public part of the model and the ledger. A server that does not take an
artifact fails no flow. Of a calibration the public part of the model is public, as a table, and nothing else. Keys
contain the population, so that each population has a separate history: `agedp-plan-<population>`,
`agedp-input-<population>`, `agedp-released-days-<population>`, `agedp-statement-<population>` and
`agedp-report-<population>`. Each new release emits the event `agedp.release.published` and materializes the asset
`agedp://<population>/release`; either can trigger an automation that starts what comes downstream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.assets import Asset, AssetProperties
from prefect.client.orchestration import get_client
from prefect.events import emit_event
from prefect.runtime import flow_run

from agedp.budget import series_by_contract
from agedp.compute.engine_settings import Progress
from agedp.ledger_session import LedgerSession
from agedp.local_files.atomic_files import FileNotice
from agedp.pipeline import RunSummary
from agedp.planning.row_noise import noise_deviation
from agedp.release_folder.folder_files import REPORT
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext
from agedp.stage_values import DueDays
from agedp.stages.plan import plan_due_days
from agedp.stages.release import ReleaseResult
from agedp.stages.report import ReportOutcome, format_reports_status
from agedp_data import clock
from agedp_data.config import load
from agedp_data.datasets import filesystem
from agedp_data.epsilon import format_epsilon
from agedp_data.ledger import ReleaseRecord
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.messages import count_text, escape_controls
from agedp_data.model import Model
from agedp_data.notions.notion import losses_about_days
from agedp_data.notions.publication import Publication
from agedp_data.series.layered_mean import is_upper
from agedp_flows.stage_tasks import State
from agedp_flows.text import run_text
from agedp_flows.text.plan_text import plan_table
from agedp_flows.text.screen import shown
from agedp_flows.text.template_lines import render_lines


def artifact_key(kind: str, population: str) -> str:
    """Return the key of an artifact: lower-case letters, digits and dashes, different for different populations.

    >>> artifact_key("plan", "my-london-homes"), artifact_key("plan", "Haus 7")
    ('agedp-plan-my-london-homes', 'agedp-plan-haus-7-785a81')
    """
    return f"agedp-{kind}-{slug(population)}"


def slug(population: str) -> str:
    """Return a population's name in lower-case letters, digits and dashes; with a hash where the name has others."""
    plain = re.sub(r"[^a-z0-9]+", "-", population.lower()).strip("-")
    return plain if plain == population else f"{plain}-{sha256(population.encode()).hexdigest()[:6]}".strip("-")


def record(call: Callable[[], object]) -> None:
    """Hand an artifact or event to Prefect; a server that does not take it fails no run."""
    try:
        call()
    except Exception as error:
        get_run_logger().warning("Prefect did not record an artifact or event (%s).", type(error).__name__)


LOSS = 0.5
"""The epsilon whose aged values the table shows."""

_DESCRIPTION = "Bounds on mixing by age: maximum over all households, rounded up (the public part of the model)"


def record_bounds(population: str, model: Model, ages_days: Sequence[int]) -> None:
    """Record the bounds of a model by age, a line for each age."""
    key = artifact_key("spectral-bounds", population)
    description = f"{_DESCRIPTION}; model {model.id[:16]}"
    record(lambda: create_table_artifact(bounds_table(model, ages_days), key=key, description=description))


def bounds_table(model: Model, ages_days: Sequence[int]) -> list[dict[str, Any]]:
    """Return total variation, its bounds, and the aged value of epsilon 0.5, by age.

    A spectral bound has a column if the model has it and it is below 1 at some age. Models that are cyclic or carry a
    sampling bound have no spectral bounds at all; their total variation is named after its confidence.
    """
    leakage_bound, lines = model.leakage_bound, []
    titles = {"total_variation": MIXING_NAMES["total_variation"]}
    if model.public["confidence"] == "sampling-bound":
        titles["total_variation"] += f" (sampling bound, level {model.public['level']})"
    for name in ("spectral", "reversibilised"):
        if name in leakage_bound.bounds and (leakage_bound.bounds[name] < 1).any():
            titles[name] = MIXING_NAMES[name]
    method = "tight" if "tight" in leakage_bound.methods else "total_variation"
    for days in ages_days:
        steps = days * leakage_bound.steps_per_day
        at = leakage_bound.ages.tolist().index(steps)
        bounds = {title: f"{leakage_bound.bounds[name][at]:.4f}" for name, title in titles.items()}
        aged = float(leakage_bound(steps, LOSS, direction="backward", method=method))
        lines.append({"age (days)": days, **bounds, f"epsilon {LOSS} at this age": f"{aged:.4f}"})
    return lines


EVENT = "agedp.release.published"
_MAX_ROWS = 500
_PAGE_WIDTH = 84
"""Characters of a line of code that Prefect's pages show at 1280 pixels."""
_BROWSABLE = ("http://", "https://")


def first_name() -> str:
    """Return the name of a run until its days are known: its population, if the run file says one, and its date."""
    date = flow_run.parameters.get("as_of") or clock.today()
    with suppress(Exception):  # the flow itself tells what is wrong with its run file
        return f"{load(Path(flow_run.parameters['run_file'])).population.name} {date}"
    return str(date)


def name_run(population: str, days: Sequence[object]) -> None:
    """Name the run after its population and its first and last day, such as "homes 2013-02-02..2013-02-07"."""
    name = f"{population} {'..'.join(dict.fromkeys(str(days[i]) for i in (0, -1)))}"

    def rename() -> None:
        with get_client(sync_client=True) as client:
            client.update_flow_run(UUID(flow_run.id), name=name)

    record(rename)


class InputProgress:
    """The progress of the stage that reads the input files, in tenths; a `Progress` that calls `shown` as well.

    It ends at 100 however the stage ends, because at which file it ended may depend on readings.
    """

    def __init__(self, shown: Progress | None = None) -> None:
        self._shown = shown
        self._artifact: UUID | None = None
        self._percent = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show the progress of a stage."""
        if self._shown is not None:
            self._shown(stage, done, total)
        if stage == "read":
            self._update(min(10 * done // total, 9) * 10)  # deduplication follows

    def during(self, function: Callable[[], State], population: str) -> Callable[[], State]:
        """Return the function of a task with an artifact of its progress."""
        key = artifact_key("input", population)

        def create() -> None:
            self._percent = 0
            self._artifact = cast("UUID", create_progress_artifact(0.0, key=key, description="Input files read"))

        def call() -> State:
            record(create)
            try:
                return function()
            finally:
                self._update(100)

        return call

    def _update(self, percent: int) -> None:
        if self._artifact is not None and percent > self._percent:
            artifact, self._percent = self._artifact, percent
            record(lambda: update_progress_artifact(artifact, float(percent)))


def record_plan(session: LedgerSession, due_days: DueDays) -> None:
    """Record the due days with their epsilon and noise, and what a first release is fit for."""

    def create() -> None:
        run, terms = session.run, session.terms()
        purpose = f"; the series is {due_days.purpose}" if due_days.purpose else ""
        table = plan_table(run.run_file, plan_due_days(terms, due_days.due, session.history.rows).planned)
        days = f"The first {_MAX_ROWS} rows of due days" if len(table) > _MAX_ROWS else "Due days"
        description = (days if table else "No day is due") + purpose
        create_table_artifact(table[:_MAX_ROWS], key=_key("plan", run), description=description)

    record(create)


def record_release(released: ReleaseResult) -> None:
    """Record the released days, the statement and the path of the report, and emit the event of a new release."""
    run = released.session.run
    table, text = released_table(run, released.drawn), run_text.statement_markdown(ReleaseFolder(run.release_folder))
    if table:
        newest = f", the newest {_MAX_ROWS}" if len(table) > _MAX_ROWS else ""
        key, description = _key("released-days", run), f"Days released by this run{newest}"
        record(lambda: create_table_artifact(table[-_MAX_ROWS:], key=key, description=description))
    record(lambda: create_markdown_artifact(text, key=_key("statement", run), description="Privacy statement"))
    if (run.release_folder / REPORT).exists():
        record(lambda: _record_report(released.session))
    if table:
        facts = RunSummary(released.session, released=released.rows).facts
        payload = {name: facts[name] for name in ("population", "mode", "released", "folder")}
        resource = {"prefect.resource.id": asset_key(run), "prefect.resource.name": run.population}
        record(lambda: emit_event(EVENT, resource=resource, payload=payload))


def asset_key(run: RunContext) -> str:
    """Return the key of a population's release as a Prefect asset."""
    return f"agedp://{slug(run.population)}/release"


def asset(run: RunContext) -> Asset:
    """Return a population's release as a Prefect asset."""
    address = _address(run)
    properties = AssetProperties(
        name=f"Daily statistics of {run.population}",
        description=f"Release folder: {address}",
        url=address if address.startswith(_BROWSABLE) else None,
    )
    return Asset(key=asset_key(run), properties=properties)


def released_table(run: RunContext, rows: Sequence[ReleaseRecord]) -> list[dict[str, Any]]:
    """Return the rows that this run released: a line for each day, series and group, with the mean if published."""
    lines: list[dict[str, Any]] = []
    for row in rows:
        series = run.run_file.series[row.series]
        noise, unit = noise_deviation(row, series)
        day: dict[str, Any] = {"day": row.day, "series": row.series}
        cost = {"epsilon": format_epsilon(row.loss), "published on": row.published_on}
        if not series.has_one_mean():
            households = sum(series.by_group(row.cells, row.households).values())
            of_noise = {"noise sd kWh": f"{noise:.3f}"} if unit == "kwh" else {f"noise sd {unit}": noise}
            lines.append({**day, "group": "all", "households": households, "mean kWh": "", **of_noise, **cost})
            continue
        value_name = "layer kWh" if is_upper(row.series) else "mean kWh"
        for cell, number, value in zip(row.cells, row.households, row.values, strict=True):
            place = {**day, "group": escape_controls(cell), "households": number}
            noise_kwh = f"{noise * min(row.households) / number:.3f}"
            lines.append({**place, value_name: f"{value / number / 1000:.3f}", "noise sd kWh": noise_kwh, **cost})
    return lines


def _record_report(session: LedgerSession) -> None:
    """Record a link to the report or, because a browser follows none to a file, its newest values and bounds."""
    run = session.run
    address, key, description = _address(run), _key("report", run), "Report of the release"
    if address.startswith(_BROWSABLE):
        create_link_artifact(f"{address}/{REPORT}", REPORT, key=key, description=description)
        return
    texts = [shown(line, width=_PAGE_WIDTH, coloured=False) for line in run_text.published_lines(session)]
    lines = "\n".join(f"    {line}" for text in texts for line in text.splitlines())
    text = f"{lines}\n\nRelease folder: `{address}`. Open `{REPORT}` in it with a browser."
    create_markdown_artifact(text, key=key, description=description)


def _address(run: RunContext) -> str:
    """Return the URL of the release folder, or its path on the machine that ran the flow."""
    location = filesystem.format_location(run.run_file.output.release).rstrip("/")
    return location if filesystem.is_url(run.run_file.output.release) else str(Path(location).absolute())


def _key(kind: str, run: RunContext) -> str:
    return artifact_key(kind, run.population)


_UNITS = {"kwh": "kWh per household", "households": "households per count"}


def due_text(due_days: DueDays) -> str:
    """Return which days are due."""
    days = [due.day for due in due_days.due]
    text = f"{count_text(len(days), 'day')} due: {days[0]} to {days[-1]}." if days else "No day is due."
    return " ".join([text, *(f"{line}." for line in render_lines("waiting", waiting=due_days.waiting))])


def released_text(released: ReleaseResult) -> str:
    """Return how many days were released and skipped, at which epsilon and noise."""
    rows = released.drawn
    days, skipped = len({row.day for row in rows}), len(released.rows) - len(rows)
    text = f"{count_text(days, 'day')} released, {skipped} skipped."
    if not rows:
        return text
    publication = Publication(earlier=series_by_contract(released.session.history.contracts))
    loss = max(losses_about_days(rows, publication).values())  # a row counts in full on each day that it covers
    noise: dict[str, tuple[float, str]] = {}
    for row in rows:
        sd, unit = noise_deviation(row, released.session.run.run_file.series[row.series])
        noise[row.series] = max(noise.get(row.series, (0.0, unit)), (sd, unit))
    noises = ", ".join(f"{sd:.3g} {_UNITS[unit]} ({series})" for series, (sd, unit) in noise.items())
    return f"{text} Epsilon per day: at most {format_epsilon(loss)}. Noise standard deviation: at most {noises}."


def published_text(run: RunContext, folder: ReleaseFolder | None) -> str:
    """Return the path of the release folder."""
    location = filesystem.format_path(run.run_file.output.release)
    return "Nothing was due yet." if folder is None else f"Release folder: {location}"


def report_text(outcome: ReportOutcome | None) -> str:
    """Return the path of the internal report, or the reason why it was not written."""
    text = format_reports_status(outcome)
    return "Nothing was due yet." if text is None else f"Internal report: {text}."


def warning_text(notices: Sequence[FileNotice]) -> str:
    """Return what failed after publication and which kinds of confidential files were damaged, without their names."""
    return f"Published with warnings: {'; '.join(dict.fromkeys(notice.public for notice in notices))}."
