"""Listening on a port: the ASGI server, and what stops it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api import certificates
from innkeeper.entrypoints.api.connections import PatientConfig


def address_at(listener: socket.socket, scheme: str = "http") -> str:
    """An address at which clients on this machine reach who listens there."""
    host, port = listener.getsockname()[:2]
    return address_of(host, port, scheme)


def address_of(host: str, port: int, scheme: str = "http") -> str:
    """An address at which clients on this machine reach a service that listens there."""
    # Who listens everywhere is not reached at "everywhere".
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listening
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


BACKLOG = 2048
"""Connections that may wait to be taken."""


def bound(serving: Serving, *, is_shared: bool = False) -> socket.socket:
    """A socket that listens where the settings say; others may do so too if it ``is_shared``.

    Raises :class:`OSError` for an address that cannot be listened on.
    """
    made = _named(serving, is_shared=is_shared)
    # Here already: of two who bind a port at the same time, only this tells the later one.
    with _refusing(made, serving):
        made.listen(BACKLOG)
    return made


def reserved(serving: Serving) -> socket.socket:
    """A socket that holds a port for others to listen on together, and does not listen.

    Connections are spread by the kernel over those who listen. Raises :class:`OSError` for an
    address that cannot be listened on, or that is taken by a stranger.
    """
    # Sockets that share a port do not mind each other, whoever has them.
    bound(serving).close()
    return _named(serving, is_shared=True)


def _named(serving: Serving, *, is_shared: bool) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
    with _refusing(made, serving):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((serving.host, serving.port))
    return made


@contextmanager
def _refusing(made: socket.socket, serving: Serving) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        made.close()
        # A name that is none, such as "a..b", is an error of its encoding.
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise OSError(f"Cannot listen on {serving.host!r}, port {serving.port}: {why}.") from error


def config_of(app: Any, serving: Serving) -> PatientConfig:
    """What the server has to know to serve an application.

    Raises :class:`OSError` where it is to speak TLS and its certificate cannot be used.
    """
    return PatientConfig(
        app,
        serving.client_timeout_s,
        serving.connections_max,
        host=serving.host,
        port=serving.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=int(serving.shutdown_grace_s),
        server_header=False,
        backlog=BACKLOG,
        forwarded_allow_ips=list(serving.trusted_proxies),
        **certificates.options(serving),
    )


BEAT_S = 1.0
"""How often a server says that its event loop goes round."""


def nobody_hears() -> None:
    """Where nobody wants to know."""


class _Server(uvicorn.Server):
    """A server that tells that it goes on, and when it begins to stop."""

    def __init__(
        self, config: uvicorn.Config, on_stop: Callable[[], None], on_beat: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_stop = on_stop
        self._on_beat = on_beat
        self._next_beat: asyncio.TimerHandle | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        # While it stops as well: whoever looks on must not take that for silence.
        self._beat()
        try:
            await super().serve(sockets)
        finally:
            if self._next_beat is not None:
                self._next_beat.cancel()

    def _beat(self) -> None:
        self._on_beat()
        self._next_beat = asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Before it waits for the answers that are being made.
        self._on_stop()
        await super().shutdown(sockets)


class Listening:
    """A bound port and the server that will answer on it, until a signal stops it.

    ``on_stop`` is called when the end begins: who waits long should not wait on. ``on_beat`` is
    called every ``BEAT_S``, by the event loop. The socket may be one that other processes
    listen on as well.
    """

    def __init__(
        self,
        app: Any,
        serving: Serving,
        on_stop: Callable[[], None],
        listener: socket.socket,
        on_beat: Callable[[], None] = nobody_hears,
    ) -> None:
        self._server = _Server(config_of(app, serving), on_stop, on_beat)
        self._socket = listener
        for number in (signal.SIGTERM, signal.SIGINT):
            # The server raises what stopped it once more when it is done; there is more to do
            # then.
            signal.signal(number, lambda *_: self.stop())

    def run(self) -> None:
        """Serve; returns when everything in flight is answered after a stop."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Take no more connections, and end when those that are there are served."""
        self._server.should_exit = True

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()
