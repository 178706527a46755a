"""Forwarded requests: each is carried out once, or it is known that it may have been."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from innkeeper.domain.errors import Unanswered
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.addresses import PeerAddress
from innkeeper.engine.leader.frames import GREETING_MAX, Ask, Greeting
from innkeeper.engine.leader.link import Link, NotForwarded
from innkeeper.engine.leader.listener import remove_old_sockets
from tests.support.peers import VERSION, in_a_loop, leader_at, pair

MANY = 500
LARGE = b"x" * 3_000_000


@pytest.mark.parametrize("has_tls", [False, True])
@in_a_loop
async def test_requests_are_answered(tmp_path: Path, *, has_tls: bool) -> None:
    async with pair(tmp_path, has_tls=has_tls) as both:
        with pytest.raises(NotForwarded):
            await both.link.ask("echo", b"early")
        await both.open()
        asked = [both.link.ask("echo", str(number).encode()) for number in range(MANY)]
        assert await asyncio.gather(*asked) == [str(number).encode() for number in range(MANY)]
        assert await both.link.ask("echo", LARGE) == LARGE


@in_a_loop
async def test_a_request_that_fails_is_unanswered(tmp_path: Path) -> None:
    async def fail(payload: bytes, client: ClientConnection) -> bytes:
        raise RuntimeError(payload)

    async with pair(tmp_path, {"fail": fail}) as both:
        await both.open()
        for kind in ("fail", "unknown"):
            with pytest.raises(Unanswered, match="may have been carried out"):
                await both.link.ask(kind, b"")


@in_a_loop
async def test_a_lost_connection_leaves_requests_unanswered(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def wait(payload: bytes, client: ClientConnection) -> bytes:
        begun.set()
        await asyncio.Event().wait()
        return payload

    async with pair(tmp_path, {"wait": wait}) as both:
        await both.open()
        asked = asyncio.ensure_future(both.link.ask("wait", b""))
        await begun.wait()
        both.link.follow(None)
        with pytest.raises(Unanswered):
            await asked
        with pytest.raises(NotForwarded):
            await both.link.ask("wait", b"")


@in_a_loop
async def test_the_link_connects_again(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        await both.open()
        for peer in list(both.listener._peers):
            peer.abort()
        async with asyncio.timeout(5):
            while not await is_answered(both.link):
                await asyncio.sleep(0.01)
        assert await both.link.ask("echo", b"again") == b"again"


async def is_answered(link: Link) -> bool:
    """Whether the link answers, and did not meet the end of its old connection."""
    with suppress(NotForwarded, Unanswered):
        return await link.ask("echo", b"?") == b"?"
    return False


@pytest.mark.parametrize("leaves", ["the client", "the process"])
@in_a_loop
async def test_the_leader_learns_that_a_client_left(tmp_path: Path, leaves: str) -> None:
    begun, end = asyncio.Event(), asyncio.Event()
    seen: list[ClientConnection] = []

    async def wait(payload: bytes, client: ClientConnection) -> bytes:
        seen.append(client)
        begun.set()
        await end.wait()
        return payload

    async with pair(tmp_path, {"wait": wait}) as both:
        await both.open()
        client = ClientConnection()
        asked = asyncio.ensure_future(both.link.ask("wait", b"it", client))
        await begun.wait()
        (at_leader,) = seen
        if leaves == "the client":
            client.close()
        else:
            both.link.close()
        while not at_leader.is_closed:
            await asyncio.sleep(0.01)
        # What has begun is finished.
        end.set()
        if leaves == "the client":
            assert await asked == b"it"
        else:
            with pytest.raises(Unanswered):
                await asked
        assert client.on_close is None


@pytest.mark.parametrize("has_tls", [False, True])
@in_a_loop
async def test_a_process_without_the_secret_is_refused(tmp_path: Path, *, has_tls: bool) -> None:
    async with pair(tmp_path, secret=b"t" * 32, has_tls=has_tls) as both:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await both.open()


@in_a_loop
async def test_another_version_is_refused(tmp_path: Path) -> None:
    async with pair(tmp_path, version="2/27") as both:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await both.open()


@in_a_loop
async def test_another_certificate_is_refused(tmp_path: Path) -> None:
    async with pair(tmp_path, has_tls=True) as both:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await both.open(replace_certificate(both.address))


def replace_certificate(address: PeerAddress) -> PeerAddress:
    """The same address with the digest of another certificate."""
    return msgspec.structs.replace(address, certificate="00" * 32)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">I", GREETING_MAX + 1),
        struct.pack(">I", 3) + b"\xff\xff\xff",
        struct.pack(">I", 1) + b"\x93",
        b"GET / HTTP/1.1\r\n\r\n",
        # A request before the proof.
        struct.pack(">I", 9) + msgspec.msgpack.encode(Ask(1, "echo", b""))[:9].ljust(9, b"\0"),
    ],
)
@in_a_loop
async def test_strangers_are_cut_off(tmp_path: Path, sent: bytes) -> None:
    called = []

    async def note(payload: bytes, client: ClientConnection) -> bytes:
        called.append(payload)
        return payload

    async with pair(tmp_path, {"echo": note}) as both:
        reader, writer = await asyncio.open_unix_connection(both.address.path)
        writer.write(sent)
        async with asyncio.timeout(5):
            # The greeting of the listener, and then the end.
            received = await reader.read()
        greeting = msgspec.msgpack.decode(received[4:], type=Greeting)
        assert greeting.version == VERSION
        assert not greeting.proof
        assert not called
        writer.close()


@in_a_loop
async def test_a_leader_without_an_address_is_not_reached(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        for address in (
            msgspec.structs.replace(both.address, machine="another", path=both.address.path),
            msgspec.structs.replace(both.address, path=str(tmp_path / "gone.sock")),
        ):
            both.link.follow(leader_at(address))
            await asyncio.sleep(0.1)
            assert not both.link.is_open
        both.link.follow(replace(leader_at(both.address), address="from another version"))
        await asyncio.sleep(0.1)
        assert not both.link.is_open
        await both.open()


@in_a_loop
async def test_sockets_of_killed_processes_are_removed(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(tmp_path / "old.sock"))
        remove_old_sockets(tmp_path)
        assert [each.name for each in tmp_path.glob("*.sock")] == ["leader.sock"]
        await both.open()
