"""A zone parent that sends what a test wants, with hop tokens that it signs itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support import hop_tokens

COMPUTE = "/compute/v2.1"
NEWEST = "compute 2.100"
PARENTS = "/zones/parents"
FLAVOR: Mapping[str, Any] = {"id": "v1", "name": "v1", "ram": 64, "vcpus": 1, "disk": 1}
DEFINITIONS = {
    "flavor": {"id": 0, "flavor_id": "v1", "name": "v1", "vcpus": 1, "memory_mb": 64, "disk_gb": 1}
}
"""The definition of all servers' flavor, which a parent sends along."""
Send = Callable[..., Any]
"""Sends a request to a service: the method, the path, the token, and more."""


@dataclass(slots=True)
class Parent:
    """A zone parent, as its child knows it. ``send`` reaches the child."""

    name: str
    id: str
    password: str
    send: Send

    def ask(
        self, method: str, path: str, body: Any = None, *, at: Send | None = None, **claims: Any
    ) -> httpx.Response:
        """Send a request with a token of its own. ``claims`` are those of the token."""
        token = claims.pop("token", None) or self.token(method, path, body, **claims)
        return self.present(token, method, path, body, at=at)

    def present(
        self, token: str, method: str, path: str, body: Any = None, *, at: Send | None = None
    ) -> httpx.Response:
        """Send a request with this token, which may have been made for another request."""
        headers = {"openstack-api-version": NEWEST, "content-type": "application/json"}
        send = at or self.send
        raw = raw_of(body)
        answer: httpx.Response = send(method, COMPUTE + path, token, content=raw, headers=headers)
        assert answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR, (path, answer.text)
        return answer

    def token(self, method: str, path: str, body: Any = None, **claims: Any) -> str:
        """Return a token for a request."""
        password = claims.pop("password", self.password)
        return hop_tokens.token(
            method, COMPUTE + path, raw_of(body), parent=self.name, password=password, **claims
        )

    def offers(self, count: int = 1, **claims: Any) -> list[dict[str, Any]]:
        """Return the offers of a plan."""
        body = {"server": wanted(min_count=1, max_count=count), "zone": told()}
        answer = self.ask("POST", "/zones/select", body, **claims)
        assert answer.status_code == httpx.codes.OK, answer.text
        found: list[dict[str, Any]] = answer.json()["weights"]
        return found

    def build(
        self, sealed: Sequence[str], ids: Sequence[str], *, batch: str = "r-batch", **more: Any
    ) -> httpx.Response:
        """Let the child build the servers of entries."""
        rows = [
            {"id": uuid, "blob": blob, "name": "s", "launch_index": place}
            for place, (uuid, blob) in enumerate(zip(ids, sealed, strict=True))
        ]
        body = {"server": wanted(), "zone": told(batch_id=batch, entries=rows)}
        return self.ask("POST", "/servers", body, **more)

    def undo(self, *ids: str, **claims: Any) -> list[str]:
        """Have the child undo these servers. Return those that are gone."""
        body = {"servers": list(ids)}
        answer = self.ask("POST", "/zones/undo", body, project=None, **claims)
        assert answer.status_code == httpx.codes.OK, answer.text
        gone: list[str] = answer.json()["gone"]
        return gone


def raw_of(body: Any) -> bytes:
    """Return the bytes of a body."""
    return b"" if body is None else json.dumps(body).encode()


def wanted(**more: Any) -> dict[str, Any]:
    """Return the fields of a server."""
    return {"name": "s", "flavorRef": "v1", "networks": "none", "imageRef": "", **more}


def told(**more: Any) -> dict[str, Any]:
    """Return what a parent adds to the body of its user's request."""
    return {"definitions": DEFINITIONS, **more}


def parent_of(send: Send, name: str, **fields: Any) -> Parent:
    """Register a new zone parent at the zone that ``send`` reaches."""
    body = {"zone_parent": {"name": name, **fields}}
    made = send("POST", COMPUTE + PARENTS, "admin", json=body)
    assert made.status_code == httpx.codes.CREATED, made.text
    row = made.json()["zone_parent"]
    return Parent(name, row["id"], row["password"], send)


def change(parent: Parent, **fields: Any) -> dict[str, Any]:
    """Change a zone parent, as the administrator of its child."""
    path = f"{COMPUTE}{PARENTS}/{parent.id}"
    answer = parent.send("PUT", path, "admin", json={"zone_parent": fields})
    assert answer.status_code == httpx.codes.OK, answer.text
    row: dict[str, Any] = answer.json()["zone_parent"]
    return row
