"""The program that ``original`` starts: OpenStack's placement, served by the stdlib alone.

It serves on the listening socket that it inherits, until it is stopped.
"""

from __future__ import annotations

import socket
import sys
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def get_environ(self) -> dict[str, Any]:
        environ = super().get_environ()
        # The stdlib adds a content type where the client named none.
        environ["CONTENT_TYPE"] = self.headers.get("content-type", "")
        return environ

    def log_message(self, format: str, *args: Any) -> None:
        """Leave the log to the service."""


def main(listener: int) -> None:
    """Serve the service whose settings the environment points to."""
    from placement.wsgi import api  # noqa: PLC0415 (it reads its settings when imported)

    server = _Server(("127.0.0.1", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=listener)
    server.server_name, server.server_port = server.socket.getsockname()
    server.setup_environ()
    server.set_app(api.application)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
