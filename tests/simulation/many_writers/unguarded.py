"""A service without guards, as a program: the bug that the checker must find.

It serves as ``innkeeper serve`` does, except that its writers neither queue nor compare
generations nor check capacity again. Nor do they forward their writes to a leader, which would
write them one after the other.
"""

from __future__ import annotations

import argparse
import socket

import uvicorn

from innkeeper.entrypoints.api.listening import config_of
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.settings import load
from innkeeper.store.guards import NO_GUARDS
from innkeeper.store.transactions import Store
from innkeeper.wiring import Service, connect


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--auth")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data-dir")
    parser.add_argument("--database-url")
    options = vars(parser.parse_args())
    del options["command"]
    options["forward_writes"] = False
    settings = load(None, overrides=options)
    set_up_logs(settings.serving)
    guarded = connect(settings)
    service = Service(settings, Store(guarded.backend, guarded.engines, NO_GUARDS))
    listener = socket.create_server(("127.0.0.1", settings.serving.port))
    service.start()
    uvicorn.Server(config_of(service.app, settings.serving)).run(sockets=[listener])


if __name__ == "__main__":
    main()
