"""Prefect's server as a child process that cannot outlive its parent: it stops when its standard input ends.

Started by `agedp_flows.prefect_server` by file path. It binds a port on 127.0.0.1 itself, the one of
PREFECT_SERVER_API_PORT or a free one, so that no other process can take the port in between, and prints it on standard
output, or why it cannot. When the parent ends, for any reason, the pipe closes and the server stops. With the argument
`schedules` it schedules runs and has a user interface; without it, it serves one run.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

import uvicorn
from prefect.server.api.server import create_app

_GRACE_SECONDS = 5


def main() -> None:
    """Serve until standard input ends."""
    os.umask(0o077)  # only the user of the run may read its database
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port = os.environ.get("PREFECT_SERVER_API_PORT", "0")
    try:
        listening.bind(("127.0.0.1", int(port)))
    except OSError as error:
        sys.stdout.write(f"PREFECT_SERVER_API_PORT = {port}: no server can listen there ({error.strerror})\n")
        return
    app = create_app(ephemeral="schedules" not in sys.argv, final=True)
    config = uvicorn.Config(app, log_level="critical", lifespan="on")
    server = uvicorn.Server(config)
    threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    server.run(sockets=[listening])


def _end_with_parent(server: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True
    time.sleep(_GRACE_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()
