"""Forward requests for servers to the child zones that have them.

Always true: the child gets the method, the path, the query, the body and the microversion that the
client sent. Only two things are added: the definition of the flavor to a resize, and the limit of
metadata items to a change of metadata. The client gets the child's answer, with this zone's address
in the links. An answer that cannot be from a Compute API counts as no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients.zone_wire import ZoneAnswer, ZoneSilent
from innkeeper.clients.zones import ZoneRequest
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.limits import Limits
from innkeeper.domain.moves import ENDS_OF_RESIZES, FORCE_DELETE
from innkeeper.domain.zone_tree import ZoneServer
from innkeeper.engine.zones import answers, metadata_limits, resizing
from innkeeper.engine.zones.resizing import ForwardedResize
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import caller_below
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import remote

ANSWER_BYTES_MAX = 2 * 2**20
"""The maximum size of an answer in bytes. A page with a thousand actions on a server is smaller."""
RETRY_AFTER_S = 5
GROUPS = "server_groups"
AWAY = "The zone that has the server does not answer. Try again later."
ACTION = "/action"
Action = tuple[str, object]
"""The name of an action on a server, and its arguments."""
LOG = structlog.get_logger("innkeeper.zones")


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request as the client sent it. ``target`` is relative to the address of the API version.

    ``part`` is the end of the request's route, after the server's id, such as ``/action``. Links in
    the answer have an invented host, which is replaced by ``address``.
    """

    method: str
    part: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    caller: RequestContext
    address: str


class ServerRequests:
    """Forwards requests for servers that are in child zones. ``limits`` are the default quotas."""

    def __init__(self, tree: ZoneTree, limits: Limits) -> None:
        self._tree = tree
        self._parts = tree.parts
        self._limits = limits

    async def home_of(self, uuid: str) -> ZoneServer | None:
        """Return this zone's record of a server in a child zone, or ``None``."""
        if not self._tree.routes or not await self._tree.children.every():
            return None
        return await self._parts.engine.read(lambda tx: remote.get(tx, uuid))

    async def forward(self, server: ZoneServer, request: ClientRequest) -> ZoneAnswer:
        """Send a request for a server to its child.

        Raises :class:`Unavailable` if the child does not answer. Raises the errors of
        :func:`resizing.wanted`, :func:`resizing.begin` and :func:`metadata_limits.smallest`.
        """
        child = await self._tree.children.by_id(server.child_id)
        hop = request.caller.hop
        if child is None or not child.zone.is_enabled:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)
        action = _action_in(request)
        body = await self._body_below(server, request)
        resize = await self._begun(server, request.caller, action)
        tree = self._tree.below(hop, self._parts.zoning.zone_request_timeout_s)
        sent = ZoneRequest(
            request.method,
            request.target,
            # In the child, an administrator's request is sent in the name of the server's owner.
            _as_owner(request.caller, server),
            tree,
            tree.time_left_ms / 1000,
            body if resize is None else resize.body,
            request.headers,
            ANSWER_BYTES_MAX,
        )
        try:
            told = await self._parts.client.send(child.zone, child.password, sent)
            invented = f"http://{tree.link_host}"
            answer = answers.checked(told, server.uuid, invented, request.address)
        except ZoneSilent as error:
            LOG.warning("zone_forward_failed", zone=child.zone.name, reason=str(error))
            if resize is not None and not error.may_have_arrived:
                await self._end(server, resize, is_accepted=False)
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        await self._note(server, request, action, answer.status)
        if hop is None:
            answer = await self._with_groups(server, answer)
        # If the child says that it is unavailable, a zone below it may have begun the resize.
        if resize is not None and answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            is_accepted = answer.status < HTTPStatus.BAD_REQUEST
            await self._end(server, resize, is_accepted=is_accepted)
        return answer

    async def _with_groups(self, server: ZoneServer, answer: ZoneAnswer) -> ZoneAnswer:
        """Return an answer.

        If it shows server groups, show the server's group in this zone instead.
        """
        if GROUPS.encode() not in answer.body:
            return answer
        told = msgspec.json.decode(answer.body)
        shown = told.get("server") if isinstance(told, dict) else None
        if not isinstance(shown, dict) or GROUPS not in shown:
            return answer
        group = await self._parts.engine.read(lambda tx: groups.uuid_of(tx, server.uuid))
        shown[GROUPS] = [] if group is None else [group]
        return ZoneAnswer(answer.status, answer.headers, msgspec.json.encode(told))

    async def _body_below(self, server: ZoneServer, request: ClientRequest) -> bytes:
        if not metadata_limits.applies(request.method, request.part):
            return request.body
        limits = await self._parts.engine.read(
            lambda tx: quotas.limits(tx, server.project_id, self._limits)
        )
        is_of_parent = request.caller.hop is not None
        own = limits.metadata_items
        return metadata_limits.body_below(request.body, own, is_of_parent=is_of_parent)

    async def _begun(
        self, server: ZoneServer, caller: RequestContext, action: Action | None
    ) -> ForwardedResize | None:
        """Count a resize against the quota before the child is asked.

        Return ``None`` for other actions.
        """
        if action is None or action[0] != resizing.RESIZE:
            return None
        wanted = resizing.wanted(action[1], caller)
        if wanted is None:
            return None
        timeout_s = self._parts.zoning.zone_request_timeout_s
        until = resizing.may_begin_until(self._parts.clock(), timeout_s)
        return await self._parts.engine.write(
            lambda tx: resizing.begin(tx, server, wanted, caller, self._limits, until)
        )

    async def _end(self, server: ZoneServer, resize: ForwardedResize, *, is_accepted: bool) -> None:
        now, uuid, counted = self._parts.clock(), server.uuid, resize.counted
        await self._parts.engine.write(
            lambda tx: zone_servers.end_resize(tx, uuid, counted, now, is_accepted=is_accepted)
        )

    async def _note(
        self, server: ZoneServer, request: ClientRequest, action: Action | None, status: int
    ) -> None:
        """Record that a server is gone or being deleted.

        After the end of a resize, check its amounts soon.
        """
        engine, now, uuid = self._parts.engine, self._parts.clock(), server.uuid
        is_done, is_whole = status < HTTPStatus.BAD_REQUEST, request.part == ""
        name = None if action is None else action[0]
        if is_whole and status == HTTPStatus.NOT_FOUND:
            await engine.write(lambda tx: zone_servers.forget_decided(tx, [uuid]))
        elif is_done and ((is_whole and request.method == "DELETE") or name == FORCE_DELETE):
            await engine.write(lambda tx: remote.begin_delete(tx, uuid, now))
        elif is_done and name in ENDS_OF_RESIZES:
            await self._look_soon(server)

    async def _look_soon(self, server: ZoneServer) -> None:
        now = self._parts.clock()
        await self._parts.engine.write(lambda tx: remote.look_soon(tx, server.uuid, now))


def _action_in(request: ClientRequest) -> Action | None:
    """Return the requested action, or ``None`` if it is malformed, which the child will report."""
    if request.part != ACTION:
        return None
    try:
        body = msgspec.json.decode(request.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if not isinstance(body, dict) or len(body) != 1:
        return None
    name, arguments = next(iter(body.items()))
    return name, arguments


def _as_owner(caller: RequestContext, server: ZoneServer) -> RequestContext:
    below = caller_below(caller)
    if caller.project_id == server.project_id:
        return below
    owner = caller_below(
        RequestContext(
            request_id=caller.request_id,
            user_id=server.user_id,
            project_id=server.project_id,
            roles=caller.roles,
            hop=caller.hop,
        )
    )
    return owner
