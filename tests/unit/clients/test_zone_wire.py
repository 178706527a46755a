"""The wire to child zones, against servers that answer byte by byte as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import uvloop

from innkeeper.clients.kept_connections import HEAD_BYTES_MAX
from innkeeper.clients.zone_wire import (
    ANSWER_BYTES_MAX,
    HttpWire,
    NoAnswer,
    NotSent,
    SignedRequest,
    ZoneAnswer,
    ZoneSilent,
)
from innkeeper.domain.zone_tree import ChildZone
from tests.support.clouds import NOW

CHILD = ChildZone(1, "c", "kid", "http://kid/v2.1", "up", 0.0, 1.0, True, False, NOW, NOW)
FINE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Some: thing\r\n\r\n{}"
UNASKED_AFTER_S = 0.05
CLOSED = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


@dataclass(slots=True)
class Answering:
    """A server that sends the next answer for each request, and closes after the last one.

    The bytes ``unasked`` follow a while after the first answer, without a request.
    """

    answers: Sequence[bytes]
    unasked: bytes = b""
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while len(self.requests) < len(self.answers):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                writer.write(self.answers[len(self.requests) - 1])
                await writer.drain()
                if self.unasked:
                    await asyncio.sleep(UNASKED_AFTER_S)
                    unasked, self.unasked = self.unasked, b""
                    writer.write(unasked)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[Answering, HttpWire]]:
    """Run a server and a wire until the block ends."""
    here = Answering(answers)
    server = await asyncio.start_server(here.serve, "127.0.0.1", 0)
    here.port = server.sockets[0].getsockname()[1]
    wire = HttpWire()
    try:
        yield here, wire
    finally:
        await wire.close()
        server.close()


def request(
    here: Answering, method: str = "POST", target: str = "/v2.1/servers?a=b", body: bytes = b"{}"
) -> SignedRequest:
    """Return a request for the server."""
    url = f"http://127.0.0.1:{here.port}{target}"
    return SignedRequest(method, url, ((b"host", b"kid"), (b"x-auth-token", b"t")), body)


def told(*answers: bytes, method: str = "POST") -> ZoneAnswer:
    """Return the wire's result for the first answer."""

    async def ask() -> ZoneAnswer:
        async with answering(*answers) as (here, wire):
            return await wire.exchange(CHILD, request(here, method))

    return asyncio.run(ask())


@pytest.mark.parametrize("loop_of", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_is_used_again(loop_of: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def ask() -> Answering:
        async with answering(FINE, FINE, CLOSED, FINE) as (here, wire):
            for _ in here.answers:
                answer = await wire.exchange(CHILD, request(here))
                assert (answer.status, answer.body) == (200, b"{}")
            return here

    with asyncio.Runner(loop_factory=loop_of) as runner:
        here = runner.run(ask())
    assert here.connections == 2
    sent = b"host: kid\r\nx-auth-token: t\r\ncontent-length: 2\r\n\r\n{}"
    assert here.requests[0] == b"POST /v2.1/servers?a=b HTTP/1.1\r\n" + sent


def test_unasked_bytes_are_not_taken_for_the_next_answer() -> None:
    async def ask() -> int:
        async with answering(FINE, FINE, FINE) as (here, wire):
            here.unasked = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong"
            await wire.exchange(CHILD, request(here))
            await asyncio.sleep(3 * UNASKED_AFTER_S)
            assert (await wire.exchange(CHILD, request(here))).body == b"{}"
            return here.connections

    assert asyncio.run(ask()) == 2


def test_a_connection_that_the_child_closed_is_not_used_again() -> None:
    async def ask() -> int:
        async with answering(FINE) as (here, wire):
            await wire.exchange(CHILD, request(here))
            here.answers = (FINE, FINE)
            await asyncio.sleep(0.05)
            await wire.exchange(CHILD, request(here))
            return here.connections

    assert asyncio.run(ask()) == 2


@pytest.mark.parametrize(
    ("answer", "method", "body"),
    [
        (FINE, "POST", b"{}"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            "GET",
            b"{}",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", "GET", b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "DELETE", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + FINE, "POST", b"{}"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", "HEAD", b""),
    ],
)
def test_each_form_of_an_answer_is_read_to_its_end(answer: bytes, method: str, body: bytes) -> None:
    assert told(answer, method=method).body == body


def test_names_of_headers_are_in_lower_case() -> None:
    assert told(FINE).headers == {"content-length": "2", "x-some": "thing"}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * HEAD_BYTES_MAX + b"\r\ncontent-length: 0\r\n\r\n",
        FINE + FINE,
    ],
)
def test_half_an_answer_counts_as_no_answer(answer: bytes) -> None:
    with pytest.raises(NoAnswer):
        told(answer)


def test_an_answer_without_end_is_read_up_to_its_bound() -> None:
    with pytest.raises(ZoneSilent, match="more than"):
        told(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * (ANSWER_BYTES_MAX + HEAD_BYTES_MAX + 1))


def test_a_request_that_no_child_can_have_is_told_apart() -> None:
    async def ask(here: Answering, target: str) -> None:
        await HttpWire().exchange(CHILD, request(here, target=target))

    with pytest.raises(NotSent):
        # Nothing listens there.
        asyncio.run(ask(Answering((), port=1), "/v2.1/servers"))
    for target in ("/v2.1/a b", "/v2.1/a\r\nx: y", "/v2.1/ä"):
        with pytest.raises(NotSent):
            asyncio.run(ask(Answering((), port=1), target))
