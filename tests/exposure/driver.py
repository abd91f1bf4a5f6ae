"""The `agedp` command, watched: what it opens, whom it starts, all its log lines; a bug on request.

`driver.py agedp-words...`, with what is wanted in the environment: WATCH names the file to write what was seen to
(JSON lines), BUG where an exception is raised that quotes a household and a file. The sampler ignores its argument.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = ("os.mkdir", "os.rename", "os.symlink", "os.link", "tempfile.mkstemp", "tempfile.mkdtemp")
_PLACES = {
    "begin": ("agedp.run_context", "load_roster"),
    "read": ("agedp.stages.ingest", "ingest"),
    "release": ("agedp.stages.release", "release"),
    "artifact": ("agedp_flows.text.run_text", "markdown"),
    "estimate": ("agedp.calibration_pipeline", "estimate"),
}


class Watch(logging.Handler):
    """Writes every record of every logger, its arguments and exception included, and what else is seen."""

    def __init__(self, seen: Path) -> None:
        super().__init__(logging.DEBUG)
        self._descriptor = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.set_inheritable(self._descriptor, False)

    def note(self, what: str, value: str) -> None:
        os.write(self._descriptor, (json.dumps([what, value]) + "\n").encode())

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter("%(name)s %(message)s").format(record)
        self.note("log", f"{text} {record.args!r}")

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """Note every file opened for writing, folder made and process started."""
        if event == "open" and not isinstance(args[0], int):
            _, mode, flags = args
            if (isinstance(flags, int) and flags & _WRITING) or set(str(mode or "")) & set("wax+"):
                self.note("open", str(Path(os.fsdecode(args[0])).absolute()))
        elif event in _CHANGES:
            self.note(event, str(Path(os.fsdecode(args[1 if event == "os.rename" else 0])).absolute()))
        elif event == "subprocess.Popen":
            environment = dict(os.environ) if args[3] is None else args[3]
            self.note(event, json.dumps([list(map(str, args[1])), {str(k): str(v) for k, v in environment.items()}]))

    def listen(self) -> None:
        """Note every log line at DEBUG."""
        logging.getLogger().addHandler(self)
        for name in ("", "sqlalchemy.engine", "sqlalchemy.pool", "dask", "distributed", "asyncio", "httpx"):
            logging.getLogger(name).setLevel(logging.DEBUG)
        logging.captureWarnings(True)


def bug(*_: object, **__: object) -> Any:
    """Raise what no message of ours would contain."""
    raise ValueError("MARKhome1 in MARKfile1.csv used 7.7391")


def main() -> None:
    """Run the command, arranged and watched."""
    from agedp_data import clock, mechanisms
    from agedp_flows.cli import app
    from tests.exposure.pairs import fixed_stream

    if WATCH is not None:
        WATCH.listen()
    if place := os.environ.pop("BUG", ""):
        module, name = import_module(_PLACES[place][0]), _PLACES[place][1]
        getattr(module, name)  # a function that moved away would be planted where nobody meets it
        setattr(module, name, bug)
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    mechanisms.discrete_laplace, clock.now = fixed_stream(now), lambda: now
    sys.argv[0] = "agedp"
    app.main()


# Not in `main`: worker processes import this module, and are watched from then on.
sys.path.insert(0, str(Path(__file__).parents[2]))
WATCH = Watch(Path(os.environ["WATCH"])) if os.environ.get("WATCH") else None
if WATCH is not None:
    sys.addaudithook(WATCH.hook)

if __name__ == "__main__":
    main()
