"""Writes a small cloud into a Placement, to import it or to compare it with another one.

It is written over HTTP as by a client, at the newest version. A ``Caller`` calls either service.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Protocol

NAMESPACE = uuid.UUID("6f1a2c7e-0d3b-4f55-9b8e-2f6f5a1f0c11")
POOL_TRAIT = "MISC_SHARES_VIA_AGGREGATE"


class Caller(Protocol):
    """Sends requests to a Placement."""

    def __call__(self, method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
        """Send one request that must succeed; returns the answer's body."""


def named(*words: object) -> str:
    """Return a uuid that depends only on the words."""
    return str(uuid.uuid5(NAMESPACE, " ".join(map(str, words))))


class World:
    """Writes into one Placement."""

    def __init__(self, call: Caller) -> None:
        self.call = call

    def provider(
        self,
        name: str,
        inventories: Mapping[str, Mapping[str, Any]],
        *,
        parent: str | None = None,
        traits: tuple[str, ...] = (),
        aggregates: tuple[str, ...] = (),
    ) -> str:
        """Make a provider; its uuid follows from its name."""
        made = named(name)
        body = {"uuid": made, "name": name, "parent_provider_uuid": parent}
        generation = self.call("POST", "/resource_providers", body)["generation"]
        generation = self._put(made, generation, "inventories", inventories)
        if traits:
            generation = self._put(made, generation, "traits", list(traits))
        if aggregates:
            self._put(made, generation, "aggregates", list(aggregates))
        return made

    def _put(self, provider: str, generation: int, noun: str, wanted: Any) -> int:
        body = {"resource_provider_generation": generation, noun: wanted}
        answer = self.call("PUT", f"/resource_providers/{provider}/{noun}", body)
        return int(answer["resource_provider_generation"])

    def set(self, provider: str, noun: str, wanted: Any) -> None:
        """Replace a provider's inventories, traits or aggregates."""
        there = self.call("GET", f"/resource_providers/{provider}")
        self._put(provider, there["generation"], noun, wanted)

    def hold(
        self,
        name: str,
        amounts: Mapping[str, Mapping[str, int]],
        *,
        kind: str | None = "INSTANCE",
        project: str = "project",
        user: str = "user",
        is_new: bool = True,
    ) -> str:
        """Set a consumer's allocations by provider; its uuid follows from its name."""
        consumer = named("consumer", name)
        there = {} if is_new else self.call("GET", f"/allocations/{consumer}")
        body: dict[str, Any] = {
            "allocations": {p: {"resources": dict(each)} for p, each in amounts.items()},
            "consumer_generation": there.get("consumer_generation"),
            "project_id": project,
            "user_id": user,
        }
        if kind is None:
            self.call("PUT", f"/allocations/{consumer}", body, "1.37")
        else:
            self.call("PUT", f"/allocations/{consumer}", {**body, "consumer_type": kind})
        return consumer

    def fill(self, hosts: int = 3, servers_per_host: int = 4) -> None:
        """Write a cloud with every case that is hard to import."""
        self.call("PUT", "/resource_classes/CUSTOM_GPU_SLICE")
        self.call("PUT", "/traits/CUSTOM_RACK_7")
        self.call("PUT", "/traits/CUSTOM_UNUSED")
        rack = named("rack")
        pool = self.provider(
            "shared pool ✓",
            {"DISK_GB": {"total": 100_000, "allocation_ratio": 1.1}},
            traits=(POOL_TRAIT,),
            aggregates=(rack,),
        )
        for number in range(hosts):
            host = self.provider(
                f"rechner-ä{number}",
                {"VCPU": {"total": 8, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 65536}},
                traits=("CUSTOM_RACK_7", "HW_CPU_X86_AVX2"),
                aggregates=(rack, named("hall")),
            )
            numa = self.provider(
                f"rechner-ä{number}-numa", {"PCPU": {"total": 4, "reserved": 4}}, parent=host
            )
            card = self.provider(
                f"rechner-ä{number}-card", {"CUSTOM_GPU_SLICE": {"total": 16}}, parent=numa
            )
            for server in range(servers_per_host):
                self.hold(
                    f"{number}-{server}",
                    {
                        host: {"VCPU": 2, "MEMORY_MB": 1024},
                        card: {"CUSTOM_GPU_SLICE": 1},
                        pool: {"DISK_GB": 10},
                    },
                    kind="INSTANCE" if server % 2 else None,
                    project=f"project-{number % 2}",
                    user=f"Jürgen {server % 3}",
                )
        self._overfill(pool)

    def _overfill(self, pool: str) -> None:
        """Create a host that shrank below its allocations, and one whose units changed."""
        shrunk = self.provider("shrunk", {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 4096}})
        for server in range(6):
            self.hold(f"shrunk-{server}", {shrunk: {"VCPU": 8, "MEMORY_MB": 512}})
        self.set(shrunk, "inventories", {"VCPU": {"total": 9}, "MEMORY_MB": {"total": 4096}})
        odd = self.provider("odd", {"DISK_GB": {"total": 1000}, "VCPU": {"total": 8}})
        self.hold("odd", {odd: {"DISK_GB": 7}, pool: {"DISK_GB": 3}}, kind="MIGRATION")
        units = {"total": 1000, "min_unit": 10, "max_unit": 100, "step_size": 10}
        self.set(odd, "inventories", {"DISK_GB": units, "VCPU": {"total": 8, "reserved": 8}})
