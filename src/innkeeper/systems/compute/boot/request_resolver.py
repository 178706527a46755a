"""Look up the objects that a boot request refers to, or that a server needs for a move.

Always true: a resolved boot request has a flavor that the project may use, an image that fits the
flavor, and an availability zone or host that exists. The request asks for no more servers than the
project's quota allows. The earlier requests of the same transaction count as usage.

Always true: the request spec for a move is the same as the spec of the server's boot, except for
the flavor, which comes from the server's row. The server itself does not count as a member of its
group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain import preemption
from innkeeper.domain.compute import BootRequest, Flavor, Server
from innkeeper.domain.errors import Invalid, QuotaExceeded, UnknownPlace
from innkeeper.domain.grouping import GroupState
from innkeeper.domain.ids import ProviderId, ServerId
from innkeeper.domain.images import Image
from innkeeper.domain.limits import Limits
from innkeeper.domain.placing import RequestSpec, Rules
from innkeeper.domain.zone_tree import payer_of
from innkeeper.domain.zones import EntryBoot
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.loader import seconds
from innkeeper.store.queries.compute import quota_usages
from innkeeper.store.queries.compute.quota_usages import QuotaUsage
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import keypairs, quotas
from innkeeper.systems.compute.boot import slot_checks
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.entries import EntryStale
from innkeeper.systems.compute.boot.entry_checks import EntryChecks
from innkeeper.systems.compute.boot.resolved_requests import RequestKey, ResolvedRequest, key_of
from innkeeper.systems.compute.flavors import demands, flavors, images
from innkeeper.systems.compute.flavors.demands import Demands
from innkeeper.systems.compute.grouping import groups, hints
from innkeeper.systems.compute.grouping.hints import Resolved
from innkeeper.systems.volumes import attachments

UNLIMITED = -1
Homes = Sequence[str | None]
"""The hosts of a request's servers, with ``None`` for a server without a host."""


class RequestResolver:
    """Resolves the requests of one transaction in order, with one lookup for all requests.

    After each request, the caller must report the hosts of its servers with :meth:`place`. For the
    next request, quotas and server groups then count these servers.
    """

    def __init__(self, tx: Tx, context: DecisionContext, requests: Sequence[BootRequest]) -> None:
        self._tx = tx
        self._context = context
        self._requests = requests
        image_ids = {each.image_id for each in requests if each.image_id is not None}
        payers = {payer_of(each.project_id) for each in requests}
        self._entries = EntryChecks(tx, requests)
        self._flavors = flavors.by_public_ids(tx, {each.flavor_id for each in requests})
        self._images = images.get_many(tx, image_ids) if image_ids else {}
        # With one mapping per flavor, the database driver encodes each flavor only once.
        self._facts: dict[int, Mapping[str, Any]] = {}
        self._diskless: dict[int, Flavor] = {}
        self._demands: dict[tuple[int, int], Demands] = {}
        self._limits = quotas.limits_of(tx, payers, quotas.defaults(context.computing))
        self._usages = quota_usages.of_projects(tx, payers)
        self._group_states: dict[int, GroupState] = {}
        self._homes: dict[ServerId, Homes] = {}
        self._members: dict[int, dict[ServerId, Homes]] = {}
        self.known: dict[RequestKey, ResolvedRequest] = {}
        """The first resolved request with each key of :func:`key_of`."""

    def check_entry(self, entry: EntryBoot, now: datetime) -> None:
        """Raise an error if a build plan entry may not be used. See :class:`EntryChecks`."""
        self._entries.check_entry(entry, now)

    def resolve(self, request: BootRequest) -> ResolvedRequest:
        """Look up everything that a request refers to. Raises a refusal for an invalid request."""
        asked = key_of(request)
        if asked is None:
            return self._resolve(request)
        known = self.known.get(asked)
        if known is not None:
            return self._like(known, request)
        resolved = self.known[asked] = self._resolve(request)
        return resolved

    def _like(self, known: ResolvedRequest, request: BootRequest) -> ResolvedRequest:
        """Resolve a plain request like an earlier request that asked for the same."""
        _check_key(self._tx, request)
        payer = payer_of(request.project_id)
        count = _allowed_count(self._limits[payer], self._usages[payer], request, known.flavor)
        return known.like(request, count)

    def _resolve(self, request: BootRequest) -> ResolvedRequest:
        self._entries.check(request)
        definitions = request.definitions
        if definitions is None:
            flavor = _flavor(self._tx, self._flavors, request)
            image = _image(self._images, request, flavor)
            _check_key(self._tx, request)
        else:
            flavor, image = definitions.flavor, definitions.image
        if request.is_volume_backed:
            # The flavor without a disk is stored with the servers, so moves and audits see the same
            # amounts.
            flavor = self._without_disk(flavor)
        if not request.may_be_elsewhere:
            check_place(self._context.follower.table, request)
        project_id = request.project_id
        # Hints are resolved before planning, since a refused request must not write anything.
        resolved = hints.resolve(
            self._tx,
            request.hints,
            self._context.schedulers.readers,
            project_id=project_id,
            is_admin=request.is_admin,
            now=request.now,
            definitions=definitions,
        )
        payer = payer_of(request.project_id)
        limits = self._limits[payer]
        count = _allowed_count(limits, self._usages[payer], request, flavor)
        group = None
        if resolved.group is not None:
            group = self._group_state(resolved.group, request)
            if definitions is None:
                most = limits.server_group_members
                count = groups.allowed_count(group, most, request.count_min, count)
            elif request.destination is not None and not group.group_id:
                raise EntryStale("The group of the zone parent was deleted.")
        if count != request.count_max:
            request = msgspec.structs.replace(request, count_max=count)
        if request.hints:
            request = msgspec.structs.replace(request, hints=resolved.kept)
        destination = request.destination
        demanded = self._demanded(flavor, image)
        slot_checks.check(self._tx, demanded, request.flavor_id, project_id, resolved.reservation)
        spec = _spec(
            demanded,
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
            group=None if group is None else group.rule,
            count=count,
            availability_zone=request.availability_zone,
            forced_host=request.forced_host if destination is None else destination.host,
            hints=request.hints,
            has_fixed_scales=request.is_across_zones,
            automatic_pclouds=() if resolved.names_dedicated else self._automatic(project_id),
            volume_pools=self._pools_of(request),
        )
        group_id = None if group is None else group.group_id
        return ResolvedRequest(
            request,
            flavor,
            self._facts_of(flavor),
            image,
            spec,
            group_id,
            resolved.filters,
            resolved.unread,
        )

    def resolve_again(self, resolved: ResolvedRequest) -> ResolvedRequest:
        """Look up the group and automatic pclouds again, since other writers may change them."""
        spec = resolved.spec
        if not spec.names_dedicated:
            automatic = self._automatic(resolved.request.project_id)
            spec = msgspec.structs.replace(spec, automatic_pclouds=automatic)
        if resolved.group_id is not None:
            group = self._group_state(self._group_states[resolved.group_id], resolved.request)
            spec = msgspec.structs.replace(spec, group=group.rule)
        return msgspec.structs.replace(resolved, spec=spec)

    def place(self, resolved: ResolvedRequest, homes: Homes) -> None:
        """Record the hosts of a request's servers. Earlier records of the request are replaced."""
        request, flavor = resolved.request, resolved.flavor
        # The key is a server id. Clients choose the request ids, so two request ids may be equal.
        key = request.server_ids[0]
        more = len(homes) - len(self._homes.get(key, ()))
        self._homes[key] = homes
        payer = payer_of(request.project_id)
        used = self._usages[payer]
        self._usages[payer] = QuotaUsage(
            used.servers + more,
            used.vcpus + more * flavor.vcpus,
            used.memory_mb + more * flavor.memory_mb,
        )
        if resolved.group_id is not None:
            self._members.setdefault(resolved.group_id, {})[key] = homes

    def _pools_of(self, request: BootRequest) -> frozenset[ProviderId]:
        if not request.has_volumes:
            return frozenset()
        return attachments.pools_of(self._tx, request.server_ids)

    def _without_disk(self, flavor: Flavor) -> Flavor:
        # The new flavor is kept, because the keys of other caches are the ``id`` of flavor objects.
        found = self._diskless.get(id(flavor))
        if found is None:
            found = self._diskless[id(flavor)] = replace(flavor, disk_gb=0)
        return found

    def _facts_of(self, flavor: Flavor) -> Mapping[str, Any]:
        found = self._facts.get(id(flavor))
        if found is None:
            found = self._facts[id(flavor)] = flavors.facts_of(flavor)
        return found

    def _demanded(self, flavor: Flavor, image: Image | None) -> Demands:
        # The key is ``id`` of the objects, because zone parents define flavors themselves and two
        # flavors may have the same flavor id. The requests of the batch keep the objects alive.
        key = (id(flavor), id(image))
        found = self._demands.get(key)
        if found is None:
            found = demands.of(flavor, {} if image is None else image.properties)
            self._demands[key] = found
        return found

    def _automatic(self, project_id: str) -> tuple[str, ...]:
        return self._context.follower.table.dedications.automatic_of(project_id)

    def _group_state(self, found: GroupState, request: BootRequest) -> GroupState:
        """Return the state of a group, including servers of earlier requests in the transaction."""
        group = self._group_states.setdefault(found.group_id, found)
        for key, homes in self._members.get(found.group_id, {}).items():
            if key != request.server_ids[0]:
                group = groups.joined(group, homes)
        return group


def spec_of_server(
    tx: Tx,
    context: DecisionContext,
    server: Server,
    *,
    now: datetime,
    seed: int,
    flavor: Flavor | None = None,
    **more: Any,
) -> RequestSpec:
    """Return the request spec of a server that needs another host.

    A resize passes the new ``flavor``. ``more`` are fields of the spec that the caller sets:
    ``refused_hosts``, ``forced_host``, or an ``availability_zone``, which overrides the zone of the
    boot request. Raises :class:`Invalid` if the demands of flavor and image conflict.
    """
    group = groups.rule_of(tx, server.uuid)
    flavor = flavor or flavors.of_facts(server.flavor)
    properties = {name: str(value) for name, value in server.image_properties.items()}
    return _spec(
        demands.of(flavor, properties),
        flavor,
        properties,
        hints.still_meant(tx, server.hints, is_nowhere=server.host is None),
        project_id=server.project_id,
        user_id=server.user_id,
        now_s=seconds(now),
        seed=seed,
        silence_max_s=context.computing.service_down_time_s,
        image_id=server.image_id,
        rules=context.rules,
        group=None if group is None else group.rule,
        hints=server.hints,
        volume_pools=attachments.pools_of(tx, [server.uuid]),
        **{"availability_zone": server.asked_az, **more},
    )


def _spec(
    demanded: Demands,
    flavor: Flavor,
    properties: Mapping[str, str],
    resolved: Resolved,
    rules: Rules,
    **more: Any,
) -> RequestSpec:
    takes_slot = bool(demands.reservations_of(demanded))
    return RequestSpec(
        amounts=demanded.amounts,
        required_traits=demanded.required_traits,
        forbidden_traits=demanded.forbidden_traits,
        comparisons=demanded.comparisons,
        preferred_traits=demanded.preferred_traits,
        flavor_specs=tuple(sorted(flavor.extra_specs.items())),
        image_properties=tuple(sorted(properties.items())),
        same_hosts=resolved.same_hosts,
        different_hosts=resolved.different_hosts,
        near=resolved.near,
        query=resolved.query,
        pclouds=resolved.pclouds,
        pcloud_host=resolved.pcloud_host,
        reservation=resolved.reservation,
        takes_slot=takes_slot,
        rules=rules,
        is_preemptible=rules.preemptible_reach_s is not None
        and preemption.is_preemptible(flavor.extra_specs)
        # A server that requests a pcloud or reservation is not preemptible.
        and not (takes_slot or resolved.names_dedicated),
        **more,
    )


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


def _check_key(tx: Tx, request: BootRequest) -> None:
    if request.key_name is not None:
        keypairs.for_boot(tx, request.user_id, request.key_name)


def check_place(table: HostTable, request: BootRequest) -> None:
    """Raise :class:`UnknownPlace` if this zone lacks the requested host or availability zone."""
    zone = request.availability_zone
    if zone is not None and not table.has_zone(zone):
        raise UnknownPlace("The requested availability zone is not available")
    if request.forced_host is not None and request.forced_host not in table.index_by_name:
        raise UnknownPlace(f"Compute host {request.forced_host} could not be found.")


def _allowed_count(limits: Limits, used: QuotaUsage, request: BootRequest, flavor: Flavor) -> int:
    """Return how many servers the quota allows, or raise :class:`QuotaExceeded`."""
    rows = (
        ("instances", limits.servers, used.servers, 1),
        ("cores", limits.vcpus, used.vcpus, flavor.vcpus),
        ("ram", limits.memory_mb, used.memory_mb, flavor.memory_mb),
    )
    count = request.count_max
    over = []
    for name, limit, in_use, each in rows:
        if limit == UNLIMITED or each == 0:
            continue
        count = min(count, max(0, limit - in_use) // each)
        if in_use + request.count_min * each > limit:
            over.append((name, request.count_min * each, in_use, limit))
    if count < request.count_min:
        names, requested, in_use_, limit_ = (
            ", ".join(str(part) for part in column) for column in zip(*over, strict=True)
        )
        raise QuotaExceeded(
            f"Quota exceeded for {names}: Requested {requested}, but already used {in_use_} of "
            f"{limit_} {names}"
        )
    return count
