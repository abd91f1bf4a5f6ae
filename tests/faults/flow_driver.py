"""One run of the Prefect flow in a process of its own: `flow_driver.py ORDER`, an order as `server.py` takes them."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from agedp_data import clock
    from agedp_flows.cli.app import main
    from tests.faults.boundaries import Boundaries
    from tests.nights.keyed import keyed_sampler

    order = json.loads(sys.argv[1])
    os.chdir(order["house"])
    moment = datetime.fromisoformat(order["now"])
    clock.now = lambda: moment
    sys.argv = ["agedp", *order["words"]]
    Boundaries(Path(order["house"]), Path(order["log"]), kill_at=order.get("kill_at", 0), like=order["like"]).watch()
    with keyed_sampler(Path(order["journal"])):
        main()
