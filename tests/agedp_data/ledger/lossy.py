"""A network between a ledger and its server that loses the connection at a COMMIT: before it, after it, or long before
the server gets it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

BEFORE, AFTER, LATE = "before", "after", "late"
"""The COMMIT never arrives; it is carried out and the answer is lost; it arrives when the client has gone for long."""


class Lossy:
    """Passes bytes on to a socket, and loses the connection at COMMITs as `fates` says, one after the other."""

    def __init__(self, server: str, *, late_seconds: float = 0.5) -> None:
        self._server, self._late = server, late_seconds
        self.fates: list[str] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        self._mute: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, *order) -> None:
        self._threads.append(threading.Thread(target=order[0], args=order[1:], daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                self._start(self._up, client, server)
                self._start(self._down, client, server)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while sent := client.recv(65536):
                if b"COMMIT" in sent and self.fates:
                    self._lose(client, server, sent, self.fates.pop(0))
                    return
                server.sendall(sent)
            server.shutdown(socket.SHUT_WR)

    def _lose(self, client: socket.socket, server: socket.socket, sent: bytes, fate: str) -> None:
        self._mute.add(server)
        if fate == AFTER:
            server.sendall(sent)
            time.sleep(0.2)
        with suppress(OSError):  # it may have gone by itself
            client.shutdown(socket.SHUT_RDWR)
        if fate == LATE:
            time.sleep(self._late)
            server.sendall(sent)
            time.sleep(0.2)
        server.shutdown(socket.SHUT_RDWR)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while (sent := server.recv(65536)) and server not in self._mute:
                client.sendall(sent)
            client.shutdown(socket.SHUT_WR)

    def stop_listening(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def close(self) -> None:
        self.stop_listening()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        for each in self._open:
            each.close()
