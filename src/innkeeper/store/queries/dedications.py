"""For whom dedicated hosts are, beside what the rows of the hosts say."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import hosts
from innkeeper.store.tables.pclouds import pcloud_hosts, pcloud_projects, pclouds
from innkeeper.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class PcloudFacts:
    """Whose a pcloud is, who may use it, and whether plain requests of its owner come to it."""

    uuid: str
    owner: str
    is_automatic: bool
    projects: frozenset[str]


_PCLOUDS = sa.select(
    pclouds.c.id, pclouds.c.uuid, pclouds.c.project_id, pclouds.c.is_automatic
).where(pclouds.c.uuid.in_(IDS))
_PROJECTS = sa.select(pcloud_projects.c.pcloud_id, pcloud_projects.c.project_id).where(
    pcloud_projects.c.pcloud_id.in_(IDS)
)
_NAMES = (
    sa.select(hosts.c.provider_id, pcloud_hosts.c.name)
    .join(pcloud_hosts, pcloud_hosts.c.host_id == hosts.c.id)
    .where(hosts.c.provider_id.in_(IDS))
)


def pcloud_facts(tx: Tx, uuids: Collection[str]) -> list[PcloudFacts]:
    """What is known of these pclouds, as far as they are there."""
    found = by_ids.rows(tx, _PCLOUDS, uuids)
    projects: dict[int, set[str]] = {}
    for row, project_id in by_ids.rows(tx, _PROJECTS, [each.id for each in found]):
        projects.setdefault(row, set()).add(project_id)
    return [
        PcloudFacts(uuid, owner, is_automatic, frozenset(projects.get(row, ())))
        for row, uuid, owner, is_automatic in found
    ]


def names(tx: Tx, provider_ids: Collection[ProviderId]) -> dict[ProviderId, str]:
    """What the hosts on these providers are called in their pclouds."""
    rows = by_ids.rows(tx, _NAMES, provider_ids)
    return {ProviderId(provider_id): name for provider_id, name in rows}
