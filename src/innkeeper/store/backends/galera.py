"""A Galera cluster in which one node, the writer, takes all writes.

Always true: the row of ``write_order`` names the writer. A write transaction begins with a
statement that increments the row if the row names the transaction's node. On any other node, this
statement changes no row, and the transaction is refused. A former writer that does not know of its
replacement yet may also change the row. The commit of the former writer fails, because the
replacement has changed the same row. Nodes that have no quorum or are still synchronizing are not
used.

Only one node takes writes, because Galera's certification detects only conflicting writes. It does
not check whether the data that a transaction has read is still valid (docs/explanation/galera.md).

The writer may be dead. While the cluster waits for a dead writer, no process can write. When the
cluster has dropped the writer, the first process that notices this names another node.
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
"""A node that does not report its state within this time is skipped. The node may be frozen."""
LOOKED_LASTS_S = 1.0
"""How long a node's state is cached. Each check costs as much as a short transaction."""
ATTEMPTS_MAX = 3
"""The maximum number of attempts to name a writer. If two processes name a writer at the same time,
one of them fails and retries."""
SYNCED = "Synced"
PRIMARY = "Primary"
READS = 1
"""The bit of ``wsrep_sync_wait`` for statements that read."""
NO_SUCH_TABLE = 1146
NOT_LET_IN = frozenset({1044, 1045, 1049, 1130, 1698, 1862})
"""Login errors: unknown user or database, wrong or expired password, forbidden address."""
STATES = (
    "wsrep_ready",
    "wsrep_cluster_status",
    "wsrep_local_state_comment",
    "wsrep_local_index",
    "wsrep_incoming_addresses",
)
Why = dict[str, "str | pymysql.Error"]
"""The reasons why nodes cannot be used, by address."""


@cache
def _unverified() -> ssl.SSLContext:
    """Return a context that encrypts without verification, for URLs without TLS settings."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class NodeConnection(Raw):
    """A connection that knows its node. ``node`` is ``None`` for a server outside a cluster."""

    node: str | None = None
    looked_at_s: float = 0.0
    must_be_replaced: bool = False

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        """Return a cached context if the URL has no TLS settings.

        A context that the driver creates reads all certificates of the system, which takes longer
        than the connection itself.
        """
        if not sslp:
            return _unverified()
        context: ssl.SSLContext = super()._create_ssl_ctx(sslp)  # type: ignore[misc]
        return context

    def wait_for(self, seconds: float) -> None:
        """Set the timeout of the next statements.

        Afterwards, the pool replaces the connection, so no other transaction uses this timeout.
        """
        self._read_timeout = seconds
        self.must_be_replaced = True


@dataclass(frozen=True, slots=True)
class Node:
    """A node's report about itself and the other members."""

    address: Address
    name: str
    """The node's address in the cluster, which may differ from ``address``."""
    members: tuple[str, ...]
    is_usable: bool
    state: str


def look(raw: Raw, address: Address) -> Node | None:
    """Read the state of a server. Returns ``None`` if the server belongs to no cluster."""
    with raw.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'")
        if dict(cursor.fetchall()).get("wsrep_on") != "ON":
            return None
        names = ", ".join(f"'{each}'" for each in STATES)
        cursor.execute(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        found = {str(name): str(value) for name, value in cursor.fetchall()}
    members = tuple(found.get("wsrep_incoming_addresses", "").split(","))
    index = int(found.get("wsrep_local_index", -1))
    states = (found.get("wsrep_cluster_status", ""), found.get("wsrep_local_state_comment", ""))
    return Node(
        address=address,
        name=members[index] if 0 <= index < len(members) else "",
        members=members,
        is_usable=found.get("wsrep_ready") == "ON" and states == (PRIMARY, SYNCED),
        state="/".join(states),
    )


class Cluster:
    """The configured server or servers, shared by all threads of a process."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = list(addresses)
        self._last: Address | None = None

    def connect_for_writing(self, arguments: Mapping[str, Any]) -> NodeConnection:
        """Connect to the writer. If the writer is gone, first make another node the writer.

        Raises :class:`Unavailable` if no node can be used.
        """
        return self._connect(arguments, self._writer(arguments))

    def connect_for_reading(self, arguments: Mapping[str, Any]) -> NodeConnection:
        """Connect to a usable node, preferably the writer. Reads see all acknowledged writes."""
        raw = self._connect(arguments, self._any(arguments))
        if raw.node is not None:
            with raw.cursor() as cursor:
                cursor.execute(f"SET SESSION wsrep_sync_wait = {READS}")
        return raw

    def _connect(self, arguments: Mapping[str, Any], node: Node | Address) -> NodeConnection:
        raw = _open(node.address if isinstance(node, Node) else node, arguments)
        if isinstance(node, Node):
            raw.node, raw.looked_at_s = node.name, time.perf_counter()
        return raw

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
        raise _nothing({"all": "other processes name a writer at the same time"})

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
                # The usual case: the last writer is still the writer.
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
        """Return the arguments of a connection.

        If several servers are configured, the timeouts are short.
        """
        if len(self._addresses) == 1:
            return dict(arguments)
        return {**arguments, "read_timeout": LOOK_WITHIN_S, "connect_timeout": LOOK_WITHIN_S}

    def _look_at(
        self, address: Address, arguments: Mapping[str, Any]
    ) -> Node | Address | pymysql.Error:
        """Return the node at an address, or the error of the connection.

        If the server at the address belongs to no cluster, return the address.
        """
        try:
            # Use a separate connection with short timeouts.
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
                "The database URL lists several addresses, which must be nodes of one Galera "
                "cluster. One of the servers belongs to no cluster."
            )
        return address


def _open(address: Address, arguments: Mapping[str, Any]) -> NodeConnection:
    port = {} if address.port is None else {"port": address.port}
    host = address.host.strip("[]")
    return NodeConnection(**{**arguments, "host": host, **port})


def _nothing(why: Why) -> Unreachable | NotLetIn:
    LOG.warning("no_writer", nodes={name: str(each) for name, each in why.items()})
    if any(isinstance(each, pymysql.Error) and each.args[0] in NOT_LET_IN for each in why.values()):
        return NotLetIn("The nodes of the database rejected the service's login.")
    return Unreachable("No node of the database can be used at the moment.")


def _writer_named_by(raw: Raw) -> str | None:
    """Return the name of the writer, or ``None`` if no writer has been named yet.

    The read waits until the node has applied all acknowledged writes. Raises ``LookupError`` if the
    table does not exist yet.
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
    """Return the writer. If the writer is gone, name a usable node as the new writer.

    Returns ``None`` if another process named a node at the same time.
    """
    own = usable[0]
    try:
        named = _writer_named_by(raw)
    except LookupError:
        # Without the table, no writer can be named.
        return _first(usable, why)
    if named is None:
        first = _first(usable, why)
        return first if _name(raw, None, first.name) else None
    for each in usable:
        if each.name == named:
            return each
    # If the writer is a member but did not answer, other processes may still reach it.
    has_answered = any(each.name == named for each in nodes)
    if named in own.members and not has_answered:
        raise _nothing(
            {**why, str(named): "this node takes the writes, but does not answer this process"}
        )
    return own if _name(raw, named, own.name) else None


def _first(usable: Sequence[Node], why: Why) -> Node:
    """Return the node that takes the writes until a writer is named.

    All processes choose the same node, because the lock of an upgrade belongs to one node.
    """
    # An arbitrator is a member without an address.
    first = min(each for each in usable[0].members if each)
    found = next((each for each in usable if each.name == first), None)
    if found is None:
        raise _nothing(
            {**why, first: "this node must take the first writes, but this process cannot use it"}
        )
    return found


def _name(raw: Raw, old: str | None, new: str) -> bool:
    try:
        with raw.cursor() as cursor:
            # If two processes do this on two nodes, one commit fails its certification.
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
    """Return whether a connection's node is still usable. The result is cached briefly."""
    if raw.node is None or clock() - raw.looked_at_s < LOOKED_LASTS_S:
        return True
    try:
        found = look(raw, Address(raw.node, None))
    except pymysql.Error:
        return False
    raw.looked_at_s = clock()
    return found is not None and found.is_usable
