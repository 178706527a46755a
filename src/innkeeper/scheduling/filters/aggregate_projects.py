"""Aggregates that are for certain projects, and projects that are for certain aggregates.

Both directions, by the metadata of aggregates:

- *Nobody else gets in.* A host in an aggregate with keys that begin with ``filter_tenant_id``
  takes servers of the projects named under such keys, and of no others.
- *They do not get out.* Where such an aggregate also says ``limit_tenants_to_aggregate`` =
  ``true``, the projects that it names use hosts of aggregates that name them, and no others.

Without the second, a project that has hosts of its own may also use those for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.metadata import Metadata, values_of, values_under
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "AggregateMultiTenancyIsolation"
REASON = "the host is for other projects, or the project for other hosts"
READS: Reads = ("project_id",)

NAMES, CONFINES = "filter_tenant_id", "limit_tenants_to_aggregate"
ALL = slice(None)


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where the project is named, or nobody is and the project is not confined."""
    if not hosts.aggregates.mentions(NAMES):
        return None
    project_id = spec.project_id
    if _is_confined(hosts, project_id):
        return hosts.by_aggregates(lambda said: project_id in values_under(said, NAMES), rows)
    return hosts.by_aggregates(lambda said: _is_open(said, project_id), rows)


def _is_open(metadata: Metadata, project_id: str) -> bool:
    named = values_under(metadata, NAMES)
    return not named or project_id in named


def _is_confined(hosts: HostTable, project_id: str) -> bool:
    return bool(hosts.by_aggregates(lambda said: _confines(said, project_id), ALL).any())


def _confines(metadata: Metadata, project_id: str) -> bool:
    return any(_says_so(each) and project_id in values_under([each], NAMES) for each in metadata)


def _says_so(one: Mapping[str, str]) -> bool:
    return "true" in {text.lower() for text in values_of([one], CONFINES)}


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Whether the project has to stay in its aggregates, and how many hosts are for it."""
    project_id = spec.project_id
    own = hosts.by_aggregates(lambda said: project_id in values_under(said, NAMES), ALL)
    told = f"{int(own.sum())} hosts are in aggregates for this project"
    if _is_confined(hosts, project_id):
        return told + ", and it has to stay there"
    free = hosts.by_aggregates(lambda said: not values_under(said, NAMES), ALL)
    return told + f", {int(free.sum())} are for everybody"
