"""Keep isolated images on isolated hosts and, by default, all other images on other hosts."""

from __future__ import annotations

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts.masks import named
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

NAME = "IsolatedHostsFilter"
REASON = "the host is isolated and the image is not, or the image is isolated and the host is not"
READS: Reads = ("image_id", "rules")


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where host and image are both isolated, or both not isolated.

    If ``isolated_hosts_take_isolated_images_only`` is off, isolated hosts also take other images.
    """
    rules = spec.rules
    if _is_isolated(spec):
        return named(hosts, rules.isolated_hosts, rows)
    if rules.isolated_hosts and rules.isolated_hosts_take_isolated_images_only:
        return ~named(hosts, rules.isolated_hosts, rows)
    return None


def _is_isolated(spec: RequestSpec) -> bool:
    return spec.image_id is not None and spec.image_id in spec.rules.isolated_images


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Say whether the image is isolated, and how many hosts are isolated."""
    image = "an isolated image" if _is_isolated(spec) else "an image that is not isolated"
    there = hosts.rows_named(spec.rules.isolated_hosts).shape[0]
    return f"{image} requested; {there} of {hosts.host_count} hosts are isolated"
