"""One command of agedp in a process of its own, as cron starts it: `python -m benchmarks.command run FILE`.

Imports nothing that the command would not, so that start-up is its own; all time counts as work. Prints what
`measuring.measure` reads: the wall time, the high-water mark of memory, and of `--json` how many days were released and
skipped.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import time
from pathlib import Path


def main() -> None:
    """Run a command, and print what it took."""
    begun = time.perf_counter()
    command, path = sys.argv[1:3]
    sys.argv = ["agedp", command, path, "--json"]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_module("agedp_flows", run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise
    taken_s = time.perf_counter() - begun
    status = Path("/proc/self/status").read_text()
    own_mb = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    printed_json = json.loads(printed.getvalue())
    found = {key: len(printed_json[key]) for key in ("released", "skipped") if key in printed_json}
    taken = {"begun": begun, "start_cpu_s": 0.0, "work_s": taken_s, "own_mb": own_mb, "found": found}
    print("\n" + json.dumps(taken))


if __name__ == "__main__":
    main()
