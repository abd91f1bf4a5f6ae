"""`agedp demo` twice on few households, both on one Prefect server, which to the command is a server of the user's."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

SEPARATOR = "\x1e"


def main() -> None:
    """Run the command for people, then on London alone for machines; after each print the digests of all releases."""
    from agedp.demo import synthetic_datasets
    from agedp_flows import demonstration
    from agedp_flows.cli.app import main as agedp
    from agedp_flows.prefect_server import running_server

    small = synthetic_datasets.Size(households=3, calibration_days=12, released_days=2, seed=3, min_visits=5)
    synthetic_datasets.Size = lambda: small
    with running_server(Path("server")):
        for words, datasets in (([], synthetic_datasets.DATASETS), (["--json"], synthetic_datasets.DATASETS[:1])):
            demonstration.DATASETS = datasets
            sys.argv = ["agedp", "demo", "out", *words]
            try:
                agedp()
            except SystemExit as end:
                if end.code:
                    raise
            published = sorted(Path("out").glob("*/*/release/*"))
            digests = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in published}
            print(SEPARATOR, json.dumps(digests), sep="", end=SEPARATOR)


if __name__ == "__main__":
    main()
