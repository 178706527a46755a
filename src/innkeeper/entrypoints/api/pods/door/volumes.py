"""Forwards a door's requests for attachments, transfers and summaries of volumes to pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from innkeeper.domain.door import MARK, VOLUME, DoorRequest
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.pods import PodRouting
from innkeeper.engine.pods.doors import Door
from innkeeper.engine.pods.list_filters import INTERNAL, TYPES
from innkeeper.engine.pods.tenants import BLOCK_STORAGE
from innkeeper.engine.pods.volume_parts import ATTACHMENT, TRANSFER, VolumePart
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.volumes import calling

ATTACHMENTS = "/v3/attachments"
TRANSFERS = ("/v3/os-volume-transfer", "/v3/volume-transfers")
IDS = {ATTACHMENT: "attachment_id", TRANSFER: "transfer_id"}
TOTALS = ("total_count", "total_size")
UNSENT = frozenset({"user_id", "image_id", *TYPES}) | INTERNAL[VOLUME]
"""The filters whose values mean nothing to pods. Lists apply some of them to the rows of pods."""
FILTERS = ("volume_id", "instance_id", "status")
BRIEF = {
    ATTACHMENT: ("id", "status", "instance", "volume_id"),
    TRANSFER: ("id", "volume_id", "name", "links"),
}


def part_of(path: str) -> VolumePart | None:
    """Return ``ATTACHMENT`` or ``TRANSFER``, whichever the path is about.

    Returns ``None`` if the path is about neither.
    """
    if path.startswith(ATTACHMENTS):
        return ATTACHMENT
    return TRANSFER if path.startswith(TRANSFERS) else None


async def answered(call: Call, door: Door, request: DoorRequest, part: VolumePart) -> Answer:
    """Forward a request to the pod that has the resource, or list the resources of several pods."""

    def check(routing: PodRouting) -> None:
        if not call.context.is_admin and routing.project_id != call.context.project_id:
            raise NotFound(f"Volume {routing.top_id} could not be found.")
        call.demand(call.rule, project_id=routing.project_id, user_id=routing.user_id)

    parts = door.volume_parts
    if call.route.path.endswith("/accept"):
        found = await parts.accept(request)
    elif IDS[part] in call.params:
        found = await parts.forward(request, part, check)
    elif call.route.method == "POST":
        found = await parts.create(request, part, check)
    else:
        return await _listed(call, door, request, part)
    return Answer(found.status, found.body or None, dict(found.headers))


def check_page(call: Call) -> None:
    """Raise :class:`Invalid` for parameters of lists of volumes that a door does not support."""
    if (call.last("offset") or "").strip("0"):
        raise Invalid("A service in front of pods does not support offset. Use marker.")
    if calling.flag("with_count", call.last("with_count", "false")):
        raise Invalid("A service in front of pods does not support with_count.")


async def summary(
    call: Call,
    door: Door,
    request: DoorRequest,
    project_id: str | None,
    filters: Sequence[tuple[str, str]],
) -> Answer:
    """Return a summary of a project's volumes in all pods.

    If ``project_id`` is ``None``, the summary has the volumes of all projects. Raises
    :class:`Invalid` for filters that pods cannot apply.
    """
    for name, _ in filters:
        if name in UNSENT:
            raise Invalid(f"This service does not filter summaries by {name}.")
    zone = call.last("availability_zone")
    homes = await door.lookups.homes(project_id)
    homes = [each for each in homes if zone in (None, each.az_name)]
    query = [*filters, *([("all_tenants", "1")] if project_id is None else [])]
    target = "/volumes/summary" + (f"?{urlencode(query)}" if query else "")
    told, missing = await door.lookups.ask(
        homes, project_id, BLOCK_STORAGE, target, request.headers
    )
    totals: Counter[str] = Counter(dict.fromkeys(TOTALS, 0))
    metadata: dict[str, list[str]] = {}
    for _, each in told:
        found = each.get("volume-summary")
        if not isinstance(found, Mapping):
            continue
        totals.update({key: found[key] for key in TOTALS if isinstance(found.get(key), int)})
        items = found.get("metadata")
        for name, values in items.items() if isinstance(items, Mapping) else ():
            if name != MARK and isinstance(values, list):
                metadata.setdefault(name, []).extend(values)
    unique = {name: sorted(set(map(str, values))) for name, values in metadata.items()}
    body: dict[str, Any] = {"volume-summary": {**totals, "metadata": unique}}
    if missing:
        body["is_partial"] = True
        if call.context.is_admin:
            body["missing_pods"] = [each.pod_name for each in missing]
    return Answer(HTTPStatus.OK, body)


async def _listed(call: Call, door: Door, request: DoorRequest, part: VolumePart) -> Answer:
    context, limit = call.context, limit_of(call)
    is_for_all = context.is_admin and (call.last("all_tenants") or "0").lower() in ("1", "true")
    project_id = call.last("project_id") if is_for_all else context.project_id
    query = {name: call.query[name][-1] for name in FILTERS if name in call.query}
    rows, missing = await door.volume_parts.rows(request, part, project_id, query)
    marker = call.last("marker")
    if marker is not None:
        if marker not in (each["id"] for each in rows):
            raise Invalid(f"marker [{marker[:64]}] not found")
        rows = [each for each in rows if str(each["id"]) < marker]
    is_detailed = call.route.path.endswith("/detail")
    page = rows[:limit]
    if not is_detailed:
        page = [{key: each[key] for key in BRIEF[part] if key in each} for each in page]
    body: dict[str, Any] = {part.keys: page}
    if page and len(rows) > limit:
        href = f"{call.address}{call.route.path}?{next_query(call, str(page[-1]['id']))}"
        body[f"{part.keys}_links"] = [{"rel": "next", "href": href}]
    if missing:
        body["is_partial"] = True
        if context.is_admin:
            body["missing_pods"] = missing
    return Answer(HTTPStatus.OK, body)
