"""A TCP proxy between services and PostgreSQL that can drop a commit's acknowledgement.

Always true: a commit whose acknowledgement is dropped is committed. The service cannot know
that, and can reconnect to the database at once.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from random import Random

from tests.simulation.many_writers.doors import ADDRESS

COMMIT = re.compile(rb"COMMIT(?!TED)")
"""Does not match "READ COMMITTED", the isolation level with which transactions begin."""
CHUNK = 65_536


class Wire:
    """Listens on a port of its own and forwards all bytes in both directions."""

    def __init__(self, port: int, dice: Random) -> None:
        self._to = port
        self._dice = dice
        self._listener = socket.create_server((ADDRESS, 0))
        self.port: int = self._listener.getsockname()[1]
        self._share = 0.0
        self.cuts = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def fray(self, share: float) -> None:
        """From now on drop the answers of this share of commits, with their connections."""
        self._share = share

    def reread(self) -> None:
        """From now on, forward all answers."""
        self._share = 0.0

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                service, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(service,), daemon=True).start()

    def _connect(self, service: socket.socket) -> None:
        with service, contextlib.suppress(OSError):
            server = socket.create_connection((ADDRESS, self._to))
            with server:
                for end in (service, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                line = _Line(service, server)
                back = threading.Thread(target=line.hand_back, daemon=True)
                back.start()
                while sent := service.recv(CHUNK):
                    if COMMIT.search(sent) and self._dice.random() < self._share:
                        self.cuts += 1
                        line.is_cut = True
                    server.sendall(sent)
                line.close()
                back.join()


class _Line:
    """One forwarded connection."""

    def __init__(self, service: socket.socket, server: socket.socket) -> None:
        self._service = service
        self._server = server
        self.is_cut = False

    def hand_back(self) -> None:
        """Forward answers until the connection ends; a dropped commit's answer ends it."""
        with contextlib.suppress(OSError):
            while (answer := self._server.recv(CHUNK)) and not self.is_cut:
                self._service.sendall(answer)
        self.close()

    def close(self) -> None:
        """Close both ends."""
        for end in (self._service, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
