"""One night in a process of its own that is killed: `driver.py JOURNAL POINT agedp-words...`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from agedp_flows.cli.app import main
    from tests.nights.keyed import keyed_sampler

    journal, point, *words = sys.argv[1:]
    sys.argv = ["agedp", *words]
    with keyed_sampler(Path(journal), kill_at=point):
        main()
