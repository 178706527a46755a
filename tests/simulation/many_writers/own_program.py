"""Serves as a program of the simulation's own, with one part replaced."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api.listening import config_of
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.settings import load
from innkeeper.wiring import Service


def serve(service_of: Callable[[Settings], Service], **overrides: Any) -> None:
    """Read the options of ``innkeeper serve`` that a fleet passes, and serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--auth")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data-dir")
    parser.add_argument("--database-url")
    options = vars(parser.parse_args())
    del options["command"]
    settings = load(None, overrides={**options, **overrides})
    set_up_logs(settings.serving)
    service = service_of(settings)
    listener = socket.create_server(("127.0.0.1", settings.serving.port))
    service.start()
    uvicorn.Server(config_of(service.app, settings.serving)).run(sockets=[listener])
