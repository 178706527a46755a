"""A Galera cluster, one node of which takes all writes. Which one, the cluster itself says.

Always true: the row of ``write_order`` names the one node that takes writes, and a transaction
that writes counts that row up on the condition that it names the node it is on. So it ends at
its first statement on any other node; and on one that has not heard yet of being replaced it
ends at its commit, since whoever replaced it changed the same row. A node that is cut off from
most others, or still fetches what it missed, is not used at all.

Why not all nodes at once: certification orders writes, and says nothing about what was read
before them (docs/explanation/galera.md).

May be false: that there is such a node. While the others wait for one that has died, nobody
writes; the first process that finds it gone names another.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pymysql
import structlog

from innkeeper.domain.errors import NotLetIn, Unavailable, Unreachable
from innkeeper.store.backends.addresses import Address

if TYPE_CHECKING:
    Raw = pymysql.connections.Connection[Any]
else:
    Raw = pymysql.connections.Connection

LOG = structlog.get_logger("innkeeper.store")

LOOK_WITHIN_S = 2
"""A node that does not say how it is for so long is passed over: it may be stopped."""
LOOKED_LASTS_S = 1.0
"""For so long a node is what it was: asking it costs as much as a short transaction does."""
ATTEMPTS_MAX = 3
"""Two processes may name another node at the same time; the one that fails looks again."""
SYNCED = "Synced"
PRIMARY = "Primary"
READS = 1
"""The bit of ``wsrep_sync_wait`` for statements that read."""
NO_SUCH_TABLE = 1146
NOT_LET_IN = frozenset({1044, 1045, 1049, 1130, 1698, 1862})
"""A server's numbers for who may not use it: no such user or database, a password that is wrong
or has expired, an address that is not permitted."""
STATES = (
    "wsrep_ready",
    "wsrep_cluster_status",
    "wsrep_local_state_comment",
    "wsrep_local_index",
    "wsrep_incoming_addresses",
)


Why = dict[str, "str | pymysql.Error"]
"""Why nodes cannot be used, by their addresses."""


@cache
def _unasked() -> ssl.SSLContext:
    """For connections whose URL says nothing of TLS, to servers that offer it: encrypted, and
    nobody's certificate is looked at."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


class NodeConnection(Raw):
    """A connection that knows on which node it ends; ``None`` for a server without others."""

    node: str | None = None
    looked_at_s: float = 0.0
    must_be_replaced: bool = False

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        """The driver's own makes a context for each connection, and reads all certificates of
        the system for it, which takes longer than to connect; without any use if it was asked
        for nothing.
        """
        if not sslp:
            return _unasked()
        made: ssl.SSLContext = super()._create_ssl_ctx(sslp)  # type: ignore[misc]
        return made

    def wait_for(self, seconds: float) -> None:
        """Have the next statements answered within so long; nobody uses it after that."""
        self._read_timeout = seconds
        self.must_be_replaced = True


@dataclass(frozen=True, slots=True)
class Node:
    """What one node says of itself and of the others."""

    address: Address
    name: str
    """Its address as the nodes know it, which need not be the one that we have."""
    members: tuple[str, ...]
    is_usable: bool
    state: str


def look(raw: Raw, address: Address) -> Node | None:
    """Ask a server how it is; ``None`` if it belongs to no cluster."""
    with raw.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'")
        if dict(cursor.fetchall()).get("wsrep_on") != "ON":
            return None
        named = ", ".join(f"'{each}'" for each in STATES)
        cursor.execute(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({named})")
        told = {str(name): str(value) for name, value in cursor.fetchall()}
    members = tuple(told.get("wsrep_incoming_addresses", "").split(","))
    index = int(told.get("wsrep_local_index", -1))
    states = (told.get("wsrep_cluster_status", ""), told.get("wsrep_local_state_comment", ""))
    return Node(
        address=address,
        name=members[index] if 0 <= index < len(members) else "",
        members=members,
        is_usable=told.get("wsrep_ready") == "ON" and states == (PRIMARY, SYNCED),
        state="/".join(states),
    )


class Cluster:
    """The servers that were given, one or several; shared by all threads of a process."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = list(addresses)
        self._last: Address | None = None

    def connect_for_writing(self, arguments: Mapping[str, Any]) -> NodeConnection:
        """A connection to the node that takes writes; names one if it is gone.

        Raises :class:`Unavailable` where none can be used.
        """
        return self._connect(arguments, self._writer(arguments))

    def connect_for_reading(self, arguments: Mapping[str, Any]) -> NodeConnection:
        """A connection that sees all that was acknowledged, to whatever node can be used.

        That is the one which takes writes, as far as this process knows and it answers.
        """
        made = self._connect(arguments, self._any(arguments))
        if made.node is not None:
            with made.cursor() as cursor:
                cursor.execute(f"SET SESSION wsrep_sync_wait = {READS}")
        return made

    def _connect(self, arguments: Mapping[str, Any], node: Node | Address) -> NodeConnection:
        at = node.address if isinstance(node, Node) else node
        made = _open(at, arguments)
        if isinstance(node, Node):
            made.node, made.looked_at_s = node.name, time.perf_counter()
        return made

    def _in_order(self) -> list[Address]:
        last = [self._last] if self._last is not None else []
        return last + [each for each in self._addresses if each != self._last]

    def _any(self, arguments: Mapping[str, Any]) -> Node | Address:
        why: Why = {}
        for address in self._in_order():
            found = self._look_at(address, arguments)
            if isinstance(found, Address) or (isinstance(found, Node) and found.is_usable):
                return found
            why[str(address)] = found.state if isinstance(found, Node) else found
        raise _nothing(why)

    def _writer(self, arguments: Mapping[str, Any]) -> Node | Address:
        for _ in range(ATTEMPTS_MAX):
            found = self._look_for_writer(arguments)
            if found is not None:
                self._last = found.address if isinstance(found, Node) else found
                return found
        raise _nothing({"all": "others name a writer at the same time"})

    def _look_for_writer(self, arguments: Mapping[str, Any]) -> Node | Address | None:
        nodes: list[Node] = []
        why: Why = {}
        for address in self._in_order():
            found = self._look_at(address, arguments)
            if isinstance(found, Address):
                return found
            if isinstance(found, pymysql.Error):
                why[str(address)] = found
                continue
            why[str(address)] = found.state
            nodes.append(found)
            if address == self._last and found.is_usable:
                # Most connections are made while all is well.
                brief = _open(address, self._briefly(arguments))
                with closing(brief) as raw, suppress(LookupError):
                    if _writer_named_by(raw) == found.name:
                        return found
        usable = [each for each in nodes if each.is_usable]
        if not usable:
            raise _nothing(why)
        with closing(_open(usable[0].address, self._briefly(arguments))) as raw:
            return _choose(raw, nodes, usable, why)

    def _briefly(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a connection that is given up soon, as there are others."""
        if len(self._addresses) == 1:
            return dict(arguments)
        return {**arguments, "read_timeout": LOOK_WITHIN_S, "connect_timeout": LOOK_WITHIN_S}

    def _look_at(
        self, address: Address, arguments: Mapping[str, Any]
    ) -> Node | Address | pymysql.Error:
        """The node at an address; the address itself if it is of no cluster, or why not."""
        try:
            # Not on the connection that is used later, whose statements may wait for longer.
            with closing(_open(address, self._briefly(arguments))) as raw:
                found = look(raw, address)
        except pymysql.Error as error:
            if len(self._addresses) == 1:
                raise
            return error
        if found is not None:
            return found
        if len(self._addresses) > 1:
            LOG.error("not_a_cluster", address=str(address))
            raise Unavailable(
                "Several addresses name the nodes of one Galera cluster; a server at one of "
                "those given belongs to none."
            )
        return address


def _open(address: Address, arguments: Mapping[str, Any]) -> NodeConnection:
    port = {} if address.port is None else {"port": address.port}
    host = address.host.strip("[]")
    return NodeConnection(**{**arguments, "host": host, **port})


def _nothing(why: Why) -> Unreachable | NotLetIn:
    LOG.warning("no_writer", nodes={name: str(each) for name, each in why.items()})
    if any(isinstance(each, pymysql.Error) and each.args[0] in NOT_LET_IN for each in why.values()):
        return NotLetIn("The nodes of the database do not let this service in.")
    return Unreachable("No node of the database can be used at the moment.")


def _writer_named_by(raw: Raw) -> str | None:
    """The node that takes writes, as all know by now; ``None`` while none was named.

    Raises ``LookupError`` where the table of it is still to be made.
    """
    with raw.cursor() as cursor:
        cursor.execute(f"SET SESSION wsrep_sync_wait = {READS}")
        try:
            cursor.execute("SELECT writer FROM write_order")
        except pymysql.ProgrammingError as error:
            if error.args[0] != NO_SUCH_TABLE:
                raise
            raise LookupError from error
        row = cursor.fetchone()
        raw.rollback()
        return None if row is None else row[0]


def _choose(raw: Raw, nodes: Sequence[Node], usable: Sequence[Node], why: Why) -> Node | None:
    """The node that takes writes, or one of the usable ones, named as such.

    ``None`` if another process was quicker.
    """
    own = usable[0]
    try:
        named = _writer_named_by(raw)
    except LookupError:
        # Nothing to write on condition of.
        return _first(usable, why)
    if named is None:
        first = _first(usable, why)
        return first if _name(raw, None, first.name) else None
    for each in usable:
        if each.name == named:
            return each
    # It may only be we who cannot reach it, unless it says itself that it cannot.
    is_told = any(each.name == named for each in nodes)
    if named in own.members and not is_told:
        raise _nothing({**why, str(named): "takes writes, and does not answer here"})
    return own if _name(raw, named, own.name) else None


def _first(usable: Sequence[Node], why: Why) -> Node:
    """The node for those who write while none is named: the same for all of them.

    So whoever makes the tables keeps others from doing so, by a lock which is that node's own.
    """
    # An arbitrator is among the members, with no address.
    first = min(each for each in usable[0].members if each)
    found = next((each for each in usable if each.name == first), None)
    if found is None:
        raise _nothing({**why, first: "is to take the first writes, and cannot be used here"})
    return found


def _name(raw: Raw, old: str | None, new: str) -> bool:
    try:
        with raw.cursor() as cursor:
            # Certified: of two processes that do this on two nodes, one fails.
            touched = cursor.execute(
                "UPDATE write_order SET number = number + 1, writer = %s WHERE writer <=> %s",
                (new, old),
            )
        raw.commit()
    except pymysql.Error as error:
        LOG.warning("writer_not_named", node=new, error=str(error))
        return False
    if touched:
        LOG.warning("writer_named", node=new, instead_of=old)
    return bool(touched == 1)


def is_still_usable(raw: NodeConnection, clock: Callable[[], float] = time.perf_counter) -> bool:
    """Whether a connection's node can go on being used; asked now and then only."""
    if raw.node is None or clock() - raw.looked_at_s < LOOKED_LASTS_S:
        return True
    try:
        found = look(raw, Address(raw.node, None))
    except pymysql.Error:
        return False
    raw.looked_at_s = clock()
    return found is not None and found.is_usable
