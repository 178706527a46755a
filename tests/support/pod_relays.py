"""A door over two pods. One service of the first pod is behind a relay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.pod_processes import Door
from tests.support.zone_relays import Relay, relay_to

ALONE = {"build_plan_encryption_key": ""}


@contextmanager
def two_pods(at: Door, service: str, path: str, hosts: int = 2) -> Iterator[Relay]:
    """Add ``p1`` and ``p2``, with so many hosts each; ``service`` of ``p1`` is at the relay."""
    first, second = (at.pods.start(name, hosts, ALONE) for name in ("p1", "p2"))
    with relay_to(first.address) as relay:
        at.add("p1", first.address, endpoints={service: relay.address + path})
        at.add("p2", second.address)
        yield relay
