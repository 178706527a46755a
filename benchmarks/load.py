"""The load: clients that send one request after the other, each on a connection of its own.

Run as a process of its own (``python -m benchmarks.load``), with as little between the socket
and the clock as Python allows, since it shares the machine with what it measures. A closed
loop: a client sends its next request when it has the last one's answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
MARK = b"@@@@@@@@"
"""In a body: replaced by the request's number, so that all bodies are of one length."""
STRAY_ANSWERS_KEPT = 5


@dataclass(slots=True)
class Tally:
    """What all clients of one run found."""

    stop_at: float = 0.0
    sent: int = 0
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


class Client(asyncio.Protocol):
    """One client on one connection."""

    def __init__(self, tally: Tally, head: bytes, body: bytes, done: asyncio.Future[None]):
        self._tally = tally
        self._head = head
        self._body = body
        self._done = done
        self._received = b""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer; once it is whole, send the next request."""
        received = self._received + data if self._received else data
        end = received.find(HEAD_END)
        if end < 0:
            self._received = received
            return
        found = LENGTH.search(received, 0, end)
        whole = end + len(HEAD_END) + (int(found[1]) if found else 0)
        if len(received) < whole:
            self._received = received
            return
        now = time.perf_counter()
        self._received = b""
        self._count(now, int(received[9:12]), received[end + len(HEAD_END) :])
        if now < self._tally.stop_at:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, wanted or not; an answer that did not come is counted as status 0."""
        if not self._transport.is_closing() or exc is not None:
            self._tally.statuses[0] = self._tally.statuses.get(0, 0) + 1
        if not self._done.done():
            self._done.set_result(None)

    def _send(self) -> None:
        tally = self._tally
        tally.sent += 1
        body = self._body.replace(MARK, b"%08d" % tally.sent)
        self._sent_at = time.perf_counter()
        self._transport.write(self._head + body)

    def _count(self, now: float, status: int, body: bytes) -> None:
        tally = self._tally
        tally.latencies.append(now - self._sent_at)
        tally.statuses[status] = tally.statuses.get(status, 0) + 1
        if 200 <= status < 300:
            tally.bodies.append(body)
        elif len(tally.strays) < STRAY_ANSWERS_KEPT:
            tally.strays.append(body[:500].decode(errors="replace"))


async def run(port: int, clients: int, seconds: float, head: bytes, body: bytes) -> Tally:
    """Keep ``clients`` busy for so long; every request that was sent is also answered."""
    loop = asyncio.get_running_loop()
    tally = Tally(stop_at=time.perf_counter() + seconds)
    dones = [loop.create_future() for _ in range(clients)]
    for done in dones:
        client = Client(tally, head, body, done)
        await loop.create_connection(partial(_same, client), "127.0.0.1", port)
    await asyncio.gather(*dones)
    return tally


def _same(client: Client) -> Client:
    return client


def request_head(port: int, path: str, token: str, version: str, body: bytes) -> bytes:
    """Method, path and headers as the stock client sends them."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "User-Agent: openstacksdk keystoneauth1 python-requests CPython",
        "Accept-Encoding: gzip, deflate",
        "Accept: application/json",
        "Connection: keep-alive",
        "Content-Type: application/json",
        f"X-Auth-Token: {token}",
        f"OpenStack-API-Version: compute {version}",
        f"X-OpenStack-Nova-API-Version: {version}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + HEAD_END


def _summary(tally: Tally, took_s: float) -> dict[str, Any]:
    return {
        "took_s": took_s,
        "answers": len(tally.latencies),
        "latencies_s": tally.latencies,
        "statuses": {str(status): count for status, count in tally.statuses.items()},
        "server_ids": [found for each in tally.bodies if (found := _server_id(each))],
        "strays": tally.strays,
    }


def _server_id(body: bytes) -> str | None:
    found = json.loads(body or b"{}").get("server")
    return None if found is None else str(found["id"])


def main() -> None:
    """Run once, and print what was found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--version", required=True)
    wanted = parser.parse_args()
    body = sys.stdin.buffer.read()
    head = request_head(wanted.port, wanted.path, wanted.token, wanted.version, body)
    started = time.perf_counter()
    tally = asyncio.run(run(wanted.port, wanted.clients, wanted.seconds, head, body))
    json.dump(_summary(tally, time.perf_counter() - started), sys.stdout)


if __name__ == "__main__":
    main()
