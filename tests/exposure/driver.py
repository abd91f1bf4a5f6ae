"""The `agedp` command, watched: what it opens, whom it starts, its Dask keys, all its log lines; a bug on request.

`driver.py agedp-words...`, with what is wanted in the environment: WATCH names the file to write what was seen to
(JSON lines), BUG where an exception is raised that quotes a household and a file.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUG_TEXT = "MARKhome1 in MARKfile1.csv used 7.7391"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def watch(seen: Path) -> None:
    """Note every file opened for writing, folder made, process started and socket bound, from now on."""
    descriptor = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.set_inheritable(descriptor, False)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and not isinstance(args[0], int) and _writes(args):
            _note(descriptor, "open", str(Path(os.fsdecode(args[0])).absolute()))
        elif event in ("os.mkdir", "os.rename", "os.symlink", "os.link", "tempfile.mkstemp", "tempfile.mkdtemp"):
            _note(descriptor, event, str(Path(os.fsdecode(args[1 if event == "os.rename" else 0])).absolute()))
        elif event == "sqlite3.connect":
            _note(descriptor, event, os.fsdecode(args[0]))
        elif event == "subprocess.Popen":
            words, environment = args[1], args[3] if args[3] is not None else dict(os.environ)
            _note(
                descriptor,
                event,
                json.dumps([[str(each) for each in words], {str(k): str(v) for k, v in dict(environment).items()}]),
            )

    sys.addaudithook(hook)


def _writes(args: tuple[Any, ...]) -> bool:
    mode, flags = args[1], args[2]
    return bool(isinstance(flags, int) and flags & _WRITING) or any(each in "wax+" for each in str(mode or ""))


def _note(descriptor: int, what: str, value: str) -> None:
    os.write(descriptor, (json.dumps([what, value]) + "\n").encode())


class _Lines(logging.Handler):
    """Writes every record of every logger, its arguments and exception included."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(logging.DEBUG)
        self._descriptor = descriptor

    def emit(self, record: logging.LogRecord) -> None:
        said = logging.Formatter("%(name)s %(message)s").format(record)
        _note(self._descriptor, "log", f"{said} {record.args!r}")


def listen(seen: Path) -> None:
    """Note every log line at DEBUG and every Dask key."""
    from dask.callbacks import Callback

    descriptor = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    logging.getLogger().addHandler(_Lines(descriptor))
    logging.getLogger().setLevel(logging.DEBUG)
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "dask", "distributed", "asyncio", "httpx", "concurrent"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    logging.captureWarnings(True)
    Callback(pretask=lambda key, *_: _note(descriptor, "key", str(key))).register()


def break_at(place: str) -> None:
    """Make something raise what no message of ours would say."""
    import agedp_flows.text.run_text
    from agedp import pipeline, run_context
    from agedp.stages import aggregate, ingest, publish, release

    def boom(*_: object, **__: object) -> Any:
        raise ValueError(BUG_TEXT)

    where = {
        "begin": (run_context, "read_roster"),
        "read": (ingest, "ingest"),
        "aggregate": (aggregate, "aggregate"),
        "release": (release, "release"),
        "publish": (publish, "publish_release"),
        "artifact": (agedp_flows.text.run_text, "markdown"),
        "estimate": (pipeline, "estimate"),
        "announce": (agedp_flows.text.run_text, "result_json"),
    }
    setattr(*where[place], boom)


def main() -> None:
    """Run the command, arranged and watched."""
    from tests.agedp_flows import driver

    if SEEN:
        listen(Path(SEEN))
    if bug := os.environ.pop("BUG", ""):
        break_at(bug)
    driver.main()


# Not in `main`: the processes that Dask starts import this module, and are watched from then on.
sys.path.insert(0, str(ROOT))
if SEEN := os.environ.get("WATCH", ""):
    watch(Path(SEEN))

if __name__ == "__main__":
    main()
