"""The Prefect flow `agedp-audit`: lower bounds on the privacy loss, measured on synthetic households."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact

from agedp.privacy_audit import audit as measure
from agedp.run_context import load_run_file
from agedp_data.errors import AgedpError
from agedp_flows.artifacts import artifact_key, first_name, record
from agedp_flows.stage_tasks import FLOW_OPTIONS, StageTasks, State, end_of_flow, observer_of_flow
from agedp_flows.text.audit_text import audit_lines, require_no_violation


@flow(name="agedp-audit", flow_run_name=first_name, version=version("agedp"), **FLOW_OPTIONS)
def audit(run_file: str) -> State:
    """Measure the privacy loss of this installation on synthetic households; fails if more than promised is proven.

    Args:
        run_file: Path of the run file (TOML) whose parameters are audited; its readings are not read.
    """
    with observer_of_flow("agedp audit") as observer:
        try:
            observer.confidential = Path(load_run_file(run_file).output.confidential)
            StageTasks(observer)("audit", measure_loss, run_file)
        except AgedpError as error:
            return end_of_flow(error, observer)
    return None


def measure_loss(run_file: str) -> None:
    """Release synthetic households and bound the loss from below by what the releases show."""
    measured = measure(run_file)
    text = "\n".join(f"    {line}" for line in audit_lines(measured))
    key = artifact_key("audit", load_run_file(run_file).population.name)
    record(lambda: create_markdown_artifact(text, key=key, description="Lower bounds on the privacy loss"))
    require_no_violation(measured)
    get_run_logger().info("No lower bound exceeds the promise.")
