"""What runs flows in a process of its own, because Prefect reads its settings once: `flow_scripts.py NAME WORDS...`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

SEPARATOR = "\x1e"


def pair(*folders: str) -> None:
    """Calibrate and release in two worlds on one server; the second releases under the first one's public part.

    The verdicts on it differ.

    Prints the digests of both public parts and how the commands ended.
    """
    from agedp.internal_records.bookkeeping import VERDICTS, ModelVerdict, write_verdict
    from agedp_data.model import DIGEST_FILE, PUBLIC_FILE
    from agedp_flows.prefect_server import running_server
    from tests.exposure.pairs import with_fixed_noise

    worlds, ended, digests = [Path(folder) for folder in folders], [], []
    with running_server(Path("server")):
        for verb in ("calibrate", "run"):
            for world in worlds:
                words = (verb, "run.toml", "--flow")
                ended.append(with_fixed_noise(world, *words, now=datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)))
            if verb == "calibrate":
                public = [world / "model" / PUBLIC_FILE for world in worlds]
                digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in public]
                for name in (PUBLIC_FILE, DIGEST_FILE):
                    shutil.copy(worlds[0] / "model" / name, worlds[1] / "model" / name)
                for world, verdict in zip(worlds, VERDICTS, strict=False):
                    write_verdict(world / "out" / "confidential", digests[0], ModelVerdict(verdict, "CANARY"))
    print(json.dumps({"digests": digests, "ended": ended}))


def refusals(*folders: str) -> None:
    """Run the first night of several worlds on one server; print how each ended."""
    from agedp_flows.prefect_server import running_server
    from tests.exposure.pairs import with_fixed_noise

    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    with running_server(Path("server")):
        ended = [with_fixed_noise(Path(folder), "run", "run.toml", "--flow", "--json", now=now) for folder in folders]
    print(json.dumps(ended))


def functions(name: str) -> None:
    """Release with input that does not answer at first, calibrate, audit, verify, and verify a tampered folder.

    Prints the states of the flows, called as a Prefect user calls them, on the server of the environment.
    """
    from prefect.states import State

    from agedp import pipeline
    from agedp_data.errors import Unavailable
    from agedp_flows import release_flow, stage_tasks
    from agedp_flows.audit_flow import audit
    from agedp_flows.calibrate_flow import calibrate
    from agedp_flows.verify_flow import verify

    folder = Path(name) / "out" / "release"
    read, calls = pipeline.read_files, []

    def silent_at_first(session: object) -> object:
        calls.append(session)
        if len(calls) == 1:
            raise Unavailable("input 1 of 2: cannot be opened (Timeout)", private="CANARY-share: no answer")
        return read(session)

    os.chdir(name)
    stage_tasks.RETRIED["retry_delay_seconds"] = [0]
    pipeline.read_files = silent_at_first  # the stage is looked up when the task runs
    states: dict[str, State] = {"release": release_flow.release("run.toml", return_state=True)}
    pipeline.read_files = read  # the audit releases too
    states["calibrate"] = calibrate("estimated.toml", return_state=True)
    states["audit"] = audit("run.toml", return_state=True)
    states["verify"] = verify(str(folder), return_state=True)
    (folder / "STATEMENT.md").write_text("all is well\n")
    states["tampered"] = verify(str(folder), return_state=True)
    (folder / "STATEMENT.md").unlink()
    pipeline.read_files = silent_at_first
    states["again"] = release_flow.release("run.toml", return_state=True)
    texts = {key: f"{state.name}: {state.message}" for key, state in states.items()}
    print(json.dumps({**texts, "reads": str(len(calls))}))


def demonstration(datasets: str) -> None:
    """Run `agedp demo` on few households, and again on London alone for machines; print the digests after each."""
    from agedp_flows import demonstration as module
    from agedp_flows.cli.app import main as agedp
    from agedp_flows.prefect_server import running_server

    small = module.Size(households=3, model_days=24, released_days=2, min_visits=5, seed=3)
    module.Size = lambda: small
    with running_server(Path("server")):
        for words, count in (([], int(datasets)), (["--json"], 1)):
            module.DATASETS = module.DATASETS[:count]
            sys.argv = ["agedp", "demo", "out", *words]
            with contextlib.suppress(SystemExit):
                agedp()
            published = sorted(Path("out").glob("*/*/release/*"))
            digests = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in published}
            print(SEPARATOR, json.dumps(digests), sep="", end=SEPARATOR)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    scripts = {"pair": pair, "refusals": refusals, "functions": functions, "demonstration": demonstration}
    scripts[sys.argv[1]](*sys.argv[2:])
