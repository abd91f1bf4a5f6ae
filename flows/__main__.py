"""`agedp` as it is started: its imports take a moment, in which Ctrl-C is heard already."""

from __future__ import annotations

import _thread
import signal
import sys
from threading import Timer
from typing import Any

_MOMENT_SECONDS = 0.01


def main() -> None:
    """Be the command, from its first import to its end."""
    sys.unraisablehook = _again
    try:
        from flows.command import main as command  # noqa: PLC0415  (heard from here on)

        command()
    except KeyboardInterrupt:
        sys.stderr.write("agedp: stopped\n")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # everything is said: Python's own end is not worth a traceback


def _again(met: Any) -> None:  # noqa: ANN401  (Python's own, which has no name)
    """Press Ctrl-C once more where it fell into what cannot raise it, as a callback of Python's imports."""
    if not issubclass(met.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(met)
        return
    timer = Timer(_MOMENT_SECONDS, _thread.interrupt_main)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
