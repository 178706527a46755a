"""Forwarded requests: each is carried out once, or reported as possibly carried out."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from innkeeper.domain.errors import Unanswered
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader import certificates
from innkeeper.engine.leader.addresses import PeerAddress
from innkeeper.engine.leader.connection import PINGS_MAX, Identity, LinkLimits, NotForwarded
from innkeeper.engine.leader.frames import GREETING_MAX, NONCE_BYTES, Ask, Greeting, Ping, proof
from innkeeper.engine.leader.link import Link
from innkeeper.engine.leader.listener import NotServed, PeerListener, remove_old_sockets
from tests.support.clouds import NOW
from tests.support.peers import LOOPBACK, SECRET, VERSION, in_a_loop, leader_at, pair
from tests.support.tcp_relays import tcp_relay

MANY = 500
LARGE = b"x" * 3_000_000


def framed(message: Ask | Ping | Greeting) -> bytes:
    """A frame with a message."""
    frame = msgspec.msgpack.encode(message)
    return struct.pack(">I", len(frame)) + frame


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
        with capture_logs() as logs, pytest.raises(Unanswered, match="may have been carried out"):
            await both.link.ask("fail", b"")
        assert [each["event"] for each in logs] == ["accident"]


@in_a_loop
async def test_a_request_that_the_leader_does_not_serve_stays_here(tmp_path: Path) -> None:
    async def refuse(payload: bytes, client: ClientConnection) -> bytes:
        raise NotServed

    async with pair(tmp_path, {"refuse": refuse}) as both:
        await both.open()
        for kind in ("refuse", "unknown"):
            with pytest.raises(NotForwarded):
                await both.link.ask(kind, b"")


@in_a_loop
async def test_a_request_that_is_too_large_stays_here(tmp_path: Path) -> None:
    async with pair(tmp_path, limits=LinkLimits(payload_max=1000)) as both:
        await both.open()
        assert await both.link.ask("echo", b"x" * 1000) == b"x" * 1000
        with pytest.raises(NotForwarded):
            await both.link.ask("echo", b"x" * 1001)
        assert await both.link.ask("echo", b"again") == b"again"


@in_a_loop
async def test_a_silent_connection_is_given_up(tmp_path: Path) -> None:
    limits = LinkLimits(ping_s=0.05)
    async with pair(tmp_path, has_tls=True, limits=limits) as both:
        with tcp_relay(both.address.port) as relay:
            await both.open(msgspec.structs.replace(both.address, port=relay.port))
            await asyncio.sleep(limits.ping_s * 2 * PINGS_MAX)
            assert await both.link.ask("echo", b"alive") == b"alive"
            relay.hold()
            with capture_logs() as logs, pytest.raises(Unanswered):
                await both.link.ask("echo", b"lost")
            assert "leader_silent" in {each["event"] for each in logs}
            assert not both.link.is_open
            relay.pass_on()
            async with asyncio.timeout(10):
                while not await is_answered(both.link):
                    await asyncio.sleep(0.01)
            both.link.close()


@in_a_loop
async def test_a_leader_that_ends_finishes_what_was_sent(tmp_path: Path) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def wait(payload: bytes, client: ClientConnection) -> bytes:
        begun.set()
        await end.wait()
        return payload

    async with pair(tmp_path, {"wait": wait}) as both:
        await both.open()
        asked = asyncio.ensure_future(both.link.ask("wait", b"it"))
        await begun.wait()
        closing = asyncio.ensure_future(both.listener.close(5.0))
        await asyncio.sleep(0)
        with pytest.raises(NotForwarded):
            await both.link.ask("wait", b"later")
        both.link.follow(None)
        with pytest.raises(NotForwarded):
            await both.link.ask("wait", b"later")
        end.set()
        assert await asked == b"it"
        await closing


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
        both.link.close()
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
        # Requests that have begun are finished.
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
    """Return the same address with the digest of another certificate."""
    return msgspec.structs.replace(address, certificate="00" * 32)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">I", GREETING_MAX + 1),
        struct.pack(">I", 3) + b"\xff\xff\xff",
        struct.pack(">I", 1) + b"\x93",
        b"GET / HTTP/1.1\r\n\r\n",
        framed(Ask(1, "echo", b"")),
        framed(Ping()),
        framed(Greeting(VERSION, b"n" * NONCE_BYTES, b"wrong")) * 3,
        framed(Greeting("0/0", b"n" * NONCE_BYTES, b"wrong")) * 3,
        framed(Greeting(VERSION, b"short", b"wrong")),
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
        with capture_logs() as logs:
            async with asyncio.timeout(5):
                # The greeting of the listener, and then the end.
                received = await reader.read()
        # Whatever a stranger sends, it causes at most one log line.
        assert len(logs) <= 1
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
async def test_old_sockets_of_killed_processes_are_removed(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        for name, age_s in (("old.sock", 100.0), ("new.sock", 0.0)):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(tmp_path / name))
            made_s = (tmp_path / "leader.sock").stat().st_mtime - age_s
            os.utime(tmp_path / name, (made_s, made_s))
        remove_old_sockets(tmp_path / "leader.sock")
        left = sorted(each.name for each in tmp_path.glob("*.sock"))
        # The new socket may belong to a process that is about to listen.
        assert left == ["leader.sock", "new.sock"]
        await both.open()


@in_a_loop
async def test_strangers_leave_room_for_others(tmp_path: Path) -> None:
    async with pair(tmp_path, limits=LinkLimits(strangers_max=4, greet_within_s=1.0)) as both:
        await both.open()
        path = both.address.path
        silent = [await asyncio.open_unix_connection(path) for _ in range(20)]
        # The newest connections are closed at once, and the others later.
        for reader, _ in silent[4:]:
            assert await reader.read() == b""
        assert await both.link.ask("echo", b"served") == b"served"
        for reader, _ in silent[:4]:
            assert await reader.read() != b""
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read(4) != b""
        for _, each in [*silent, (reader, writer)]:
            each.close()


@in_a_loop
async def test_a_machine_that_is_gone_is_noticed(tmp_path: Path) -> None:
    """The system probes the leader's end of a silent connection."""
    async with pair(tmp_path, has_tls=True) as both:
        await both.open()
        async with asyncio.timeout(5):
            while not has_keepalive_timer(both.address.port):
                await asyncio.sleep(0.01)


def has_keepalive_timer(port: int) -> bool:
    """Whether a connection that a port has accepted is probed. Source: ``proc(5)``."""
    established, keepalive = "01", "02:"
    rows = [each.split() for each in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    timers = [row[5] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == established]
    return [each[:3] for each in timers] == [keepalive]


@in_a_loop
async def test_a_port_in_use_is_passed_over(tmp_path: Path) -> None:
    context, digest = certificates.server_context(NOW)
    made = PeerListener(Identity(VERSION, SECRET, secrets.token_bytes), {})
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        assert await made.listen_on_port(LOOPBACK, range(port, port + 20), context, digest) > port
    with pytest.raises(OSError, match="known"):
        await made.listen_on_port("no-such-host.invalid", range(1, 9), context, digest)
    await made.close(1.0)


def test_a_proof_is_for_one_channel() -> None:
    nonce, digest = b"n" * NONCE_BYTES, b"d" * 32
    assert proof(SECRET, b"client", nonce, b"") != proof(SECRET, b"client", nonce, digest)
    with pytest.raises(ValueError, match="wrong length"):
        proof(SECRET, b"client", nonce + digest, b"")
