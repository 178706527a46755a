"""The ASGI server, with its port, its heartbeat and its shutdown."""

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
    """Return the address at which clients on this machine reach a listening socket."""
    host, port = listener.getsockname()[:2]
    return address_of(host, port, scheme)


def address_of(host: str, port: int, scheme: str = "http") -> str:
    """Return the address at which clients on this machine reach a service."""
    # A service that listens on every interface is reached on the loopback interface.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listening
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


BACKLOG = 2048
"""Maximum number of connections that wait to be accepted."""
KEPT_ALIVE_S = 8
"""The seconds after which an idle connection is closed. OpenStack clients poll every five seconds.
The default of uvicorn is also five seconds, so the server could close a connection just when a
request arrives."""


def bound(serving: Serving, *, is_shared: bool = False) -> socket.socket:
    """Return a socket that listens on the configured address.

    If ``is_shared`` is true, other processes can listen on the address, too. Raises
    :class:`OSError` for an unusable address.
    """
    listener = _named(serving, is_shared=is_shared)
    # Listen at once. If two processes bind a port concurrently, only listen() fails for the second.
    with _closing_on_error(listener, serving):
        listener.listen(BACKLOG)
    return listener


def reserved(serving: Serving) -> socket.socket:
    """Return a socket that reserves a port for several listeners.

    The socket itself does not listen.

    The kernel distributes connections over the listeners. Raises :class:`OSError` for an unusable
    address, or if another service uses the address.
    """
    # First bind the port without sharing. A shared socket would not detect another service that
    # shares the port.
    bound(serving).close()
    return _named(serving, is_shared=True)


def _named(serving: Serving, *, is_shared: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
    with _closing_on_error(listener, serving):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((serving.host, serving.port))
    return listener


@contextmanager
def _closing_on_error(listener: socket.socket, serving: Serving) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        listener.close()
        # An invalid host name, such as "a..b", raises an encoding error.
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise OSError(f"Cannot listen on {serving.host!r}, port {serving.port}: {why}.") from error


def config_of(app: Any, serving: Serving) -> PatientConfig:
    """Return the server's configuration for an application.

    Raises :class:`OSError` for an unusable certificate.
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
        timeout_keep_alive=KEPT_ALIVE_S,
        forwarded_allow_ips=list(serving.trusted_proxies),
        **certificates.options(serving),
    )


BEAT_S = 1.0
"""Period of the heartbeat of the server's event loop, in seconds."""


def no_beat() -> None:
    """Do nothing, because nothing reads the heartbeat."""


class _Server(uvicorn.Server):
    """A server that reports its heartbeat and the beginning of its shutdown."""

    def __init__(
        self, config: uvicorn.Config, on_stop: Callable[[], None], on_beat: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_stop = on_stop
        self._on_beat = on_beat
        self._next_beat: asyncio.TimerHandle | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        # The heartbeat continues during the shutdown, which may take long.
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
        # The server calls this method before it waits for requests in progress.
        self._on_stop()
        await super().shutdown(sockets)


class Listening:
    """A server on a bound port, which runs until a signal stops it.

    When the shutdown begins, the server calls ``on_stop``, which ends long polls. It calls
    ``on_beat`` every ``BEAT_S`` seconds. Other processes may listen on the same socket.
    """

    def __init__(
        self,
        app: Any,
        serving: Serving,
        on_stop: Callable[[], None],
        listener: socket.socket,
        on_beat: Callable[[], None] = no_beat,
    ) -> None:
        self._server = _Server(config_of(app, serving), on_stop, on_beat)
        self._socket = listener
        for number in (signal.SIGTERM, signal.SIGINT):
            # Without this handler the server would raise the signal again when it ends, before the
            # process cleans up.
            signal.signal(number, lambda *_: self.stop())

    def run(self) -> None:
        """Serve until a signal or :meth:`stop`, and then finish the requests in progress."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Accept no more connections, and end when the requests in progress are finished."""
        self._server.should_exit = True

    def close(self) -> None:
        """Close the port."""
        self._socket.close()
