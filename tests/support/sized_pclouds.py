"""A pcloud with a size policy, in a cloud whose clock the test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import ServerId
from innkeeper.domain.pclouds import PcloudAction, PcloudHost, SizePolicy
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import hosts, pclouds, sizes
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

OWNER = "project"
SERVERS_EACH = 2
"""The number of small servers that fill a host."""


class Kept:
    """One pcloud with a policy, in a cloud whose pool has some hosts of one unit each."""

    def __init__(
        self,
        folder: Path,
        host_count: int,
        zones: Mapping[str, str] = MappingProxyType({}),
        lacking: str | None = None,
        **facts: Any,
    ) -> None:
        """``lacking`` is a class that the hosts do not have themselves."""
        names = [f"a{number}" for number in range(1, host_count + 1)]
        zoned: dict[str, dict[str, Any]] = {
            name: {"availability_zone": zone} for name, zone in zones.items()
        }
        output = {"vcpus": SERVERS_EACH, **facts}
        reports = [reported(name, **{**output, **zoned.get(name, {})}) for name in names]
        self.movers = Movers(folder, *(without(each, lacking) for each in reports))
        self.operator = PcloudOperator(self.movers)
        self.operator.define("gold", 1)
        for name in names:
            self.pool(name)

    def pool(self, name: str) -> None:
        """Put a host into the pool."""
        self.operator.switch_service(name, ServiceChange(is_disabled=True))
        self.operator.pool("gold", name, by_aggregate=False)

    def wants(self, least: int, most: int, **more: Any) -> None:
        """Create the pcloud with its policy."""
        size = SizePolicy(least, most, "gold", **more)
        self.uuid = self.operator.create(OWNER, name="mine", size=size)

    def turn(self, seconds: float = 10.0) -> int:
        """Let some time pass, and run the size task; returns the change of the number of hosts."""
        self.movers.wait(seconds)
        context = self.operator.context()
        return int(self.movers.cloud.write(lambda tx: sizes.keep(tx, self.uuid, context)))

    def turns(self, count: int = 6) -> list[int]:
        """Run several turns; returns their changes."""
        return [self.turn() for _ in range(count)]

    def hosts(self) -> list[PcloudHost]:
        """Return the pcloud's hosts by name."""
        return list(self.movers.cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, self.uuid))))

    def names(self) -> list[str]:
        """Return the hosts' names."""
        return [each.name for each in self.hosts()]

    def machine(self, name: str) -> str:
        """Return the machine of a host."""
        return next(each.hostname for each in self.hosts() if each.name == name)

    def actions(self) -> list[tuple[str, str | None]]:
        """Return the pcloud's actions, oldest first."""

        def look(tx: Tx) -> list[PcloudAction]:
            return pclouds.actions(tx, self.uuid, limit=100)

        return [(each.action, each.host_name) for each in reversed(self.movers.cloud.read(look))]

    def boot(self, host: str | None = None, **more: Any) -> ServerId:
        """Boot a running server in the pcloud, on one of its hosts or on any."""
        hints = {"pcloud": self.uuid, **({"pcloud_host": host} if host else {})}
        return self.movers.boot(None, project_id=OWNER, hints=hints, **more)

    def fill(self, host: str) -> list[ServerId]:
        """Fill one host completely."""
        return [self.boot(host) for _ in range(SERVERS_EACH)]

    def delete(self, server: ServerId) -> None:
        """Delete a server, with its agent's work."""
        self.movers.delete(server)
        self.movers.finish()


def without(report: HostReport, lacking: str | None) -> HostReport:
    """Return the report without a class, if one is given."""
    has = {name: each for name, each in report.inventories.items() if name != lacking}
    return replace(report, inventories=has)
