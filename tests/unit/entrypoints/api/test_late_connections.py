"""A server process that is paused, and a client that sends requests meanwhile."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

PATIENCE_S = 0.1
"""The client timeout; the server is paused for longer."""
REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
SERVER = """
import asyncio, socket, sys
import uvloop
from uvicorn.server import ServerState
from innkeeper.entrypoints.api.connections import Connection, PatientConfig

async def app(scope, receive, send):
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})

async def serve():
    config = PatientConfig(app, float(sys.argv[3]), 100, access_log=False)
    config.load()
    config.timeout_keep_alive = float(sys.argv[3])
    loop = asyncio.get_running_loop()
    listener = socket.socket(fileno=int(sys.argv[2]))
    state = ServerState()
    await loop.create_server(lambda: Connection(config, state, {}), sock=listener)
    print("ready", flush=True)
    await asyncio.Event().wait()

with asyncio.Runner(loop_factory=globals()[sys.argv[1]].new_event_loop) as runner:
    runner.run(serve())
"""


class Server:
    """A server process."""

    def __init__(self, loop: str) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        number = self.listener.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, loop, str(number), str(PATIENCE_S)],
            pass_fds=[number],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def client(self) -> socket.socket:
        """Connect to the server."""
        return socket.create_connection(self.listener.getsockname()[:2], timeout=5.0)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Pause the server for longer than the client timeout."""
        self.process.send_signal(signal.SIGSTOP)
        begun_s = time.monotonic()
        yield
        time.sleep(max(0.0, begun_s + 3 * PATIENCE_S - time.monotonic()))
        self.process.send_signal(signal.SIGCONT)


@pytest.fixture(params=["asyncio", "uvloop"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(request.param)
    yield made
    made.process.kill()
    made.process.communicate()
    made.listener.close()


def test_requests_received_during_a_pause_are_answered(server: Server) -> None:
    with server.client() as waiting, server.client() as fresh:
        waiting.sendall(REQUEST)
        assert waiting.recv(1_000).startswith(OK)
        with server.away():
            waiting.sendall(REQUEST)
            fresh.sendall(REQUEST)
        assert waiting.recv(1_000).startswith(OK)
        assert fresh.recv(1_000).startswith(OK)


def test_an_idle_connection_is_closed(server: Server) -> None:
    heard = []
    for said in (b"", REQUEST[:10], REQUEST):
        with server.client() as client:
            client.sendall(said)
            pieces = [b"?"]
            while pieces[-1]:
                pieces.append(client.recv(1_000))
            heard.append(b"".join(pieces[1:]))
    nothing, half, whole = heard
    assert (nothing, half) == (b"", b"")
    assert whole.startswith(OK)
