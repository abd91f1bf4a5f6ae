"""Prefect artifacts, event and asset of a release. All of them are public.

Keys contain the population, so that each population has a separate history: `agedp-plan-<population>`,
`agedp-released-days-<population>`, `agedp-statement-<population>` and `agedp-report-<population>`. Each new release
emits the event `agedp.release.published` and materializes the asset `agedp://<population>/release`; either can trigger
an automation that starts what comes downstream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.assets import Asset, AssetProperties
from prefect.events import emit_event

from agedp.release_folder.release_folder import REPORT, ReleaseFolder
from agedp.run_context import RunContext
from agedp.run_summary import RunSummary
from agedp.stage_values import DueDays
from agedp_data.datasets import filesystem
from agedp_data.epsilon import format_epsilon
from agedp_data.ledger import ReleaseRecord
from agedp_flows.artifacts import artifact_key, record, slug
from agedp_flows.text import run_text
from agedp_flows.text.plan_text import plan_table
from agedp_flows.text.run_text import noise_deviation

EVENT = "agedp.release.published"
_MAX_ROWS = 500
_BROWSABLE = ("http://", "https://")


def record_plan(run: RunContext, due_days: DueDays) -> None:
    """Record the due days."""
    text = plan_table(due_days)
    record(lambda: create_markdown_artifact(text, key=_key("plan", run), description="Due days"))


def record_release(summary: RunSummary) -> None:
    """Record the released days, the statement and the path of the report, and emit the event of a new release."""
    run = summary.run
    table, text = released_table(run, summary.drawn), run_text.statement_markdown(ReleaseFolder(run.release_folder))
    if table:
        newest = f", the newest {_MAX_ROWS}" if len(table) > _MAX_ROWS else ""
        record(
            lambda: create_table_artifact(
                table[-_MAX_ROWS:], key=_key("released-days", run), description=f"Days released by this run{newest}"
            )
        )
    record(lambda: create_markdown_artifact(text, key=_key("statement", run), description="Privacy statement"))
    if (run.release_folder / REPORT).exists():
        record(lambda: _link_report(run))
    if table:
        _announce(summary)


def _announce(summary: RunSummary) -> None:
    """Emit the event of a new release."""
    run, facts = summary.run, run_text.result_json(summary)
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
    return [line for row in rows for line in _lines(run, row)]


def _lines(run: RunContext, row: ReleaseRecord) -> list[dict[str, Any]]:
    series = run.run_file.series[row.series]
    noise, unit = noise_deviation(row, series)
    day: Mapping[str, Any] = {"day": row.day, "series": row.series}
    cost = {"epsilon": format_epsilon(row.loss), "published on": row.published_on}
    if series.statistic != "mean":
        households = sum(series.by_group(row.cells, row.households).values())
        return [{**day, "group": "all", "households": households, "mean kWh": "", f"noise sd {unit}": noise, **cost}]
    cells = zip(row.cells, row.households, row.values, strict=True)
    return [
        {
            **day,
            "group": cell,
            "households": number,
            "mean kWh": f"{value / number / 1000:.3f}",
            "noise sd kWh": f"{noise * min(row.households) / number:.3f}",
            **cost,
        }
        for cell, number, value in cells
    ]


def _link_report(run: RunContext) -> None:
    address, description = _address(run), "Report of the release"
    if address.startswith(_BROWSABLE):
        create_link_artifact(f"{address}/{REPORT}", REPORT, key=_key("report", run), description=description)
        return
    text = f"Release folder: `{address}`\n\nOpen `{REPORT}` in it with a browser."  # which refuses a link to a file
    create_markdown_artifact(text, key=_key("report", run), description=description)


def _address(run: RunContext) -> str:
    """Return the URL of the release folder, or its path on the machine that ran the flow."""
    location = filesystem.format_location(run.run_file.output.release).rstrip("/")
    return location if filesystem.is_url(run.run_file.output.release) else str(Path(location).absolute())


def _key(kind: str, run: RunContext) -> str:
    return artifact_key(kind, run.population)
