"""The changes that microversions made to volumes and to their lists."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import dropping, edges, ignoring, resources
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.volumes.actions import ExtendOptions
from innkeeper.entrypoints.api.volumes.routes import ALL, DETAIL, ONE
from innkeeper.entrypoints.api.volumes.volumes import DeletionOptions

SHOWN = (("GET", DETAIL), ("GET", ONE), ("POST", ALL), ("PUT", ONE))
LISTS = (("GET", ALL), ("GET", DETAIL))
_volumes = resources("volumes", "volume")


def _without(version: Version, summary: str, *keys: str) -> Step:
    return Step(version, summary, edges(SHOWN, down=dropping(_volumes, *keys)))


def _ignoring(version: Version, summary: str, *names: str) -> Step:
    return Step(version, summary, edges(LISTS, up=ignoring(*names)))


def _shared_targets(answer: Answer, call: Call) -> None:
    for each in _volumes(answer):
        if each.get("shared_targets") is None and "shared_targets" in each:
            each["shared_targets"] = True


STEPS = (
    Step(Version(3, 12), "`GET /volumes/summary` shows the number and the size of volumes."),
    _without(Version(3, 13), "Volumes show their group, which is always null.", "group_id"),
    _without(Version(3, 21), "Administrators see the `provider_id` (always null).", "provider_id"),
    Step(
        Version(3, 23),
        "`DELETE /volumes/{id}` accepts `force`.",
        (Edge("DELETE", ONE, up=with_options(DeletionOptions, takes_force=False)),),
    ),
    _ignoring(
        Version(3, 31),
        "Lists of volumes accept the filters `name~` and `description~`.",
        "name~",
        "description~",
    ),
    Step(
        Version(3, 42),
        "A volume that is in use can be extended.",
        (Edge("POST", f"{ONE}/action", up=with_options(ExtendOptions, takes_attached=False)),),
    ),
    _ignoring(Version(3, 45), "Lists of volumes accept `with_count`.", "with_count"),
    _without(
        Version(3, 48),
        "Volumes show `shared_targets` and `service_uuid`.",
        "shared_targets",
        "service_uuid",
    ),
    _ignoring(
        Version(3, 60),
        "Lists of volumes accept filters by `created_at` and `updated_at`.",
        "created_at",
        "updated_at",
    ),
    _without(
        Version(3, 61), "Administrators see the `cluster_name` (always null).", "cluster_name"
    ),
    _without(Version(3, 63), "Volumes show the id of their type.", "volume_type_id"),
    _without(Version(3, 65), "Volumes show `consumes_quota`.", "consumes_quota"),
)
