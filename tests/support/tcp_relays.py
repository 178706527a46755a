"""A relay of bytes between a zone and its child, which records them, and can cut connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

READ_BYTES = 65536


@dataclass(slots=True)
class TcpRelay:
    """Passes bytes between clients and a port: ``down`` to the port, and ``up`` back.

    The bytes of each connection are in one element, if the relay ``is_recording``.
    """

    target: int
    port: int = 0
    is_recording: bool = True
    down: list[bytearray] = field(default_factory=list)
    up: list[bytearray] = field(default_factory=list)
    _sockets: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _passing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.pass_on()

    def hold(self) -> None:
        """Keep all bytes back from now on, as a network that loses packets does."""
        self._passing.clear()

    def pass_on(self) -> None:
        """Pass bytes again, and first those that were kept back."""
        self._passing.set()

    @property
    def address(self) -> str:
        """The address that stands for the child's."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> int:
        """Cut all connections at once. Return their number. New ones are accepted."""
        with self._lock:
            sockets, self._sockets = list(self._sockets), set()
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(sockets) // 2

    def serve(self, listener: socket.socket) -> None:
        """Accept connections until the listener is closed."""
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            down, up = bytearray(), bytearray()
            with self._lock:
                self.down.append(down)
                self.up.append(up)
                self._sockets |= {near, far}
            ways = (near, far, down), (far, near, up)
            threading.Thread(target=self._carry, args=ways, daemon=True).start()

    def _carry(self, *ways: tuple[socket.socket, socket.socket, bytearray]) -> None:
        """Pass bytes both ways until one side ends."""
        threads = [threading.Thread(target=self._pass, args=each, daemon=True) for each in ways]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        near, far, _ = ways[0]
        with self._lock:
            self._sockets -= {near, far}
        near.close()
        far.close()

    def _pass(self, one: socket.socket, other: socket.socket, seen: bytearray) -> None:
        with suppress(OSError):
            while piece := one.recv(READ_BYTES):
                if self.is_recording:
                    seen += piece
                self._passing.wait()
                other.sendall(piece)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def tcp_relay(target: int, *, is_recording: bool = True) -> Iterator[TcpRelay]:
    """Relay to a port of this machine until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    relay = TcpRelay(target, listener.getsockname()[1], is_recording)
    thread = threading.Thread(target=relay.serve, args=(listener,), daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        relay.pass_on()
        relay.cut()
        thread.join()
