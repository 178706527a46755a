"""Isolate projects on hosts by the metadata of aggregates.

- If an aggregate has keys that begin with ``filter_tenant_id``, its hosts take only servers of the
projects that these keys list.
- If the aggregate also has ``limit_tenants_to_aggregate`` = ``true``, each of these projects may
  only use hosts whose aggregates list the project. Otherwise, these projects may also use hosts
  whose aggregates list no projects.
"""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.metadata import Metadata, values_of, values_under
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "AggregateMultiTenancyIsolation"
REASON = "the host is reserved for other projects, or the project is limited to other hosts"
READS: Reads = ("project_id",)

NAMES, CONFINES = "filter_tenant_id", "limit_tenants_to_aggregate"
ALL = slice(None)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True on hosts whose aggregates list the project.

    Hosts whose aggregates list no project also pass, unless the project is limited to the hosts of
    its own aggregates.
    """
    if not hosts.aggregates.mentions(NAMES):
        return None
    project_id = spec.project_id
    if _is_confined(hosts, project_id):
        return hosts.by_aggregates(lambda each: project_id in values_under(each, NAMES), rows)
    return hosts.by_aggregates(lambda each: _is_open(each, project_id), rows)


def _is_open(metadata: Metadata, project_id: str) -> bool:
    named = values_under(metadata, NAMES)
    return not named or project_id in named


def _is_confined(hosts: HostTable, project_id: str) -> bool:
    return bool(hosts.by_aggregates(lambda each: _confines(each, project_id), ALL).any())


def _confines(metadata: Metadata, project_id: str) -> bool:
    naming = [each for each in metadata if project_id in values_under([each], NAMES)]
    return "true" in {text.lower() for text in values_of(naming, CONFINES)}


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """State how many hosts are for this project, and whether the project may use other hosts."""
    project_id = spec.project_id
    own = hosts.by_aggregates(lambda each: project_id in values_under(each, NAMES), ALL)
    text = f"{int(own.sum())} hosts are in aggregates for this project"
    if _is_confined(hosts, project_id):
        return text + ", and it may use no other hosts"
    free = hosts.by_aggregates(lambda each: not values_under(each, NAMES), ALL)
    return text + f", {int(free.sum())} are open to all projects"
