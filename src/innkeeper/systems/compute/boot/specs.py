"""Request specs: what the scheduler is asked, made of a boot request or of a server.

Always true: a server that moves asks for what it asked for when it was booted, its flavor's
demands as they are with it, and its group's rule without itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Flavor, Server
from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.loader import seconds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.flavors import demands
from innkeeper.systems.compute.flavors.demands import Demands
from innkeeper.systems.compute.grouping import groups, hints
from innkeeper.systems.compute.grouping.hints import Resolved


def made_of(
    wanted: Demands, flavor: Flavor, properties: Mapping[str, str], resolved: Resolved, **more: Any
) -> RequestSpec:
    """Put a spec together of what a flavor and an image's properties demand, and the hints.

    ``more`` are the other fields of a spec.
    """
    return RequestSpec(
        amounts=wanted.amounts,
        required_traits=wanted.required_traits,
        forbidden_traits=wanted.forbidden_traits,
        comparisons=wanted.comparisons,
        preferred_traits=wanted.preferred_traits,
        flavor_specs=tuple(sorted(flavor.extra_specs.items())),
        image_properties=tuple(sorted(properties.items())),
        same_hosts=resolved.same_hosts,
        different_hosts=resolved.different_hosts,
        near=resolved.near,
        query=resolved.query,
        pclouds=resolved.pclouds,
        pcloud_host=resolved.pcloud_host,
        reservation=resolved.reservation,
        **more,
    )


def of_server(
    tx: Tx,
    context: DecisionContext,
    server: Server,
    *,
    now: datetime,
    seed: int,
    flavor: Flavor | None = None,
    **more: Any,
) -> RequestSpec:
    """What a server asks that needs another place; with another flavor where it is resized.

    ``more`` are fields of the spec that the asker decides: ``refused_hosts``, ``forced_host``,
    or another ``availability_zone`` than the one that was asked for when it was booted. Raises
    :class:`Invalid` for a flavor that demands nothing sensible.
    """
    group_state = groups.rule_of(tx, server.uuid)
    flavor = flavor or flavor_of(server.flavor)
    properties = {name: str(value) for name, value in server.image_properties.items()}
    return made_of(
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
        group=None if group_state is None else group_state.rule,
        hints=server.hints,
        **{"availability_zone": server.asked_az, **more},
    )


def flavor_of(facts: Mapping[str, Any]) -> Flavor:
    """A flavor as it is kept with a server; its row may have changed or be gone."""
    return Flavor(
        id=0,
        flavor_id=facts["id"],
        name=facts["name"],
        vcpus=facts["vcpus"],
        memory_mb=facts["memory_mb"],
        disk_gb=facts["disk_gb"],
        ephemeral_gb=facts["ephemeral_gb"],
        swap_mb=facts["swap_mb"],
        extra_specs=facts["extra_specs"],
    )
