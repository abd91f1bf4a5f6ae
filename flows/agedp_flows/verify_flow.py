"""The Prefect flow `agedp-verify`: does a release folder follow from its ledger rows? Also for use after a transfer."""

from __future__ import annotations

from importlib.metadata import version

from prefect import flow, get_run_logger

from agedp.release_verification import open_release
from agedp_data.errors import AgedpError
from agedp_flows.artifacts import name_run
from agedp_flows.stage_tasks import FLOW_OPTIONS, StageTasks, State, end_of_flow, observer_of_flow
from agedp_flows.text.ledger_text import verify_folder_against
from agedp_flows.text.screen import verification_lines


@flow(name="agedp-verify", version=version("agedp"), **FLOW_OPTIONS)
def verify(folder: str, ledger: str | None = None) -> State:
    """Verify tables, bounds and texts of a release folder against its ledger rows.

    Args:
        folder: Path or URL of the release folder.
        ledger: URL of the ledger it was published from, to compare with its hash chain; recipients leave it out.
    """
    with observer_of_flow("agedp verify") as observer:
        try:
            StageTasks(observer)("verify", check, folder, ledger)
        except AgedpError as error:
            return end_of_flow(error, observer)
    return None


def check(folder: str, ledger: str | None) -> None:
    """Verify one release folder."""
    release = open_release(folder)
    verification = release.verify()
    if ledger is not None:
        verify_folder_against(release, ledger)
    statement = release.read_statement()
    name_run(statement.population, [statement.days.first, statement.days.last])
    for line in verification_lines("the release folder", verification, has_ledger=ledger is not None):
        get_run_logger().info(line)
