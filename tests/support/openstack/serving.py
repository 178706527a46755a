"""Serves a WSGI application by the stdlib alone, on a listening socket that is inherited."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

Application = Callable[..., Iterable[bytes]]


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


def serve(application: Application, listener: int) -> None:
    """Serve until the process is stopped. ``listener`` is a file descriptor."""
    server = _Server(("127.0.0.1", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=listener)
    server.server_name, server.server_port = server.socket.getsockname()
    server.setup_environ()
    server.set_app(application)
    server.serve_forever()


def run(main: Callable[[], None]) -> None:
    """Run a program, and end its process with it, although services have threads."""
    try:
        main()
    except Exception:
        traceback.print_exc()
    os._exit(1)
