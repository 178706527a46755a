"""Taking boot requests in: look everything up that they name, and refuse what cannot be.

Always true: a request that passed names a flavor it may use, an image that fits it, a zone or
host that exists, and no more servers than the project's quota allows, those of the requests
before it in the same batch included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from innkeeper.domain.compute import BootRequest, Flavor, Image, Limits
from innkeeper.domain.errors import Invalid, NotFound, QuotaExceeded
from innkeeper.domain.grouping import GroupState
from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.loader import seconds
from innkeeper.store.queries.compute import quota_usages
from innkeeper.store.queries.compute.quota_usages import QuotaUsage
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import images
from innkeeper.systems.compute.accounts import keypairs, quotas
from innkeeper.systems.compute.boot import entries, specs
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.flavors import demands, flavors
from innkeeper.systems.compute.flavors.demands import Demands
from innkeeper.systems.compute.grouping import groups, hints

UNLIMITED = -1
HOSTNAME_MAX = 63
"""Octets of one label of a domain name (RFC 1035)."""


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """A request, with what it named looked up.

    ``facts`` are the flavor's as they are kept with servers. ``filters`` are those that the
    request names in place of the default ones. ``unread`` are hints of which nothing is known,
    with what is to be said of each. The request's hints are those that its servers keep.
    """

    request: BootRequest
    flavor: Flavor
    facts: Mapping[str, Any]
    image: Image | None
    spec: RequestSpec
    group_id: int | None = None
    filters: tuple[str, ...] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)


class RequestResolver:
    """Takes the requests of one batch in, one after the other.

    What they name is looked up once for all of them. Between one and the next,
    :meth:`count_in` tells how many servers came of the first, and :meth:`join` where they are,
    so that what one request is given does not depend on who happened to wait beside it.
    """

    def __init__(self, tx: Tx, context: DecisionContext, requests: Sequence[BootRequest]) -> None:
        self._tx = tx
        self._context = context
        image_ids = {each.image_id for each in requests if each.image_id is not None}
        projects = {each.project_id for each in requests}
        self._flavors = flavors.by_public_ids(tx, {each.flavor_id for each in requests})
        self._images = images.get_many(tx, image_ids) if image_ids else {}
        # Once for all requests: what is written of a flavor becomes text once then, too.
        self._facts = {name: flavor_facts(each) for name, each in self._flavors.items()}
        self._demands: dict[tuple[str, str | None], Demands] = {}
        self._limits = quotas.limits_of(tx, projects, quotas.defaults(context.computing))
        self._usages = quota_usages.of_projects(tx, projects)
        self._group_states: dict[int, GroupState] = {}
        self._joined: dict[int, dict[str, Sequence[str | None]]] = {}

    def take(self, request: BootRequest) -> ResolvedRequest:
        """Look up what a request names; raises the refusal of what cannot be."""
        entries.demand_usable(self._tx, request)
        flavor = _flavor(self._tx, self._flavors, request)
        image = _image(self._images, request, flavor)
        if request.key_name is not None:
            _demand_key(self._tx, request)
        _demand_place(self._context.follower.table, request)
        project_id = request.project_id
        # Now, and not when it is planned: a refusal is not to be written.
        resolved = hints.resolve(
            self._tx,
            request.hints,
            self._context.schedulers.readers,
            project_id=project_id,
            is_admin=request.is_admin,
            now=request.now,
        )
        limits = self._limits[project_id]
        count = _allowed_count(limits, self._usages[project_id], request, flavor)
        if resolved.group is not None:
            group = self._group_state(resolved.group, request)
            most = limits.server_group_members
            count = groups.allowed_count(group, most, request.count_min, count)
        if count != request.count_max:
            request = replace(request, count_max=count)
        if request.hints:
            request = replace(request, hints=resolved.kept)
        spec = specs.made_of(
            self._demanded(flavor, image),
            flavor,
            {} if image is None else image.properties,
            resolved,
            project_id=project_id,
            user_id=request.user_id,
            image_id=request.image_id,
            now_s=seconds(request.now),
            seed=request.seed,
            silence_max_s=self._context.computing.service_down_time_s,
            rules=self._context.rules,
            group=None if resolved.group is None else group.rule,
            count=count,
            availability_zone=request.availability_zone,
            forced_host=_only_host(request),
            hints=request.hints,
            automatic_pclouds=() if resolved.names_dedicated else self._automatic(project_id),
        )
        group_id = None if resolved.group is None else resolved.group.group_id
        facts = self._facts[flavor.flavor_id]
        return ResolvedRequest(
            request, flavor, facts, image, spec, group_id, resolved.filters, resolved.unread
        )

    def _demanded(self, flavor: Flavor, image: Image | None) -> Demands:
        key = (flavor.flavor_id, None if image is None else image.id)
        wanted = self._demands.get(key)
        if wanted is None:
            wanted = demands.of(flavor, {} if image is None else image.properties)
            self._demands[key] = wanted
        return wanted

    def count_in(self, taken: ResolvedRequest, servers: int) -> None:
        """Count the servers that a request will have, placed or in ERROR."""
        used = self._usages[taken.request.project_id]
        self._usages[taken.request.project_id] = QuotaUsage(
            used.servers + servers,
            used.vcpus + servers * taken.flavor.vcpus,
            used.memory_mb + servers * taken.flavor.memory_mb,
        )

    def join(self, taken: ResolvedRequest, hosts: Sequence[str | None]) -> None:
        """Count a request's servers into its group: their hosts, and None for those without.

        What was said of the same request before is forgotten.
        """
        if taken.group_id is not None:
            joined = self._joined.setdefault(taken.group_id, {})
            joined[taken.request.request_id] = hosts

    def look_again(self, taken: ResolvedRequest) -> ResolvedRequest:
        """The same request, with its group and the pclouds that take it in as they are now."""
        spec = taken.spec
        if not spec.names_dedicated:
            automatic = self._automatic(taken.request.project_id)
            spec = replace(spec, automatic_pclouds=automatic)
        if taken.group_id is not None:
            group_state = self._group_state(self._group_states[taken.group_id], taken.request)
            spec = replace(spec, group=group_state.rule)
        return replace(taken, spec=spec)

    def _automatic(self, project_id: str) -> tuple[str, ...]:
        """The pclouds that take plain requests of a project, which wants that."""
        return self._context.follower.table.dedications.automatic_of(project_id)

    def _group_state(self, found: GroupState, request: BootRequest) -> GroupState:
        """A group as the store has it, with the servers of all other requests in this batch."""
        group_state = self._group_states.setdefault(found.group_id, found)
        for request_id, hosts in self._joined.get(found.group_id, {}).items():
            if request_id != request.request_id:
                group_state = groups.joined(group_state, hosts)
        return group_state


def _flavor(tx: Tx, known: Mapping[str, Flavor], request: BootRequest) -> Flavor:
    flavor = known.get(request.flavor_id)
    is_allowed = flavor is not None and (
        flavor.is_public or request.is_admin or flavors.may_use(tx, flavor, request.project_id)
    )
    if flavor is None or not is_allowed:
        raise Invalid(f"Flavor {request.flavor_id} could not be found.")
    if flavor.is_disabled:
        raise Invalid(f"Flavor {request.flavor_id} is disabled.")
    return flavor


def _image(known: Mapping[str, Image], request: BootRequest, flavor: Flavor) -> Image | None:
    if request.image_id is None:
        return None
    image = known.get(request.image_id)
    if image is None or not (request.is_admin or images.may_see(image, request.project_id)):
        raise Invalid(f"Image {request.image_id} could not be found.")
    if image.status != "active":
        raise Invalid(f"Image {request.image_id} is not active.")
    if image.min_ram_mb > flavor.memory_mb:
        raise Invalid("Flavor's memory is too small for requested image.")
    if flavor.disk_gb and image.min_disk_gb > flavor.disk_gb:
        raise Invalid("Flavor's disk is smaller than the minimum size specified in image.")
    return image


def _demand_key(tx: Tx, request: BootRequest) -> None:
    assert request.key_name is not None
    try:
        keypairs.get(tx, request.user_id, request.key_name)
    except NotFound as error:
        raise Invalid("Invalid key_name provided.") from error


def _demand_place(table: HostTable, request: BootRequest) -> None:
    zone = request.availability_zone
    if zone is not None and not table.has_zone(zone):
        raise Invalid("The requested availability zone is not available")
    if request.forced_host is not None and request.forced_host not in table.index_by_name:
        raise Invalid(f"Compute host {request.forced_host} could not be found.")


def _only_host(request: BootRequest) -> str | None:
    """The one host that will do, whoever says so; the filters are asked all the same."""
    destination = request.destination
    return request.forced_host if destination is None else destination.host


def _allowed_count(limits: Limits, used: QuotaUsage, request: BootRequest, flavor: Flavor) -> int:
    """The most servers, up to what was asked for, that the quota has room for."""
    room = min(
        _room(limits.servers, used.servers, 1),
        _room(limits.vcpus, used.vcpus, flavor.vcpus),
        _room(limits.memory_mb, used.memory_mb, flavor.memory_mb),
    )
    count = min(request.count_max, room)
    if count < request.count_min:
        raise QuotaExceeded(_too_much(limits, used, request.count_min, flavor))
    return count


def _room(limit: int, used: int, each: int) -> int:
    if limit == UNLIMITED or each == 0:
        return 2**31
    return max(0, (limit - used) // each)


def _too_much(limits: Limits, used: QuotaUsage, count: int, flavor: Flavor) -> str:
    rows = (
        ("instances", limits.servers, used.servers, count),
        ("cores", limits.vcpus, used.vcpus, count * flavor.vcpus),
        ("ram", limits.memory_mb, used.memory_mb, count * flavor.memory_mb),
    )
    over = [row for row in rows if row[1] != UNLIMITED and row[2] + row[3] > row[1]]
    names, limit, in_use, asked = (
        ", ".join(str(part) for part in column) for column in zip(*over, strict=True)
    )
    return (
        f"Quota exceeded for {names}: Requested {asked}, but already used {in_use} of "
        f"{limit} {names}"
    )


def name_of(request: BootRequest, index: int) -> str:
    """Name of one server of a request; several get numbers, as with Nova."""
    return request.name if request.count_max == 1 else f"{request.name}-{index + 1}"


_NO_LABEL = re.compile(r"[^a-z0-9-]+")


def hostname_of(request: BootRequest, index: int, server_id: str) -> str:
    """A name that the server can give itself: the one asked for, or made from its name."""
    if request.hostname is not None:
        several = request.count_max > 1
        return f"{request.hostname}-{index + 1}" if several else request.hostname
    name = name_of(request, index)
    label = _NO_LABEL.sub("-", name.lower()).strip("-")[:HOSTNAME_MAX].strip("-")
    return label or f"server-{server_id}"


def shared_columns(taken: ResolvedRequest) -> dict[str, Any]:
    """What the rows of all servers of one request have alike."""
    request, flavor, image = taken.request, taken.flavor, taken.image
    return {
        "description": request.description,
        "project_id": request.project_id,
        "user_id": request.user_id,
        "batch_id": request.batch_id,
        "flavor": taken.facts,
        "flavor_id": flavor.flavor_id,
        "vcpus": flavor.vcpus,
        "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.all_disk_gb,
        "image_id": request.image_id,
        "image_properties": dict(image.properties) if image is not None else {},
        "asked_az": request.availability_zone,
        "key_name": request.key_name,
        "has_config_drive": request.has_config_drive,
        "user_data": request.user_data,
        "metadata": dict(request.metadata),
        "tags": list(request.tags),
        "hints": dict(request.hints),
        "request_id": request.request_id,
        "access_ip_v4": request.access_ip_v4,
        "access_ip_v6": request.access_ip_v6,
        "is_locked": False,
        "locked_reason": None,
        "created_at": request.now,
        "updated_at": request.now,
        "launched_at": None,
        "deleted_at": None,
    }


def flavor_facts(flavor: Flavor) -> dict[str, Any]:
    """A flavor as it is kept with a server."""
    return {
        "id": flavor.flavor_id,
        "name": flavor.name,
        "vcpus": flavor.vcpus,
        "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.disk_gb,
        "ephemeral_gb": flavor.ephemeral_gb,
        "swap_mb": flavor.swap_mb,
        "extra_specs": dict(flavor.extra_specs),
    }


def order_body(taken: ResolvedRequest, name: str) -> dict[str, Any]:
    """What an agent must know to build one server."""
    request = taken.request
    return {
        "name": name,
        "project_id": request.project_id,
        "flavor": taken.facts,
        "image_id": request.image_id,
        "key_name": request.key_name,
        "has_config_drive": request.has_config_drive,
        "user_data": request.user_data,
        "metadata": dict(request.metadata),
    }
