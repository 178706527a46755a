"""Generates the load: clients that send requests in sequence, each on its own connection.

The load runs in a separate process (``python -m benchmarks.load``). It does little work for each
response, because it shares the machine with the service. Linux often runs it on the same processor
as the thread that sends the responses. It is a closed loop: a client sends its next request when
the previous one is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import uvloop

HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
MARK = b"@@@@@@@@"
"""A placeholder in a path or a body for the request's number, padded to a fixed length."""
NEW_UUID = b"eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee"
"""A placeholder in a path for a new random UUID for each request."""
PICK = b"dddddddd-dddd-4ddd-8ddd-dddddddddddd"
"""A placeholder in a path or a body for one of the given UUIDs, chosen at random."""
STRAY_ANSWERS_KEPT = 5
PLACED = b'"status":"creating"'
"""The body of a volume contains this text if the volume was given a pool."""


@dataclass(slots=True)
class Tally:
    """The results of all clients of one run."""

    stop_at: float = 0.0
    sent: int = 0
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    bytes: int = 0
    booted: list[bytearray] = field(default_factory=list)
    """Bodies that name servers; they are parsed after the run."""
    created: list[bytearray] = field(default_factory=list)
    """Bodies that describe volumes."""
    new_uuids: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


class Maker:
    """Makes requests from patterns. The patterns take turns."""

    def __init__(self, patterns: Sequence[bytes], picks: list[str], seed: int) -> None:
        self._patterns = patterns
        self._picks = [each.encode() for each in picks]
        self._dice = random.Random(seed)
        self._has_mark = any(MARK in each for each in patterns)
        self._has_new_uuid = any(NEW_UUID in each for each in patterns)
        self.new_uuid = ""

    def make(self, number: int) -> bytes:
        """Return the next request; ``new_uuid`` is the UUID generated for it, if any."""
        made = self._patterns[number % len(self._patterns)]
        if self._has_mark:
            made = made.replace(MARK, b"%08d" % number)
        if self._picks:
            made = made.replace(PICK, self._dice.choice(self._picks))
        if self._has_new_uuid:
            digits = f"{self._dice.getrandbits(128):032x}"
            self.new_uuid = (
                f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
            )
            made = made.replace(NEW_UUID, self.new_uuid.encode())
        return made


class Client(asyncio.Protocol):
    """One client on one connection."""

    def __init__(self, tally: Tally, maker: Maker, done: asyncio.Future[None]) -> None:
        self._tally = tally
        self._maker = maker
        self._done = done
        self._received = bytearray()
        self._body_starts = 0
        self._whole = 0
        self._sent_at = 0.0
        self._new_uuid = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a response; after the whole response, send the next request."""
        received = self._received
        received += data
        if not self._whole:
            end = received.find(HEAD_END)
            if end < 0:
                return
            found = LENGTH.search(received, 0, end)
            self._body_starts = end + len(HEAD_END)
            self._whole = self._body_starts + (int(found[1]) if found else 0)
        if len(received) < self._whole:
            return
        now = time.perf_counter()
        self._count(now, int(received[9:12]), received)
        self._received = bytearray()
        self._whole = 0
        if now < self._tally.stop_at:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Finish. If an answer is still missing, it is counted as status 0."""
        if not self._transport.is_closing() or exc is not None:
            self._tally.statuses[0] = self._tally.statuses.get(0, 0) + 1
        if not self._done.done():
            self._done.set_result(None)

    def _send(self) -> None:
        tally = self._tally
        tally.sent += 1
        request = self._maker.make(tally.sent)
        self._new_uuid = self._maker.new_uuid
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def _count(self, now: float, status: int, received: bytearray) -> None:
        tally = self._tally
        tally.latencies.append(now - self._sent_at)
        tally.statuses[status] = tally.statuses.get(status, 0) + 1
        tally.bytes += len(received) - self._body_starts
        if not 200 <= status < 300:
            if len(tally.strays) < STRAY_ANSWERS_KEPT:
                tally.strays.append(received[self._body_starts :][:500].decode(errors="replace"))
        elif self._new_uuid:
            tally.new_uuids.append(self._new_uuid)
        elif received.startswith(b'{"server":', self._body_starts):
            tally.booted.append(received[self._body_starts :])
        elif received.startswith(b'{"volume":', self._body_starts):
            tally.created.append(received[self._body_starts :])


async def run(port: int, clients: int, seconds: float, make_client: Callable[..., Client]) -> Tally:
    """Keep ``clients`` clients busy for ``seconds``, and then wait for all responses."""
    loop = asyncio.get_running_loop()
    tally = Tally(stop_at=time.perf_counter() + seconds)
    dones = [loop.create_future() for _ in range(clients)]
    for done in dones:
        await loop.create_connection(partial(make_client, tally, done=done), "127.0.0.1", port)
    await asyncio.gather(*dones)
    return tally


def request_head(port: int, method: str, path: str, headers: dict[str, str], length: int) -> bytes:
    """Return the request line and the headers as the stock client sends them."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "User-Agent: openstacksdk keystoneauth1 python-requests CPython",
        "Accept-Encoding: gzip, deflate",
        "Accept: application/json",
        "Connection: keep-alive",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if length:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join(lines).encode() + HEAD_END


def _summary(tally: Tally, took_s: float) -> dict[str, Any]:
    return {
        "took_s": took_s,
        "answers": len(tally.latencies),
        "latencies_s": tally.latencies,
        "statuses": {str(status): count for status, count in tally.statuses.items()},
        "bytes": tally.bytes,
        "server_ids": [str(json.loads(each)["server"]["id"]) for each in tally.booted],
        "volume_ids": [
            str(json.loads(each)["volume"]["id"]) for each in tally.created if PLACED in each
        ],
        "new_uuids": tally.new_uuids,
        "strays": tally.strays,
    }


def main() -> None:
    """Read the request pattern as JSON from the standard input, run it, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    wanted = parser.parse_args()
    sent = json.load(sys.stdin)
    patterns = [_pattern(wanted.port, each) for each in sent["patterns"]]
    maker = Maker(patterns, sent["picks"], sent["seed"])
    started = time.perf_counter()
    tally = uvloop.run(run(wanted.port, wanted.clients, wanted.seconds, _with(maker)))
    json.dump(_summary(tally, time.perf_counter() - started), sys.stdout)


def _pattern(port: int, sent: dict[str, Any]) -> bytes:
    body = sent["body"].encode()
    head = request_head(port, sent["method"], sent["path"], sent["headers"], len(body))
    made: bytes = head + body
    return made


def _with(maker: Maker) -> Callable[..., Client]:
    return lambda tally, done: Client(tally, maker, done)


if __name__ == "__main__":
    main()
