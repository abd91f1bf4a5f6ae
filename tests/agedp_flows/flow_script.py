"""Flows called as a Prefect user calls them, on the server of the environment; prints what their states were."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from prefect.states import State


def main(folder: Path) -> dict[str, str]:
    """Release with input that does not answer at first, calibrate, audit, verify, and verify a tampered folder."""
    from agedp_data.errors import Unavailable
    from agedp_flows import release_flow
    from agedp_flows.audit_flow import audit
    from agedp_flows.calibrate_flow import calibrate
    from agedp_flows.verify_flow import verify

    read, calls = release_flow.read_files, []

    def silent_at_first(session: object) -> object:
        calls.append(session)
        if len(calls) == 1:
            raise Unavailable("input 1 of 2: cannot be opened (Timeout)", private="CANARY-share: no answer")
        return read(session)

    release_flow.ingest.retry_delay_seconds = [0]
    # the stage is looked up when the task runs
    release_flow.read_files = silent_at_first
    states: dict[str, State] = {"release": release_flow.release("run.toml", return_state=True)}
    states["calibrate"] = calibrate("estimated.toml", return_state=True)
    states["audit"] = audit("run.toml", return_state=True)
    states["verify"] = verify(str(folder / "out" / "release"), return_state=True)
    (folder / "out" / "release" / "STATEMENT.md").write_text("all is well\n")
    states["tampered"] = verify(str(folder / "out" / "release"), return_state=True)
    (folder / "out" / "release" / "STATEMENT.md").unlink()
    states["again"] = release_flow.release("run.toml", return_state=True)
    return {name: f"{state.name}: {state.message}" for name, state in states.items()} | {"reads": str(len(calls))}


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))) + "\n")
