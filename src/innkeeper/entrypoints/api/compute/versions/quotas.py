"""The changes that microversions made to quotas and limits.

Innkeeper has no quotas for networks and injected files. Older versions show these quotas with
Nova's default values.
"""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.accounts.quotas import put_into
from innkeeper.entrypoints.api.compute.accounts.schemas import QUOTA_NAMES, quota_set
from innkeeper.entrypoints.api.compute.versions.edges import closed_queries
from innkeeper.entrypoints.api.edges import Down, edges
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.routing import Answer, Call

QUOTAS = "/v2.1/os-quota-sets/{project_id}"
CLASSES = "/v2.1/os-quota-class-sets/{class_id}"
LIMITS = "/v2.1/limits"

UNLIMITED = -1
FILES = 5
FILE_BYTES = 10240
PATH_BYTES = 255
OF_FILES = {
    "injected_file_content_bytes": FILE_BYTES,
    "injected_file_path_bytes": PATH_BYTES,
    "injected_files": FILES,
}
OF_NETWORKS = dict.fromkeys(
    ("fixed_ips", "floating_ips", "security_groups", "security_group_rules"), UNLIMITED
)
# Error messages list the names in this order.
FILE_NAMES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
BEFORE_2_57 = quota_set((*QUOTA_NAMES, *FILE_NAMES))
BEFORE_2_36 = quota_set((*QUOTA_NAMES, *FILE_NAMES, *OF_NETWORKS))


def _with_networks(answer: Answer, call: Call) -> None:
    put_into(answer, OF_NETWORKS)


def _limits_with_networks(answer: Answer, call: Call) -> None:
    answer.body["limits"]["absolute"].update(
        maxTotalFloatingIps=UNLIMITED,
        maxSecurityGroups=UNLIMITED,
        maxSecurityGroupRules=UNLIMITED,
        totalFloatingIpsUsed=0,
        totalSecurityGroupsUsed=0,
    )


def _with_image_metadata(answer: Answer, call: Call) -> None:
    absolute = answer.body["limits"]["absolute"]
    # Older versions show this limit under a second name.
    absolute["maxImageMeta"] = absolute["maxServerMeta"]


def _without_groups(answer: Answer, call: Call) -> None:
    for name in ("server_groups", "server_group_members"):
        answer.body["quota_class_set"].pop(name, None)


def _with_files(answer: Answer, call: Call) -> None:
    put_into(answer, OF_FILES)


def _limits_with_files(answer: Answer, call: Call) -> None:
    answer.body["limits"]["absolute"].update(maxPersonality=FILES, maxPersonalitySize=FILE_BYTES)


def _wherever_shown(body_before: Schema, down: Down) -> tuple[Edge, ...]:
    """Return the same downgrade for all routes that show a project's quotas."""
    shown = tuple(("GET", f"{QUOTAS}{part}") for part in ("", "/detail", "/defaults"))
    return (*edges(shown, down=down), Edge("PUT", QUOTAS, body_before=body_before, down=down))


STEPS = (
    Step(
        Version(2, 36),
        "Quotas and limits no longer have networks and security groups.",
        (
            *_wherever_shown(BEFORE_2_36, _with_networks),
            Edge("GET", LIMITS, down=_limits_with_networks),
        ),
    ),
    Step(
        Version(2, 39),
        "Limits no longer have image metadata.",
        (Edge("GET", LIMITS, down=_with_image_metadata),),
    ),
    Step(
        Version(2, 50),
        "Quota classes show server groups.",
        (Edge("GET", CLASSES, down=_without_groups),),
    ),
    Step(
        Version(2, 57),
        "Quotas and limits no longer have personality files.",
        (
            *_wherever_shown(BEFORE_2_57, _with_files),
            Edge("GET", CLASSES, down=_with_files),
            Edge("GET", LIMITS, down=_limits_with_files),
        ),
    ),
    closed_queries(
        ("GET", QUOTAS),
        ("PUT", QUOTAS),
        ("DELETE", QUOTAS),
        ("GET", f"{QUOTAS}/detail"),
        ("GET", LIMITS),
    ),
)
