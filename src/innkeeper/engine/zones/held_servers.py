"""Ask child zones which servers they have for this zone.

Always true: if one row of an answer is unusable, the whole answer is an error. :func:`existing`
ignores servers that it did not ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

import msgspec

from innkeeper.clients import zones
from innkeeper.clients.zone_wire import ZoneAnswer, ZoneSilent
from innkeeper.clients.zones import ZoneClient, ZoneRequest
from innkeeper.domain.converters import converter_to
from innkeeper.domain.zone_tree import HeldServer, TreeRequest
from innkeeper.engine.zones.known_children import SYSTEM, KnownChild, decoded

SERVERS = "/zones/servers"
PAGE = 1000
"""The maximum number of servers in one request or answer."""
AMOUNT_MAX = 2**31 - 1
ROW_BYTES_MAX = 8192
"""The maximum size of a row in bytes, even if all characters of its texts are escaped."""
TEXT_CHARS_MAX = 255
"""The maximum number of characters that the database stores."""
PLAIN_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_Text = Annotated[str, msgspec.Meta(max_length=TEXT_CHARS_MAX, pattern="^[^\\x00]*$")]
_Amount = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]


class _Row(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(pattern=PLAIN_UUID)]
    project_id: _Text
    user_id: _Text
    batch_id: _Text
    vcpus: _Amount
    memory_mb: _Amount
    is_undecided: bool


class _Rows(msgspec.Struct, frozen=True):
    servers: tuple[_Row, ...]


_rows_in = converter_to(_Rows)


async def existing(
    client: ZoneClient, child: KnownChild, ids: Collection[str], tree: TreeRequest
) -> Mapping[str, HeldServer]:
    """Return the servers of ``ids`` that a child has, by id. Raises :class:`ZoneSilent`."""
    found: dict[str, HeldServer] = {}
    wanted = list(ids)
    for start in range(0, len(wanted), PAGE):
        part = wanted[start : start + PAGE]
        body = msgspec.json.encode({"servers": part})
        request = _request("POST", SERVERS, tree, len(part), body)
        held = _held(await client.send(child.zone, child.password, request))
        asked = frozenset(part)
        found |= {each.uuid: each for each in held if each.uuid in asked}
    return found


async def page(
    client: ZoneClient, child: KnownChild, after: str | None, tree: TreeRequest
) -> Sequence[HeldServer]:
    """Return the next servers that a child has for this zone. Raises :class:`ZoneSilent`."""
    target = SERVERS if after is None else f"{SERVERS}?marker={after}"
    request = _request("GET", target, tree, PAGE)
    return _held(await client.send(child.zone, child.password, request))


def _request(
    method: str, target: str, tree: TreeRequest, count: int, body: bytes = b""
) -> ZoneRequest:
    bytes_max = zones.bytes_of(count, ROW_BYTES_MAX)
    time_left_s = tree.time_left_ms / 1000
    return ZoneRequest(method, target, SYSTEM, tree, time_left_s, body, answer_bytes_max=bytes_max)


def _held(answer: ZoneAnswer) -> list[HeldServer]:
    if answer.status != HTTPStatus.OK:
        raise ZoneSilent.of_status(answer.status)
    try:
        rows = _rows_in(decoded(answer)).servers
    except msgspec.ValidationError as error:
        raise ZoneSilent("the answer lists no servers", may_have_arrived=True) from error
    if len(rows) > PAGE:
        raise ZoneSilent("the answer lists too many servers", may_have_arrived=True)
    return [
        HeldServer(
            each.id,
            each.project_id,
            each.user_id,
            each.batch_id,
            each.vcpus,
            each.memory_mb,
            each.is_undecided,
        )
        for each in rows
    ]
