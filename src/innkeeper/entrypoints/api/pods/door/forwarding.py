"""Forwards requests for servers and volumes to pods.

Only a door uses this module. A door is a service that is a gateway to pods.

Always true: the caller's rights and the form of the body are checked before a request is forwarded.
A resource of another project gets the same answer as a missing resource.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import zip_longest
from typing import Any
from urllib.parse import quote, urlencode

from innkeeper.domain.door import SERVER, VOLUME, DoorAnswer, DoorCaller, DoorRequest
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.pods import PodRouting
from innkeeper.engine.pods.acknowledged_creates import Reads
from innkeeper.engine.pods.doors import Door
from innkeeper.engine.pods.list_questions import PodListQuestion
from innkeeper.engine.pods.lists import DoorPage
from innkeeper.entrypoints.api.compute.servers import list_schemas
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.pods.door import places, volumes
from innkeeper.entrypoints.api.request_checks import project_and_user
from innkeeper.entrypoints.api.routing import Answer, Call, Route
from innkeeper.entrypoints.api.validation import decode_json
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.entrypoints.api.volumes.volumes import FORCE_DELETE, DeletionOptions

SERVERS, VOLUMES = "/v2.1/servers", "/v3/volumes"
VERSIONS = re.compile(r"/v(?:2\.1|3)(?=/)")
VERSION_HEADERS = ("openstack-api-version", "x-openstack-nova-api-version")
OWN_PARAMETERS = frozenset(
    {"limit", "marker", "sort_key", "sort_dir", "sort", "all_tenants", "project_id", "tenant_id"}
    | {"availability_zone", "offset", "with_count"}
)
TRUE_WORDS = ("", "1", "true", "yes", "on", "t", "y")
ALL_PROJECTS = "os_compute_api:servers:index:get_all_tenants"
NOT_SERVED = (f"{VOLUMES}/os-explain", "{volume_id}/os-explain")
SUMMARY = f"{VOLUMES}/summary"
PLACE = "place"
ELSEWHERE = (".", "..")
"""These texts are not forwarded as ids, because they would change the path of the request to the
pod."""
IDS = {SERVER: "server_id", VOLUME: "volume_id"}
OTHER_ACTIONS = {SERVER: "os_compute_api:servers:update", VOLUME: "volume:update"}
"""The rules for actions that Innkeeper does not implement. A pod may implement them."""
VOLUMES_OF_ADMINS = frozenset({"host", "migration_status"})
"""The filters that only administrators may use in lists of volumes."""


def kind_of(path: str) -> str | None:
    """Return the kind of resource that a path is about.

    Returns ``None`` if the door answers requests for the path itself.
    """
    if path == SERVERS or path.startswith(f"{SERVERS}/"):
        return SERVER
    if path == VOLUMES or path.startswith(f"{VOLUMES}/") or volumes.part_of(path):
        return VOLUME
    if places.is_place(path):
        return PLACE
    return None


async def settled(call: Call, at: Door) -> None:
    """Wait until the door has recorded all new resources that a request may see.

    The door answers a request for a new resource before it records which pod has the resource.
    Without this wait, the next request might not find the resource.
    """
    context = call.context
    if context.is_admin or context.project_id is not None:
        await at.creating.acknowledged.wait(_whose(context), _reads(call.route))


def _reads(route: Route) -> Reads:
    if route.path in (f"{SERVERS}/{{server_id}}", f"{VOLUMES}/{{volume_id}}"):
        return Reads.ONE
    is_create = route.method == "POST" and route.path in (SERVERS, VOLUMES)
    return Reads.CREATE if is_create else Reads.ALL


def _whose(context: RequestContext) -> str | None:
    """Return the project whose resources a request may see, or ``None`` for all projects."""
    return None if context.is_admin else context.project_id


async def answered(call: Call, kind: str) -> Answer:
    """Forward a request to the pod that has the resource, or list the resources of several pods."""
    door = call.site.door
    assert door is not None, "only a door forwards"
    path = call.route.path
    if path.endswith(NOT_SERVED):
        raise Invalid("A service in front of pods does not support this request.")
    request = _request(call, kind)
    if kind == PLACE:
        return await places.answered(call, door, request)
    part = volumes.part_of(path)
    if part is not None:
        return await volumes.answered(call, door, request, part)
    if IDS[kind] in call.params:
        return await _one(call, door, request)
    if path == SUMMARY:
        return await _summed(call, door, request)
    if call.route.method == "POST":
        return _plain(await door.creating.create(request))
    return await _listed(call, door, request)


async def _one(call: Call, door: Door, request: DoorRequest) -> Answer:
    """Forward a request for a single resource to its pod."""
    rule_of = call.route.rule_of_body
    rule = None if rule_of is None else rule_of(request.body) or OTHER_ACTIONS[request.kind]

    def check(routing: PodRouting) -> None:
        target = {"project_id": routing.project_id, "user_id": routing.user_id}
        if not call.context.is_admin and routing.project_id != call.context.project_id:
            raise NotFound(f"{request.kind.capitalize()} {routing.top_id} could not be found.")
        call.demand(call.rule, **target)
        if rule is not None:
            call.demand(rule, **target)
        if _is_forced(call):
            call.demand(FORCE_DELETE, **target)

    uuid, project_id = call.params[IDS[request.kind]], _whose(call.context)
    try:
        return _plain(await door.forwarding.forward(request, uuid, check))
    except NotFound:
        # The request was not forwarded, because the door does not know the resource. The resource
        # may be in a pod that did not answer when the door restarted, so look for it in such pods.
        if not await door.creating.acknowledged.has_looked_again(project_id):
            raise
    return _plain(await door.forwarding.forward(request, uuid, check))


def _is_forced(call: Call) -> bool:
    """Return whether a request deletes a volume with the parameter ``force``."""
    if (call.route.method, call.route.path) != ("DELETE", f"{VOLUMES}/{{volume_id}}"):
        return False
    return call.options.of(DeletionOptions).takes_force and calling.flag(
        "force", call.last("force", "false")
    )


def _request(call: Call, kind: str) -> DoorRequest:
    project_id, user_id = project_and_user(call)
    path = call.route.path
    for name, value in call.params.items():
        if value in ELSEWHERE:
            raise NotFound(f"{value} could not be found.")
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    query = urlencode([(key, each) for key, values in call.query.items() for each in values])
    target = VERSIONS.sub("", path, count=1) + (f"?{query}" if query else "")
    return DoorRequest(
        kind,
        call.route.method,
        target,
        decode_json(call.raw_body) if call.raw_body else None,
        {name: call.headers[name] for name in VERSION_HEADERS if name in call.headers},
        call.address,
        DoorCaller(project_id, user_id, call.context.is_admin),
    )


def _plain(answer: DoorAnswer) -> Answer:
    return Answer(answer.status, answer.body or None, dict(answer.headers))


async def _listed(call: Call, door: Door, request: DoorRequest) -> Answer:
    limit = limit_of(call)
    if request.kind == VOLUME:
        volumes.check_page(call)
    page = DoorPage((), has_more=False, missing=())
    if limit:
        page = await door.lists.page(_question(call, request, limit))
    name = f"{request.kind}s"
    is_detailed = call.route.path.endswith("/detail")
    body: dict[str, Any] = {name: page.rows}
    if page.has_more:
        version = "/v2.1" if request.kind == SERVER else "/v3"
        place = f"{name}/detail" if is_detailed else name
        query = next_query(call, page.last)
        href = f"{call.address}{version}/{place}?{query}"
        body[f"{name}_links"] = [{"rel": "next", "href": href}]
    if page.missing:
        body["is_partial"] = True
        if call.context.is_admin:
            body["missing_pods"] = list(page.missing)
    return Answer(HTTPStatus.OK, body)


async def _summed(call: Call, door: Door, request: DoorRequest) -> Answer:
    volumes.check_page(call)
    filters, needs_admin = _filters(call, VOLUME)
    project_id = _project(call, VOLUME)
    if needs_admin and project_id is not None:
        raise Invalid("Summaries of one project cannot be filtered by hosts or migrations.")
    return await volumes.summary(call, door, request, project_id, filters)


def _filters(call: Call, kind: str) -> tuple[list[tuple[str, str]], bool]:
    """Return the filters of a list, and whether pods apply one only for administrators."""
    filters = [
        (name, each)
        for name, values in call.query.items()
        if name not in OWN_PARAMETERS
        for each in values
    ]
    of_admins = {name for name, _ in filters if _is_of_admins(kind, name)}
    if not call.context.is_admin:
        # These filters are not forwarded, because the number of rows in a pod's answer could reveal
        # where servers are.
        return [each for each in filters if each[0] not in of_admins], False
    return filters, bool(of_admins)


def _question(call: Call, request: DoorRequest, limit: int) -> PodListQuestion:
    project_id = _project(call, request.kind)
    filters, needs_admin = _filters(call, request.kind)
    sort = sort_of(call.query, request.kind)
    zone = call.last("availability_zone")
    is_brief = not call.route.path.endswith("/detail")
    marker = call.last("marker")
    return PodListQuestion(
        request, filters, sort, limit, marker, project_id, zone, is_brief, needs_admin=needs_admin
    )


def _project(call: Call, kind: str) -> str | None:
    """Return the project whose resources are listed, or ``None`` for all projects."""
    is_for_all = False
    if "all_tenants" in call.query:
        is_for_all = (call.last("all_tenants") or "").lower() in TRUE_WORDS
    if not is_for_all:
        return call.context.project_id
    if not call.context.is_admin and kind == VOLUME:
        # As in Cinder, other users see only their own volumes.
        return call.context.project_id
    if not call.context.is_admin:
        call.demand(ALL_PROJECTS, project_id=None)
        raise Invalid("Only administrators may list the resources of all projects.")
    return call.last("project_id", call.last("tenant_id"))


def _is_of_admins(kind: str, name: str) -> bool:
    """Return whether only administrators may use a filter. It is ignored if other users send it."""
    if kind == SERVER:
        return name not in list_schemas.FOR_ALL_CALLERS
    return name in VOLUMES_OF_ADMINS


def sort_of(query: Mapping[str, Sequence[str]], kind: str) -> list[tuple[str, bool]]:
    """Return the sort keys of a list, each with a flag that is true for descending order.

    As in this service's own lists, rows with equal keys are sorted by ``created_at`` and then by
    id, in the direction of the first key. Raises :class:`Invalid` if there are more directions than
    keys.
    """
    keys, words = query.get("sort_key", ()), query.get("sort_dir", ())
    joined = query.get("sort", ("",))[-1]
    if kind == VOLUME and joined:
        pairs = [each.partition(":") for each in joined.split(",")]
        keys, words = [each[0] for each in pairs], [each[2] or "desc" for each in pairs]
    keys = keys or ["created_at"]
    if len(words) > len(keys):
        raise Invalid("Sort direction size exceeds sort key size")
    first = words[0] if words else "desc"
    wanted: dict[str, bool] = {}
    for key, word in zip_longest(keys, words, fillvalue=first):
        wanted.setdefault(key, word != "asc")
    for key in ("created_at", "uuid" if kind == SERVER else "id"):
        wanted.setdefault(key, first != "asc")
    return list(wanted.items())
