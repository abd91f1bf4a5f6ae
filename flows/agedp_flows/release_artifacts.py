"""Prefect artifacts, event and asset of a release. All of them are public.

Keys contain the population, so that each population has a separate history: `agedp-plan-<population>`,
`agedp-released-days-<population>`, `agedp-statement-<population>` and `agedp-report-<population>`. Each new release
emits the event `agedp.release.published` and materializes the asset `agedp://<population>/release`; either can trigger
an automation that starts what comes downstream.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.assets import Asset, AssetProperties
from prefect.events import emit_event

from agedp.release_folder.release_folder import REPORT
from agedp.run_context import Work
from agedp_data.datasets import filesystem
from agedp_data.epsilon import format_epsilon
from agedp_data.ledger import ReleaseRecord
from agedp_flows.artifacts import artifact_key, record, slug
from agedp_flows.text import run_text
from agedp_flows.text.log_text import released_rows
from agedp_flows.text.plan_text import plan_table
from agedp_flows.text.run_text import noise_deviation

EVENT = "agedp.release.published"
_MAX_ROWS = 500
_BROWSABLE = ("http://", "https://")


def record_plan(work: Work) -> None:
    """Record the due days."""
    text = plan_table(work)
    record(lambda: create_markdown_artifact(text, key=_key("plan", work), description="Due days"))


def record_release(work: Work) -> None:
    """Record the released days, the statement and the path of the report, and emit the event of a new release."""
    table, text = released_table(work), run_text.statement_markdown(work)
    if table:
        newest = f", the newest {_MAX_ROWS}" if len(table) > _MAX_ROWS else ""
        record(
            lambda: create_table_artifact(
                table[-_MAX_ROWS:], key=_key("released-days", work), description=f"Days released by this run{newest}"
            )
        )
    record(lambda: create_markdown_artifact(text, key=_key("statement", work), description="Privacy statement"))
    if (work.release / REPORT).exists():
        record(lambda: _link_report(work))
    if table:
        _announce(work)


def _announce(work: Work) -> None:
    """Emit the event of a new release."""
    facts = run_text.result_json(work)
    payload = {name: facts[name] for name in ("population", "mode", "released", "folder")}
    resource = {"prefect.resource.id": asset_key(work), "prefect.resource.name": work.population}
    record(lambda: emit_event(EVENT, resource=resource, payload=payload))


def asset_key(work: Work) -> str:
    """Return the key of a population's release as a Prefect asset."""
    return f"agedp://{slug(work.population)}/release"


def asset(work: Work) -> Asset:
    """Return a population's release as a Prefect asset."""
    address = _address(work)
    properties = AssetProperties(
        name=f"Daily statistics of {work.population}",
        description=f"Release folder: {address}",
        url=address if address.startswith(_BROWSABLE) else None,
    )
    return Asset(key=asset_key(work), properties=properties)


def released_table(work: Work) -> list[dict[str, Any]]:
    """Return the days that this run released: a line for each day, series and group, with the mean if published."""
    return [line for row in released_rows(work) for line in _lines(work, row)]


def _lines(work: Work, row: ReleaseRecord) -> list[dict[str, Any]]:
    series = work.run.series[row.series]
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


def _link_report(work: Work) -> None:
    address, description = _address(work), "Report of the release"
    if address.startswith(_BROWSABLE):
        create_link_artifact(f"{address}/{REPORT}", REPORT, key=_key("report", work), description=description)
        return
    text = f"Release folder: `{address}`\n\nOpen `{REPORT}` in it with a browser."  # which refuses a link to a file
    create_markdown_artifact(text, key=_key("report", work), description=description)


def _address(work: Work) -> str:
    """Return the URL of the release folder, or its path on the machine that ran the flow."""
    location = filesystem.format_location(work.run.output.release).rstrip("/")
    return location if work.remote_folder else str(Path(location).absolute())


def _key(kind: str, work: Work) -> str:
    return artifact_key(kind, work.population)
