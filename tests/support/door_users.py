"""A user of a project who makes servers and volumes through a door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.pod_processes import CAD, Door
from tests.support.zone_processes import wait_for

COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
SMALL: Mapping[str, Any] = {"vcpus": 1, "ram": 64, "disk": 1}
WITH_NETWORKS = {"openstack-api-version": "compute 2.37"}
ACCEPTED, NO_CONTENT = httpx.codes.ACCEPTED, httpx.codes.NO_CONTENT


def furnish(at: Door) -> None:
    """Make flavors and volume types at a door: for general work, and for special work."""
    for name in ("g", "cad"):
        flavor = {"flavor": {"id": name, "name": name, **SMALL}}
        at.ask("POST", f"{COMPUTE}/flavors", flavor, token="admin")
    specs = {"extra_specs": dict(CAD)}
    at.ask("POST", f"{COMPUTE}/flavors/cad/os-extra_specs", specs, token="admin")
    for name, found in (("std", {}), ("cad", dict(CAD))):
        kind = {"volume_type": {"name": name, "extra_specs": found}}
        at.ask("POST", f"{VOLUME}/types", kind, token="admin")


@dataclass(frozen=True, slots=True)
class DoorUser:
    """A user of a project of a door."""

    at: Door
    project: str

    @property
    def token(self) -> str:
        """The user's token."""
        return f"user:{self.project}"

    def send(self, method: str, path: str, body: Any = None, *, process: int = 0) -> httpx.Response:
        """Send a request."""
        return self.at.send(method, path, body, process=process, token=self.token)

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """Send a request that must succeed, and return the body of the answer."""
        return self.at.ask(method, path, body, token=self.token, status=status)

    def boot(self, *, process: int = 0, **server: Any) -> httpx.Response:
        """Ask for a server."""
        usual = {"name": "some", "flavorRef": "g", "imageRef": "", "networks": "none"}
        body, path = {"server": {**usual, **server}}, f"{COMPUTE}/servers"
        return self.at.send(
            "POST", path, body, token=self.token, headers=WITH_NETWORKS, process=process
        )

    def booted(self, **server: Any) -> str:
        """Boot a server, and return its id."""
        answer = self.boot(**server)
        assert answer.status_code == ACCEPTED, answer.text
        return str(answer.json()["server"]["id"])

    def place_of_new(self, **server: Any) -> str:
        """Boot a server, and return the name of its pod."""
        uuid = self.booted(**server)
        return self.places()[uuid]

    def stored(self, **volume: Any) -> str:
        """Make a volume, and return its id when the volume is available."""
        usual = {"size": 1, "volume_type": "std"}
        made = self.ask("POST", f"{VOLUME}/volumes", {"volume": {**usual, **volume}}, status=202)
        uuid = str(made["volume"]["id"])
        wait_for("the volume is there", lambda: self.volume(uuid)["status"] == "available")
        return uuid

    def server(self, uuid: str) -> Any:
        """Return a server."""
        return self.ask("GET", f"{COMPUTE}/servers/{uuid}")["server"]

    def volume(self, uuid: str) -> Any:
        """Return a volume."""
        return self.ask("GET", f"{VOLUME}/volumes/{uuid}")["volume"]

    def is_active(self, uuid: str) -> bool:
        """Whether a server runs."""
        return bool(self.server(uuid)["status"] == "ACTIVE")

    def delete(self, uuid: str) -> None:
        """Delete a server, and wait until the door has forgotten it."""
        answer = self.send("DELETE", f"{COMPUTE}/servers/{uuid}")
        assert answer.status_code == NO_CONTENT, answer.text
        wait_for("the routing is gone", lambda: uuid not in self.places())

    def attach(self, server: str, volume: str) -> httpx.Response:
        """Ask to attach a volume to a server."""
        path = f"{COMPUTE}/servers/{server}/os-volume_attachments"
        return self.send("POST", path, {"volumeAttachment": {"volumeId": volume}})

    def servers(self, query: str = "") -> list[str]:
        """Return the ids of the servers that the door lists."""
        found = self.ask("GET", f"{COMPUTE}/servers/detail{query}")["servers"]
        return [each["id"] for each in found]

    def routings(self) -> list[Any]:
        """Return the routings of the project."""
        found: list[Any] = self.at.get(f"/routings?project_id={self.project}")["routings"]
        return found

    def places(self) -> dict[str, str]:
        """Return the name of the pod of each server and volume."""
        names = {uuid: name for name, uuid in self.at.ids.items()}
        return {each["top_id"]: names[each["pod_id"]] for each in self.routings()}

    def used(self) -> int:
        """Return the number of servers that the quota counts."""
        told = self.ask("GET", f"{COMPUTE}/limits")["limits"]["absolute"]
        return int(told["totalInstancesUsed"])
