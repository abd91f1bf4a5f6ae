"""Entry point of `agedp`: handles Ctrl-C already while the command is being imported."""

from __future__ import annotations

import _thread
import gc
import signal
import sys
from threading import Timer
from typing import Any

_MOMENT_SECONDS = 0.01
_OBJECTS_PER_COLLECTION = 50_000
"""A command begins with imports and tables that stay to its end: to look for garbage among them 70 times as often, as
Python does for a server, costs a tenth of a night with nothing due."""


def main() -> None:
    """Import and run the command; Ctrl-C ends it with status 130 and one line."""
    sys.unraisablehook = _repeat_interrupt
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    try:
        from agedp_flows.cli.app import main as command  # noqa: PLC0415  (Ctrl-C is handled from here on)

        command()
    except KeyboardInterrupt:
        sys.stderr.write("agedp: stopped\n")
        sys.exit(130)
    finally:
        signal.signal(
            signal.SIGINT, signal.SIG_DFL
        )  # all output is written: no traceback for Ctrl-C during Python's shutdown


def _repeat_interrupt(unraisable: Any) -> None:  # noqa: ANN401  (Python's own, which has no name)
    """Repeat a Ctrl-C that arrived where it cannot be raised, as in a callback of Python's imports."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    timer = Timer(_MOMENT_SECONDS, _thread.interrupt_main)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
